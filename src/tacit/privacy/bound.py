"""How far one unit can move what is released, and the grid of integers that noise lives on.

Real-valued noise in floating point leaks through its low bits (Mironov 2012), and sums of floats
have a larger sensitivity than the sum (Casacuberta et al. 2022). So values are rounded to
multiples of a public step, and all that is secret happens in integers. Rounding moves a value, and
that movement is part of the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import InputError, PromiseError
from tacit.privacy.promise import Adjacency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Bound", "Grid", "Norm", "round_up"]


ROOT_OF_TWO = Fraction(math.isqrt(2 * 4**40) + 1, 2**40)  # rounded up


class Norm(StrEnum):
    L1 = "L1"
    L2 = "L2"
    LINF = "Linf"


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest movement of a released vector, in `norm`, when one unit changes."""

    norm: Norm
    value: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", Norm(self.norm))
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise PromiseError(f"a bound must be finite, not {self.value}: clip the contributions.")
        object.__setattr__(self, "value", Fraction(self.value))
        if self.value <= 0:
            raise PromiseError(f"a bound must be above 0, not {self.value}.")

    @classmethod
    def of_contribution(
        cls,
        norm: Norm | str,
        size: float | Fraction,
        adjacency: Adjacency | str,
        nonnegative: bool = False,
    ) -> Bound:
        """The bound of a sum to which each unit contributes a vector of at most `size`.

        Replacing a unit removes one contribution and adds another: twice as far. In L2 no further
        than √2 times, where no number of a contribution is below 0: the angle between two such
        vectors is a right one at most, so ‖u − v‖² ≤ ‖u‖² + ‖v‖². In L1 that does not help.
        """
        kind, factor = Norm(norm), Fraction(1)
        if Adjacency(adjacency) is Adjacency.REPLACE:
            factor = ROOT_OF_TWO if nonnegative and kind is Norm.L2 else Fraction(2)
        return cls(kind, factor * Fraction(size))


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of `step`, on which values are rounded before noise is added."""

    step: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", Fraction(self.step))
        if self.step <= 0 or self.step != power_of_two_below(self.step):
            raise PromiseError(f"a grid's step must be a power of two, not {self.step}.")

    def encode(self, values: ArrayLike) -> NDArray[np.int64]:
        """The nearest grid points, as integers (multiples of the step)."""
        array = np.asarray(values)
        if array.dtype.kind in "iub" and self.step.numerator == 1:
            self._check_range(float(np.abs(array.astype(np.float64)).max(initial=0)))
            return array.astype(np.int64) * self.step.denominator
        real = np.asarray(array, dtype=np.float64)
        if not np.isfinite(real).all():
            raise InputError("a value is NaN or infinite: treat missing values in the schema.")
        self._check_range(float(np.abs(real).max(initial=0)))
        # Division by a power of two is exact in binary floating point (no subnormals here), so rint
        # is the only rounding, and it moves a value by at most half a step.
        return np.rint(real / float(self.step)).astype(np.int64)

    def _check_range(self, largest: float) -> None:
        if largest / float(self.step) >= 2.0**61:
            raise InputError(
                f"a value does not fit 62 bits on a grid of step {self.step}: clip the values to "
                "their public bounds, or use a wider step."
            )

    def decode(self, integers: NDArray[np.int64]) -> NDArray[np.float64]:
        return integers.astype(np.float64) * float(self.step)

    def widen(self, bound: Bound, length: int, roundings: int = 2) -> Bound:
        """The bound after rounding: each rounding moves each coordinate by half a step.

        `roundings` is 2 where a computed value is rounded (it is on both sides of the
        comparison), 1 where single contributions are rounded and summed exactly.
        """
        moved = Fraction(roundings, 2) * self.step
        match bound.norm:
            case Norm.L1:
                return Bound(bound.norm, bound.value + moved * length)
            case Norm.L2:
                return Bound(bound.norm, bound.value + moved * (math.isqrt(length - 1) + 1))
            case Norm.LINF:
                return Bound(bound.norm, bound.value + moved)


def power_of_two_below(value: Fraction) -> Fraction:
    """The largest power of two that is at most `value`."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    power = Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)
    return power if power <= value else power / 2


def round_up(value: float | Fraction, bits: int = 40) -> Fraction:
    """The smallest fraction with `bits` significant bits that is at least `value`.

    Used on every noise scale: upward is the safe direction, and a short fraction keeps the exact
    samplers fast.
    """
    exact = Fraction(value)
    unit = power_of_two_below(exact) / (1 << (bits - 1))
    return unit * math.ceil(exact / unit)
