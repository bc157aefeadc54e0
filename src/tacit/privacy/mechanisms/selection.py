"""Choosing the best of many under pure ε (proof: selection.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import UsageError
from tacit.privacy import noise
from tacit.privacy.bound import Bound, Grid, Norm, round_up
from tacit.privacy.mechanisms.mechanism import pure_epsilon, rounding_grid, with_norm
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["Exponential", "PermuteAndFlip"]


@dataclass(frozen=True)
class _Selection(ABC):
    """Index of a good score; one unit moves every score by at most `bound` (in Linf)."""

    bound: Bound
    scale: Fraction
    grid: Grid

    name: ClassVar[str]

    @classmethod
    def calibrated(cls, bound: Bound, promise: Promise, integral: bool = False) -> Self:
        """Scores count in units of 2Δ / ε, rounded up."""
        epsilon = pure_epsilon(promise)
        grid, widened = rounding_grid(with_norm(bound, Norm.LINF), 1, integral)
        return cls(widened, round_up(2 * widened.value / epsilon), grid)

    @property
    def spend(self) -> tuple[Release, ...]:
        return (Release(self.name, self.bound, self.scale, self.grid.step),)

    def release(self, scores: ArrayLike, randomness: Randomness = SYSTEM) -> int:
        integers = self.grid.encode(scores)
        if not integers.size:
            raise UsageError("there is nothing to choose from: give at least one score.")
        return self.select(integers.max() - integers, self.grid.step / self.scale, randomness)

    @staticmethod
    @abstractmethod
    def select(behind: NDArray[np.int64], rate: Fraction, randomness: Randomness) -> int:
        """Choose, given how far each score is behind the best."""


class Exponential(_Selection):
    """P[i] ∝ exp(score / scale) (McSherry & Talwar 2007): of bounded range, composes well."""

    name = "exponential"

    @staticmethod
    def select(behind: NDArray[np.int64], rate: Fraction, randomness: Randomness) -> int:
        return noise.choose_exp([1] * len(behind), behind.tolist(), rate, randomness)


class PermuteAndFlip(_Selection):
    """In random order, take the first whose coin of probability exp(−behind / scale) is heads.

    Never worse than the exponential mechanism, up to twice as good (McKenna & Sheldon 2020,
    theorem 2); the same law as report-noisy-max with exponential noise (Ding et al. 2021).
    """

    name = "permute-and-flip"

    @staticmethod
    def select(behind: NDArray[np.int64], rate: Fraction, randomness: Randomness) -> int:
        order = noise.permutation(len(behind), randomness)
        heads = noise.bernoulli_exp(behind[order], rate, randomness)
        return int(order[np.argmax(heads)])  # the best score's coin is always heads
