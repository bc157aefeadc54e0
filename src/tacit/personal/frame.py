"""What each instance may look at: a stretch of time, whose events, and fields of its own event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.personal.dataset import Dataset, EventTable

__all__ = ["EVER", "Frame"]

EVER = np.iinfo(np.int64).min  # a stretch that begins here has no beginning

Moments = NDArray[np.int64]


@dataclass(frozen=True)
class Frame:
    """One entry for each instance.

    since   the beginning of what may be seen, or EVER
    until   its end, exclusive: for features the cut-off, for labels the end of the horizon
    start   where the instance's own span begins; a feature over the window `own` begins there
    at      the moment the instance is about: `hour(moment)` is the hour of this
    groups  field → the value each instance is restricted to (None: events without a value).
            Events of a type that has all these fields are seen only where they agree; events of
            other types are seen by everybody
    own     the type of the instance's own event, or None
    rows    the place of that event in its table; -1 for none
    known   fields of the own event that may be read before it has happened: `own.pickup_lat`
    """

    since: Moments
    until: Moments
    start: Moments
    at: Moments
    groups: Mapping[str, tuple[str | float | None, ...]]
    own: str | None
    rows: NDArray[np.int64]
    known: frozenset[str]

    @property
    def size(self) -> int:
        return len(self.until)

    def seen(self, dataset: Dataset, place: int) -> Dataset:
        """The events that one instance may see: of its stretch, and of its group."""
        since, until = int(self.since[place]), int(self.until[place])
        group = {field: values[place] for field, values in self.groups.items()}
        within = dataset.between(None if since == EVER else since, until)
        return Dataset({n: _agreeing(t, group) for n, t in within.tables.items()}, dataset.zone)


def _agreeing(table: EventTable, group: Mapping[str, str | float | None]) -> EventTable:
    if not group or not set(group) <= set(table.kind.fields):
        return table
    agrees = np.ones(table.rows, np.bool_)
    for field, value in group.items():
        if table.kind_of(field) in ("category", "text"):
            codes, values = table.codes(field)
            agrees &= codes == (
                values.index(value) if value in values else -1 - (value is not None)
            )
        else:
            numbers = table.numbers(field)
            agrees &= np.isnan(numbers) if value is None else numbers == value
    return table.take(agrees)
