"""`tacit study`: from flags or questions to a signed file, and back to words."""

from __future__ import annotations

import json
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.channels.studies.study import Study
from tacit.cli.main import main
from tacit.crypto.signing import SigningKey, fingerprint

SCHEMA = """
[columns.age]
type = "integer"
bounds = [0, 120]

[columns.ill]
type = "category"
role = "label"
categories = ["no", "yes"]
"""


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> Result:
        with pytest.raises(SystemExit) as left:
            main(["study", *words])
        printed = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Result(left.value.code, printed.out, printed.err)

    return run


def flags(**changes: str) -> list[str]:
    """All that `new` needs; an empty text leaves a flag out."""
    given = {
        "name": "heart-2026",
        "question": "Who is ill?",
        "program": "logistic",
        "epsilon": "1",
        "schema": "schema.toml",
        "aggregator": f"sum=https://sum.example:8443={'c' * 64}",
        **changes,
    }
    words = [w for k, v in given.items() if v for w in (f"--{k.replace('_', '-')}", v)]
    for name, digit in (("north", "a"), ("south", "b")):
        words += ["--server", f"{name}=https://{name}.example:8443={digit * 64}"]
    for name, digit in (("a", "d"), ("b", "e"), ("c", "9")):
        words += ["--holder", f"{name}={digit * 64}"]
    return words


@pytest.fixture
def written(tacit: Any) -> Path:
    assert tacit("new", "study.toml", *flags()).code == 0
    return Path("study.toml")


# ── new ──


def test_new_writes_a_signed_study(tacit: Any) -> None:
    words = flags(
        delta="1e-7",
        unit="holder",
        adjacency="replace",
        minimum="3",
        records="500",
        gather="10",
        round_deadline="2.5",
        noise="honest=2",
        set="penalty=3",
    )
    result = tacit("new", "study.toml", *words, "--json")
    assert result.code == 0
    study = Study.load("study.toml")
    study.check_signature()
    author = SigningKey.of_holder().public_key
    assert result.document["author"] == author
    assert result.document["digest"] == study.digest
    assert result.document["fingerprints"]["a"] == fingerprint("d" * 64)
    assert study.rounds == 110  # computed from the plan
    assert study.chosen.settings == {"penalty": 3}
    assert str(study.promise) == "ε = 1, δ = 1e-07 per holder (replace)"
    assert (study.noise.policy, study.noise.honest) == ("honest", 2)
    assert (study.take_part.minimum, study.take_part.maximum) == (3, 3)
    assert (study.deadlines.gather, study.deadlines.round) == (10, 2.5)
    assert [s.name for s in study.servers] == ["north", "south"]
    assert tacit("check", "study.toml").code == 0


def test_new_does_not_overwrite(tacit: Any, written: Path) -> None:
    before = written.read_bytes()
    result = tacit("new", "study.toml", *flags(question="Another?"))
    assert result.code == 2
    assert "--force" in result.err
    assert written.read_bytes() == before
    assert tacit("new", "study.toml", *flags(question="Another?"), "--force").code == 0
    assert Study.load(written).question == "Another?"


def test_new_signs_with_a_named_identity(tacit: Any) -> None:
    assert tacit("new", "study.toml", *flags(), "--key", "author").code == 3
    assert not Path("study.toml").exists()
    with pytest.raises(SystemExit):
        main(["keys", "new", "author"])
    assert tacit("new", "study.toml", *flags(), "--key", "author").code == 0
    signature = Study.load("study.toml").signature
    assert signature is not None
    assert signature.author != SigningKey.of_holder().public_key


def test_new_without_a_terminal_names_what_is_missing(tacit: Any) -> None:
    result = tacit("new", "study.toml", *flags(name="", epsilon=""))
    assert result.code == 2
    assert "--name, --epsilon" in result.err
    assert not Path("study.toml").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"aggregator": "sum"}, "NAME=ADDRESS=KEY"),
        ({"aggregator": "sum=http://far.example:1=" + "c" * 64}, "https://"),
        ({"noise": "some"}, "every-server"),
        ({"noise": "honest=3"}, "honest = 2 … 2"),
        ({"program": "magic"}, "not installed"),
        ({"set": "speed=1"}, "no setting 'speed'"),
        ({"set": "speed"}, "KEY=VALUE"),
        ({"schema": "none.toml"}, "no such file"),
        ({"epsilon": "-1"}, "above 0"),
        ({"windows": "0"}, "at least one"),
        ({"windows": "2", "adjacency": "replace"}, "two windows cost more"),
        ({"unit": "person"}, "--holders-per-person"),
        ({"unit": "person", "holders_per_person": "0"}, "x>=1"),
        ({"holders_per_person": "2"}, 'goes with unit = "person"'),
        ({"records": str(2**60)}, "lower records"),
        ({"sampling": "1.5"}, "rate = 1.5"),
        ({"sampling": "0.5", "unit": "holder"}, "no secret sample of holders"),
        ({"sampling": "0.5", "adjacency": "replace"}, 'adjacency = "add-remove"'),
        ({"sampling": "0.5", "epsilon": "inf"}, "no noise that a secret sample"),
        ({"selection": "sparse-vector"}, "nothing would be saved"),
        ({"selection": "noisy-counts"}, "take [selection] out"),
    ],
)
def test_new_writes_nothing_that_is_wrong(tacit: Any, changes: Any, words: str) -> None:
    result = tacit("new", "study.toml", *flags(**changes))
    assert result.code in (2, 3, 4)
    assert words in result.err
    assert not Path("study.toml").exists()


def test_new_asks_at_a_terminal(tacit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(
        [
            "heart-2026",
            "Who is ill?",
            "",  # the default program
            "0.5",
            "schema.toml",
            f"north=https://north.example:1={'a' * 64}",
            f"south=https://south.example:1={'b' * 64}",
            "",  # no more servers
            f"sum=https://sum.example:1={'c' * 64}",
            f"a={'d' * 64}",
            f"b={'e' * 64}",
            "",  # no more holders
        ]
    )

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda text: next(answers))
    assert tacit("new", "study.toml").code == 0
    study = Study.load("study.toml")
    assert study.promise.epsilon == 0.5
    assert (len(study.servers), len(study.holders), study.take_part.minimum) == (2, 2, 2)
    assert next(answers, None) is None


def test_new_agrees_on_a_sample_and_show_says_what_it_buys(tacit: Any) -> None:
    made = tacit("new", "study.toml", *flags(sampling="0.1", delta="0", program="histogram"))
    assert made.code == 0
    assert "[sampling]\nrate = 0.1\n" in Path("study.toml").read_text()
    assert tacit("check", "study.toml").code == 0
    assert Study.load("study.toml").rate == Fraction(1, 10)
    shown = " ".join(tacit("show", "study.toml", "--quick").out.split())
    assert "What sampling and selection buy" in shown
    assert "times the noise that it would have without sampling" in shown
    told = tacit("show", "study.toml", "--quick", "--json").document["options"]
    assert len(told) == 4


def test_a_rate_that_was_edited_breaks_the_signature(tacit: Any) -> None:
    assert tacit("new", "study.toml", *flags(sampling="0.5", delta="0")).code == 0
    text = Path("study.toml").read_text()
    Path("study.toml").write_text(text.replace("rate = 0.5", "rate = 0.25"))
    result = tacit("check", "study.toml")
    assert result.code == 6
    assert "changed after signing" in result.err


def test_new_states_how_itemsets_selects(tacit: Any, folder: Path) -> None:
    (folder / "schema.toml").write_text('[columns.smokes]\ntype = "boolean"\n')
    words = flags(selection="noisy-counts", program="frequent-itemsets", delta="0")
    assert tacit("new", "study.toml", *words).code == 0
    assert '[selection]\nkind = "noisy-counts"\n' in Path("study.toml").read_text()
    assert "costs nothing more" in tacit("show", "study.toml", "--quick").out


PERSON = '\n[columns.id]\ntype = "text"\nrole = "person"\n'


def test_new_states_with_how_many_holders_a_person_is(tacit: Any, folder: Path) -> None:
    (folder / "schema.toml").write_text(SCHEMA + PERSON)
    made = tacit("new", "study.toml", *flags(unit="person", holders_per_person="3"))
    assert made.code == 0
    assert Study.load("study.toml").holders_per_person == 3
    shown = tacit("show", "study.toml", "--quick").out
    assert "at most 3 holders" in " ".join(shown.split())


def test_new_asks_with_how_many_holders_a_person_is(
    tacit: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "schema.toml").write_text(SCHEMA + PERSON)
    asked: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda text: asked.append(text) or "2")
    assert tacit("new", "study.toml", *flags(unit="person")).code == 0
    assert Study.load("study.toml").holders_per_person == 2
    assert len(asked) == 1
    assert "one person" in asked[0]


# ── check ──


def test_check_says_who_signed_what(tacit: Any, written: Path) -> None:
    study = Study.load(written)
    result = tacit("check", "study.toml")
    assert result.code == 0
    assert study.digest in result.out
    assert fingerprint(SigningKey.of_holder().public_key) in result.out
    document = tacit("check", "study.toml", "--json").document
    assert (document["valid"], document["digest"]) == (True, study.digest)


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("epsilon = 1.0", "epsilon = 2.0", 6, "changed after signing"),
        ("epsilon = 1.0", "epsilon = 0", 3, "study.toml, [promise]"),
        ("rounds = 110", "rounds = 99", 3, "write rounds = 110"),
        ('name = "logistic"', 'name = "magic"', 3, "not installed"),
        ("records = 100000", "records = 1000000000000000000", 3, "lower records"),
        ("[deadlines]", "[deadline]", 3, "unknown 'deadline'"),
        ("[signature]", "[aggregators]", 3, "unknown 'aggregators'"),
    ],
)
def test_check_finds_mistakes(
    tacit: Any, written: Path, old: str, new: str, code: int, words: str
) -> None:
    text = written.read_text()
    assert text.count(old) == 1
    written.write_text(text.replace(old, new))
    result = tacit("check", "study.toml")
    assert (result.code, result.out) == (code, "")
    assert words in result.err


def test_check_of_no_file(tacit: Any) -> None:
    assert tacit("check", "none.toml").code == 3


# ── show ──


def test_show_explains(tacit: Any, written: Path) -> None:
    result = tacit("show", "study.toml", "--quick")
    assert result.code == 0
    study = Study.load(written)
    for words in (
        "heart-2026: Who is ill?",
        study.digest,
        "server north",
        "1.41 times",
        "ε = 1, δ = 1e-06 per record",
        fingerprint("c" * 64),
        "https://south.example:8443",
    ):
        assert words in result.out
    assert "made-up" not in result.out


def test_show_names_the_settings(tacit: Any) -> None:
    assert tacit("new", "study.toml", *flags(set="features=auto")).code == 0
    result = tacit("show", "study.toml", "--quick")
    assert 'logistic, version 2, features = "auto", at most 110 rounds' in result.out
    seen = tacit("show", "study.toml", "--quick", "--json").document["seen"]
    assert seen.startswith("It sees each number as a curve")
    assert seen in result.out
    wrong = tacit("new", "other.toml", *flags(set="features=splines"))
    assert (wrong.code, "'bins' or 'curves'" in wrong.err) == (2, True)


def test_show_estimates_the_loss(tacit: Any, written: Path) -> None:
    result = tacit("show", "study.toml", "--records", "50", "--json")
    assert result.code == 0
    loss = result.document["loss"]
    assert (loss["measure"], loss["holders"], loss["records"]) == ("accuracy", 3, 50)
    assert result.document["noise"][0]["block"] == "size"
    assert "on made-up data" in tacit("show", "study.toml", "--records", "50").out
    assert tacit("show", "study.toml", "--records", "0").code == 2


def test_show_does_not_obey_markup(tacit: Any) -> None:
    assert tacit("new", "study.toml", *flags(question="[red]Who?[/red]")).code == 0
    assert "[red]Who?[/red]" in tacit("show", "study.toml", "--quick").out


def test_show_warns_of_what_was_changed(tacit: Any, written: Path) -> None:
    written.write_text(written.read_text().replace("Who is ill?", "Who is not?"))
    result = tacit("show", "study.toml", "--quick")
    assert result.code == 6
    assert "Who is not?" in result.out
    assert "changed after signing" in result.err


# ── sign ──


def test_sign_after_editing(tacit: Any, written: Path) -> None:
    before = Study.load(written)
    written.write_text(written.read_text().replace("Who is ill?", "Who is not?"))
    assert tacit("check", "study.toml").code == 6
    assert tacit("sign", "study.toml").code == 0
    after = Study.load(written)
    after.check_signature()
    assert after.digest != before.digest
    assert sorted(p.name for p in Path().iterdir() if p.is_file()) == ["schema.toml", "study.toml"]


def test_sign_refuses_what_cannot_run(tacit: Any, written: Path) -> None:
    written.write_text(written.read_text().replace("rounds = 110", "rounds = 7"))
    text = written.read_text()
    assert tacit("sign", "study.toml").code == 3
    assert written.read_text() == text


# ── the holder's own table ──


def test_check_lists_all_that_is_wrong_with_a_table(tacit: Any, written: Path) -> None:
    Path("mine.csv").write_text("age,ill\nforty,no\n40,perhaps\n41,yes\n42,perhaps\n")
    result = tacit("check", str(written), "--data", "mine.csv")
    assert result.code == 3
    assert "column 'age', row 1: is not a number." in result.err
    assert "column 'ill', row 2: is not one of the 2 values in the schema. (2 rows in all)" in (
        result.err
    )
    assert "2 problem(s) were found in 4 rows." in result.err
    document = tacit("check", str(written), "--data", "mine.csv", "--json").document
    assert not document["valid"]
    assert [p["count"] for p in document["data"]["problems"]] == [1, 2]
    assert document["digest"] == Study.load(written).digest


def test_check_of_a_good_table(tacit: Any, written: Path) -> None:
    Path("mine.csv").write_text("age,ill\n40,no\n")
    result = tacit("check", str(written), "--data", "mine.csv")
    assert result.code == 0
    assert "1 records, nothing is wrong" in result.out
    assert "is a valid study" in result.out
    assert tacit("check", str(written), "--data", "mine.csv", "--json").document["valid"]


def test_check_of_a_table_with_too_many_records(tacit: Any) -> None:
    assert tacit("new", "study.toml", *flags(records="2")).code == 0
    Path("mine.csv").write_text("age,ill\n" + "40,no\n" * 3)
    result = tacit("check", "study.toml", "--data", "mine.csv")
    assert result.code == 3
    assert "has 3 records; the study takes 1 to 2" in result.err


def test_the_unsigned_study_can_be_checked_before_anybody_signs(tacit: Any, written: Path) -> None:
    text = written.read_text()
    written.write_text(text[: text.index("[signature]")])
    Path("mine.csv").write_text("age,ill\nforty,no\n")
    result = tacit("check", str(written), "--data", "mine.csv")
    assert result.code == 3
    assert "is not a number" in result.err


def test_a_study_of_ten_billion_records_can_be_checked(tacit: Any) -> None:
    words = flags(program="linear-regression", records=str(10**10), schema="numbers.toml")
    Path("numbers.toml").write_text(
        SCHEMA.replace('"category"', '"number"').replace(
            'categories = ["no", "yes"]', "bounds = [0, 1]"
        )
    )
    assert tacit("new", "study.toml", *words).code == 0
    assert tacit("check", "study.toml").code == 0


# ── status ──


def own_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    from tacit.cli.keys import key_named

    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "home"))
    return key_named("holder").public_key


def test_status_without_an_aggregator_says_what_was_noted_here(
    tacit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.channels.roles.folders import study_folder

    key = own_key(monkeypatch, tmp_path)
    words = [
        w.replace("d" * 64, key) for w in flags(aggregator=f"sum=https://127.0.0.1:1={'c' * 64}")
    ]
    assert tacit("new", "study.toml", *words).code == 0
    result = tacit("status", "study.toml", "--json")
    assert result.code == 0
    assert result.document["role"] == "holder-a"
    assert not result.document["reached"]
    assert result.document["own"] is None
    folder = study_folder(tmp_path / "home", Study.load("study.toml"), "holder-a")
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text(
        '{"time": "2026-01-02T03:04:05.678+00:00", "event": "shares sent", "round": 2}\n{"ev'
    )
    result = tacit("status", "study.toml")
    assert "does not answer" in result.out
    assert re.search(
        r"last, at 2026-01-0\d \d\d:\d\d:\d\d \S+: shares sent", result.out
    )  # with the zone


def test_status_is_for_those_who_have_a_part(tacit: Any, written: Path) -> None:
    result = tacit("status", str(written))
    assert result.code == 2
    assert "has no part in study" in result.err


def test_what_the_program_wants_of_a_label_is_listed_with_the_rest(
    tacit: Any, written: Path
) -> None:
    """All at once: the schema's label does not fit the program, and the table not the schema."""
    text = written.read_text()
    start = text.index("[schema.columns.ill]")
    end = text.index("\n\n", start)
    number = '[schema.columns.ill]\ntype = "number"\nbounds = [0.0, 1.0]\nrole = "label"'
    written.write_text(text[:start] + number + text[end:])
    Path("mine.csv").write_text("age,ill\nforty,0.5\n40,perhaps\n")
    result = tacit("check", str(written), "--data", "mine.csv")
    assert result.code == 3
    assert "label 'ill' is a number: give it edges" in result.err
    assert "column 'age', row 1: is not a number." in result.err
    assert "column 'ill', row 2: is not a number." in result.err
    assert "3 problem(s)" in result.err
    assert "perhaps" not in result.err  # values are private
