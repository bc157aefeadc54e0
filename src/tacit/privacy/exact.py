"""Probabilities as exact real numbers, known to any number of binary digits, in integers only.

exp(−x) is irrational for rational x ≠ 0, so no machine number is "the" probability of an exact
sampler. But a coin with probability p can be tossed exactly all the same: compare the binary digits
of a uniform number with those of p, and ask for more digits while they agree.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tacit.errors import InternalFault

__all__ = ["Bounds", "Probability", "exp_of_minus", "logistic_of_minus"]

Bounds = Callable[[int], tuple[int, int]]
"""bits ↦ (low, high) with low ≤ p · 2^bits ≤ high, close together for many bits."""


class Probability:
    """A real number in [0, 1] given by bounds at every precision."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._known: dict[int, int] = {}

    @classmethod
    def rational(cls, value: Fraction) -> Probability:
        def bounds(bits: int) -> tuple[int, int]:
            floor = (value.numerator << bits) // value.denominator
            return floor, floor

        return cls(bounds)

    @classmethod
    def exp(cls, exponent: Fraction) -> Probability:
        """exp(−exponent)."""
        return cls(lambda bits: exp_of_minus(exponent, bits))

    def prefix(self, bits: int) -> int:
        """floor(p · 2^bits), exactly."""
        if bits not in self._known:
            self._known[bits] = self._floor(bits)
        return self._known[bits]

    def digits(self, skip: int, bits: int) -> int:
        """The `bits` binary digits after the first `skip`."""
        return self.prefix(skip + bits) - (self.prefix(skip) << bits)

    def _floor(self, bits: int) -> int:
        # More precision until both bounds have the same floor. This ends because p is either given
        # exactly (low = high) or irrational, hence not itself a multiple of 2^-bits.
        for extra in (8, 64, 256, 1024, 4096):
            low, high = self._bounds(bits + extra)
            if low >> extra == high >> extra:
                return low >> extra
        raise InternalFault("a probability could not be told from a dyadic number")


def exp_of_minus(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Integers low ≤ exp(−exponent) · 2^bits ≤ high, a few units apart.

    The exponent is halved until it is at most 1/2, the alternating series is summed in truncated
    fixed point, and the interval is squared back, rounded outwards.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent >= bits:  # exp(−bits) < 2^−bits
        return 0, 1
    top, bottom = exponent.numerator, exponent.denominator
    halvings = max(0, top.bit_length() - bottom.bit_length() + 2)
    bottom <<= halvings
    work = bits + halvings + 16  # each squaring doubles the relative error
    term = total = 1 << work
    index = 0
    while term:
        index += 1
        term = term * top // (bottom * index)
        total += -term if index % 2 else term
    # Each truncation loses less than 1 and is inherited with factor ≤ 1/2: every term is less than
    # 2 too small, and the rest of the alternating series is less than the first term left out.
    slack = 2 * index + 2
    low, high = total - slack, min(total + slack, 1 << work)
    for _ in range(halvings):
        low, high = (low * low) >> work, -((-high * high) >> work)
    shift = work - bits
    return low >> shift, -(-high >> shift)


def logistic_of_minus(exponent: Fraction) -> Probability:
    """1 / (1 + exp(exponent)): the odds of one binary digit of a geometric number."""

    def bounds(bits: int) -> tuple[int, int]:
        low, high = exp_of_minus(exponent, bits)
        one = 1 << bits
        # e ↦ e / (1 + e) increases.
        return (low << bits) // (one + low), -((-high << bits) // (one + high))

    return Probability(bounds)
