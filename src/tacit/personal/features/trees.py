"""Any range of a long column summed, or its least or greatest found, in logarithmic time.

Level k holds the results of all aligned blocks of 2^k values. A range is at most two blocks of each
level. Unlike differences of running totals, nothing outside a range ever touches its result, so
that a huge value elsewhere costs it no digit. All ranges go up the levels together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.personal.features.doubles import Pair, plus

__all__ = ["ExtremeTree", "SumTree"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class SumTree:
    """Sums of ranges, with twice the digits of a double."""

    def __init__(self, values: Pair) -> None:
        self._levels = [values]

    def over(self, low: Places, high: Places) -> Pair:
        """The sum of each range; 0 of an empty one."""
        total = Pair(np.zeros(len(low)), np.zeros(len(low)))

        def add(which: Places, level: int, places: Places) -> None:
            made = plus(total.at(which), self._level(level).at(places))
            total.high[which], total.low[which] = made

        _climb(low, high, add)
        return total

    def _level(self, level: int) -> Pair:
        while len(self._levels) <= level:
            below = self._levels[-1]
            even = len(below.high) // 2 * 2
            self._levels.append(plus(below.at(slice(0, even, 2)), below.at(slice(1, even, 2))))
        return self._levels[level]


class ExtremeTree:
    """The least (np.minimum) or the greatest (np.maximum) of ranges."""

    def __init__(self, values: Floats, best: np.ufunc) -> None:
        self._levels, self._best = [values], best

    def over(self, low: Places, high: Places) -> Floats:
        """NaN of an empty range."""
        found = np.full(len(low), np.nan)

        def add(which: Places, level: int, places: Places) -> None:
            here = self._level(level)[places]
            before = found[which]
            found[which] = np.where(np.isnan(before), here, self._best(before, here))

        _climb(low, high, add)
        return found

    def _level(self, level: int) -> Floats:
        while len(self._levels) <= level:
            below = self._levels[-1]
            even = len(below) // 2 * 2
            self._levels.append(self._best(below[0:even:2], below[1:even:2]))
        return self._levels[level]


def _climb(low: Places, high: Places, add: Callable[[Places, int, Places], None]) -> None:
    """Call `add(which ranges, level, blocks)` until the blocks make up the ranges.

    A block that would reach beyond the last whole one is never asked for.
    """
    which = np.flatnonzero(low < high)
    low, high, level = low[which], high[which], 0
    while len(which):
        odd = (low & 1).astype(np.bool_)
        add(which[odd], level, low[odd])
        low = low + odd
        odd = (high & 1).astype(np.bool_) & (low < high)
        high = high - odd
        add(which[odd], level, high[odd])
        going = low < high
        which, low, high, level = which[going], low[going] >> 1, high[going] >> 1, level + 1
