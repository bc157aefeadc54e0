"""One person's events, in one SQLite file: columns in sealed pieces, added whole or not at all.

An import is one transaction, so a machine that stops in the middle leaves nothing of it behind. A
segment is what one source gave of one type of events, some ten thousand rows as an Arrow stream,
and is never changed. With a passphrase everything but the number and length of pieces is sealed
(crypto/sealing.md).
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from tacit.crypto.sealing import COST, Locked, OpenSeal, Seal, Sealed, locked, unlocked
from tacit.crypto.sharing import fresh_seed
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.personal.dataset import Dataset, EventTable
from tacit.personal.events import EventType
from tacit.personal.store.segments import Segment, packed, unpacked

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Kept", "Source", "Store"]

APPLICATION = 0x7AC17  # says that the file is ours
VERSION = 1
PATIENCE = 5.0  # seconds that another import may hold the file
TABLES = """
CREATE TABLE header (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE type (id INTEGER PRIMARY KEY, about BLOB NOT NULL);
CREATE TABLE source (id INTEGER PRIMARY KEY, about BLOB NOT NULL);
CREATE TABLE segment (id INTEGER PRIMARY KEY, source INTEGER NOT NULL, about BLOB NOT NULL,
    marks BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE kept (id INTEGER PRIMARY KEY, about BLOB NOT NULL, data BLOB NOT NULL);
"""

T = TypeVar("T")


class Source(msgspec.Struct, frozen=True):
    """Where events came from: one service, any number of exports."""

    name: str
    importer: str
    exports: tuple[str, ...] = ()
    events: int = 0
    since: int | None = None
    until: int | None = None


class Kept(msgspec.Struct, frozen=True):
    """A problem or model that was put on a shelf, and the types of events it was made from."""

    shelf: str
    name: str
    types: tuple[str, ...] = ()
    about: str = ""


UNREADABLE = "{}: is no store of events that this version can read."


class Store:
    """A person's store. Open one with `Store.create` or `Store.open`."""

    def __init__(self, path: Path, database: sqlite3.Connection, seal: Seal) -> None:
        self.path, self._database, self._seal = path, database, seal
        # One that is just dropped is closed; Python from 3.13 on would warn of it. Not at the end
        # of a process: in a fork, that would close its parent's files.
        weakref.finalize(self, database.close).atexit = False

    @classmethod
    def create(
        cls,
        path: str | Path,
        zone: ZoneInfo | None = None,
        passphrase: str | None = None,
        cost: int = COST,
    ) -> Store:
        """A new store; `zone` is where the person lives, by default the one of UTC."""
        path = Path(path)
        seal = OpenSeal() if passphrase is None else Sealed.fresh()
        lock = None if passphrase is None else locked(_sealed(seal), passphrase, cost)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise UsageError(f"{path} is there already: a store is never overwritten.") from None
        database = _connected(path)
        database.executescript(f"PRAGMA page_size = 16384; BEGIN IMMEDIATE; {TABLES}")
        store = cls(path, database, seal)
        if lock is not None:
            store._put_header("lock", msgspec.msgpack.encode(lock))
        store._put_header("key", seal.close(fresh_seed()[:16], "header key"))
        zone = zone or ZoneInfo("UTC")
        store._put_header("zone", seal.close(zone.key.encode(), "header zone"))
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute(f"PRAGMA user_version = {VERSION}")
        database.execute("COMMIT")
        return store

    @classmethod
    def open(cls, path: str | Path, passphrase: str | None = None) -> Store:
        """A store that is there."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"{path}: there is no store yet. `tacit me import` makes one.")
        try:
            database = _connected(path)
        except sqlite3.DatabaseError:
            raise InputError(UNREADABLE.format(path)) from None
        try:
            return cls(path, database, _seal_of(path, database, passphrase))
        except BaseException:
            database.close()
            raise

    @staticmethod
    def is_sealed_at(path: str | Path) -> bool:
        """Whether the store there needs a passphrase; False where there is no store."""
        try:
            with closing(_connected(Path(path))) as database:
                return _header(database, "lock") is not None
        except sqlite3.DatabaseError:
            return False

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ── what is here ──

    @property
    def is_sealed(self) -> bool:
        return isinstance(self._seal, Sealed)

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self._sealed_header("zone").decode())

    @property
    def key(self) -> bytes:
        """Of the marks."""
        return self._sealed_header("key")

    def catalogue(self) -> dict[str, EventType]:
        """The types of events, by name."""
        types = self.abouts("type", EventType)
        return {kind.name: kind for _, kind in sorted(types.items(), key=lambda item: item[1].name)}

    def sources(self) -> list[Source]:
        """Where events came from, with how many there are and of when."""
        found = self.abouts("source", Source)
        segments = self.segments()
        return sorted(
            (_summed(about, [s for s in segments if s.source == i]) for i, about in found.items()),
            key=lambda source: source.name,
        )

    def counts(self) -> dict[str, int]:
        """How many events there are, by type."""
        counts: dict[str, int] = dict.fromkeys(self.catalogue(), 0)
        for segment in self.segments():
            counts[segment.type] += segment.rows
        return counts

    def dataset(
        self,
        types: Collection[str] | None = None,
        since: int | None = None,
        until: int | None = None,
        sources: Collection[str] | None = None,
    ) -> Dataset:
        """The events of these types and sources (by default all) from `since` until before `until`.

        Segments that hold nothing of it are not read.
        """
        catalogue = self.catalogue()
        for name in types or ():
            if name not in catalogue:
                known = ", ".join(catalogue) or "none"
                raise InputError(f"there are no events of type {name}; there are: {known}.")
        names = {number: about.name for number, about in self.abouts("source", Source).items()}
        wanted = [
            segment
            for segment in self.segments()
            if (sources is None or names[segment.source] in sources)
            and segment.touches(since, until)
        ]
        tables = {}
        for name, kind in catalogue.items():
            if types is None or name in types:
                mine = [segment for segment in wanted if segment.type == name]
                tables[name] = self._table(kind, mine, names).between(since, until)
        return Dataset(tables, self.zone)

    # ── what changes it ──

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: everything that happens inside, or nothing."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            raise Refused(
                f"{self.path}: something else is changing it just now. Try again when that is done."
            ) from None
        try:
            yield self._database
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def forget(self, name: str) -> Source:
        """Take away everything that came from a source, and what was learned from its events."""
        numbers = {about.name: number for number, about in self.abouts("source", Source).items()}
        if name not in numbers:
            known = ", ".join(sorted(numbers)) or "none"
            raise UsageError(f"there is no source called {name}; there are: {known}.")
        (gone,) = (source for source in self.sources() if source.name == name)
        with self.changing() as database:
            types = {s.type for s in self.segments() if s.source == numbers[name]}
            database.execute("DELETE FROM segment WHERE source = ?", (numbers[name],))
            database.execute("DELETE FROM source WHERE id = ?", (numbers[name],))
            for number, kept in self.abouts("kept", Kept).items():
                if kept.shelf == "model" and types.intersection(kept.types):
                    database.execute("DELETE FROM kept WHERE id = ?", (number,))
            left = {segment.type for segment in self.segments()}
            for number, kind in self.abouts("type", EventType).items():
                if kind.name in types - left:
                    database.execute("DELETE FROM type WHERE id = ?", (number,))
        self._database.execute("VACUUM")  # or its bytes would stay in free pages
        return gone

    def reseal(self, passphrase: str | None, cost: int = COST) -> None:
        """Another passphrase, or (None) none. Everything is written anew under a fresh key."""
        seal: Seal = OpenSeal() if passphrase is None else Sealed.fresh()
        lock = None if passphrase is None else locked(_sealed(seal), passphrase, cost)
        columns = {
            "type": ("about",),
            "source": ("about",),
            "segment": ("about", "marks", "data"),
            "kept": ("about", "data"),
        }
        with self.changing() as database:
            for name in ("key", "zone"):
                self._put_header(name, seal.close(self._sealed_header(name), f"header {name}"))
            for table, names in columns.items():
                for (number,) in database.execute(f"SELECT id FROM {table}").fetchall():  # noqa: S608
                    for column in names:
                        about = f"{table} {number} {column}"
                        (data,) = database.execute(
                            f"SELECT {column} FROM {table} WHERE id = ?",  # noqa: S608
                            (number,),
                        ).fetchone()
                        data = seal.close(self._seal.open(data, about), about)
                        database.execute(
                            f"UPDATE {table} SET {column} = ? WHERE id = ?",  # noqa: S608
                            (data, number),
                        )
            database.execute("DELETE FROM header WHERE name = 'lock'")
            if lock is not None:
                self._put_header("lock", msgspec.msgpack.encode(lock))
        self._seal = seal
        self._database.execute("VACUUM")

    # ── shelves: problems and models ──

    def keep(self, kept: Kept, data: bytes) -> None:
        """Put something on its shelf, in place of what has its name."""
        with self.changing():
            self._remove(kept.shelf, kept.name)
            number = self.next_number("kept")
            self.insert("kept", number, kept, data=data)

    def kept(self, shelf: str) -> dict[str, Kept]:
        """What is on a shelf, by name."""
        found = [kept for kept in self.abouts("kept", Kept).values() if kept.shelf == shelf]
        return {kept.name: kept for kept in sorted(found, key=lambda kept: kept.name)}

    def fetched(self, shelf: str, name: str) -> bytes:
        """What was put there."""
        for number, kept in self.abouts("kept", Kept).items():
            if (kept.shelf, kept.name) == (shelf, name):
                return self._piece("kept", number, "data")
        known = ", ".join(self.kept(shelf)) or "none"
        raise UsageError(f"there is no {shelf} called {name}; there are: {known}.")

    def _remove(self, shelf: str, name: str) -> None:
        for number, kept in self.abouts("kept", Kept).items():
            if (kept.shelf, kept.name) == (shelf, name):
                self._database.execute("DELETE FROM kept WHERE id = ?", (number,))

    # ── rows and pieces; `writing.py` uses these within `changing` ──

    def next_number(self, table: str) -> int:
        (number,) = self._database.execute(
            f"SELECT COALESCE(MAX(id), 0) + 1 FROM {table}"  # noqa: S608
        ).fetchone()
        return int(number)

    def insert(self, table: str, number: int, about: Any, **pieces: Any) -> None:
        """A row; bytes are sealed, numbers are not."""
        row = {"id": number, "about": msgspec.json.encode(about), **pieces}
        for name, value in row.items():
            if isinstance(value, bytes):
                row[name] = self._seal.close(value, f"{table} {number} {name}")
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self._database.execute(
            f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})",  # noqa: S608
            tuple(row.values()),
        )

    def marks(self, segment: int) -> bytes:
        """The marks of a segment's events."""
        return self._piece("segment", segment, "marks")

    def abouts(self, table: str, kind: type[T]) -> dict[int, T]:
        """What the rows of a table are about, by number."""
        rows = self._database.execute(f"SELECT id, about FROM {table} ORDER BY id")  # noqa: S608
        return {
            number: self._decoded(about, f"{table} {number} about", kind) for number, about in rows
        }

    def _decoded(self, data: bytes, about: str, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(self._seal.open(data, about), type=kind)
        except msgspec.DecodeError:
            raise CheckFailed(f"{self.path}, {about}: is damaged. Restore a copy.") from None

    def _piece(self, table: str, number: int, column: str) -> bytes:
        (data,) = self._database.execute(
            f"SELECT {column} FROM {table} WHERE id = ?",  # noqa: S608
            (number,),
        ).fetchone()
        return self._seal.open(data, f"{table} {number} {column}")

    def segments(self) -> list[Segment]:
        """What each segment holds."""
        rows = self._database.execute("SELECT id, source, about FROM segment ORDER BY id")
        return [
            msgspec.structs.replace(
                self._decoded(about, f"segment {number} about", Segment),
                number=number,
                source=source,
            )
            for number, source, about in rows
        ]

    def _table(
        self, kind: EventType, segments: list[Segment], names: Mapping[int, str]
    ) -> EventTable:
        parts: list[pa.Table] = [
            unpacked(self._piece("segment", segment.number, "data"), kind, names[segment.source])
            for segment in segments
        ]
        return EventTable.of(kind, packed(kind, parts))

    def _put_header(self, name: str, value: bytes) -> None:
        self._database.execute("INSERT OR REPLACE INTO header VALUES (?, ?)", (name, value))

    def _sealed_header(self, name: str) -> bytes:
        value = _header(self._database, name)
        if value is None:
            raise CheckFailed(f"{self.path}: is damaged. Restore a copy.")
        return self._seal.open(value, f"header {name}")


def _seal_of(path: Path, database: sqlite3.Connection, passphrase: str | None) -> Seal:
    """What the store there is sealed with, opened by the passphrase."""
    try:
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError:
        application = version = 0
    if application != APPLICATION or version != VERSION:
        raise InputError(UNREADABLE.format(path))
    lock = _header(database, "lock")
    if lock is None:
        return OpenSeal()
    if passphrase is None:
        raise Refused(f"{path}: is sealed. Give its passphrase (TACIT_PASSPHRASE).")
    return unlocked(msgspec.msgpack.decode(lock, type=Locked), passphrase)


def _connected(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        # A rollback journal: a large import is written once, not twice, and there is one file. What
        # is deleted is overwritten; what was committed is on the disk.
        database.executescript(
            "PRAGMA synchronous = EXTRA; PRAGMA secure_delete = ON; PRAGMA trusted_schema = OFF;"
            "PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY;"
        )
    except BaseException:
        database.close()
        raise
    return database


def _header(database: sqlite3.Connection, name: str) -> bytes | None:
    row = database.execute("SELECT value FROM header WHERE name = ?", (name,)).fetchone()
    return None if row is None else bytes(row[0])


def _sealed(seal: Seal) -> Sealed:
    assert isinstance(seal, Sealed)
    return seal


def _summed(source: Source, segments: list[Segment]) -> Source:
    since = [s.since for s in segments if s.since is not None]
    until = [s.until for s in segments if s.until is not None]
    return msgspec.structs.replace(
        source,
        events=sum(segment.rows for segment in segments),
        since=min(since, default=None),
        until=max(until, default=None),
    )
