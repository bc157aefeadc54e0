"""`tacit peer measure`: what it costs, what it refuses, and what status and predict make of it."""

from __future__ import annotations

import csv
import io
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_peer_command import allowed, folder, spent, students, tacit, words

from tacit.channels.peers.worth import MEASURED
from tacit.cli.peer_predict import Predicted
from tacit.privacy import Ledger

__all__ = ["folder", "tacit"]  # fixtures

pytestmark = pytest.mark.timeout(300)
MEASURE = ("peer", "measure", "courses", "--data", "course.csv", "--epsilon", "0.5")


def home(folder: Path) -> Path:
    return folder / "tacit-home" / "peers" / "courses"


def published(tacit: Any, folder: Path, epsilon: float, records: int = 400) -> None:
    """A network of one, whose model is here and has cost 1; `epsilon` more is allowed then."""
    (folder / "course.csv").write_text("hours,forum,quit\n" + students(records))
    allowed(tacit, 1, "--composition", "adding")
    assert tacit(*words("--until-rest")).code == 0
    allowed(tacit, 1 + epsilon)


def test_it_is_paid_once_and_said_everywhere(tacit: Any, folder: Path) -> None:
    published(tacit, folder, 0.5)
    before = tacit("peer", "status", "courses")
    assert "tacit peer measure courses" in before.out
    assert "measured" not in tacit("peer", "status", "courses", "--json").document
    assert spent(folder) == 1

    found = tacit(*MEASURE, "--json")
    assert found.code == 0, found.err
    document = found.document
    assert (document["epsilon"], document["models"], document["share"]) == (0.5, 1, 0.3)
    assert document["learned_from_yours"] == 1
    assert spent(folder) == 1.5
    assert stat.S_IMODE((home(folder) / MEASURED).stat().st_mode) == 0o600
    shown = tacit("peer", "status", "courses", "--json").document["measured"]
    assert {"network": "courses", **shown} == document
    for line in shown["words"]:
        assert line in tacit("peer", "status", "courses").out
    assert shown["words"][0].startswith("your own records alone: ")
    assert "learned from your records too" in shown["words"][-1]

    again = tacit(*MEASURE)
    assert (again.code, "measured already" in again.err) == (4, True)
    poor = tacit(*MEASURE, "--again")  # nothing is left
    assert poor.code == 4
    assert spent(folder) == 1.5
    assert tacit("peer", "status", "courses", "--json").document["measured"] == shown


def test_votes_are_weighed_by_it_and_shown(tacit: Any, folder: Path) -> None:
    published(tacit, folder, 2)
    plain = tacit("peer", "predict", "courses", "course.csv", "--json", "--votes").document
    assert set(plain["weights"].values()) == {0.5}
    assert "measured" not in plain
    assert tacit(*MEASURE).code == 0
    measured = json.loads((home(folder) / MEASURED).read_text())
    measured["cells"] = [100.0, 60.0, 0.0, 10.0]  # the network is far worse
    (home(folder) / MEASURED).write_text(json.dumps(measured))
    found = tacit("peer", "predict", "courses", "course.csv", "--json", "--votes").document
    assert found["measured"]["verdict"] == "worse"
    assert found["weights"]["own"] > 0.99
    name, *_ = found["weights"]
    assert found["columns"] == ["row", "prediction", name, "own"]
    assert all(said == own for _, said, _, own in found["rows"])
    words_said = tacit("peer", "predict", "courses", "course.csv", "--votes")
    assert words_said.out.startswith(f"row,prediction,{name},own\n1,")
    assert "the network is worse than your own records alone" in words_said.err
    weighed = tacit("peer", "predict", "courses", "course.csv", "--weigh", "course.csv", "--json")
    assert "measured" not in weighed.document  # by these records instead


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--epsilon", "0"), 2, "epsilon"),
        (("--epsilon", "inf"), 2, "finite"),
        (("--epsilon", "nan"), 2, "NaN"),
        (("--epsilon", "1e-9"), 2, "noise would hide"),
        (("--epsilon", "1e-300"), 2, "noise scale"),
        (("--share", "0.9"), 2, "hold back"),
        (("--epsilon", "0.6"), 4, "left"),
        (("--dataset", "other"), 4, "tacit budget allow other"),
        (("--data", "few.csv", "--dataset", "course"), 3, "fewer than the 50 records"),
    ],
)
def test_what_is_refused_costs_nothing(
    tacit: Any, folder: Path, more: tuple[str, ...], code: int, said: str
) -> None:
    published(tacit, folder, 0.5, 60)
    (folder / "few.csv").write_text("hours,forum,quit\n" + students(49))
    found = tacit(*MEASURE, *more)
    assert (found.code, said in found.err) == (code, True), found.err
    assert spent(folder) == 1
    assert not (home(folder) / MEASURED).exists()


def test_without_models_nothing_is_measured(tacit: Any, folder: Path) -> None:
    allowed(tacit)
    assert tacit(*words("--until-rest", data=None)).code == 0
    found = tacit(*MEASURE)
    assert (found.code, "no model has arrived" in found.err) == (3, True)
    assert spent(folder) == 0


def test_whole_holders_are_not_measured(tacit: Any, folder: Path) -> None:
    allowed(tacit, 2.0, "--unit", "holder")
    assert tacit(*words("--until-rest", unit="holder")).code == 0
    found = tacit(*MEASURE)
    assert (found.code, "not a whole holder" in found.err) == (4, True)


def test_who_never_took_part_measures_nothing_and_looking_makes_nothing(
    tacit: Any, folder: Path
) -> None:
    for command in (
        MEASURE,
        ("peer", "status", "courses"),
        ("peer", "status", "courses", "--json"),
    ):
        assert tacit(*command).code == 3
        assert not (folder / "tacit-home").exists()


def test_a_measurement_that_broke_off_is_charged(
    tacit: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(tacit, folder, 1)

    def full(path: Path, content: Any) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patched:
        patched.setattr("tacit.cli.peer_measure.write_private", full)
        assert tacit(*MEASURE).code != 0
    assert spent(folder) == 1.5
    assert tacit(*MEASURE).code == 0
    assert spent(folder) == 2
    Ledger(folder / "tacit-home" / "ledger.db").verify()


def test_a_damaged_measurement_is_said(tacit: Any, folder: Path) -> None:
    published(tacit, folder, 0)
    (home(folder) / MEASURED).write_text("{}")
    for command in (("status", "courses"), ("predict", "courses", "course.csv")):
        found = tacit("peer", *command)
        assert (found.code, "cannot be read as a measurement" in found.err) == (3, True)


def test_a_class_with_a_comma_stays_in_its_column() -> None:
    rows: list[tuple[int | str | None, ...]] = [(1, "yes, all", 'a "b"'), (2, None, None)]
    found = Predicted(("row", "prediction", "own"), rows, {}, None)
    assert list(csv.reader(io.StringIO(found.csv))) == [
        ["row", "prediction", "own"],
        ["1", "yes, all", 'a "b"'],
        ["2", "", ""],
    ]
