"""(p,q)-perturbation: one bit for each value, all under noise (proof: perturbation.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import UsageError
from tacit.privacy import noise
from tacit.privacy.mechanisms.bits import count_bits, set_bits, spare_bits_are_zero
from tacit.privacy.mechanisms.local import (
    BITS,
    Randomiser,
    Reports,
    at_least_two,
    cells,
    exp_of_minus_epsilon,
    rounded_down,
    rounded_up,
)
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["PQPerturbation", "best_p"]

SHORT = 8  # significant binary digits of the best q


@dataclass(frozen=True, slots=True)
class PQPerturbation(Randomiser):
    """One of m values as m bits: the true bit is 1 with probability p, every other with q.

    A report holds bit i in bit i mod 8 of byte i div 8; the bits beyond m are 0.
    """

    m: int
    p: Fraction
    q: Fraction

    @classmethod
    def calibrated(cls, m: int, promise: Promise, p: Fraction | None = None) -> PQPerturbation:
        """q = p e^−ε / (1 − p + p e^−ε), rounded up: ε = ln(p(1−q)/((1−p)q)).

        Without a p, it is the best one, all but: q is rounded to few binary digits first, since a
        coin costs as many random bits, and p follows from q. The error rises by less than 0.01 %.
        p = 1/2 is optimised unary encoding (Wang et al. 2017).
        """
        at_least_two(m, "(p,q)-perturbation")
        u = exp_of_minus_epsilon(promise)
        if p is not None and not 0 < p < 1:
            raise UsageError(f"(p,q)-perturbation needs 0 < p < 1, not {p}.")
        if p is not None:
            return cls(m, p, rounded_up(p * u / (1 - p + p * u)))
        p = best_p(m, u)
        q = _short(p * u / (1 - p + p * u))
        return cls(m, rounded_down(q / (q + (1 - q) * u)), q)

    @classmethod
    def rappor(cls, m: int, promise: Promise) -> PQPerturbation:
        """One-time RAPPOR: q = 1 − p, so that ε = 2 ln(p/(1−p)) (Erlingsson et al. 2014)."""
        at_least_two(m, "RAPPOR")
        p = rounded_down(1 / (1 + _root_above(exp_of_minus_epsilon(promise))))
        return cls(m, p, 1 - p)

    @property
    def hit(self) -> Fraction:
        return self.p

    @property
    def miss(self) -> Fraction:
        return self.q

    @property
    def most_supported(self) -> int:
        """All bits set: nothing forbids it."""
        return self.m

    @property
    def report_bytes(self) -> int:
        return -(-self.m // 8)

    @property
    def spend(self) -> tuple[Release, ...]:
        parameters = {"m": Fraction(self.m), "p": self.p, "q": self.q}
        return (Release("pq-perturbation", length=self.m, parameters=parameters),)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> Reports:
        truth = cells(values, self.m)
        reports = noise.bernoulli_bits(self.q, truth.size, self.m, randomness)
        set_bits(reports, truth, noise.bernoulli(self.p, truth.size, randomness))
        return reports

    def _honest(self, reports: Reports) -> NDArray[np.bool_]:
        return spare_bits_are_zero(reports, self.m)

    def _supporters(self, reports: Reports) -> NDArray[np.int64]:
        return count_bits(reports, self.m)


def best_p(m: int, u: Fraction) -> Fraction:
    """The p of the least expected error for u = e^−ε, to `BITS` digits.

    p/(1−p) = √((1 + (m−1)u)/(u(u + m−1))): equation 7.3 of the AnonML thesis, rearranged so that
    nothing cancels (perturbation.md). No rounding of p touches the promise: q follows p.
    """
    return rounded_down(1 / (1 + _root_above(u * (u + m - 1) / (1 + (m - 1) * u))))


def _root_above(value: Fraction) -> Fraction:
    """√value, rounded up to a multiple of 2^−2·BITS."""
    scaled = -int(-value * 2 ** (4 * BITS) // 1)
    return Fraction(isqrt(scaled) + 1, 2 ** (2 * BITS))


def _short(value: Fraction) -> Fraction:
    """Rounded to the nearest number of `SHORT` significant binary digits, but not to 1 or 0."""
    zeros = (value.denominator // value.numerator).bit_length() - 1
    unit = 2 ** (SHORT + zeros)
    return Fraction(min(max(1, round(value * unit)), unit - 1), unit)
