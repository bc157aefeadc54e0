"""k-ary randomised response: the true value, or any other (proof: response.md)."""

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

__all__ = ["RandomisedResponse"]


@dataclass(frozen=True, slots=True)
class RandomisedResponse(Randomiser):
    """One of m values: the true one with probability p, else one of the others, uniformly.

    A report is the value, little-endian in as few bytes as hold m − 1.
    """

    m: int
    p: Fraction

    @classmethod
    def calibrated(cls, m: int, promise: Promise) -> RandomisedResponse:
        """p = e^ε / (e^ε + m − 1), rounded down: ε = ln(p(m−1)/(1−p))."""
        at_least_two(m, "randomised response")
        exact = 1 / (1 + (m - 1) * exp_of_minus_epsilon(promise))
        return cls(m, rounded_down(exact))

    @property
    def hit(self) -> Fraction:
        return self.p

    @property
    def miss(self) -> Fraction:
        return (1 - self.p) / (self.m - 1)

    @property
    def most_supported(self) -> int:
        return 1

    @property
    def report_bytes(self) -> int:
        return bytes_for(self.m)

    @property
    def spend(self) -> tuple[Release, ...]:
        parameters = {"m": Fraction(self.m), "p": self.p}
        return (Release("randomised-response", parameters=parameters),)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> Reports:
        truth = cells(values, self.m)
        return write_integers(
            noise.substitute(truth, self.m, self.p, randomness), self.report_bytes
        )

    def _honest(self, reports: Reports) -> NDArray[np.bool_]:
        return np.asarray(read_integers(reports) < self.m)

    def _supporters(self, reports: Reports) -> NDArray[np.int64]:
        return count_integers(read_integers(reports), self.m)
