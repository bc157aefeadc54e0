"""Events in columns: the tables of one person, by type of event (AnonML, table 3.1).

Arrow holds the columns; numpy computes on them. A table is in order of time, so that whatever
happened between two moments is a slice.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, UsageError
from tacit.personal.events import Event, EventType, Kind, Value, checked, moment

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Dataset", "EventTable", "arrow_type", "layout", "plain_layout"]

Moments = NDArray[np.int64]
UTC = ZoneInfo("UTC")


def arrow_type(kind: Kind) -> pa.DataType:
    """How a field of this kind is kept."""
    import pyarrow as pa

    return {
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "category": pa.dictionary(pa.int32(), pa.string()),
        "text": pa.string(),
        "time": pa.timestamp("us", tz="UTC"),
    }[kind]


@dataclass(frozen=True)
class EventTable:
    """All events of one type, in order of time: columns `time` (unless static), `source`, fields.

    Two tables are the same only if they are one: compare their events.
    """

    kind: EventType
    table: pa.Table

    @classmethod
    def of(cls, kind: EventType, table: pa.Table) -> EventTable:
        """Sorted by time (events of one moment stay in the order they came), columns complete."""
        import pyarrow as pa

        columns = {
            name: table[name] if name in table.column_names else pa.nulls(table.num_rows, type_)
            for name, type_ in layout(kind).items()
        }
        made = pa.table({n: _cast(c, layout(kind)[n]) for n, c in columns.items()})
        if kind.static or table.num_rows < 2:
            return cls(kind, made)
        times = np.asarray(made["time"].cast(pa.int64()))
        if not np.all(times[1:] >= times[:-1]):
            made = made.take(pa.array(np.argsort(times, kind="stable")))
        return cls(kind, made)

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def times(self) -> Moments:
        """Microseconds since 1970, ascending; empty for static events."""
        import pyarrow as pa

        if self.kind.static:
            return np.empty(0, np.int64)
        return np.asarray(self.table["time"].cast(pa.int64()))

    def numbers(self, field: str) -> NDArray[np.float64]:
        """A field as numbers, NaN where missing: truths as 0 and 1, times as seconds since 1970."""
        if field not in self._numbered:
            self._numbered[field] = self._numbers(field)
        return self._numbered[field]

    def codes(self, field: str) -> tuple[NDArray[np.int32], list[str]]:
        """A category or text as places in the list of its values; -1 where missing."""
        if field not in self._coded:
            self._coded[field] = self._codes(field)
        return self._coded[field]

    def between(self, since: int | None = None, until: int | None = None) -> EventTable:
        """What happened at `since` or later and before `until`; static events stay."""
        if self.kind.static:
            return self
        first = 0 if since is None else int(np.searchsorted(self.times, since, "left"))
        end = self.rows if until is None else int(np.searchsorted(self.times, until, "left"))
        return EventTable(self.kind, self.table.slice(first, max(0, end - first)))

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> EventTable:
        """Some of the events, by ascending places or by a mask."""
        import pyarrow as pa

        if places.dtype == np.bool_:
            places = np.flatnonzero(places)
        return EventTable(self.kind, self.table.take(pa.array(places)))

    def events(self) -> Iterator[Event]:
        for batch in self.table.to_batches(max_chunksize=4096):
            for row in batch.to_pylist():
                time, source = row.pop("time", None), row.pop("source")
                yield Event(self.kind.name, time, row, source)

    def kind_of(self, field: str) -> Kind:
        if field not in self.kind.fields:
            known = ", ".join(self.kind.fields) or "none"
            raise UsageError(f"{self.kind.name} has no field {field}; it has: {known}.")
        return self.kind.fields[field]

    @cached_property
    def _numbered(self) -> dict[str, NDArray[np.float64]]:
        return {}

    @cached_property
    def _coded(self) -> dict[str, tuple[NDArray[np.int32], list[str]]]:
        return {}

    def _numbers(self, field: str) -> NDArray[np.float64]:
        import pyarrow as pa

        kind, column = self.kind_of(field), self.table[field]
        if kind in ("category", "text"):
            raise UsageError(f"{self.kind.name}.{field} is a {kind}, not a number.")
        if kind == "time":
            micros = column.cast(pa.int64()).cast(pa.float64())
            return np.asarray(micros.to_numpy(zero_copy_only=False)) / 1e6
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))

    def _codes(self, field: str) -> tuple[NDArray[np.int32], list[str]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        kind, column = self.kind_of(field), self.table[field].combine_chunks()
        if kind not in ("category", "text"):
            raise UsageError(f"{self.kind.name}.{field} is a {kind}, not a category.")
        if isinstance(column, pa.ChunkedArray):  # empty, or of several chunks
            column = pa.concat_arrays(
                column.unify_dictionaries().chunks or [pa.array([], pa.string())]
            )
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
        return codes.astype(np.int32), coded.dictionary.to_pylist()


@dataclass(frozen=True)
class Dataset:
    """Events of one person in one stretch of time, from any number of sources.

    `zone` is where she lives: it decides what hour of the day a moment is.
    """

    tables: Mapping[str, EventTable]
    zone: ZoneInfo = UTC

    @classmethod
    def of_events(
        cls, types: Iterable[EventType], events: Iterable[Event], zone: ZoneInfo = UTC
    ) -> Dataset:
        """From events one by one, checked against their types."""
        import pyarrow as pa

        kinds = {kind.name: kind for kind in types}
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in kinds}
        for event in events:
            if event.type not in kinds:
                raise InputError(f"there is no type of events called {event.type}.")
            rows[event.type].append(_row(kinds[event.type], event))
        tables = {
            name: pa.table(
                {column: [row[column] for row in rows[name]] for column in plain_layout(kind)},
                schema=pa.schema(list(plain_layout(kind).items())),
            )
            for name, kind in kinds.items()
        }
        return cls({name: EventTable.of(kinds[name], t) for name, t in tables.items()}, zone)

    @property
    def types(self) -> dict[str, EventType]:
        return {name: table.kind for name, table in self.tables.items()}

    def of(self, name: str) -> EventTable:
        """The events of this type."""
        if name not in self.tables:
            known = ", ".join(sorted(self.tables)) or "none"
            raise InputError(f"there are no events of type {name} here; there are: {known}.")
        return self.tables[name]

    def between(self, since: int | None = None, until: int | None = None) -> Dataset:
        """What happened from `since` until before `until`, and everything static."""
        cut = {name: table.between(since, until) for name, table in self.tables.items()}
        return Dataset(cut, self.zone)

    def with_event(self, event: Event) -> Dataset:
        """The same, and one more event of a type that is here."""
        import pyarrow as pa

        table = self.of(event.type)
        (one,) = Dataset.of_events([table.kind], [event]).tables.values()
        both = pa.concat_tables([table.table, one.table]).unify_dictionaries().combine_chunks()
        return Dataset({**self.tables, event.type: EventTable.of(table.kind, both)}, self.zone)

    def events(self) -> Iterator[Event]:
        """All of them, type by type, in order of time."""
        for table in self.tables.values():
            yield from table.events()

    def local(self, moments: Moments) -> Moments:
        """The same moments as the person's clock shows them, in microseconds."""
        return moments + _offsets(moments, self.zone)


def _offsets(moments: Moments, zone: ZoneInfo) -> Moments:
    """How far the zone's clock is ahead. By quarter of an hour, since clocks change at such."""
    quarter = 900_000_000
    steps, back = np.unique(moments // quarter, return_inverse=True)
    ahead = np.empty(len(steps), np.int64)
    for place, step in enumerate(steps):
        at = datetime.datetime.fromtimestamp(int(step) * 900, zone)
        offset = at.utcoffset()
        ahead[place] = 0 if offset is None else offset // datetime.timedelta(microseconds=1)
    result: Moments = ahead[back].reshape(moments.shape)
    return result


def layout(kind: EventType) -> dict[str, pa.DataType]:
    """The columns of a table of such events."""
    head: dict[str, Kind] = {} if kind.static else {"time": "time"}
    return {
        **{name: arrow_type(k) for name, k in head.items()},
        "source": arrow_type("category"),
        **{name: arrow_type(k) for name, k in kind.fields.items()},
    }


def plain_layout(kind: EventType) -> dict[str, pa.DataType]:
    """The same with categories as plain texts, as they come in."""
    import pyarrow as pa

    return {
        name: pa.string() if pa.types.is_dictionary(type_) else type_
        for name, type_ in layout(kind).items()
    }


def _cast(column: Any, type_: pa.DataType) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(type_) and not pa.types.is_dictionary(column.type):
        return column.cast(pa.string()).dictionary_encode()
    return column if column.type == type_ else column.cast(type_)


def _row(kind: EventType, event: Event) -> dict[str, Value]:
    extra = set(event.fields) - set(kind.fields)
    if extra:
        raise InputError(f"{kind.name} has no field {min(extra)}.")
    if (event.time is None) != kind.static:
        raise InputError(f"{kind.name}: static events have no time, and all others have one.")
    row = {n: checked(k, event.fields.get(n), f"{kind.name}.{n}") for n, k in kind.fields.items()}
    if event.time is not None:
        moment(event.time)
        row["time"] = event.time
    row["source"] = event.source
    return row
