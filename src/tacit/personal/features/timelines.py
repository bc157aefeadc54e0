"""The events of one type in order of group and time, and where each instance's range of them is.

An instance sees the events of its own group before its cut-off, and that is one range of this
order. Everything that a feature computes is computed from such ranges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.personal.dataset import EventTable
from tacit.personal.features.nodes import Window
from tacit.personal.frame import Frame

__all__ = ["Spans", "Timeline", "timeline"]

Ints = NDArray[np.int64]
Key = str | float | None


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of time to aggregate over: since ≤ t < until, each for one of the instances.

    who    the place of the instance in the frame
    start  where the instance's own span begins
    """

    who: Ints
    since: Ints
    until: Ints
    start: Ints

    @classmethod
    def of(cls, frame: Frame) -> Spans:
        return cls(np.arange(frame.size), frame.since, frame.until, frame.start)

    def take(self, places: Ints | slice) -> Spans:
        return Spans(self.who[places], self.since[places], self.until[places], self.start[places])

    def begins(self, window: Window) -> Ints:
        """Where a window begins, never before what may be seen."""
        if window is None:
            return self.since
        if window == "own":
            return np.maximum(self.since, self.start)
        return np.maximum(self.since, self.until - window)


@dataclass(frozen=True)
class Timeline:
    """
    order   places in the table; None if that is already in order
    keys    group · (rows + 1) + place in the table, ascending
    groups  of each instance: its group here, or -1 if that has no event of this type
    """

    table: EventTable
    order: Ints | None
    keys: Ints | None
    groups: Ints | None

    def reach(self, spans: Spans, window: Window) -> tuple[Ints, Ints]:
        """The range of each span: low ≤ place in this order < high."""
        begins = spans.begins(window)
        low = self._place(spans.who, begins)
        return low, np.maximum(low, self._place(spans.who, np.maximum(begins, spans.until)))

    def whole(self, who: Ints) -> tuple[Ints, Ints]:
        """The range of all events of the group, whenever: for static properties."""
        none = np.zeros(len(who), np.int64)
        return self._within(who, none), self._within(who, none + self.table.rows)

    def ordered(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        return column if self.order is None else column[self.order]

    def _place(self, who: Ints, moments: Ints) -> Ints:
        """How many events stand before the first of the group at this moment or later."""
        return self._within(who, np.searchsorted(self.table.times, moments, "left"))

    def _within(self, who: Ints, before: Ints) -> Ints:
        if self.keys is None or self.groups is None:
            return before
        groups = self.groups[who]
        places = np.searchsorted(self.keys, groups * (self.table.rows + 1) + before, "left")
        return np.where(groups < 0, 0, places)


def timeline(table: EventTable, groups: Mapping[str, Sequence[Key]]) -> Timeline:
    """`groups`: field → the value each instance is restricted to. A type that lacks one of these
    fields is seen by everybody."""
    if not groups or not set(groups) <= set(table.kind.fields):
        return Timeline(table, None, None, None)
    rows = np.zeros(table.rows, np.int64)
    instances = np.zeros(len(next(iter(groups.values()))), np.int64)
    for field, wanted in groups.items():
        size, codes, asked = _coded(table, field, wanted)
        rows, instances = (
            rows * size + codes,
            np.where((instances < 0) | (asked < 0), -1, instances * size + asked),
        )
        found, rows = np.unique(rows, return_inverse=True)  # small again, for the next field
        instances = _looked_up(found, instances)
    order = np.argsort(rows, kind="stable")
    return Timeline(table, order, rows[order] * (table.rows + 1) + order, instances)


def _coded(table: EventTable, field: str, wanted: Sequence[Key]) -> tuple[int, Ints, Ints]:
    """How many codes there are, those of the rows (the last for missing), those wanted (or -1)."""
    if table.kind_of(field) in ("category", "text"):
        places, words = table.codes(field)
        missing = len(words)
        known: dict[Key, int] = {word: place for place, word in enumerate(words)}
        rows = np.where(places < 0, missing, places).astype(np.int64)
    else:
        numbers = table.numbers(field)
        found = np.unique(numbers[~np.isnan(numbers)])
        missing = len(found)
        known = {float(number): place for place, number in enumerate(found)}
        rows = np.where(np.isnan(numbers), missing, np.searchsorted(found, numbers))
    known[None] = missing
    return missing + 1, rows, np.array([known.get(key, -1) for key in wanted], np.int64)


def _looked_up(found: Ints, wanted: Ints) -> Ints:
    """The places of the wanted among the sorted found, or -1."""
    places = np.minimum(np.searchsorted(found, wanted), max(len(found) - 1, 0))
    if len(found) == 0:
        return np.full(len(wanted), -1, np.int64)
    return np.where(found[places] == wanted, places, -1)
