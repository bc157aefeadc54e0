"""A ledger that is empty, cut off, gone, or older than what was seen is never taken for a new one;
one of version 0.1 is carried over."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.errors import BudgetExceeded, InputError, LedgerTampered
from tacit.privacy.ledger import Amount, Ledger
from tacit.privacy.promise import Promise

sys.path.insert(0, str(Path(__file__).parents[1] / "fixtures"))
from kept import unpacked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("adult", "record", 1.0)
    ledger.reserve(Promise(0.5), "adult", "study").commit()
    return ledger.path


def test_an_empty_file_is_no_ledger(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(LedgerTampered, match="tacit budget recover"):
        Ledger(path)
    (tmp_path / "never seen.db").touch()
    with pytest.raises(LedgerTampered, match="is empty"):
        Ledger(tmp_path / "never seen.db")
    assert path.stat().st_size == 0


def test_a_file_that_is_gone_is_not_made_anew(path: Path) -> None:
    path.unlink()
    with pytest.raises(LedgerTampered, match="has seen one with 4 entries"):
        Ledger(path)
    assert not path.exists()


def test_every_truncation_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for kept in (1, 50, 100, 512, 1000, *range(4096, len(whole), 4096), len(whole) - 1):
        path.write_bytes(whole[:kept])
        with pytest.raises((LedgerTampered, InputError)):
            Ledger(path)
    path.write_bytes(whole)
    Ledger(path).verify()


def test_an_older_copy_is_noticed_at_any_path(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "older.db")
    Ledger(path).reserve(Promise(0.1), "adult", "study").commit()
    with pytest.raises(LedgerTampered, match="entry 6 was there"):
        Ledger(tmp_path / "older.db")
    newest = path.read_bytes()
    shutil.copy(tmp_path / "older.db", path)
    with pytest.raises(LedgerTampered, match="older than what this machine has seen"):
        Ledger(path)
    path.write_bytes(newest)
    assert Ledger(path).balance("adult", "record").spent.epsilon == Fraction(6, 10)


def test_another_ledger_at_the_same_path_is_noticed(path: Path, tmp_path: Path) -> None:
    other = Ledger(tmp_path / "other.db")
    shutil.copy(other.path, path)
    with pytest.raises(LedgerTampered, match="another ledger"):
        Ledger(path)


def test_recovery_closes_every_budget(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "older.db")
    Ledger(path).reserve(Promise(0.5), "adult", "study").commit()
    shutil.copy(tmp_path / "older.db", path)
    ledger = Ledger.recover(path)
    assert ledger.balance("adult", "record").left == Amount()
    with pytest.raises(BudgetExceeded):
        ledger.reserve(Promise(0.1), "adult", "study")
    assert ledger.entries()[-1].body["seen"]["seq"] == 6
    again = Ledger(path)
    again.allow("adult", "record", 0.6)
    again.reserve(Promise(0.1), "adult", "study").commit()
    again.verify()


@pytest.mark.parametrize("lost", ["gone", "empty"])
def test_recovery_where_nothing_is_left(path: Path, lost: str) -> None:
    path.unlink()
    if lost == "empty":
        path.touch()
    ledger = Ledger.recover(path)
    assert [entry.kind for entry in ledger.entries()] == ["open", "recover"]
    assert ledger.balances() == []
    assert Ledger(path).id == ledger.id


def test_a_home_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "file"))
    Ledger(tmp_path / "ledger.db").allow("adult", "record", 1.0)
    assert "may go unnoticed" in caplog.text


# ── version 0.1 ──


def test_a_ledger_of_version_0_1_is_carried_over_with_a_copy(tmp_path: Path) -> None:
    path = unpacked("ledger/ledger.db", tmp_path)
    before = path.read_bytes()
    ledger = Ledger(path)
    assert (tmp_path / "ledger.db.version-1").read_bytes() == before
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    balance = ledger.balance("patients", "record")
    # Whole, two windows of one purpose, less than was reserved, and still open.
    assert balance.spent.epsilon == 1 + max(1, 1) + Fraction(1, 2)
    assert balance.reserved.epsilon == 1
    ledger.verify()
    ledger.reserve(Promise(1.0), "patients", "windows", "window 1").commit()
    assert Ledger(path).balance("patients", "record").spent.epsilon == Fraction(7, 2)


def test_old_parts_of_different_purposes_add(path: Path) -> None:
    """Version 0.1 took the maximum over all names: what it charged is charged, and more."""
    ledger = Ledger(path)
    ledger.allow("adult", "record", 9.0)
    old = {"dataset": "adult", "epsilon": "0.5", "delta": "0.0", "unit": "record"}
    owner = {"host": "h", "pid": 1, "started": 1}
    for purpose, part in (
        ("study a 0123", "study a 0123 window 1"),
        ("study a 0123", "study a 0123 window 2"),
        ("study b 4567", "study b 4567 window 1"),
        ("peers 89ab group 1", "rows 1 to 66"),
        ("peers 89ab group 2", "rows 67 to 90"),
    ):
        body = {**old, "adjacency": "add-remove", "purpose": purpose, "part": part, "owner": owner}
        ledger._append(lambda state, body=body: ("reserve", body))
    balance = Ledger(path).balance("adult", "record")
    assert balance.reserved.epsilon == Fraction(3, 2)  # study a, study b, the network
    ledger.verify()


def test_an_entry_that_another_process_writes_meanwhile_is_no_tampering(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mark may be there before the entry was read."""
    other, read_all = Ledger(path), Ledger._read_all
    written = []

    def interrupted(ledger: Ledger) -> list[str]:
        hashes = read_all(ledger)
        if not written:
            written.append(other.reserve(Promise(0.1), "adult", "another").commit())
        return hashes

    monkeypatch.setattr(Ledger, "_read_all", interrupted)
    assert Ledger(path).balance("adult", "record").spent.epsilon == Fraction("0.6")
    assert written
