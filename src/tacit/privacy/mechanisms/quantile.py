"""A private quantile within public bounds, by the exponential mechanism (proof: quantile.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import UsageError
from tacit.privacy import noise
from tacit.privacy.bound import Bound, Grid, Norm, power_of_two_below, round_up
from tacit.privacy.mechanisms.mechanism import pure_epsilon
from tacit.privacy.promise import Adjacency, Promise
from tacit.privacy.release import Release

__all__ = ["Quantile"]


@dataclass(frozen=True, slots=True)
class Quantile:
    """The point of [low, high] that has a share q of the values below it.

    Every grid point x competes with a score that falls with the distance of q from the shares of
    values below x and up to x, so that a value shared by many can win. The score does not need the
    number of values, which is private (after Smith 2011, algorithm 2).
    """

    q: Fraction
    low: Fraction
    high: Fraction
    bound: Bound
    scale: Fraction
    grid: Grid

    @classmethod
    def calibrated(cls, q: float | Fraction, low: float, high: float, promise: Promise) -> Quantile:
        share = Fraction(q).limit_denominator(1000)
        if not 0 < share < 1:
            raise UsageError(f"a quantile lies strictly between 0 and 1, not {q}.")
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise UsageError(f"a quantile needs public bounds low < high, not {low} and {high}.")
        # Adding a value moves the score by q or 1 − q, exchanging one by at most 1. Some points'
        # scores rise by so much while others fall: the range is twice that (quantile.md).
        replace = promise.adjacency is Adjacency.REPLACE
        bound = Bound(Norm.LINF, Fraction(1) if replace else max(share, 1 - share))
        grid = Grid(power_of_two_below(Fraction(high - low) / 2**16))
        scale = round_up(2 * bound.value / pure_epsilon(promise))
        return cls(share, Fraction(low), Fraction(high), bound, scale, grid)

    @property
    def spend(self) -> tuple[Release, ...]:
        return (Release("exponential", self.bound, self.scale, self.grid.step),)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> float:
        """One record, one value: clipped to the public bounds and rounded to the grid."""
        first, last = math.ceil(self.low / self.grid.step), math.floor(self.high / self.grid.step)
        clipped = np.clip(np.asarray(values, dtype=np.float64), float(self.low), float(self.high))
        integers = np.clip(self.grid.encode(clipped), first, last)
        starts, widths, penalties = self._intervals(integers, first, last)
        rate = 1 / (self.scale * self.q.denominator)
        chosen = noise.choose_exp(widths.tolist(), penalties.tolist(), rate, randomness)
        inside = noise.uniform_below(int(widths[chosen]), 1, randomness)
        return float(self.grid.decode(starts[chosen] + inside)[0])

    def _intervals(
        self, integers: NDArray[np.int64], first: int, last: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Runs of grid points with the same score: first point, how many, penalty · denominator.

        The runs are in turn the points strictly between two neighbouring values, and a value.
        """
        found, counts = np.unique(integers, return_counts=True)
        starts = _in_turn(np.concatenate([[first], found + 1]), found)
        widths = np.append(starts[1:], last + 1) - starts
        upto = np.concatenate([[0], np.cumsum(counts)])
        below = _in_turn(upto, upto[:-1])
        upto = _in_turn(upto, upto[1:])
        a, b, n = self.q.numerator, self.q.denominator, len(integers)
        too_high = (b - a) * below - a * (n - below)
        too_low = a * (n - upto) - (b - a) * upto
        return starts, widths, np.maximum(0, np.maximum(too_high, too_low))


def _in_turn(gaps: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
    """gap, point, gap, point, …, gap."""
    both = np.empty(len(gaps) + len(points), dtype=np.int64)
    both[::2], both[1::2] = gaps, points
    return both
