"""Consortium studies at the command line: written, checked, explained, and joined."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.channels.studies.study import Study
from tacit.cli.main import main
from tacit.crypto.signing import SigningKey
from tacit.privacy.ledger import Ledger

SCHEMA = """
[columns.age]
type = "integer"
bounds = [0, 120]

[columns.ill]
type = "category"
role = "label"
categories = ["no", "yes"]
"""
CURATOR = f"middle=https://middle.example:8443={'c' * 64}"


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> Result:
        with pytest.raises(SystemExit) as left:
            main(list(words))
        printed = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Result(left.value.code, printed.out, printed.err)

    return run


def flags(**changes: str) -> list[str]:
    """All that `new` needs for a consortium; an empty text leaves a flag out."""
    given = {
        "name": "heart-2026",
        "question": "Who is ill?",
        "program": "averaged-logistic",
        "epsilon": "1",
        "schema": "schema.toml",
        "aggregator": CURATOR,
        "smallest": "200",
        "records": "1000",
        **changes,
    }
    words = [w for k, v in given.items() if v for w in (f"--{k.replace('_', '-')}", v)]
    for name, digit in (("a", "d"), ("b", "e"), ("c", "9")):
        words += ["--holder", f"{name}={digit * 64}"]
    return words


@pytest.fixture
def written(tacit: Any) -> Path:
    assert tacit("study", "new", "study.toml", *flags(colluding="0")).code == 0
    return Path("study.toml")


# ── new ──


def test_new_writes_a_consortiums_study(tacit: Any) -> None:
    words = flags(colluding="1", set="penalty=0.1")
    assert tacit("study", "new", "study.toml", *words).code == 0
    study = Study.load("study.toml")
    study.check_signature()
    terms = study.agreed_consortium
    assert (terms.protocol, terms.colluding, terms.smallest) == ("joint", 1, 200)
    assert (study.rounds, study.servers, study.online) == (1, (), None)
    assert study.take_part.minimum == 3  # two honest ones beside the one that may collude
    assert study.averaged().settings()["penalty"] == 0.1
    assert tacit("study", "check", "study.toml").code == 0


def test_new_writes_the_protocol_as_published(tacit: Any) -> None:
    assert tacit("study", "new", "study.toml", *flags(protocol="as-published")).code == 0
    assert Study.load("study.toml").agreed_consortium.protocol == "as-published"
    assert tacit("study", "check", "study.toml").code == 0


def test_one_curious_party_is_reckoned_with_unless_told_otherwise(tacit: Any) -> None:
    assert tacit("study", "new", "study.toml", *flags()).code == 0
    study = Study.load("study.toml")
    assert study.consortium is not None
    assert (study.consortium.colluding, study.take_part.minimum) == (1, 3)


def test_new_asks_for_no_servers(tacit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["heart-2026", "Who?", "", "2", "schema.toml", CURATOR])
    holders = iter([f"a={'d' * 64}", f"b={'e' * 64}", ""])

    def answer(text: str) -> str:
        return next(holders if text.startswith("Holder") else answers)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", answer)
    assert tacit("study", "new", "study.toml", "--smallest", "50", "--colluding", "0").code == 0
    study = Study.load("study.toml")
    assert (study.chosen.name, study.promise.epsilon) == ("averaged-logistic", 2)
    assert (next(answers, None), next(holders, None)) == (None, None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"smallest": "", "colluding": "1"}, "also give --smallest"),
        ({"smallest": "", "protocol": "joint"}, "also give --smallest"),
        ({"smallest": "", "server": f"s=https://s.example:1={'a' * 64}"}, "give --smallest"),
        ({"smallest": "0"}, "smallest = 0"),
        ({"smallest": "2000"}, "1 to records"),
        ({"colluding": "2"}, "colluding = 2"),  # of three, two must be honest
        ({"colluding": "1", "minimum": "2"}, "0 to 0"),
        ({"colluding": "1", "protocol": "as-published"}, "opens everything"),
        ({"program": "logistic"}, "sums over records"),
        ({"unit": "person"}, 'unit = "record"'),
        ({"windows": "3"}, "goes without"),
        ({"noise": "honest=2"}, "goes without"),
        ({"server": f"s=https://s.example:1={'a' * 64}"}, "goes without"),
        ({"epsilon": "1e-16", "delta": "0"}, "Take a larger epsilon"),  # noise beyond all integers
    ],
)
def test_new_writes_nothing_that_is_wrong(tacit: Any, changes: Any, words: str) -> None:
    result = tacit("study", "new", "study.toml", *flags(**changes))
    assert result.code in (2, 3)
    assert words in result.err
    assert not Path("study.toml").exists()


def test_new_needs_a_label(tacit: Any) -> None:
    Path("schema.toml").write_text(SCHEMA.replace('role = "label"\n', ""))
    result = tacit("study", "new", "study.toml", *flags())
    assert (result.code, "label" in result.err) == (3, True)


# ── check, show, sign ──


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("smallest = 200", "smallest = 300", 6, "changed after signing"),
        ("rounds = 1\n", "rounds = 2\n", 3, "write rounds = 1"),
        ('name = "averaged-logistic"', 'name = "naive-bayes"', 3, "sums over records"),
        ('protocol = "joint"', 'protocol = "secret"', 3, "[consortium]"),
        ("[consortium]", "[consortiums]", 3, "unknown 'consortiums'"),
    ],
)
def test_check_finds_mistakes(
    tacit: Any, written: Path, old: str, new: str, code: int, words: str
) -> None:
    text = written.read_text()
    assert text.count(old) == 1
    written.write_text(text.replace(old, new))
    result = tacit("study", "check", "study.toml")
    assert (result.code, result.out) == (code, "")
    assert words in result.err


def test_sign_after_editing(tacit: Any, written: Path) -> None:
    written.write_text(written.read_text().replace("smallest = 200", "smallest = 300"))
    assert tacit("study", "sign", "study.toml").code == 0
    Study.load(written).check_signature()


def test_show_explains(tacit: Any, written: Path) -> None:
    result = tacit("study", "show", "study.toml", "--quick")
    assert result.code == 0
    for words in (
        "averaged once (joint)",
        "2 to 3 parties with 200 to 1,000 records each",
        "curator middle: one masked vector of each party",
        "each party: nothing of another party",
        "no party works together with the curator",
        "average of 2",
        "average of 3",
        "tacit bench consortium-utility",
        "starts again without it",
    ):
        assert words in result.out
    assert "server" not in result.out.replace("Laplace", "")


def test_show_as_published_says_that_the_promise_does_not_hold(tacit: Any) -> None:
    assert tacit("study", "new", "study.toml", *flags(protocol="as-published")).code == 0
    result = tacit("study", "show", "study.toml", "--quick")
    assert "THE PROMISE DOES NOT HOLD" in result.out
    assert "smallest party" in result.out


def test_show_estimates_the_loss(tacit: Any, written: Path) -> None:
    loss = tacit("study", "show", "study.toml", "--records", "250", "--json").document["loss"]
    assert (loss["measure"], loss["holders"], loss["records"]) == ("accuracy", 3, 250)
    assert loss["without_noise"] > 0.7
    assert "Estimate, on made-up data" in tacit("study", "show", "study.toml").out
    assert tacit("study", "show", "study.toml", "--records", "100").code == 2  # below smallest


# ── join: what goes wrong before anybody is reached ──


@pytest.fixture
def joined(tacit: Any) -> Any:
    """A study that this machine's own key is in, over an address where nobody is."""
    own = SigningKey.of_holder().public_key
    words = [*flags(aggregator=f"middle=http://127.0.0.1:1={'c' * 64}"), "--holder", f"us={own}"]
    assert tacit("study", "new", "study.toml", *words).code == 0

    def run(rows: int, *more: str) -> Result:
        lines = [f"{i % 100},{('no', 'yes')[i % 2]}" for i in range(rows)]
        Path("patients.csv").write_text("age,ill\n" + "\n".join(lines) + "\n")
        found = tacit("join", "study.toml", "--data", "patients.csv", *more)
        assert isinstance(found, Result)
        return found

    return run


def test_join_has_no_windows_to_follow(joined: Any) -> None:
    result = joined(250, "--follow")
    assert (result.code, "leave --follow out" in result.err) == (2, True)


@pytest.mark.parametrize("rows", [199, 1001])
def test_join_takes_as_many_records_as_the_noise_counts_on(joined: Any, rows: int) -> None:
    result = joined(rows)
    assert result.code == 3
    assert "takes 200 to 1000" in result.err


def test_join_asks_the_ledger_first(joined: Any, folder: Path) -> None:
    result = joined(250, "--ledger", "ledger.db", "--insecure")
    assert result.code == 4
    assert Ledger(folder / "ledger.db").open_spends() == []


def test_join_with_a_key_that_is_not_in_the_study(tacit: Any, written: Path) -> None:
    Path("patients.csv").write_text("age,ill\n" + "50,no\n60,yes\n" * 100)
    result = tacit("join", "study.toml", "--data", "patients.csv")
    assert (result.code, "not among the parties" in result.err) == (4, True)
