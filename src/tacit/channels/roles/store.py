"""Durable state of one role in one study: an SQLite file with a single writer.

Write-ahead log with synchronous=FULL: what is committed survives `kill -9` and power failure, and
many small writes share one sync (see docs/decisions/sqlite.md). One process at a time opens it
(lock.py). A file that is empty, cut short, a copy, or older than what this machine has seen is an
error, never a new store (seen.py): a role that has forgotten what it answered would answer again.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

from tacit.channels.roles.lock import Lock
from tacit.channels.roles.seen import Note, Seen
from tacit.channels.roles.storage import storage_problem
from tacit.errors import InputError, Refused
from tacit.whole_file import write_whole

__all__ = ["BEFORE_IDENTITIES", "MEMORY", "PENDING", "Store", "check_whole"]

MEMORY = ":memory:"
BEFORE_IDENTITIES = "0.1"  # begins the names of stores that version 0.1 made
WAL_BYTES = 2**22  # of the log before it is written back
FIRST = 1  # the version of stores that do not say theirs: those of tacit 0.1
# What every store knows of itself since version 2: a random name that backups keep, how many steps
# it has taken, and when it was put back from a backup, if it was.
IDENTITY = "CREATE TABLE identity (id TEXT NOT NULL, steps INTEGER NOT NULL, restored TEXT)"
NEW = "INSERT INTO identity VALUES (? || lower(hex(randomblob(16))), 0, NULL)"


# Said of a store that was put back and not opened since (backup.py).
PENDING = "pending "


class Store:
    """Opens or makes the file, and refuses one that belongs to another study or role.

    version    of the tables; `upgrades[n]` are the statements that lead from n to n + 1
    alone      whether one process at a time may have it open
    goes_on    whether a role can go on soundly after its store was put back from a backup;
               `forgets` are the statements that it does so with
    """

    role: str
    tables: tuple[str, ...]
    page_bytes = 4096  # larger where long bodies are kept: they are cut into fewer pages
    version = 2
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {}
    alone = True
    goes_on = False
    forgets: tuple[str, ...] = ()

    def __init__(self, path: str | Path, study: str) -> None:
        self.path = str(path)
        self.restored: str | None = None  # when it was put back from a backup, if it was
        self._locks: list[Lock] = []
        self._seen: Seen | None = None
        self._stepped = False
        try:
            if self.path != MEMORY:
                self._find(Path(path), study)
            self.database = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False
            )
            # A store in memory is often just dropped; Python from 3.13 on warns of that. Not at the
            # end of a process: in a fork, that would close its parent's files.
            weakref.finalize(self, self.database.close).atexit = False
            try:
                self._prepare(study)
            except BaseException:
                self.database.close()
                raise
        except sqlite3.DatabaseError as error:
            self._let_go()
            if storage_problem(error) is not None:
                raise  # the store is as it was
            raise InputError(f"{self.path} cannot be used as a store: {error}. {REMEDY}") from None
        except BaseException:
            self._let_go()
            raise

    # ── the file ──

    def _find(self, path: Path, study: str) -> None:
        """Hold the lock; make the file if there never was one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.alone:
            self._locks.append(Lock(path))
        self._seen = Seen.of(path, self.role, study)
        if path.exists():
            check_whole(path)
            return
        self._seen.check_missing()
        # Made elsewhere and moved here as a whole: a file of 0 bytes is none that a crash left.
        with closing(sqlite3.connect(MEMORY, isolation_level=None)) as draft:
            draft.execute(f"PRAGMA page_size={self.page_bytes}")
            draft.execute("BEGIN")
            self._make(draft, study)
            draft.execute("COMMIT")
            content = draft.serialize()
        # Shares and outgoing letters are for the role's own eyes.
        before = os.umask(0o077)
        try:
            write_whole(path, content)
        finally:
            os.umask(before)

    def _make(self, database: sqlite3.Connection, study: str) -> None:
        database.execute("CREATE TABLE about (role TEXT, study TEXT)")
        database.execute("INSERT INTO about VALUES (?, ?)", (self.role, study))
        for statement in (*self.tables, IDENTITY):
            database.execute(statement)
        database.execute(NEW, ("",))
        database.execute(f"PRAGMA user_version={self.version}")

    def _prepare(self, study: str) -> None:
        run = self.database.execute
        if self.path == MEMORY:
            with self.transaction():
                self._make(self.database, study)
        else:
            self._check_owner(study)
            run("PRAGMA journal_mode=WAL")
            run(f"PRAGMA wal_autocheckpoint={WAL_BYTES // self.page_bytes}")
            run("PRAGMA synchronous=FULL")
        run("PRAGMA secure_delete=ON")  # a share that is dropped does not stay in a free page
        self._upgrade()
        (self.id,) = run("SELECT id FROM identity").fetchone()
        if self._seen is not None:
            self._check_seen(self._seen)
        (self.restored,) = run("SELECT restored FROM identity").fetchone()
        if self.restored is not None and not self.goes_on and not self.is_over:
            raise Refused(
                f"{self.path} was put back from a backup ({self.restored}) in the midst of its "
                "study. What this role has said since the backup is not known, and saying it in "
                "another way would show more than was paid for: it gives the study up. What was "
                "reserved for it stays charged."
            )

    def _check_seen(self, seen: Seen) -> None:
        """Refuse a copy, and an older one, unless it was told that it was put back."""
        if self.alone:  # wherever the copies of this store are
            what = f"{self.path}, or a copy of it,"
            self._locks.append(Lock(Path(self.path), seen.lock(self.id), what))
        here, named = seen.here(), seen.named(self.id)  # before the steps, which others may take
        run = self.database.execute
        steps, restored = run("SELECT steps, restored FROM identity").fetchone()
        if (restored or "").startswith(PENDING):
            self._come_back(restored, named)
        else:
            seen.check(here, named, self.id, steps)
        self._note()

    def _come_back(self, restored: str, named: Note | None) -> None:
        """The first start after a restore: forget what is of no use or a danger now.

        From here on it is ahead of every copy that this machine has seen: none of them may go on.
        """
        run = self.database.execute
        with self.transaction():
            for statement in self.forgets:
                run(statement)
            if named is not None:
                self.remind(named.words)
            run(
                "UPDATE identity SET steps = max(steps, ?) + 1, restored = ?",
                (named.steps if named else 0, restored.removeprefix(PENDING)),
            )

    # ── what this machine knows beside the store ──

    def words(self) -> str:
        """What is to be noted outside the folder with every step, beside their number."""
        return ""

    def remind(self, words: str) -> None:
        """After a restore: what was noted last."""

    def _check_owner(self, study: str) -> None:
        found = self.database.execute("SELECT role, study FROM about").fetchone()
        if found != (self.role, study):
            role, other = found or ("nobody", "unknown")
            raise Refused(
                f"{self.path} belongs to a {role} of study {other[:16]}…, not to a "
                f"{self.role} of study {study[:16]}…: name another folder."
            )

    # ── versions ──

    def _upgrade(self) -> None:
        run = self.database.execute
        found = run("PRAGMA user_version").fetchone()[0] or FIRST
        if found > self.version:
            raise InputError(
                f"{self.path} is a store of version {found}; this tacit knows versions up to "
                f"{self.version}: use the newer tacit that wrote it."
            )
        if found == self.version:
            return
        self._keep_copy(found)
        with self.transaction():
            for version in range(found, self.version):
                for statement in self.upgrades.get(version, ()):
                    run(statement)
                if version == FIRST:
                    run(IDENTITY)
                    run(NEW, (BEFORE_IDENTITIES,))
            run(f"PRAGMA user_version={self.version}")

    def _keep_copy(self, version: int) -> None:
        """The store as it was, beside it; made anew if a crash came before the upgrade."""
        copy = Path(f"{self.path}.version-{version}")
        copy.unlink(missing_ok=True)
        os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(copy)) as target:
            self.database.backup(target)

    # ── use ──

    @property
    def is_over(self) -> bool:
        """Whether the study has ended for this role: then nothing is said any more."""
        return False

    @property
    def identity(self) -> str:
        """A random name given when the store was made: whoever has it has what was drawn."""
        return BEFORE_IDENTITIES if self.id.startswith(BEFORE_IDENTITIES) else self.id

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; durable on leaving."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.database.execute("COMMIT")
        except BaseException:
            self._stepped = False
            # On a full disk SQLite may have rolled back itself.
            if self.database.in_transaction:
                self.database.execute("ROLLBACK")
            raise
        if self._stepped:
            self._note()

    def step(self) -> None:
        """Count a step that must never be taken back, in the transaction that takes it, if any."""
        self.database.execute("UPDATE identity SET steps = steps + 1")
        self._stepped = True
        if not self.database.in_transaction:
            self._note()

    def _note(self) -> None:
        self._stepped = False
        if self._seen is not None:
            (steps,) = self.database.execute("SELECT steps FROM identity").fetchone()
            self._seen.write(self.id, steps, self.words())

    def close(self) -> None:
        self.database.close()
        self._let_go()

    def _let_go(self) -> None:
        for lock in self._locks:
            lock.release()


REMEDY = "Put it back from a backup: tacit restore."
HEADER = 100  # bytes, with the size and number of pages at 16 and 28 (SQLite's file format, 1.3)


def check_whole(path: Path) -> None:
    """InputError for a file that is empty, no database, or shorter than its header says.

    With a log beside it the database itself may lag behind: SQLite is asked then.
    """
    size = path.stat().st_size
    if size == 0:
        raise InputError(f"{path} is empty: what was in it is lost. {REMEDY}")
    with path.open("rb") as file:
        header = file.read(HEADER)
    if len(header) < HEADER or not header.startswith(b"SQLite format 3\x00"):
        raise InputError(f"{path} cannot be used as a store: file is not a database. {REMEDY}")
    page = int.from_bytes(header[16:18])
    page = 2**16 if page == 1 else page  # which would not fit
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        _check_pages(path)
    elif size < page * int.from_bytes(header[28:32]):
        raise InputError(f"{path} is cut short: {size} bytes are left of it. {REMEDY}")


def _check_pages(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise InputError(f"{path} is damaged: {found}. {REMEDY}")
