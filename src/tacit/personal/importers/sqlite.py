"""Any app's table in an SQLite file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tacit.errors import InputError
from tacit.personal.events import EventType
from tacit.personal.importers.database import NO_TEXT, Database, Table, databases, opened, quoted
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.shapes import OPTIONS, Shape

__all__ = ["Sqlite"]


class Sqlite:
    name = "sqlite"
    title = "Any table in an SQLite file"
    hint = "Copy the app's .db or .sqlite file while the app is closed."
    types: tuple[EventType, ...] = ()
    options: Mapping[str, str] = {"table": "which table; needed if there are several", **OPTIONS}

    def recognises(self, export: Export) -> bool:
        return bool(databases(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in databases(export):
            with opened(export, member) as database:
                table = _table(member, database, reading.options.get("table"))
                if table is not None:
                    where = f"{member.name}, table {table.name[:60]}"
                    yield from _read(database, table, where, reading)


def _read(database: Database, table: Table, where: str, reading: Reading) -> Iterator[Record]:
    shape = Shape()
    for row in _rows(database, table):
        if row is not None:
            shape.see(row)
    shaped = shape.shaped(table.name, where, reading)
    for number, row in enumerate(_rows(database, table), 1):
        place = f"{where}, row {number}"
        event = shaped.event(row) if shaped is not None and row is not None else None
        if row is None:
            reading.damaged(place, "it holds what is neither a text nor a finite number.")
        elif event is None or shaped is None:
            reading.damaged(place, "it has no time.")
        else:
            yield Record(shaped.kind, *event, place)


def _table(member: Member, database: Database, named: str | None) -> Table | None:
    """The one to read; None if there is none at all."""
    tables = database.tables()
    if named in tables:
        return tables[named]
    if named is None and len(tables) < 2:
        return next(iter(tables.values()), None)
    known = ", ".join(name[:40] for name in list(tables)[:40]) or "none"
    raise InputError(
        f"{member.name}: say which table with the option table. There are: {known}."
        if named is None
        else f"{member.name}: there is no table {named[:60]!r}. There are: {known}."
    )


def _rows(database: Database, table: Table) -> Iterator[dict[str, Any] | None]:
    """Rows by column; None for one whose text is no text. Of a blob, the length is kept.

    Computed columns would run the file's own expressions: only stored ones are asked for.
    """
    columns = ", ".join(map(quoted, table.columns))
    query = f"SELECT {columns} FROM {quoted(table.name)}"  # noqa: S608
    for values in database.rows(query, table):
        yield _row(table.columns, values)


def _row(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any] | None:
    row: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        if isinstance(value, bytes):
            row[f"{name}_bytes"] = len(value)
        elif value is NO_TEXT or (isinstance(value, float) and not math.isfinite(value)):
            return None
        else:
            row[name] = value
    return row
