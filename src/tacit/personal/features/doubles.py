"""Sums and products of pairs of doubles: a number and what its rounding left over.

Twice the digits of a double (Dekker 1971; Knuth, The Art of Computer Programming 2, 4.2.2). They
are what lets a sum over any range be right to the last digit a double has, also where what is
summed cancels or is of very different sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pair", "pair", "plus", "product", "times"]

Floats = NDArray[np.float64]
SPLITTER = 134_217_729.0  # 2^27 + 1: halves the digits of a double


class Pair(NamedTuple):
    """The exact value is high + low."""

    high: Floats
    low: Floats

    @property
    def nearest(self) -> Floats:
        return self.high + self.low

    def at(self, places: NDArray[np.int64] | slice) -> Pair:
        return Pair(self.high[places], self.low[places])


def pair(values: Floats) -> Pair:
    return Pair(values, np.zeros_like(values))


def _two_sum(a: Floats, b: Floats) -> Pair:
    """Exactly a + b (Knuth's)."""
    total = a + b
    virtual = total - a
    return Pair(total, (a - (total - virtual)) + (b - virtual))


def plus(a: Pair, b: Pair) -> Pair:
    high, low = _two_sum(a.high, b.high)
    low = low + (a.low + b.low)
    total = high + low
    return Pair(total, low - (total - high))


def product(a: Floats, b: Floats) -> Pair:
    """Exactly a · b, while neither is above 2^996 (Dekker's, with Veltkamp's halves)."""
    total = a * b
    a_high, b_high = _half(a), _half(b)
    a_low, b_low = a - a_high, b - b_high
    low = ((a_high * b_high - total) + a_high * b_low + a_low * b_high) + a_low * b_low
    return Pair(total, low)


def times(a: Pair, b: Pair) -> Pair:
    high, low = product(a.high, b.high)
    low = low + (a.high * b.low + a.low * b.high)
    total = high + low
    return Pair(total, low - (total - high))


def _half(a: Floats) -> Floats:
    scaled = SPLITTER * a
    return scaled - (scaled - a)
