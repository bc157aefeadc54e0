"""Noise added to every coordinate of a vector, on a grid: what Laplace and Gaussian share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import UsageError
from tacit.privacy.bound import Bound, Grid
from tacit.privacy.release import Release

__all__ = ["Additive"]


@dataclass(frozen=True)
class Additive(ABC):
    """Encode on the grid, add exact integer noise, decode.

    `bound` includes what rounding to the grid adds, unless the values are `integral`.
    """

    bound: Bound
    scale: Fraction
    grid: Grid
    length: int = 1
    integral: bool = False

    name: ClassVar[str]

    @property
    def spend(self) -> tuple[Release, ...]:
        return (Release(self.name, self.bound, self.scale, self.grid.step, self.length),)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> NDArray[np.float64]:
        array = np.asarray(values)
        if array.size != self.length:
            raise UsageError(f"calibrated for {self.length} values, but {array.size} were given.")
        if self.integral and array.dtype.kind not in "iub":
            raise UsageError(f"calibrated for whole numbers, but given {array.dtype}.")
        return self.grid.decode(self.perturb(self.grid.encode(array), randomness))

    def perturb(
        self, integers: NDArray[np.int64], randomness: Randomness = SYSTEM
    ) -> NDArray[np.int64]:
        """The same on values that are multiples of the grid's step already."""
        drawn = self.draw(self.scale / self.grid.step, integers.size, randomness)
        return integers + drawn.reshape(integers.shape)

    @staticmethod
    @abstractmethod
    def draw(scale: Fraction, size: int, randomness: Randomness) -> NDArray[np.int64]:
        """Exact noise of the given scale in grid steps."""
