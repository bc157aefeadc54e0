"""What a person applies before anything leaves the device, and what a collector makes of it.

Every randomiser here is of one kind: a report *supports* some of the m values; it supports the true
one with probability `hit`, and every other with probability `miss`, whichever it is (a "pure"
protocol: Wang, Blocki, Li & Jha 2017). Estimates and their errors follow from these
two numbers alone (local.md). The neighbours are any two values of one person, so the adjacency is
always "replace".
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import InputError, PromiseError, UsageError
from tacit.privacy.exact import exp_of_minus
from tacit.privacy.mechanisms.mechanism import pure_epsilon
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = [
    "BITS",
    "Randomiser",
    "Reports",
    "at_least_two",
    "bytes_for",
    "cells",
    "count_integers",
    "exp_of_minus_epsilon",
    "read_integers",
    "rounded_down",
    "rounded_up",
    "write_integers",
]

BITS = 40  # precision of the probabilities; rounded towards more privacy
PIECE = 1 << 16  # reports counted at a time

Reports = NDArray[np.uint8]
"""One row of bytes for each person."""


class Randomiser(ABC):
    """One of m values, 0 to m − 1, under local differential privacy."""

    __slots__ = ()

    m: int

    def __post_init__(self) -> None:
        if not self.hit > self.miss:
            raise PromiseError(
                f"reports about {self.m} values would say nothing: epsilon is too small for "
                f"probabilities of {BITS} binary digits. Ask for more epsilon."
            )

    @property
    @abstractmethod
    def hit(self) -> Fraction:
        """The probability that a report supports the person's own value."""

    @property
    @abstractmethod
    def miss(self) -> Fraction:
        """The probability that a report supports any one other value; less than `hit`."""

    @property
    @abstractmethod
    def most_supported(self) -> int:
        """How many values one valid report can support: what a liar makes the most of."""

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """The length of every report."""

    @property
    @abstractmethod
    def spend(self) -> tuple[Release, ...]:
        """What one report costs the person who sends it."""

    @abstractmethod
    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> Reports:
        """One report, a row of `report_bytes` bytes, for each value; each is a person's own."""

    @abstractmethod
    def _honest(self, reports: Reports) -> NDArray[np.bool_]: ...

    @abstractmethod
    def _supporters(self, reports: Reports) -> NDArray[np.int64]:
        """How many of the reports support each of the m values."""

    def valid(self, reports: Reports) -> NDArray[np.bool_]:
        """Which rows an honest person can have sent: a stranger's garbage must not count."""
        return self._honest(self._rows(reports))

    def estimate(self, reports: Reports) -> NDArray[np.float64]:
        """Unbiased counts of the m values; they may be negative."""
        rows = self._rows(reports)
        if not self._honest(rows).all():
            raise InputError("some reports cannot be answers: keep those that are valid() only.")
        hit, miss = float(self.hit), float(self.miss)
        return np.asarray((self._supporters(rows) - len(rows) * miss) / (hit - miss))

    def variance(self, n: int, share: ArrayLike = 0.0) -> NDArray[np.float64]:
        """Of the estimated count of a value that this share of n people have: exact (local.md)."""
        p, q = self.hit, self.miss
        own, other = (float(x * (1 - x) / (p - q) ** 2) for x in (p, q))
        return np.asarray(n * (other + np.asarray(share, dtype=np.float64) * (own - other)))

    def expected_error(self, n: int) -> float:
        """The root of E‖T̂ − T‖₂², T̂ being the estimated and T the true shares of the m values
        among n people. It is the same for every T (local.md); E‖T̂ − T‖₂ is at most this.
        """
        return math.sqrt(self.squared_error / n)

    @property
    def squared_error(self) -> Fraction:
        """n · E‖T̂ − T‖₂², exactly: what randomisers are compared by."""
        p, q = self.hit, self.miss
        return ((self.m - 1) * q * (1 - q) + p * (1 - p)) / (p - q) ** 2

    def _rows(self, reports: Reports) -> Reports:
        rows = np.asarray(reports)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != self.report_bytes:
            raise InputError(
                f"reports are rows of {self.report_bytes} bytes, not {rows.dtype} of shape "
                f"{rows.shape}: each question has its own length."
            )
        return np.ascontiguousarray(rows)


# ── probabilities ────────────────────────────────────────────────────────────────────────────────


def exp_of_minus_epsilon(promise: Promise) -> Fraction:
    """e^−ε, rounded up: it enters every calibration so that more of it is more privacy."""
    _, high = exp_of_minus(pure_epsilon(promise), 2 * BITS)
    return Fraction(high, 2 ** (2 * BITS))


def rounded_down(probability: Fraction) -> Fraction:
    return Fraction(int(probability * 2**BITS), 2**BITS)


def rounded_up(probability: Fraction) -> Fraction:
    return Fraction(-int(-probability * 2**BITS // 1), 2**BITS)


# ── values and reports ───────────────────────────────────────────────────────────────────────────


def cells(values: ArrayLike, m: int) -> NDArray[np.int64]:
    """The values as cell numbers, checked."""
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind not in "iub" or (array.size and not 0 <= array.min() <= array.max() < m):
        raise InputError(f"every value must be a whole number from 0 to {m - 1}: encode it first.")
    return array.astype(np.int64, copy=False)


def at_least_two(m: int, what: str) -> None:
    if m < 2:
        raise UsageError(f"{what} needs at least two values, not {m}.")


def bytes_for(limit: int) -> int:
    """How many bytes hold every integer below the limit."""
    return max(1, -(-(limit - 1).bit_length() // 8))


def write_integers(integers: NDArray[Any], width: int) -> Reports:
    """Little-endian, each in a row of `width` bytes."""
    if integers.dtype.itemsize == width and sys.byteorder == "little":
        return integers.view(np.uint8).reshape(-1, width)
    return integers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].copy()


def read_integers(reports: Reports) -> NDArray[np.unsignedinteger[Any]]:
    """What `write_integers` wrote."""
    width = 1 << (reports.shape[1] - 1).bit_length()  # 1, 2, 4 or 8 bytes
    if width > reports.shape[1]:
        reports = np.pad(reports, ((0, 0), (0, width - reports.shape[1])))
    return np.asarray(reports.view(f"<u{width}").ravel())


def count_integers(integers: NDArray[np.unsignedinteger[Any]], limit: int) -> NDArray[np.int64]:
    """How often each integer below the limit occurs."""
    counts = np.zeros(limit, dtype=np.int64)
    for start in range(0, len(integers), PIECE):  # bincount copies: let the copies be small
        counts += np.bincount(integers[start : start + PIECE], minlength=limit)
    return counts
