"""Hadamard response: one index, whatever m is (proof: hadamard.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.privacy import noise
from tacit.privacy.mechanisms.local import (
    Randomiser,
    Reports,
    at_least_two,
    bytes_for,
    cells,
    count_integers,
    exp_of_minus_epsilon,
    read_integers,
    rounded_down,
    write_integers,
)
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["HadamardResponse"]


@dataclass(frozen=True, slots=True)
class HadamardResponse(Randomiser):
    """A column of the Hadamard matrix where the value's row has a +1, with probability p, else −1.

    The matrix is Sylvester's, H[i, j] = (−1)^(number of ones in i & j), of order K, the least power
    of two above m; value x has row x + 1 (Acharya, Sun & Zhang 2019, for high privacy). A report is
    the index of the column.
    """

    m: int
    p: Fraction

    @classmethod
    def calibrated(cls, m: int, promise: Promise) -> HadamardResponse:
        """p = e^ε / (e^ε + 1), rounded down: ε = ln(p/(1−p))."""
        at_least_two(m, "Hadamard response")
        return cls(m, rounded_down(1 / (1 + exp_of_minus_epsilon(promise))))

    @property
    def order(self) -> int:
        return 1 << self.m.bit_length()

    @property
    def hit(self) -> Fraction:
        return self.p

    @property
    def miss(self) -> Fraction:
        """Two rows agree in half of the columns."""
        return Fraction(1, 2)

    @property
    def most_supported(self) -> int:
        """The first column has no −1."""
        return self.m

    @property
    def report_bytes(self) -> int:
        return bytes_for(self.order)

    @property
    def spend(self) -> tuple[Release, ...]:
        parameters = {"m": Fraction(self.m), "p": self.p}
        return (Release("hadamard-response", length=self.m, parameters=parameters),)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> Reports:
        row = cells(values, self.m) + 1
        column = noise.uniform_below(self.order, row.size, randomness)
        minus = ~noise.bernoulli(self.p, row.size, randomness)
        # Flipping the last digit that the row has changes the sign, and pairs up the columns of
        # either sign: a uniform column becomes a uniform one of the sign wanted.
        wrong = (np.bitwise_count(row & column) & 1).astype(np.bool_) != minus
        return write_integers(column ^ (row & -row) * wrong, self.report_bytes)

    def _honest(self, reports: Reports) -> NDArray[np.bool_]:
        return np.asarray(read_integers(reports) < self.order)

    def _supporters(self, reports: Reports) -> NDArray[np.int64]:
        """Those with a +1: half of all reports and half of the row's product with their counts."""
        counts = count_integers(read_integers(reports), self.order)
        return (len(reports) + _transformed(counts)[1 : self.m + 1]) // 2


def _transformed(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The product with the Hadamard matrix, by its binary digits."""
    for digit in range(len(counts).bit_length() - 1):
        pairs = counts.reshape(-1, 2, 1 << digit)
        added, subtracted = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        counts = np.stack([added, subtracted], axis=1).reshape(-1)
    return counts
