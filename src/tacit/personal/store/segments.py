"""Segments: some ten thousand events of one type from one source, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tacit.personal.dataset import layout
from tacit.personal.events import EventType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Segment", "encoded", "packed", "unpacked"]


class Segment(msgspec.Struct, frozen=True):
    """What a segment holds: from the first moment to the last, both inclusive."""

    type: str
    rows: int
    since: int | None
    until: int | None
    number: int = 0
    source: int = 0

    def meets(self, since: int | None, until: int | None) -> bool:
        """Whether something in it may be of the same moment as something from `since` to `until`,
        both inclusive; what has no moment meets only its like."""
        if self.since is None or self.until is None or since is None or until is None:
            return self.since is None and since is None
        return self.since <= until and since <= self.until

    def touches(self, since: int | None, until: int | None) -> bool:
        """Whether something in it may be between the two; static events always are."""
        if self.since is None or self.until is None:
            return True
        return (until is None or self.since < until) and (since is None or self.until >= since)


def encoded(table: pa.Table) -> bytes:
    """An Arrow stream, compressed."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(data: bytes, kind: EventType, source: str) -> pa.Table:
    """The table, with the name of its source, and nulls for fields that came up later."""
    import pyarrow as pa

    table = pa.ipc.open_stream(data).read_all()
    columns = {}
    for name, type_ in layout(kind).items():
        if name == "source":
            names = pa.array([source], pa.string())
            codes = pa.nulls(table.num_rows, pa.int32()).fill_null(0)
            columns[name] = pa.DictionaryArray.from_arrays(codes, names)
        elif name in table.column_names:
            columns[name] = table[name]
        else:
            columns[name] = pa.nulls(table.num_rows, type_)
    return pa.table(columns)


def packed(kind: EventType, parts: Sequence[pa.Table]) -> pa.Table:
    """The tables as one, with one dictionary for each category."""
    import pyarrow as pa

    if not parts:
        return pa.schema(list(layout(kind).items())).empty_table()
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()
