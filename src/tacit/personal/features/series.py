"""A column of known values in order of group and time, and what it can say of any ranges of it.

Each thing that a reducer needs is made once, when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.personal.durations import DAY, SECOND
from tacit.personal.events import Kind
from tacit.personal.features.doubles import Pair, pair, plus, product, times
from tacit.personal.features.sweep import distinct_of, entropy_of, mode_of
from tacit.personal.features.trees import ExtremeTree, SumTree
from tacit.personal.features.wavelet import Wavelet

__all__ = ["REDUCERS", "Reach", "Series"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOTHING = 1e-28  # a variance so small beside the mean square is rounding


@dataclass(frozen=True, slots=True)
class Reach:
    """A range of the series for each instance, low ≤ place < high, and its cut-off."""

    low: Ints
    high: Ints
    until: Ints

    @property
    def counts(self) -> Floats:
        return (self.high - self.low).astype(np.float64)

    @property
    def some(self) -> Ints:
        """Which are not empty."""
        return np.flatnonzero(self.low < self.high)


class Series:
    """`data` holds no NaN; `moments` are microseconds since 1970; `words` those of a category."""

    def __init__(self, kind: Kind, data: Floats, words: tuple[str, ...], moments: Ints) -> None:
        self.kind, self.data, self.words, self.moments = kind, data, words, moments

    @cached_property
    def sums(self) -> SumTree:
        return SumTree(pair(self.data))

    @cached_property
    def squares(self) -> SumTree:
        return SumTree(product(self.data, self.data))

    @cached_property
    def clock(self) -> Floats:
        """Microseconds since the middle of the series: doubles hold them exactly for 285 years."""
        middle = int(self.moments[len(self.moments) // 2]) if len(self.moments) else 0
        return (self.moments - middle).astype(np.float64)

    @cached_property
    def ticks(self) -> SumTree:
        return SumTree(pair(self.clock))

    @cached_property
    def tick_squares(self) -> SumTree:
        return SumTree(product(self.clock, self.clock))

    @cached_property
    def moved(self) -> SumTree:
        return SumTree(product(self.clock, self.data))

    @cached_property
    def least(self) -> ExtremeTree:
        return ExtremeTree(self.data, np.minimum)

    @cached_property
    def greatest(self) -> ExtremeTree:
        return ExtremeTree(self.data, np.maximum)

    @cached_property
    def wavelet(self) -> Wavelet:
        return Wavelet(self.data)

    @cached_property
    def coded(self) -> tuple[Ints, Floats]:
        """Places among the sorted values, and these."""
        if self.words:
            return self.data.astype(np.int64), np.arange(len(self.words), dtype=np.float64)
        found, codes = np.unique(self.data, return_inverse=True)
        return codes.astype(np.int64), found


def _count(series: Series, reach: Reach) -> Floats:
    return reach.counts


def _sum(series: Series, reach: Reach) -> Floats:
    return series.sums.over(reach.low, reach.high).nearest


def _mean(series: Series, reach: Reach) -> Floats:
    return _sum(series, reach) / _or_missing(reach.counts)


def _variance(series: Series, reach: Reach) -> Floats:
    """Σx² - (Σx)²/n in twice the digits: sound while the spread is above 10^-11 of the mean."""
    total = series.sums.over(reach.low, reach.high)
    squares = series.squares.over(reach.low, reach.high)
    n = pair(reach.counts)
    spread = plus(times(n, squares), _minus(times(total, total))).nearest
    noise = spread <= NOTHING * reach.counts * squares.nearest
    n_less = reach.counts * np.where(reach.counts > 1, reach.counts - 1, np.nan)
    variance: Floats = np.where(noise, 0.0, spread) / n_less
    return variance


def _std(series: Series, reach: Reach) -> Floats:
    return np.sqrt(_variance(series, reach))


def _trend(series: Series, reach: Reach) -> Floats:
    """Least squares: (n·Σtx - Σt·Σx) / (n·Σt² - (Σt)²), per day; missing if all at one moment."""
    low, high, n = reach.low, reach.high, pair(reach.counts)
    x, t = series.sums.over(low, high), series.ticks.over(low, high)
    moved = times(n, series.moved.over(low, high))
    above = plus(moved, _minus(times(t, x))).nearest
    below = plus(times(n, series.tick_squares.over(low, high)), _minus(times(t, t))).nearest
    # Whole microseconds: n·Σt² - (Σt)² is a whole number, 1 or more if two moments differ.
    return above / np.where(below > 0.5, below, np.nan) * DAY


def _least(series: Series, reach: Reach) -> Floats:
    return series.least.over(reach.low, reach.high)


def _greatest(series: Series, reach: Reach) -> Floats:
    return series.greatest.over(reach.low, reach.high)


def _range(series: Series, reach: Reach) -> Floats:
    return _greatest(series, reach) - _least(series, reach)


def _median(series: Series, reach: Reach) -> Floats:
    found, some = np.full(len(reach.low), np.nan), reach.some
    low, high = reach.low[some], reach.high[some]
    n = high - low
    lower = series.wavelet.smallest(low, high, (n - 1) // 2)
    found[some] = lower + (series.wavelet.smallest(low, high, n // 2) - lower) / 2
    return found


def _first(series: Series, reach: Reach) -> Floats:
    return _picked(series.data, reach, reach.low)


def _last(series: Series, reach: Reach) -> Floats:
    return _picked(series.data, reach, reach.high - 1)


def _distinct(series: Series, reach: Reach) -> Floats:
    return distinct_of(series.coded[0], reach.low, reach.high)


def _entropy(series: Series, reach: Reach) -> Floats:
    return entropy_of(series.coded[0], reach.low, reach.high)


def _mode(series: Series, reach: Reach) -> Floats:
    codes, values = series.coded
    found, some = mode_of(codes, reach.low, reach.high), reach.some
    found[some] = values[found[some].astype(np.int64)]
    return found


def _since(series: Series, reach: Reach) -> Floats:
    found, some = np.full(len(reach.low), np.nan), reach.some
    found[some] = (reach.until[some] - series.moments[reach.high[some] - 1]) / SECOND
    return found


def _gap(series: Series, reach: Reach) -> Floats:
    found, some = np.full(len(reach.low), np.nan), np.flatnonzero(reach.high - reach.low > 1)
    low, last = reach.low[some], reach.high[some] - 1
    found[some] = (series.moments[last] - series.moments[low]) / (last - low) / SECOND
    return found


REDUCERS: dict[str, Callable[[Series, Reach], Floats]] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "share": _mean,
    "min": _least,
    "max": _greatest,
    "range": _range,
    "std": _std,
    "median": _median,
    "first": _first,
    "last": _last,
    "trend": _trend,
    "distinct": _distinct,
    "mode": _mode,
    "entropy": _entropy,
    "since": _since,
    "gap": _gap,
}


def _picked(data: Floats, reach: Reach, places: Ints) -> Floats:
    found, some = np.full(len(places), np.nan), reach.some
    found[some] = data[places[some]]
    return found


def _or_missing(counts: Floats) -> Floats:
    return np.where(counts > 0, counts, np.nan)


def _minus(value: Pair) -> Pair:
    return Pair(-value.high, -value.low)
