"""Subset selection: a report is a set of values that more likely holds the true one (subset.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.privacy import noise
from tacit.privacy.mechanisms.bits import (
    count_bits,
    flip_bits,
    ones_in,
    set_bits,
    spare_bits_are_zero,
)
from tacit.privacy.mechanisms.local import (
    Randomiser,
    Reports,
    at_least_two,
    cells,
    exp_of_minus_epsilon,
    rounded_down,
)
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["SubsetSelection"]


@dataclass(frozen=True, slots=True)
class SubsetSelection(Randomiser):
    """`size` of the m values: the true one among them with probability p, the others uniform.

    The optimal randomiser for every m and ε, up to the rounding of `size` (Ye & Barg 2018). A
    report is a mask of m bits; those beyond m are 0.
    """

    m: int
    size: int
    p: Fraction

    @classmethod
    def calibrated(cls, m: int, promise: Promise) -> SubsetSelection:
        """p = e^ε size / (e^ε size + m − size), rounded down: ε = ln(p (m − size)/((1−p) size)).

        The size is m/(e^ε + 1), rounded to what has the least error.
        """
        at_least_two(m, "subset selection")
        u = exp_of_minus_epsilon(promise)
        below = int(m * u / (1 + u))
        sizes = sorted({min(max(1, size), m - 1) for size in (below, below + 1)})
        made = [cls(m, size, rounded_down(size / (size + (m - size) * u))) for size in sizes]
        return min(made, key=lambda subset: subset.squared_error)

    @property
    def hit(self) -> Fraction:
        return self.p

    @property
    def miss(self) -> Fraction:
        """Of the m − 1 others, size − 1 are in the set if the true one is, else size."""
        return (self.size - self.p) / (self.m - 1)

    @property
    def most_supported(self) -> int:
        return self.size

    @property
    def report_bytes(self) -> int:
        return -(-self.m // 8)

    @property
    def spend(self) -> tuple[Release, ...]:
        parameters = {"m": Fraction(self.m), "size": Fraction(self.size), "p": self.p}
        return (Release("subset-selection", length=self.m, parameters=parameters),)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> Reports:
        truth = cells(values, self.m)
        start = Fraction(max(1, round(Fraction(256 * self.size, self.m))), 256)
        reports = noise.bernoulli_bits(
            min(start, Fraction(255, 256)), truth.size, self.m, randomness
        )
        set_bits(reports, truth, noise.bernoulli(self.p, truth.size, randomness))
        self._resize(reports, truth, randomness)
        return reports

    def _resize(self, reports: Reports, truth: NDArray[np.int64], randomness: Randomness) -> None:
        """Take out or put in values other than the true one, each uniformly, until the size fits.

        The start and every step treat all other values alike, so the sets that result are uniform.
        """
        excess = ones_in(reports) - self.size
        some = np.flatnonzero(excess)
        truth, excess = truth[some], excess[some]
        while some.size:
            shift = 1 + noise.uniform_below(self.m - 1, some.size, randomness)
            places = truth + shift
            places -= self.m * (places >= self.m)
            surplus = excess > 0
            excess -= flip_bits(reports, some, places, surplus) * np.where(surplus, 1, -1)
            left = np.flatnonzero(excess)
            if left.size < some.size:
                some, truth, excess = some[left], truth[left], excess[left]

    def _honest(self, reports: Reports) -> NDArray[np.bool_]:
        return np.asarray(spare_bits_are_zero(reports, self.m) & (ones_in(reports) == self.size))

    def _supporters(self, reports: Reports) -> NDArray[np.int64]:
        return count_bits(reports, self.m)
