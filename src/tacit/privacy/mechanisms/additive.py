"""Noise added to every coordinate of a vector, on a grid: what Laplace and Gaussian share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
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

    `bound` includes what rounding to the grid adds, unless the values are `integral`. `scale` is
    that of the whole noise. With `parts` above 1 each of several servers adds one part of it, and
    the promise is kept by the sum of that many parts, not by one.
    """

    bound: Bound
    scale: Fraction
    grid: Grid
    length: int = 1
    integral: bool = False
    parts: int = 1

    name: ClassVar[str]

    def __post_init__(self) -> None:
        if self.parts < 1:
            raise UsageError(f"noise has at least one part, not {self.parts}.")
        self.check(self.scale / self.grid.step, self.parts)

    @property
    def spend(self) -> tuple[Release, ...]:
        """What the sum of all parts costs."""
        release = Release(self.name, self.bound, self.scale, self.grid.step, self.length)
        if self.parts > 1:
            release = replace(release, parameters={"parts": Fraction(self.parts)})
        return (release,)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> NDArray[np.float64]:
        if self.parts > 1:
            raise UsageError(
                f"one of {self.parts} parts of the noise does not keep the promise: `perturb` each "
                "share, and release nothing but their sum."
            )
        array = np.asarray(values)
        if array.size != self.length:
            raise UsageError(f"calibrated for {self.length} values, but {array.size} were given.")
        if self.integral and array.dtype.kind not in "iub":
            raise UsageError(f"calibrated for whole numbers, but given {array.dtype}.")
        return self.grid.decode(self.perturb(self.grid.encode(array), randomness))

    def perturb(
        self, integers: NDArray[np.int64], randomness: Randomness = SYSTEM
    ) -> NDArray[np.int64]:
        """One part of the noise, added to values that are multiples of the grid's step already."""
        drawn = self.draw(self.scale / self.grid.step, self.parts, integers.size, randomness)
        return integers + drawn.reshape(integers.shape)

    @staticmethod
    @abstractmethod
    def check(scale: Fraction, parts: int) -> None:
        """Refuse noise that could not be drawn: before anything is spent on it, not after."""

    @staticmethod
    @abstractmethod
    def draw(scale: Fraction, parts: int, size: int, randomness: Randomness) -> NDArray[np.int64]:
        """One of `parts` parts of exact noise that has the given scale in grid steps."""
