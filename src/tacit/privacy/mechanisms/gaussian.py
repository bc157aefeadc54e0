"""Gaussian noise for an L2 bound, analytically calibrated (proof: gaussian.md)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import Randomness
from tacit.privacy import noise
from tacit.privacy.accounting import calibrate
from tacit.privacy.bound import Bound, Grid, Norm, power_of_two_below
from tacit.privacy.mechanisms.additive import Additive
from tacit.privacy.mechanisms.mechanism import (
    WIDENING,
    pure_epsilon,
    rounding_grid,
    with_norm,
)
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["Gaussian"]


class Gaussian(Additive):
    """Adds exact discrete Gaussian noise of standard deviation σ to every coordinate, on a grid."""

    name = "gaussian"

    @classmethod
    def calibrated(
        cls, bound: Bound, promise: Promise, length: int = 1, integral: bool = False
    ) -> Gaussian:
        """The smallest σ that keeps the promise (Balle & Wang 2018, theorem 9), rounded up."""
        pure_epsilon(promise)
        grid, widened = rounding_grid(with_norm(bound, Norm.L2), length, integral)
        if integral:  # finer than whole numbers, where the width of the grid would cost noise
            grid = Grid(min(grid.step, power_of_two_below(bound.value * WIDENING)))
        draft = Release(cls.name, widened, widened.value, grid.step, length)
        (calibrated,) = calibrate(promise, [draft])
        assert calibrated.scale is not None  # calibrate scales what has a scale
        return cls(widened, calibrated.scale, grid, length, integral)

    @staticmethod
    def check(scale: Fraction, parts: int) -> None:
        noise.check_scale(scale * scale / parts, power=2)

    @staticmethod
    def draw(scale: Fraction, parts: int, size: int, randomness: Randomness) -> NDArray[np.int64]:
        return noise.discrete_gaussian(scale * scale / parts, size, randomness)
