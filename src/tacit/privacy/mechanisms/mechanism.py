"""What every mechanism offers: a calibrated scale, a release, and what the release costs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

from tacit.crypto.prg import Randomness
from tacit.errors import PromiseError, UsageError
from tacit.privacy.bound import Bound, Grid, Norm, power_of_two_below
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["WIDENING", "Mechanism", "pure_epsilon", "rounding_grid", "with_norm"]


class Mechanism(Protocol):
    """bound → calibrated scale → release → spend."""

    @property
    def spend(self) -> tuple[Release, ...]:
        """What the holder pays for one call of `release`, known before any noise is drawn."""

    def release(self, value: Any, randomness: Randomness) -> Any:
        """The value under noise."""


def with_norm(bound: Bound, norm: Norm) -> Bound:
    """The bound, if it is in the norm that the mechanism's proof is about."""
    if bound.norm is not norm:
        raise UsageError(f"this mechanism needs a bound in {norm}, not {bound.norm}.")
    return bound


def pure_epsilon(promise: Promise) -> Fraction:
    """The promise's epsilon as an exact number."""
    if not promise.is_private:
        raise UsageError("epsilon is infinite: there is no noise to calibrate.")
    return Fraction(promise.epsilon)


# Rounding may widen a bound by this share at most: noise grows by 0.02 %.
WIDENING = Fraction(1, 2**12)


def rounding_grid(bound: Bound, length: int, integral: bool) -> tuple[Grid, Bound]:
    """A grid fine enough that rounding hardly matters, and the bound with rounding included.

    Integral values (counts) lie on the grid of whole numbers already: nothing is widened.
    """
    if length < 1:
        raise PromiseError(f"a vector has at least one coordinate, not {length}.")
    if integral:
        return Grid(Fraction(1)), bound
    coarse = Grid(power_of_two_below(bound.value))
    growth = coarse.widen(bound, length).value - bound.value
    grid = Grid(power_of_two_below(coarse.step * WIDENING * bound.value / growth))
    return grid, grid.widen(bound, length)
