"""Adding events of one source to a store, within one transaction; what is there already is not
added again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tacit.errors import InputError
from tacit.personal.dataset import arrow_type
from tacit.personal.events import EventType
from tacit.personal.store.known import Known
from tacit.personal.store.marks import marks_of
from tacit.personal.store.segments import Segment, encoded
from tacit.personal.store.store import Source, Store

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Writer"]


class Writer:
    """One import into one source. Use within `Store.changing`."""

    def __init__(self, store: Store, source: str, importer: str, export: str) -> None:
        self._store, self._key = store, store.key
        self._types = {kind.name: (n, kind) for n, kind in store.abouts("type", EventType).items()}
        self._source = self._registered(source, importer, export)
        mine = [segment for segment in store.segments() if segment.source == self._source]
        self._known = Known(mine, lambda n: np.frombuffer(store.marks(n), np.uint64))

    def add(self, kind: EventType, table: pa.Table) -> int:
        """Add the rows that are not here yet: how many. Columns are `time` and fields of the type,
        checked already."""
        import pyarrow as pa

        kind = self._agreed(kind)
        columns = {
            name: _typed(table[name], arrow_type("time" if name == "time" else kind.fields[name]))
            for name in table.column_names
        }
        table = pa.table(columns)
        came = _about(kind, table)
        raw = marks_of(self._key, kind.name, table)
        marks, new = self._known.sorted_out(raw, kind.name, came.since, came.until)
        if not new.all():
            table, marks = table.filter(pa.array(new)), marks[new]
        if table.num_rows:
            number, about = self._store.next_number("segment"), _about(kind, table)
            self._store.insert(
                "segment",
                number,
                about,
                source=self._source,
                marks=marks.tobytes(),
                data=encoded(table),
            )
            self._known.added(msgspec.structs.replace(about, number=number))
        return int(table.num_rows)

    def _registered(self, name: str, importer: str, export: str) -> int:
        known = {
            about.name: (n, about) for n, about in self._store.abouts("source", Source).items()
        }
        number, about = known.get(name, (0, Source(name, importer)))
        if about.importer != importer:
            raise InputError(
                f"the source {name} holds what {about.importer} imported. Give this one another "
                "name with --source."
            )
        about = msgspec.structs.replace(
            about, exports=tuple(dict.fromkeys((*about.exports, export)))
        )
        number = number or self._store.next_number("source")
        self._store.insert("source", number, about)
        return number

    def _agreed(self, kind: EventType) -> EventType:
        """The type as the store has it; fields that are new to it are added."""
        number, known = self._types.get(kind.name, (0, kind))
        if known.static != kind.static:
            raise InputError(f"{kind.name}: is static in one source and has a time in another.")
        fields = dict(known.fields)
        for name, there in kind.fields.items():
            if fields.setdefault(name, there) != there and {fields[name], there} != TEXTS:
                raise InputError(
                    f"{kind.name}.{name}: is a {there} here, and a {fields[name]} in what was "
                    "imported before. Import it under another name of events."
                )
        words = tuple(dict.fromkeys((*known.words, *kind.words)))
        agreed = msgspec.structs.replace(known, fields=fields, words=words)
        if number == 0 or agreed != known:
            number = number or self._store.next_number("type")
            self._store.insert("type", number, agreed)
            self._types[kind.name] = (number, agreed)
        return agreed


TEXTS = {"category", "text"}


def _typed(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa

    if column.type == type_:
        return column
    if pa.types.is_dictionary(type_):
        # One dictionary for all, or writing would need one for each chunk.
        return column.cast(pa.string()).combine_chunks().dictionary_encode()
    return column.cast(type_)


def _about(kind: EventType, table: pa.Table) -> Segment:
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind.static:
        return Segment(kind.name, table.num_rows, None, None)
    ends = pc.min_max(table["time"].cast(pa.int64()))
    return Segment(kind.name, table.num_rows, ends["min"].as_py(), ends["max"].as_py())
