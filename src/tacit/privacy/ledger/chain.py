"""The ledger's file: one SQLite table to which entries are only added, chained by their hashes.

Each entry holds the hash of the one before it, so a change anywhere breaks every hash after it, and
`head`, the newest hash, stands for the whole history. Whoever may write the file may also rewrite
the whole chain: a head noted elsewhere (certificates carry it) shows that too.

A connection lives for one operation. SQLite forbids to carry one through a fork, and its locks
belong to the process, so none is open while this process forks.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.crypto.signing import canonical, digest
from tacit.errors import InputError, LedgerTampered, StorageError, TacitError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["GENESIS", "Entry", "LedgerFile", "Transaction"]

GENESIS = "0" * 64
APPLICATION = int.from_bytes(b"tacL")  # SQLite's header field for the kind of file
VERSION = 2
PATIENCE = 60.0  # seconds to wait for other processes; a write takes milliseconds
BEFORE_ALL = -(2**63)

SCHEMA = {
    "entries": "CREATE TABLE entries (seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, "
    "kind TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL)",
    "entries_stay": "CREATE TRIGGER entries_stay BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END",
    "entries_hold": "CREATE TRIGGER entries_hold BEFORE UPDATE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END",
}

# Re-entrant, so that a signal handler that forks in the middle of an operation cannot deadlock.
_one_connection = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_one_connection.acquire,
        after_in_parent=_one_connection.release,
        after_in_child=_one_connection.release,
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger."""

    seq: int
    at: str
    kind: str
    body: dict[str, Any]
    previous: str
    hash: str

    @classmethod
    def following(cls, seq: int, head: str, at: str, kind: str, body: dict[str, Any]) -> Entry:
        """The entry after the one numbered `seq`, whose hash is `head`."""
        text = canonical(body).decode()
        return cls(seq + 1, at, kind, body, head, chain_hash(seq + 1, at, kind, text, head))


def chain_hash(seq: int, at: str, kind: str, body: str, previous: str) -> str:
    # The body is hashed as the text that is stored, so that no byte of it can change.
    return digest({"seq": seq, "at": at, "kind": kind, "body": body, "previous": previous})


class Transaction:
    """What may be done while the file is held."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection

    def newer(self, seq: int, head: str) -> Iterator[Entry]:
        """The entries after number `seq`, each checked against the one before it."""
        rows = self._connection.execute(
            "SELECT seq, at, kind, body, previous, hash FROM entries WHERE seq >= ? ORDER BY seq",
            (seq or BEFORE_ALL,),
        )
        if seq:
            known = rows.fetchone()
            if known is None or (known[0], known[5]) != (seq, head):
                raise LedgerTampered(
                    f"{self._path}: entry {seq}, seen before, is gone or is another one now: an "
                    "older copy was put in its place, or the file was edited."
                )
        for row in rows:
            entry = self._checked(row, seq, head)
            seq, head = entry.seq, entry.hash
            yield entry
        self._check_tail(seq)

    def _checked(self, row: tuple[Any, ...], seq: int, head: str) -> Entry:
        number, at, kind, body, previous, hashed = row
        place = f"{self._path}: entry {seq + 1}"
        if number != seq + 1:
            raise LedgerTampered(f"{place} is missing; entry {number} follows {seq}.")
        if not all(isinstance(text, str) for text in row[1:]):
            raise LedgerTampered(f"{place} holds something that is not text.")
        if previous != head:
            raise LedgerTampered(f"{place} does not follow the entry before it: one was changed.")
        if hashed != chain_hash(number, at, kind, body, previous):
            raise LedgerTampered(f"{place} was changed after it was written: its hash is wrong.")
        try:
            return Entry(number, at, kind, json.loads(body), previous, hashed)
        except ValueError:
            raise LedgerTampered(f"{place} is not readable JSON.") from None

    def _check_tail(self, seq: int) -> None:
        # AUTOINCREMENT remembers the highest number ever given, also of rows deleted since.
        row = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'entries'"
        ).fetchone()
        given = row[0] if row else 0
        if given != seq:
            raise LedgerTampered(
                f"{self._path}: the newest entry is {seq}, but {given} were written: "
                "entries at the end were removed."
            )

    def append(self, entry: Entry) -> None:
        body = canonical(entry.body).decode()
        self._connection.execute(
            "INSERT INTO entries (seq, at, kind, body, previous, hash) VALUES (?, ?, ?, ?, ?, ?)",
            (entry.seq, entry.at, entry.kind, body, entry.previous, entry.hash),
        )

    def version(self) -> int:
        """Which version wrote the file; InputError if it is not ours."""
        if self._pragma("application_id") != APPLICATION:
            raise InputError(
                f"{self._path} is an SQLite file, but not a tacit ledger: name another path."
            )
        found = int(self._pragma("user_version"))
        if not 1 <= found <= VERSION:
            raise InputError(
                f"{self._path} was written by another version of tacit (its format is {found}, "
                f"and this one reads 1 to {VERSION}): use that version, or a newer one."
            )
        return found

    def create(self) -> None:
        for statement in SCHEMA.values():
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
        self.set_version()

    def set_version(self) -> None:
        self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def check_schema(self) -> None:
        """The table and its two guards, and nothing that could act behind our back."""
        if self._schema() != SCHEMA:
            raise LedgerTampered(
                f"{self._path}: the table or the triggers that guard it were changed."
            )

    def check_pages(self) -> None:
        found = self._pragma("integrity_check")
        if found != "ok":
            raise LedgerTampered(f"{self._path}: the file itself is damaged ({found}).")

    def _schema(self) -> dict[str, str]:
        rows = self._connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE name != 'sqlite_sequence'"
        )
        return dict(rows.fetchall())

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]


class LedgerFile:
    """The file, opened anew for each operation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, first: Entry) -> None:
        """Make a new ledger, which only its owner may read; all of it or nothing, so that nobody
        ever finds an empty file. Another process may be faster: then its ledger stays."""
        made = self.path.with_name(f".{self.path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            try:
                with LedgerFile(made).writing() as transaction:
                    transaction.create()
                    transaction.append(first)
                _give_name(made, self.path)
            finally:
                made.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be used as a ledger ({error.strerror}): "
                "name a file that you may write."
            ) from None

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        with self._transaction("BEGIN") as transaction:
            yield transaction

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Alone among all processes; on leaving, what was appended is on the disk, or nothing."""
        with self._transaction("BEGIN IMMEDIATE") as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        try:
            with _one_connection, closing(self._connect()) as connection:
                connection.execute(begin)
                yield Transaction(self.path, connection)
                connection.execute("COMMIT")
                # Closing rolls back whatever an exception has left open.
        except sqlite3.Error as error:
            raise explained(self.path, error) from error

    def _connect(self) -> sqlite3.Connection:
        # mode=rw: never make an empty file where the ledger has gone missing.
        connection = sqlite3.connect(
            self.path.as_uri() + "?mode=rw", uri=True, timeout=PATIENCE, isolation_level=None
        )
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        try:
            # EXTRA also syncs the folder once the journal is removed; without it a power failure
            # can bring the journal back and undo a commit that was already acknowledged.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS; elsewhere without effect
        except BaseException:
            connection.close()
            raise
        return connection

    def use_rollback_journal(self) -> None:
        """Rollback journals are the default; undo it if someone switched the file to WAL."""
        try:
            with _one_connection, closing(self._connect()) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error as error:
            raise explained(self.path, error) from error


def _give_name(made: Path, path: Path) -> None:
    """Unless the name is taken, which is no error; on the disk on return."""
    try:
        os.link(made, path)
    except FileExistsError:
        return
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def explained(path: Path, error: sqlite3.Error) -> TacitError:
    """The error of SQLite in our tree, with what to do."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    match code:
        case sqlite3.SQLITE_NOTADB:
            return InputError(f"{path} is not an SQLite file, so not a ledger: name another path.")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Unreachable(
                f"{path} was held by another process for {PATIENCE:g} s; nothing was written. "
                "Find the process that holds it, or try again."
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_ERROR:
            return LedgerTampered(f"{path} is damaged or was edited ({error}).")
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return StorageError(
                f"{path.parent} cannot be written ({error}): the ledger is as it was. Nothing is "
                "lost: make room and start again."
            )
        case _:
            return InputError(
                f"{path} could not be read or written ({error}): check that it exists, that you "
                "may write it and its folder, and that the disk has room."
            )
