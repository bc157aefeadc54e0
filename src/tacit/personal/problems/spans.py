"""The span of each instance that a problem declares: one for every event, window, session, group.

All spans are half-open: an event's is the one microsecond at which it happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.personal.dataset import Dataset, EventTable
from tacit.personal.durations import duration
from tacit.personal.features.conditions import fulfils
from tacit.personal.problems.grouping import Group, Grouping, grouping
from tacit.personal.problems.problem import InstanceTerms, Per
from tacit.personal.problems.reading import negated
from tacit.personal.problems.windows import MOST, edges

__all__ = ["Spans", "spans_of"]

Moments = NDArray[np.int64]


@dataclass(frozen=True)
class Spans:
    """One entry for each instance, in order of their starts.

    firsts  when the first event happened of the thing that the instance is about
    ids     its group, a place in `groups`
    rows    the places of its own event; none but for instances per event
    """

    starts: Moments
    ends: Moments
    firsts: Moments
    groups: tuple[Group, ...]
    ids: Moments
    rows: Moments | None = None

    def take(self, chosen: Moments | NDArray[np.bool_]) -> Spans:
        rows = None if self.rows is None else self.rows[chosen]
        return Spans(
            self.starts[chosen],
            self.ends[chosen],
            self.firsts[chosen],
            self.groups,
            self.ids[chosen],
            rows,
        )

    def in_order(self) -> Spans:
        return self.take(np.lexsort((self.ids, self.starts)))


def spans_of(terms: InstanceTerms, dataset: Dataset, now: int) -> Spans:
    """The spans over the needed events; their number is bounded, since strangers write problems."""
    spans = _KINDS[terms.per](terms, dataset, now)
    if len(spans.starts) > MOST:
        raise _too_many()
    return spans.in_order()


def _events(terms: InstanceTerms, dataset: Dataset, now: int) -> Spans:
    """Of events that are still to come, also those of which the condition is not known yet: whether
    a ride will be completed is seen afterwards, and its price is asked before."""
    table, rows = _chosen(terms, dataset)
    if terms.where and (table.times > now).any():
        fails = fulfils(negated(terms.where), table, dataset.zone)
        holds = np.isin(np.arange(table.rows), rows)
        rows = np.flatnonzero(holds | ((table.times > now) & ~fails))
    times = table.times[rows]
    groups = grouping(table, terms.by)
    return Spans(times, times + 1, times, groups.groups, groups.ids[rows], rows)


def _sessions(terms: InstanceTerms, dataset: Dataset, now: int) -> Spans:
    """Events with less than the gap between them. A session ends when the gap has passed: not
    before is it known to be over (the session windows of Akidau et al. 2015, section 2.2)."""
    table, rows = _chosen(terms, dataset)
    groups = grouping(table, terms.by)
    order = np.lexsort((table.times[rows], groups.ids[rows]))
    times, ids = table.times[rows][order], groups.ids[rows][order]
    gap = duration(terms.gap)
    opens = np.ones(len(times), np.bool_)
    opens[1:] = (ids[1:] != ids[:-1]) | (np.diff(times) >= gap)
    closes = np.append(opens[1:], True)[: len(times)]
    starts = times[opens]
    return Spans(starts, times[closes] + gap, starts, groups.groups, ids[opens])


def _windows(terms: InstanceTerms, dataset: Dataset, now: int) -> Spans:
    """Every window from that of a group's first event to that of now, also those without events."""
    groups, firsts = _beginnings(terms, dataset)
    groups, firsts = _kept(groups, firsts, firsts <= now)
    if not groups:
        return _none()
    marks = edges(int(firsts.min()), now, duration(terms.every), dataset.zone)
    begins = np.searchsorted(marks, firsts, "right") - 1
    counts = len(marks) - 1 - begins
    if counts.sum() > MOST:
        raise _too_many()
    ids = np.repeat(np.arange(len(groups)), counts)
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + begins[ids]
    return Spans(marks[places], marks[places + 1], firsts[ids], groups, ids)


def _groups(terms: InstanceTerms, dataset: Dataset, now: int) -> Spans:
    """From the first event on, without an end but now."""
    groups, firsts = _beginnings(terms, dataset)
    ends = np.maximum(firsts, now) + 1
    return Spans(firsts, ends, firsts, groups, np.arange(len(groups)))


def _none() -> Spans:
    empty = np.empty(0, np.int64)
    return Spans(empty, empty, empty, (), empty)


_KINDS: dict[Per, Callable[[InstanceTerms, Dataset, int], Spans]] = {
    "event": _events,
    "window": _windows,
    "session": _sessions,
    "group": _groups,
    "user": _groups,
}


def _chosen(terms: InstanceTerms, dataset: Dataset) -> tuple[EventTable, Moments]:
    """The table of the instances' events, and the places of those that fulfil the condition."""
    table = dataset.of(terms.event)
    if not terms.where:
        return table, np.arange(table.rows)
    return table, np.flatnonzero(fulfils(terms.where, table, dataset.zone)).astype(np.int64)


def _beginnings(terms: InstanceTerms, dataset: Dataset) -> tuple[tuple[Group, ...], Moments]:
    """Each group, and when its first event happened: of one type, or of all that have the fields.

    Without fields there is one group, the person, whose first event is that of the type.
    """
    if terms.event:
        table, rows = _chosen(terms, dataset)
        found = _firsts(grouping(table, terms.by), table.times, rows)
    else:
        found = {}
        for table in dataset.tables.values():
            if not table.kind.static and set(terms.by) <= set(table.kind.fields):
                here = _firsts(grouping(table, terms.by), table.times, np.arange(table.rows))
                for group, first in here.items():
                    found[group] = min(first, found.get(group, first))
    ordered = sorted(found, key=lambda group: [(value is None, value) for value in group])
    return tuple(ordered), np.array([found[group] for group in ordered], np.int64)


def _firsts(groups: Grouping, times: Moments, rows: Moments) -> dict[Group, int]:
    ids, places = np.unique(groups.ids[rows], return_index=True)  # the rows are in order of time
    firsts = times[rows][places]
    return {groups.groups[i]: int(t) for i, t in zip(ids.tolist(), firsts, strict=True)}


def _kept(
    groups: Sequence[Group], firsts: Moments, keep: NDArray[np.bool_]
) -> tuple[tuple[Group, ...], Moments]:
    return tuple(g for g, k in zip(groups, keep, strict=True) if k), firsts[keep]


def _too_many() -> InputError:
    return InputError(
        f"this makes more than {MOST} instances. Take longer windows, or a condition with `where`."
    )
