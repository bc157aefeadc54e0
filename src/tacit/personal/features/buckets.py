"""Stacked aggregates: each instance's window cut into buckets, counted back from its cut-off.

Buckets end at the cut-off and not at midnight, so that the newest is as long as all others: a day
that is half over would always look quiet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.personal.durations import written
from tacit.personal.features.nodes import Window
from tacit.personal.features.sources import MOST_BUCKETS
from tacit.personal.features.timelines import Spans
from tacit.personal.frame import EVER

__all__ = ["Layout", "first_seen", "layouts"]

CHUNK = 500_000  # buckets at a time

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """The buckets of some of the spans, the oldest of each first.

    chosen   which spans
    buckets  one after another
    low, high  those of each span
    """

    chosen: slice
    buckets: Spans
    low: Ints
    high: Ints


def layouts(
    spans: Spans, firsts: Ints, window: Window, every: int, finest: int
) -> Iterator[Layout]:
    """All spans, some at a time, so that memory stays bounded.

    firsts  the first event of each, where nothing else says when it begins; EVER for none
    finest  the shortest buckets inside these
    """
    counts = _counts(spans, firsts, window, every)
    most = int(counts.max(initial=0)) * every // finest
    if most > MOST_BUCKETS:
        raise InputError(
            f"`per {written(finest)}` makes {most} buckets for one instance; {MOST_BUCKETS} are "
            "the most. Take longer ones, or a window."
        )
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK, "right")))
        yield _layout(spans, counts, slice(begin, end), every)
        begin = end


def _counts(spans: Spans, firsts: Ints, window: Window, every: int) -> Ints:
    """Whole buckets only; without any beginning, back to the one with the first event."""
    begins = spans.begins(window)
    endless = begins == EVER
    whole = (spans.until - np.where(endless, spans.until, begins)) // every
    reached = firsts != EVER
    far = -((np.where(reached, firsts, spans.until) - spans.until) // every)
    return np.maximum(np.where(endless, far, whole), 0)


def _layout(spans: Spans, counts: Ints, chosen: slice, every: int) -> Layout:
    part, n = spans.take(chosen), counts[chosen]
    high = np.cumsum(n)
    low = high - n
    back = np.repeat(high, n) - np.arange(int(n.sum()))  # n, n - 1, …, 1 for each span
    until = np.repeat(part.until, n) - (back - 1) * every
    buckets = Spans(np.repeat(part.who, n), until - every, until, np.repeat(part.start, n))
    return Layout(chosen, buckets, low, high)


def first_seen(low: Ints, high: Ints, moments: Ints) -> Ints:
    """The moment of the first event of each range; EVER for none."""
    found = np.full(len(low), EVER, np.int64)
    some = np.flatnonzero(low < high)
    found[some] = moments[low[some]]
    return found
