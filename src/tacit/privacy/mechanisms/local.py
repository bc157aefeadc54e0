"""Randomisers that a person applies before anything leaves the device (proof: local.md).

The neighbours are any two values of one person, so the adjacency is always "replace".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import InputError, UsageError
from tacit.privacy import noise
from tacit.privacy.exact import exp_of_minus
from tacit.privacy.mechanisms.mechanism import pure_epsilon
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["PQPerturbation", "RandomisedResponse"]

BITS = 40  # precision of the probabilities; rounded towards more privacy


@dataclass(frozen=True, slots=True)
class RandomisedResponse:
    """One of m values: the true one with probability p, else one of the others, uniformly."""

    m: int
    p: Fraction

    @classmethod
    def calibrated(cls, m: int, promise: Promise) -> RandomisedResponse:
        """p = e^ε / (e^ε + m − 1), rounded down: ε = ln(p(m−1)/(1−p))."""
        if m < 2:
            raise UsageError(f"randomised response needs at least two values, not {m}.")
        _, high = exp_of_minus(pure_epsilon(promise), 2 * BITS)
        # p = 1 / (1 + (m − 1) e^−ε) falls in e^−ε: take the upper bound.
        exact = Fraction(2 ** (2 * BITS), 2 ** (2 * BITS) + (m - 1) * high)
        return cls(m, max(Fraction(int(exact * 2**BITS), 2**BITS), Fraction(1, m)))

    @property
    def spend(self) -> tuple[Release, ...]:
        parameters = {"m": Fraction(self.m), "p": self.p}
        return (Release("randomised-response", parameters=parameters),)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> NDArray[np.int64]:
        """One report for each value; each value is a person's own."""
        truth = cells(values, self.m)
        kept = noise.bernoulli(self.p, truth.size, randomness)
        shift = 1 + noise.uniform_below(self.m - 1, truth.size, randomness)
        return np.where(kept, truth, (truth + shift) % self.m)

    def estimate(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Unbiased counts of the m values."""
        observed = np.bincount(cells(reports, self.m), minlength=self.m)
        p, q = float(self.p), float((1 - self.p) / (self.m - 1))
        return np.asarray((observed - observed.sum() * q) / (p - q))


@dataclass(frozen=True, slots=True)
class PQPerturbation:
    """One of m values as m bits: the true bit is 1 with probability p, every other with q."""

    m: int
    p: Fraction
    q: Fraction

    @classmethod
    def calibrated(cls, m: int, promise: Promise, p: Fraction = Fraction(1, 2)) -> PQPerturbation:
        """q = p e^−ε / (1 − p + p e^−ε), rounded up: ε = ln(p(1−q)/((1−p)q)).

        p = 1/2 is optimised unary encoding (Wang et al. 2017).
        """
        if m < 2 or not 0 < p < 1:
            raise UsageError(f"(p,q)-perturbation needs m ≥ 2 and 0 < p < 1, not {m} and {p}.")
        _, high = exp_of_minus(pure_epsilon(promise), 2 * BITS)
        odds = p * Fraction(high, 2 ** (2 * BITS))
        q = -(-odds / (1 - p + odds) * 2**BITS // 1)
        return cls(m, p, Fraction(q, 2**BITS))

    @property
    def spend(self) -> tuple[Release, ...]:
        parameters = {"m": Fraction(self.m), "p": self.p, "q": self.q}
        return (Release("pq-perturbation", length=self.m, parameters=parameters),)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> NDArray[np.bool_]:
        """One row of m bits for each value; each value is a person's own."""
        truth = cells(values, self.m)
        bits = noise.bernoulli(self.q, truth.size * self.m, randomness).reshape(-1, self.m)
        bits[np.arange(truth.size), truth] = noise.bernoulli(self.p, truth.size, randomness)
        return bits

    def estimate(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Unbiased counts of the m values."""
        bits = np.asarray(reports, dtype=np.float64)
        p, q = float(self.p), float(self.q)
        return np.asarray((bits.sum(axis=0) - len(bits) * q) / (p - q))


def cells(values: ArrayLike, m: int) -> NDArray[np.int64]:
    """The values as cell numbers, checked."""
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind not in "iub" or (array.size and not 0 <= array.min() <= array.max() < m):
        raise InputError(f"every value must be a whole number from 0 to {m - 1}: encode it first.")
    return array.astype(np.int64)
