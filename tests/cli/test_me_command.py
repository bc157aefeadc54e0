"""`tacit me`: what people and programs see of the personal pipeline."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.main import main
from tacit.personal.store.store import Store

RIDES = """\
when,city,price,passed
2024-01-01 08:00,Bern,12.5,true
2024-01-02 08:00,Basel,20,false
2024-01-03 08:00,Bern,7,true
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.delenv("TACIT_PASSPHRASE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rides.csv").write_text(RIDES)
    return tmp_path / "home"


class Said:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(["me", *words])
        out, err = capsys.readouterr()
        return Said(int(left.value.code or 0), out, err)

    return call


@pytest.fixture
def student(run: Any) -> Any:
    """The invented student's exports, imported."""
    assert run("example", "exports").code == 0
    for words in (
        ("exports/Fitbit", "--zone", "Europe/Zurich"),
        ("exports/study.csv", "--source", "diary"),
        ("exports/tests.jsonl", "--source", "school", "-o", "type=test"),
    ):
        assert run("import", *words).code == 0
    return run


PASS = """\
name = "pass"
question = "Will I pass the next test?"

[events.test]
passed = "boolean"
subject = "category"

[events.sleep_session]
asleep_seconds = "number"

[instance]
per = "event"
event = "test"
known = ["subject"]

[label]
value = "own.passed"
name = "passed"

[features]
list = ["mean(sleep_session.asleep_seconds, 7d) / 3600", "own.subject"]
"""


# ── importing and looking ──


def test_imports_say_what_was_added_and_twice_adds_nothing(run: Any) -> None:
    first = run("import", "rides.csv", "--zone", "Europe/Zurich", "--json").document
    assert first == {
        "source": "csv",
        "importer": "csv",
        "added": {"rides": 3},
        "known": 0,
        "damaged": 0,
        "places": [],
    }
    again = run("import", "rides.csv")
    assert again.out == "csv: 0 events added; 3 were here already.\n"
    (source,) = run("sources", "--json").document["sources"]
    assert (source["events"], source["since"], source["until"]) == (3, "2024-01-01", "2024-01-03")
    assert "rides.csv" in source["exports"]


def test_events_are_shown_by_the_persons_clock(run: Any) -> None:
    run("import", "rides.csv", "--zone", "Europe/Zurich", "-o", "type=ride")
    (kind,) = run("events", "--json").document["types"]
    assert (kind["name"], kind["events"]) == ("ride", 3)
    assert kind["fields"] == {"city": "category", "price": "number", "passed": "boolean"}
    found = run("events", "ride", "--since", "2024-01-02", "--json").document
    assert found["events"] == 2
    assert found["shown"][0] == {
        "time": "2024-01-02T08:00:00+01:00",
        "source": "csv",
        "city": "Basel",
        "price": 20.0,
        "passed": False,
    }
    assert "Basel" in run("events", "ride", "--limit", "2").out
    assert "the latest 2 of 3" in run("events", "ride", "--limit", "2").out


def test_written_tables_hold_no_formulas(run: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("when,note,size\n2024-01-01,=W=,1\n2024-01-02,-x,-2\n")
    run("import", "notes.csv", "-o", "type=note")
    run("events", "note", "--out", "out.csv")
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["note"] for row in rows] == ["'=W=", "'-x"]
    assert [row["size"] for row in rows] == ["1.0", "-2.0"]  # numbers are numbers


def test_damaged_records_stop_an_import_or_are_left_out(run: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(RIDES + "2024-01-04 08:00,=cmd|'/c x'!A1,1,true\n")
    refused = run("import", "bad.csv", "-o", "type=ride")
    assert refused.code == 3
    assert "bad.csv, row 5: city holds a spreadsheet's formula" in refused.err
    assert run("events", "--json").document == {"types": []}
    done = run("import", "bad.csv", "-o", "type=ride", "--skip-damaged")
    assert "3 events added" in done.out
    assert "1 records were damaged and left out:\n  bad.csv, row 5" in done.out


def test_what_cannot_be_read_is_said(run: Any, tmp_path: Path) -> None:
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    assert "no importer recognises it" in run("import", "noise.bin").err
    assert "Did you mean spotify" in run("import", "rides.csv", "--as", "spotfy").err
    assert run("import", "rides.csv", "--zone", "Mars/Olympus").code == 2
    assert "NAME=VALUE" in run("import", "rides.csv", "-o", "type").err
    assert run("import", "nowhere.csv").code == 3


def test_before_the_first_import_there_is_nothing(run: Any) -> None:
    said = run("events")
    assert said.code == 3
    assert "tacit me import" in said.err


def test_every_importer_says_how_to_get_its_export(run: Any) -> None:
    document = run("importers", "--json").document
    assert document["broken"] == {}
    names = {one["name"] for one in document["importers"]}
    assert {
        "csv",
        "jsonl",
        "sqlite",
        "ical",
        "mbox",
        "gpx",
        "tcx",
        "apple_health",
        "youtube",
    } <= names
    assert {"google_location", "google_activity", "spotify", "netflix", "uber", "lyft"} <= names
    assert {"bank", "ofx", "firefox", "chrome", "fitbit", "garmin", "github", "oulad"} <= names
    assert "kddcup" in names
    assert all(one["hint"] and one["title"] for one in document["importers"])
    assert "spotify" in run("importers").out


# ── keeping it to oneself ──


def test_a_source_is_forgotten(run: Any, home: Path) -> None:
    run("import", "rides.csv")
    assert run("forget", "csv", "--yes").out == "3 events from csv are gone.\n"
    assert run("sources", "--json").document == {"sources": []}
    assert run("forget", "csv", "--yes").code == 2
    assert b"Basel" not in (home / "me.db").read_bytes()


def test_a_sealed_store_opens_with_its_passphrase(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("import", "rides.csv")
    monkeypatch.setenv("TACIT_NEW_PASSPHRASE", "sesame")
    assert run("seal").out == "The store is sealed.\n"
    assert b"Basel" not in (home / "me.db").read_bytes()
    monkeypatch.setenv("TACIT_PASSPHRASE", "wrong")
    assert run("sources").code == 4
    monkeypatch.setenv("TACIT_PASSPHRASE", "sesame")
    assert len(run("sources", "--json").document["sources"]) == 1
    assert run("seal", "--off").code == 0
    monkeypatch.delenv("TACIT_PASSPHRASE")
    assert run("sources").code == 0


# ── problems ──


def test_a_problem_is_explained_shared_and_adopted(student: Any, tmp_path: Path) -> None:
    (tmp_path / "pass.toml").write_text(PASS)
    shown = student("show", "pass.toml")
    assert "not signed" in shown.out
    assert "Nothing: it is computed here" in shown.out
    shared = student("share", "pass.toml", "bundle.toml", "--json").document
    assert student("share", "pass.toml", "bundle.toml").code == 2  # never overwritten
    assert "signed by" in student("show", "bundle.toml").out
    assert student("adopt", "bundle.toml", "--yes").code == 0
    (kept,) = student("problems", "--json").document["problems"]
    assert (kept["name"], kept["model"]) == ("pass", False)
    assert student("train", "pass").code == 0
    assert student("problems").out == "pass, trained: Will I pass the next test?\n"
    with Store.open(tmp_path / "home" / "me.db") as store:
        assert b"[signature]" in store.fetched("problem", "pass")  # training keeps it as it is
    changed = (tmp_path / "bundle.toml").read_text().replace("7d", "8d")
    (tmp_path / "changed.toml").write_text(changed)
    assert student("show", "changed.toml").code == 6
    assert student("adopt", "changed.toml", "--yes").code == 6
    assert student("adopt", "pass.toml", "--yes").code == 6  # not signed
    assert len(shared["digest"]) == 64


def test_a_schema_for_a_study_is_drafted(run: Any, tmp_path: Path) -> None:
    columns = '[columns]\nsleep = "mean(sleep_session.asleep_seconds, 7d)"\n'
    (tmp_path / "pass.toml").write_text(PASS + "\n" + columns)
    assert run("share", "pass.toml", "bundle.toml", "--schema", "schema.toml").code == 0
    drafted = (tmp_path / "schema.toml").read_text()
    assert "TODO" in drafted
    assert "[columns.passed]" in drafted


# ── learning ──


@pytest.fixture
def passing(student: Any, tmp_path: Path) -> Any:
    (tmp_path / "pass.toml").write_text(PASS)
    return student


def test_instances_and_features_are_shown_and_written(passing: Any, tmp_path: Path) -> None:
    found = passing("instances", "pass.toml", "--limit", "1", "--json").document
    assert (found["instances"], found["labelled"]) == (319, 319)
    assert found["shown"][0]["key"] == "2024-06-27 12:00"
    assert "319 examples, of which 319 have an answer" in passing("instances", "pass.toml").out
    matrix = passing("features", "pass.toml", "--out", "matrix.csv", "--json").document
    names = [feature["name"] for feature in matrix["features"]]
    assert names == ["mean(sleep_session.asleep_seconds, 1w) / 3600", "own.subject"]
    with open("matrix.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 320
    assert rows[0][-1] == "passed"
    assert "319 examples, 2 features" in passing("features", "pass.toml").out


def test_a_model_is_trained_kept_used_and_forgotten(passing: Any, tmp_path: Path) -> None:
    said = passing("train", "pass.toml", "--plot", "pass.png")
    assert said.code == 0
    assert "Better than always saying yes" in said.out
    assert (tmp_path / "pass.png").read_bytes().startswith(b"\x89PNG")
    report = passing("train", "pass", "--json").document  # by the name it is kept under
    assert report["verdict"]["outcome"] == "better"
    assert report["useful"][0]["name"] == "mean(sleep_session.asleep_seconds, 1w) / 3600"
    words = ("predict", "pass", "--at", "2024-07-01T12:00", "--know", "subject=history")
    (one,) = passing(*words, "--json").document["predictions"]
    assert one["key"] == "2024-07-01 12:00"
    assert sum(one["chances"]) == pytest.approx(1)
    assert "yes" in passing(*words).out
    assert "every instance has its answer" in passing("predict", "pass").err
    assert "known beforehand" in passing(*words[:4], "--know", "passed=true").err
    assert passing("predict", "nothing").code == 2
    passing("forget", "fitbit", "--yes")
    assert passing("predict", "pass").code == 2  # the model went with what it had learned from


def test_what_is_not_there_is_said_before_anything_is_learned(run: Any, tmp_path: Path) -> None:
    run("import", "rides.csv")
    (tmp_path / "pass.toml").write_text(PASS)
    refused = run("train", "pass.toml")
    assert refused.code == 3
    assert "needs events of type" in refused.err


# ── asking ──


def test_a_question_is_understood_and_answered(student: Any, tmp_path: Path) -> None:
    words = ("ask", "How likely am I to pass the test tomorrow?", "--now", "2024-06-30T22:00")
    document = student(*words, "--save", "asked.toml", "--json").document
    assert document["method"] == "model"
    assert 0 < document["results"][0]["value"] < 1
    assert document["results"][0]["trust"]["grade"] in ("little", "fairly", "well")
    assert 'value = "own.passed"' in (tmp_path / "asked.toml").read_text()
    said = student(*words, "--yes")
    assert said.out.index("For each") < said.out.index("the chance is")


def test_a_question_that_is_unclear_offers_what_it_may_mean(run: Any) -> None:
    run("import", "rides.csv", "-o", "type=ride")
    unclear = run("ask", "How likely is a zebra ride tomorrow?", "--yes")
    assert unclear.code == 2
    assert "1. " in unclear.out
    assert "zebra" in unclear.err
    assert "--choose NUMBER" in unclear.err
    words = ("ask", "How likely is a zebra ride tomorrow?", "--now", "2024-01-03", "--json")
    chosen = run(*words, "--choose", "1")
    assert chosen.code == 0, chosen.err
    assert chosen.document["method"] == "counting"  # three rides make no model


def test_a_question_that_fits_nothing_says_what_could_be_asked(student: Any) -> None:
    refused = student("ask", "Who will win the world cup?", "--json")
    assert refused.code == 3
    assert "test" in refused.err


def test_the_example_is_the_same_for_everybody_and_overwrites_nothing(
    run: Any, tmp_path: Path
) -> None:
    run("example", "one")
    run("example", "two")
    run("example", "three", "--person", "1")
    files = {
        name: (tmp_path / name / "tests.jsonl").read_text() for name in ("one", "two", "three")
    }
    assert files["one"] == files["two"] != files["three"]
    assert run("example", "one").code == 2


def test_a_store_may_be_elsewhere(run: Any, tmp_path: Path, home: Path) -> None:
    run("import", "rides.csv", "--store", "other.db")
    assert not (home / "me.db").exists()
    with Store.open(tmp_path / "other.db") as store:
        assert store.counts() == {"rides": 3}
