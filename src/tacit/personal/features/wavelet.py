"""The k-th smallest of any range of a long column: a wavelet matrix.

One bit of the values' ranks for each level, packed, so that a million values take some four
megabytes; a range is followed down the levels, left where the bit is 0 and right where it is 1
(Claude, Navarro and Ordóñez 2015, The wavelet matrix). All ranges go down together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Wavelet"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class _Bits:
    """Packed bits that know how many ones stand before each place."""

    def __init__(self, bits: NDArray[np.bool_]) -> None:
        words = len(bits) // 64 + 1
        packed = np.zeros(words * 8, np.uint8)
        packed[: (len(bits) + 7) // 8] = np.packbits(bits, bitorder="little")
        self._words = packed.view("<u8")
        counts = np.bitwise_count(self._words).astype(np.int64)
        self._before = np.cumsum(counts) - counts
        self.zeros = len(bits) - int(counts.sum())

    def ones(self, places: Ints) -> Ints:
        word, bit = places >> 6, (places & 63).astype(np.uint64)
        below = (np.uint64(1) << bit) - np.uint64(1)
        counted: Ints = self._before[word] + np.bitwise_count(self._words[word] & below)
        return counted


class Wavelet:
    def __init__(self, values: Floats) -> None:
        self._sorted, ranks = np.unique(values, return_inverse=True)
        self._levels: list[_Bits] = []
        for bit in range(max(len(self._sorted) - 1, 0).bit_length() - 1, -1, -1):
            ones = (ranks >> bit & 1).astype(np.bool_)
            self._levels.append(_Bits(ones))
            ranks = np.concatenate([ranks[~ones], ranks[ones]])

    def smallest(self, low: Ints, high: Ints, k: Ints) -> Floats:
        """The k-th smallest (from 0) of each range; no range may be empty."""
        rank = np.zeros(len(low), np.int64)
        for bits in self._levels:
            ones_low, ones_high = bits.ones(low), bits.ones(high)
            zeros = (high - low) - (ones_high - ones_low)
            right = k >= zeros
            rank = rank * 2 + right
            k = np.where(right, k - zeros, k)
            low = np.where(right, bits.zeros + ones_low, low - ones_low)
            high = np.where(right, bits.zeros + ones_high, high - ones_high)
        found: Floats = self._sorted[rank]
        return found
