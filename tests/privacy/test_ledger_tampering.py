"""Whatever is changed in a ledger's file is noticed, or makes no difference."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tacit.crypto.signing import canonical
from tacit.errors import InputError, LedgerTampered
from tacit.privacy.ledger import Ledger
from tacit.privacy.ledger.chain import SCHEMA, Entry, chain_hash
from tacit.privacy.promise import Promise

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("adult", "record", epsilon=1.0, delta=1e-6)
    for epsilon in (0.1, 0.2):
        with ledger.reserve(Promise(epsilon), "adult", "count") as reservation:
            reservation.mark_drawn()
    return ledger.path


LAST = 8  # open, allow, and twice reserve, draw, commit


def edit(path: Path, *statements: str) -> None:
    """Change the file behind the ledger's back, and put its guards up again."""
    guards = ["entries_stay", "entries_hold"]
    with closing(sqlite3.connect(path)) as connection, connection:
        for guard in guards:
            connection.execute(f"DROP TRIGGER {guard}")
        for statement in statements:
            connection.execute(statement)
        for guard in guards:
            connection.execute(SCHEMA[guard])


def test_an_untouched_ledger_is_intact(path: Path) -> None:
    edit(path)  # the way of editing itself is not what is noticed
    ledger = Ledger(path)
    ledger.verify()
    ledger.verify(ledger.entries()[2].hash)
    assert len(ledger.entries()) == LAST


@pytest.mark.parametrize("seq", range(1, LAST + 1))
@pytest.mark.parametrize(
    "change",
    [
        "seq = seq + 100",
        "seq = -seq",
        "at = '2020-01-01T00:00:00.000+00:00'",
        "kind = 'release'",
        "body = replace(body, '\"', '''')",
        "body = body || ' '",
        "body = CAST(body AS BLOB)",
        "body = CAST(x'ff' AS TEXT)",
        "previous = upper(previous || 'a')",
        "hash = '" + "0" * 64 + "'",
    ],
)
def test_a_changed_column_is_noticed(path: Path, seq: int, change: str) -> None:
    running = Ledger(path)
    edit(path, f"UPDATE entries SET {change} WHERE seq = {seq}")
    with pytest.raises(LedgerTampered):
        Ledger(path)
    with pytest.raises(LedgerTampered):
        running.verify()


@pytest.mark.parametrize("epsilon", ["0.05", "0.2000000000000000000001"])
def test_the_message_names_the_place(path: Path, epsilon: str) -> None:
    edit(path, f"UPDATE entries SET body = replace(body, '0.2', '{epsilon}') WHERE seq = 6")
    with pytest.raises(LedgerTampered, match="entry 6 was changed"):
        Ledger(path)


@pytest.mark.parametrize("seq", range(1, LAST + 1))
def test_a_deleted_entry_is_noticed(path: Path, seq: int) -> None:
    edit(path, f"DELETE FROM entries WHERE seq = {seq}")
    with pytest.raises(LedgerTampered):
        Ledger(path)


@pytest.mark.parametrize("seq", [-5, 0, LAST + 1, LAST + 2])
def test_an_inserted_entry_is_noticed(path: Path, seq: int) -> None:
    columns = "at, kind, body, previous, hash"
    edit(path, f"INSERT INTO entries SELECT {seq}, {columns} FROM entries WHERE seq = {LAST}")
    with pytest.raises(LedgerTampered):
        Ledger(path)


@pytest.mark.parametrize("kept", range(LAST))
def test_a_cut_off_end_is_noticed(path: Path, kept: int) -> None:
    edit(path, f"DELETE FROM entries WHERE seq > {kept}")
    with pytest.raises(LedgerTampered, match="entries at the end were removed"):
        Ledger(path)


def test_swapped_entries_are_noticed(path: Path) -> None:
    edit(
        path,
        "UPDATE entries SET seq = 100 WHERE seq = 3",
        "UPDATE entries SET seq = 3 WHERE seq = 6",
        "UPDATE entries SET seq = 6 WHERE seq = 100",
        "UPDATE sqlite_sequence SET seq = 8",
    )
    with pytest.raises(LedgerTampered, match="entry 3"):
        Ledger(path)


def test_an_entry_with_its_own_hash_corrected_is_noticed_by_the_next(path: Path) -> None:
    entry = Ledger(path).entries()[4]
    assert (entry.kind, entry.body["epsilon"]) == ("commit", "0.1")
    body = canonical(entry.body | {"epsilon": "0.05"}).decode()
    corrected = chain_hash(entry.seq, entry.at, entry.kind, body, entry.previous)
    edit(path, f"UPDATE entries SET body = '{body}', hash = '{corrected}' WHERE seq = 5")
    with pytest.raises(LedgerTampered, match="entry 6 does not follow"):
        Ledger(path)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("commit", {"reservation": 3, "epsilon": "0.1", "delta": "0.0", "settled": False}),
        ("commit", {"reservation": 99, "epsilon": "0.1", "delta": "0.0", "settled": False}),
        ("allow", {"dataset": "adult", "unit": "record", "epsilon": "-1", "delta": "0.0"}),
        ("allow", {"dataset": "adult", "unit": "people", "epsilon": "1", "delta": "0.0"}),
        ("allow", {"dataset": "adult", "unit": "record", "epsilon": "nan", "delta": "0.0"}),
        ("commit", {"reservation": 9, "epsilon": "0.3", "delta": "0.0", "settled": False}),
        ("release", {"reservation": 9, "settled": False}),
        ("open", {"ledger": "another", "version": 1}),
        ("close", {"reservation": 3, "settled": False}),
        ("draw", []),
    ],
)
def test_an_entry_that_makes_no_sense_is_noticed(path: Path, kind: str, body: object) -> None:
    """Well chained, but not what a ledger could have written: a second charge, say."""
    ledger = Ledger(path)
    reservation = ledger.reserve(Promise(0.2), "adult", "count")
    reservation.mark_drawn()
    assert reservation.id == 9
    with ledger._file.writing() as transaction:
        transaction.append(Entry.following(10, ledger._state.head, "now", kind, body))
    with pytest.raises(LedgerTampered, match="entry 11"):
        Ledger(path)


def test_the_guards_refuse_changes_and_are_missed(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
            connection.execute("UPDATE entries SET kind = 'release'")
        with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
            connection.execute("DELETE FROM entries WHERE seq = 8")
        connection.execute("DROP TRIGGER entries_stay")
    with pytest.raises(LedgerTampered, match="triggers that guard it"):
        Ledger(path)


def test_a_foreign_trigger_is_noticed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TRIGGER odd AFTER INSERT ON entries BEGIN DELETE FROM sqlite_sequence; END"
        )
    with pytest.raises(LedgerTampered, match="triggers that guard it"):
        Ledger(path)


def test_an_older_copy_is_noticed_by_who_has_seen_more(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(path)
    shutil.copy(path, tmp_path / "older.db")
    ledger.reserve(Promise(0.1), "adult", "count").commit()
    noted = ledger.head
    shutil.copy(tmp_path / "older.db", path)
    with pytest.raises(LedgerTampered, match="entry 10, seen before"):
        ledger.reserve(Promise(0.1), "adult", "count")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TACIT_HOME", str(tmp_path / "elsewhere"))
        Ledger(path).reserve(Promise(0.05), "adult", "count").commit()  # as long, but another
    with pytest.raises(LedgerTampered, match="entry 10, seen before"):
        ledger.reserve(Promise(0.1), "adult", "count")
    with pytest.raises(LedgerTampered, match="older than what this machine has seen"):
        Ledger(path)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "another machine"))
    restarted = Ledger(path)  # elsewhere an older copy is a valid ledger …
    with pytest.raises(LedgerTampered, match="no entry has the hash"):
        restarted.verify(head=noted)  # … which only a head noted elsewhere gives away


def test_a_rewritten_chain_is_noticed_by_a_noted_head(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit: whoever can write the file can write another history. Heads are noted for that."""
    ledger = Ledger(path)
    noted = ledger.head
    path.unlink()
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "another machine"))
    forged = Ledger(path)
    forged.allow("adult", "record", epsilon=1.0, delta=1e-6)
    forged.verify()
    with pytest.raises(LedgerTampered):
        forged.verify(head=noted)
    with pytest.raises(LedgerTampered):
        ledger.balance("adult", "record")


def test_a_ledger_that_has_gone_is_not_made_anew(path: Path) -> None:
    ledger = Ledger(path)
    path.unlink()
    with pytest.raises(InputError, match="check that it exists"):
        ledger.reserve(Promise(0.1), "adult", "count")
    assert not path.exists()
    path.touch()
    with pytest.raises(LedgerTampered):
        ledger.reserve(Promise(0.1), "adult", "count")


def test_other_files_are_not_ledgers(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("ceci n'est pas un ledger " * 50)
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE entries (seq INTEGER)")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    before = (tmp_path / "other.db").read_bytes()
    for name in ("text", "other.db", "folder", "file/ledger.db"):
        with pytest.raises(InputError):
            Ledger(tmp_path / name)
    assert (tmp_path / "other.db").read_bytes() == before


def test_a_ledger_of_another_version_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 3")
    with pytest.raises(InputError, match="another version of tacit"):
        Ledger(path)


def test_a_file_switched_to_wal_is_switched_back(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    ledger = Ledger(path)
    with ledger._file.reading() as transaction:
        assert transaction._pragma("journal_mode") == "delete"
    ledger.verify()


def test_a_flipped_byte_is_noticed_or_makes_no_difference(path: Path, tmp_path: Path) -> None:
    ledger = Ledger(path)
    entries, original = ledger.entries(), path.read_bytes()
    chosen = random.Random(1)
    noticed = 0
    for number in range(150):
        damaged = bytearray(original)
        damaged[chosen.randrange(len(original))] ^= 1 << chosen.randrange(8)
        copy = tmp_path / f"{number}.db"
        copy.write_bytes(damaged)
        try:
            opened = Ledger(copy)
            opened.verify()
            assert opened.entries() == entries
        except (LedgerTampered, InputError):
            noticed += 1
    assert noticed > 10  # the rest fell on unused space of the file
