"""SQLite files of other programs, read as if a stranger had made them.

A database can be made to act: through views that stand in for tables, columns that are computed,
texts that swell, queries that never end. So it is copied, opened for reading alone, with nothing of
its schema trusted, and only real tables are asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tacit.errors import InputError, TacitError
from tacit.personal.importers.export import Export, Member

__all__ = ["NO_TEXT", "Database", "Table", "databases", "opened", "quoted"]

MAGIC = b"SQLite format 3\x00"
LONGEST = 16 << 20  # bytes of one value, and of one row
STEPS = 10_000  # of SQLite's machine, between two looks at how far it is
# Steps that a query may take: at first, and for each byte of the file. Real ones take one for each.
START, EACH = 1_000_000, 20
FAULTS = (sqlite3.Error, sqlite3.Warning, UnicodeError, ValueError, OverflowError)
PRAGMAS = ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON")
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
NO_TEXT = object()  # in place of a text that is no UTF-8


class Table(NamedTuple):
    """A real table: its columns that are stored, and whether others are computed."""

    name: str
    columns: tuple[str, ...]
    computes: bool


def databases(export: Export) -> list[Member]:
    return [one for one in export.members if one.head(len(MAGIC)) == MAGIC]


@contextmanager
def opened(export: Export, member: Member) -> Iterator[Database]:
    """A private copy of it, gone afterwards."""
    with member.on_disk() as path:
        log = _log(export, member)
        _check_whole(path, member, log is not None)
        size = path.stat().st_size
        if log is not None:
            with log, path.with_name(f"{path.name}-wal").open("wb") as copy:
                while block := log.read(1 << 20):
                    size += copy.write(block)
        # Of a file that is opened for reading alone, SQLite does not even parse the constraints.
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            try:
                yield Database(connection, member, START + EACH * size)
            except TacitError:
                raise
            except FAULTS:
                raise _damaged(member) from None


class Database:
    """What is asked of it may raise any of `FAULTS`, which `opened` makes an error for people."""

    def __init__(self, connection: sqlite3.Connection, member: Member, most: int) -> None:
        """
        most  steps that one query may take
        """
        self._connection, self._member, self._most = connection, member, most
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.text_factory = _text
        self._begin()
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    def tables(self) -> dict[str, Table]:
        """Real ones, by name: views and virtual tables run code, and are left out."""
        self._begin()
        listed = self._connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
        )
        names = [name for name, sql in listed.fetchall() if _is_real(name, sql)]
        return {name: self._table(name) for name in names}

    def rows(self, query: str, *tables: Table) -> Iterator[tuple[object, ...]]:
        """The rows of a query over these tables; `NO_TEXT` in place of texts that are none."""
        for table in tables:
            if not table.computes:  # the check would compute them
                self._check(table.name)
        self._begin()
        self._connection.set_authorizer(_authorised)
        try:
            with closing(self._connection.execute(query)) as found:
                yield from found
        finally:
            self._connection.set_authorizer(None)

    def _table(self, name: str) -> Table:
        columns = self._connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        stored = tuple(str(column) for _, column, *_, hidden in columns if not hidden)
        return Table(name, stored, len(stored) < len(columns))

    def _check(self, table: str) -> None:
        """Rows in disorder or on two pages at once: damage that reading alone does not meet."""
        self._begin()
        try:
            found = self._connection.execute(f"PRAGMA quick_check({quoted(table)})").fetchone()
        except sqlite3.OperationalError:
            return  # an index is in an order that only its app knows; rows can still be read
        if found != ("ok",):
            raise _damaged(self._member)

    def _begin(self) -> None:
        left = self._most

        def stop() -> bool:
            nonlocal left
            left -= STEPS
            return left < 0

        self._connection.set_progress_handler(stop, STEPS)


def quoted(name: str) -> str:
    """A name within a query: names cannot be bound as values are."""
    return '"' + name.replace('"', '""') + '"'


def _is_real(name: object, sql: object) -> bool:
    if not isinstance(name, str) or not isinstance(sql, str) or name.startswith("sqlite_"):
        return False
    return [word.upper() for word in sql.split()[:2]] == ["CREATE", "TABLE"]


def _text(data: bytes) -> object:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return NO_TEXT


def _authorised(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


def _log(export: Export, member: Member) -> BinaryIO | None:
    """The latest changes, which stand in a log beside the database while its app runs.

    The third file, `-shm`, is an index of the log that SQLite makes anew.
    """
    for other in export.members:
        if other.name == f"{member.name}-wal":
            return other.open()
    beside = export.path.with_name(f"{export.path.name}-wal")
    if export.path.is_file() and export.name == member.name and beside.is_file():
        return beside.open("rb")
    return None


def _check_whole(path: Path, member: Member, has_log: bool) -> None:
    """SQLite takes the missing end of a file for zeros: its header says how many pages it has.

    Pages that a log holds may not be in the file yet.
    """
    with path.open("rb") as stream:
        head = stream.read(100)
    size, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    page, there = 65536 if size == 1 else size, path.stat().st_size
    is_known = head[24:28] == head[92:96] and not has_log
    if len(head) < 100 or page < 512 or there % page or (is_known and there < page * pages):
        raise _damaged(member)


def _damaged(member: Member) -> InputError:
    return InputError(
        f"{member.name}: is cut short, damaged, or not such as apps write. Close the app that it "
        "is of, copy the file anew, and import that."
    )
