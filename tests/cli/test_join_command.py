"""A join that fails has agreed to nothing, and a corrected study starts afresh."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tacit.channels.federation.noise_plan import asked_by
from tacit.channels.federation.outbox import Outbox
from tacit.channels.studies.study import Study
from tacit.cli import join
from tacit.cli.keys import key_named
from tacit.cli.main import main
from tacit.data.records import ArrayRecords
from tacit.privacy.policy import LeftOut
from tacit.programs.states import state_bytes

SCHEMA = """
[columns.age]
type = "integer"
bounds = [0, {oldest}]
"""


@pytest.fixture
def tacit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main(list(words))
        assert isinstance(left.value.code, int)
        return left.value.code, capsys.readouterr().err

    return run


def written(tacit: Any, oldest: int, *more: str) -> Study:
    Path("schema.toml").write_text(SCHEMA.format(oldest=oldest))
    words = ["--name", "ages", "--question", "How old?", "--program", "histogram"]
    words += ["--epsilon", "1", "--schema", "schema.toml"]
    words += ["--aggregator", f"sum=https://127.0.0.1:1={'c' * 64}"]
    for name, digit in (("north", "a"), ("south", "b")):
        words += ["--server", f"{name}=https://127.0.0.1:2={digit * 64}"]
    words += ["--holder", f"a={key_named('holder').public_key}", "--holder", f"b={'e' * 64}"]
    code, said = tacit("study", "new", "study.toml", *words, *more, "--force")
    assert code == 0, said
    return Study.load("study.toml")


def test_why_a_part_ended_is_noted_for_whoever_asks_later(tacit: Any, tmp_path: Path) -> None:
    written(tacit, 120)
    tacit("budget", "set", "mine", "--epsilon", "3", "--delta", "1e-3")
    Path("mine.csv").write_text("age\nforty\n")
    code, said = tacit("join", "study.toml", "--data", "mine.csv")
    assert code == 3, said
    (log,) = (tmp_path / "home" / "studies").glob("*-holder-a/events.jsonl")
    last = json.loads(log.read_text().splitlines()[-1])
    assert last["event"] == "part ended"
    assert "column 'age'" in last["reason"]
    assert "forty" not in log.read_text()


def test_a_join_lists_all_that_is_wrong_with_the_table(tacit: Any) -> None:
    written(tacit, 120)
    tacit("budget", "set", "mine", "--epsilon", "3", "--delta", "1e-3")
    Path("mine.csv").write_text("age\nforty\n30\n33.7\n35.7\n")
    code, said = tacit("join", "study.toml", "--data", "mine.csv")
    assert code == 3, said
    assert "is not a number" in said
    assert "(2 rows in all)" in said
    assert "2 kinds of problems were found in 4 rows; nothing was sent or spent." in said
    assert "forty" not in said
    assert "33.7" not in said


def test_a_join_that_failed_pins_nothing(tacit: Any, tmp_path: Path) -> None:
    written(tacit, 120)
    tacit("budget", "set", "mine", "--epsilon", "3", "--delta", "1e-3")
    Path("mine.csv").write_text("age\nforty\n")
    code, said = tacit("join", "study.toml", "--data", "mine.csv")
    assert code == 3, said
    corrected = written(tacit, 150)
    Path("mine.csv").write_text("age\nforty\n")
    code, said = tacit("join", "study.toml", "--data", "mine.csv")
    assert code == 3, said  # the table's fault again: no word of another study
    assert "is not a number" in said
    studies = tmp_path / "home" / "studies"
    assert not (studies / "ages.json").exists()
    folders = sorted(path.name for path in studies.iterdir())
    assert len(folders) == 2
    assert any(corrected.digest[:12] in name for name in folders)


def test_a_restarted_join_draws_the_same_sample(
    tacit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = written(tacit, 99, "--sampling", "0.5")
    ages = ArrayRecords(np.linspace(-1, 1, 200)[:, None])
    monkeypatch.setattr(join, "_records", lambda *given: ages)
    budget: Any = SimpleNamespace(left_out=lambda: LeftOut("mine"))
    state, query = asked_by(study, 1, state_bytes(study.first_state()))
    totals = []
    for folder in ("one", "one", "other"):
        (tmp_path / folder).mkdir(exist_ok=True)
        outbox = Outbox(tmp_path / folder / "outbox.db", study.digest)
        role: Any = None  # nothing is told
        contribute, _ = join._source(study, Path("ages.csv"), outbox, budget, role)
        totals.append(contribute(1, state, query).total)
        outbox.close()
    assert (totals[0] == totals[1]).all()
    assert (totals[0] != totals[2]).any()
