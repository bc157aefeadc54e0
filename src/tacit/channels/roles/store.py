"""Durable state of one role in one study: an SQLite file with a single writer.

Write-ahead log with synchronous=FULL: what is committed survives `kill -9` and power failure, and
many small writes share one sync (see docs/decisions/sqlite.md).
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit.errors import InputError, Refused

__all__ = ["BEFORE_IDENTITIES", "MEMORY", "Store"]

MEMORY = ":memory:"
BEFORE_IDENTITIES = "0.1"  # of stores that version 0.1 began, and of what it drew
WAL_BYTES = 2**22  # of the log before it is written back


class Store:
    """Opens or makes the file, and refuses one that belongs to another study or role."""

    role: str
    tables: tuple[str, ...]
    page_bytes = 4096  # larger where long bodies are kept: they are cut into fewer pages

    def __init__(self, path: str | Path, study: str) -> None:
        self.path = str(path)
        if self.path != MEMORY:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            # Shares and outgoing letters are for the role's own eyes.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        # A store in memory is often just dropped; Python from 3.13 on warns of that. Not at the end
        # of a process: in a fork, that would close its parent's files.
        weakref.finalize(self, self.database.close).atexit = False
        try:
            self._prepare(study)
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path} cannot be used as a store: {error}.") from None

    def _prepare(self, study: str) -> None:
        run = self.database.execute
        run(f"PRAGMA page_size={self.page_bytes}")
        run("PRAGMA journal_mode=WAL")
        run(f"PRAGMA wal_autocheckpoint={WAL_BYTES // self.page_bytes}")
        run("PRAGMA synchronous=FULL")
        run("PRAGMA secure_delete=ON")  # a share that is dropped does not stay in a free page
        with self.transaction():
            run("CREATE TABLE IF NOT EXISTS about (role TEXT, study TEXT)")
            run("CREATE TABLE IF NOT EXISTS identity (value TEXT NOT NULL)")
            found = run("SELECT role, study FROM about").fetchone()
            if found is None:
                run("INSERT INTO about VALUES (?, ?)", (self.role, study))
                run("INSERT INTO identity VALUES (?)", (secrets.token_hex(16),))
                for table in self.tables:
                    run(table)
            elif found != (self.role, study):
                raise Refused(
                    f"{self.path} belongs to a {found[0]} of study {found[1][:16]}…, not to a "
                    f"{self.role} of study {study[:16]}…: name another folder."
                )

    @property
    def identity(self) -> str:
        """A random name given when the store was made: whoever has it has what was drawn."""
        found = self.database.execute("SELECT value FROM identity").fetchone()
        return BEFORE_IDENTITIES if found is None else str(found[0])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; durable on leaving."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")

    def close(self) -> None:
        self.database.close()
