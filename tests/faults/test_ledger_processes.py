"""The ledger under many processes at once, and under kill -9 at any point."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit import children
from tacit.privacy.ledger import Ledger

CHILDREN = Path(__file__).with_name("ledger_children.py")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")


def start(*words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", str(CHILDREN), *map(str, words)]
    return children.start(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], word: str | None = None) -> Any:
    """What the process reports; a defect that makes it hang ends it and all it has forked."""
    try:
        output, _ = process.communicate(word, timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0
    return json.loads(output.splitlines()[-1])


def run(*words: object) -> Any:
    return finish(start(*words))


def make(path: Path, epsilon: float) -> Ledger:
    ledger = Ledger(path)
    ledger.allow("adult", "record", epsilon)
    return ledger


# ── many at once ──


def test_eight_processes_spend_exactly_what_is_allowed(tmp_path: Path) -> None:
    ledger = make(tmp_path / "ledger.db", epsilon=10)
    processes = [start("spend", ledger.path, 50) for _ in range(8)]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # all are waiting: let them go at once
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [finish(process) for process in processes]
    assert sum(r["granted"] for r in results) == 100
    assert sum(r["refused"] for r in results) == 300
    ledger.verify()
    balance = ledger.balance("adult", "record")
    assert (balance.spent.epsilon, balance.reserved.epsilon, balance.left.epsilon) == (10, 0, 0)
    assert Counter(e.kind for e in ledger.entries()) == {
        "open": 1,
        "allow": 1,
        "reserve": 100,
        "commit": 100,
    }


def test_many_may_create_the_same_ledger_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    processes = [start("spend", path, 0) for _ in range(4)]
    for process in processes:
        finish(process, "go\n")
    assert [e.kind for e in Ledger(path).entries()] == ["open"]


def test_forking_while_a_thread_spends(tmp_path: Path) -> None:
    ledger = make(tmp_path / "ledger.db", epsilon=1e6)
    assert run("fork_while_spending", ledger.path, 10)["statuses"] == [0] * 20
    ledger.verify()
    assert ledger.balance("adult", "record").spent.epsilon == Fraction(10 + 20, 10)


# ── kill -9 from outside ──


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ledger, list[dict[str, Any]]]:
    """One file, forty children, each killed while it spent."""
    ledger = make(tmp_path_factory.mktemp("killed") / "ledger.db", epsilon=1e6)
    return ledger, run("kill_many", ledger.path, 40, 2024)


def acknowledged(report: list[dict[str, Any]], step: str) -> list[int]:
    lines = [line.split() for kill in report for line in kill["acknowledged"]]
    return [int(number) for word, number in lines if word == step]


def written(ledger: Ledger, kind: str) -> list[int]:
    return [
        e.seq if kind == "reserve" else e.body["reservation"]
        for e in ledger.entries()
        if e.kind == kind
    ]


def test_kills_lose_nothing_that_was_acknowledged(
    killed: tuple[Ledger, list[dict[str, Any]]],
) -> None:
    ledger, report = killed
    assert len(acknowledged(report, "committed")) > 20  # they did spend
    for step, kind in (("reserved", "reserve"), ("drawn", "draw"), ("committed", "commit")):
        said, found = acknowledged(report, step), written(ledger, kind)
        assert set(said) <= set(found)
        # A kill can fall between the disk and the acknowledgement, once for each child.
        assert len(found) - len(said) <= len(report)


def test_kills_charge_nothing_twice(killed: tuple[Ledger, list[dict[str, Any]]]) -> None:
    ledger, _ = killed
    ledger.verify()
    commits = written(ledger, "commit")
    assert len(commits) == len(set(commits))
    assert ledger.balance("adult", "record").spent.epsilon == Fraction(len(commits), 10)


def test_a_kill_leaves_at_most_one_reservation_and_it_is_found(
    killed: tuple[Ledger, list[dict[str, Any]]],
) -> None:
    ledger, report = killed
    known: set[int] = set()
    for kill in report:
        assert len(set(kill["interrupted"]) - known) <= 1
        known |= set(kill["interrupted"])
    assert known  # some kills did fall into a spend
    still_open = set(written(ledger, "reserve")) - set(written(ledger, "commit"))
    assert {s.id for s in ledger.interrupted()} == still_open == known
    drawn = set(written(ledger, "draw"))
    assert all(s.drawn == (s.id in drawn) for s in ledger.interrupted())
    reserved = ledger.balance("adult", "record").reserved.epsilon
    assert reserved == Fraction(len(still_open), 10)


# ── kill -9 at one exact point ──

STEPS = {  # step → the entry it writes
    "create": "open",
    "allow": "allow",
    "reserve": "reserve",
    "mark_drawn": "draw",
    "commit": "commit",
    "release": "release",
}


@pytest.mark.parametrize("step", STEPS)
def test_killed_before_the_commit_nothing_was_written(tmp_path: Path, step: str) -> None:
    path = tmp_path / "ledger.db"
    report = run("killed_at", path, "before_commit", step)
    assert report["signal"] == signal.SIGKILL
    ledger = Ledger(path)
    ledger.verify()
    expected = {"create": ["open"], "allow": ["open", "allow"], "reserve": ["open", "allow"]}
    assert [e.kind for e in ledger.entries()] == expected.get(step, ["open", "allow", "reserve"])
    assert len(ledger.interrupted()) == (step not in expected)


@pytest.mark.parametrize("step", ["reserve", "commit"])
def test_killed_halfway_through_the_pages_nothing_was_written(tmp_path: Path, step: str) -> None:
    path = tmp_path / "ledger.db"
    report = run("killed_at", path, "with_a_hot_journal", step)
    assert report["signal"] == signal.SIGKILL
    assert report["journal"]
    assert report["grown"] > 100_000  # the file was half-written, and is rolled back on opening
    ledger = Ledger(path)
    ledger.verify()
    kinds = ["open", "allow"] + ["reserve"] * (step == "commit")
    assert [e.kind for e in ledger.entries()] == kinds


@pytest.mark.parametrize("step", STEPS)
def test_killed_after_the_commit_it_was_written_once(tmp_path: Path, step: str) -> None:
    path = tmp_path / "ledger.db"
    report = run("killed_at", path, "after_commit", step)
    assert report["signal"] == signal.SIGKILL
    ledger = Ledger(path)
    ledger.verify()
    entries = [e.kind for e in ledger.entries()]
    assert entries[-1] == STEPS[step]
    assert len(entries) == {"create": 1, "allow": 3, "reserve": 3}.get(step, 4)
    assert len(ledger.interrupted()) == (step in {"reserve", "mark_drawn"})
    if step != "create":
        spent = ledger.balance("adult", "record").spent.epsilon
        assert spent == (Fraction(1, 10) if step == "commit" else 0)
