"""What may enter a store: values of their kinds, finite, of bearable length, and no formulas.

A text that a spreadsheet would run (=HYPERLINK(…), @SUM(…), +cmd|…) has no place in an export of
what happened; whoever opens a table of events later must not run it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.personal.dataset import plain_layout
from tacit.personal.events import EventType, checked
from tacit.personal.importers.importer import Reading, Record, Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Intake", "clean"]

AT_ONCE = 16_384  # records that become one segment
LONGEST = 100_000  # bytes of one text
# Begins as a formula does, and calls a function or another program.
FORMULA = r"^[\s\"']*[=@+\-].*([A-Za-z_][A-Za-z0-9_.]*\(|\|.*!)"
STARTS = r"^[\s\"']*[=@+\-]"


class Intake:
    """Gathers single records into tables, type by type."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._waiting: dict[str, list[Record]] = {}

    def taken(self, item: Record | Rows) -> Iterator[tuple[EventType, pa.Table]]:
        """What is ready after this one came."""
        if isinstance(item, Rows):
            yield item.kind, clean(item.kind, item.table, item.place, self._reading)
            return
        waiting = self._waiting.setdefault(item.kind.name, [])
        if waiting and waiting[0].kind is not item.kind and waiting[0].kind != item.kind:
            yield self._table(item.kind.name)  # fields that differ: a table of its own
            waiting = self._waiting.setdefault(item.kind.name, [])
        waiting.append(item)
        if len(waiting) >= AT_ONCE:
            yield self._table(item.kind.name)

    def rest(self) -> Iterator[tuple[EventType, pa.Table]]:
        """What is left at the end."""
        for name in list(self._waiting):
            yield self._table(name)

    def _table(self, name: str) -> tuple[EventType, pa.Table]:
        import pyarrow as pa

        records = self._waiting.pop(name)
        kind = records[0].kind
        rows, places = [], []
        for record in records:
            try:
                rows.append(_row(kind, record))
                places.append(record.place)
            except InputError as error:
                self._reading.damaged(record.place, str(error))
        schema = pa.schema([(n, t) for n, t in plain_layout(kind).items() if n != "source"])
        columns = {
            n: pa.array([row.get(n) for row in rows], schema.field(n).type) for n in schema.names
        }
        return kind, clean(kind, pa.table(columns), places.__getitem__, self._reading)


def clean(kind: EventType, table: pa.Table, place: Any, reading: Reading) -> pa.Table:
    """The table without rows that may not enter; each of those is reported at its place."""
    import pyarrow as pa

    bad: dict[int, str] = {}
    if not kind.static:
        _note(bad, table["time"].is_null(), "it has no time.")
    for name, there in kind.fields.items():
        if name not in table.column_names:
            continue
        if there == "number":
            _note(bad, _infinite(table[name]), f"{name} is no finite number.")
        elif there in ("category", "text"):
            _note(bad, _too_long(table[name]), f"{name} is longer than {LONGEST:,} bytes.")
            _note(bad, _formula(table[name]), f"{name} holds a spreadsheet's formula.")
    if not bad:
        return table
    for index in sorted(bad):
        reading.damaged(place(index), bad[index])
    good = np.ones(table.num_rows, bool)
    good[list(bad)] = False
    return table.filter(pa.array(good))


def _note(bad: dict[int, str], found: Any, reason: str) -> None:
    """`found` is a mask, or None for nowhere."""
    if found is None:
        return
    mask: NDArray[np.bool_] = np.asarray(found.to_numpy(zero_copy_only=False), bool)
    for index in np.flatnonzero(mask):
        bad.setdefault(int(index), reason)


def _infinite(column: pa.ChunkedArray) -> Any:
    import pyarrow.compute as pc

    finite = pc.is_finite(column)
    return None if pc.all(finite).as_py() in (True, None) else pc.invert(finite).fill_null(False)


def _too_long(column: pa.ChunkedArray) -> Any:
    import pyarrow as pa

    limit = pa.scalar(LONGEST, pa.int32())
    return _among_texts(column, lambda pc, texts: pc.greater(pc.binary_length(texts), limit))


def _formula(column: pa.ChunkedArray) -> Any:
    """Most texts do not even begin as a formula: the careful look is for those that do."""

    def found(pc: Any, texts: Any) -> Any:
        starts = pc.match_substring_regex(texts, STARTS)
        if not pc.any(starts).as_py():
            return starts
        return pc.and_(starts, pc.match_substring_regex(texts, FORMULA))

    return _among_texts(column, found)


def _among_texts(column: pa.ChunkedArray, test: Any) -> Any:
    """Where a test on texts holds, or None for nowhere; a dictionary's values are tried once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.string())
    if not pa.types.is_dictionary(array.type):
        found = test(pc, array).fill_null(False)
        return found if pc.any(found).as_py() else None
    found = test(pc, array.dictionary).fill_null(False)
    return found.take(array.indices).fill_null(False) if pc.any(found).as_py() else None


def _row(kind: EventType, record: Record) -> dict[str, Any]:
    extra = set(record.values) - set(kind.fields)
    if extra:
        raise InputError(f"{kind.name} has no field {min(extra)}.")
    row: dict[str, Any] = {
        name: checked(there, record.values.get(name), name) for name, there in kind.fields.items()
    }
    if (record.time is None) != kind.static:
        raise InputError(
            "it has no time." if record.time is None else "it has a time, though static."
        )
    if record.time is not None:
        row["time"] = checked("time", record.time, "time")
    return row
