"""Pure ε for an L2 bound: a Gamma length in a uniform direction (proof: l2_laplace.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import UsageError
from tacit.privacy import noise
from tacit.privacy.bound import Bound, Norm, round_up
from tacit.privacy.mechanisms.mechanism import pure_epsilon, with_norm
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["L2Laplace"]


@dataclass(frozen=True, slots=True)
class L2Laplace:
    """Adds a vector with density ∝ exp(−‖x‖₂ / b) (Chaudhuri & Monteleoni 2008, algorithm 1).

    The one continuous law: its numerics are idealised, and certificates say so.
    """

    bound: Bound
    scale: Fraction
    length: int

    @classmethod
    def calibrated(cls, bound: Bound, promise: Promise, length: int) -> L2Laplace:
        scale = round_up(with_norm(bound, Norm.L2).value / pure_epsilon(promise))
        return cls(bound, scale, length)

    @property
    def spend(self) -> tuple[Release, ...]:
        return (Release("l2-laplace", self.bound, self.scale, length=self.length),)

    def release(self, values: ArrayLike, randomness: Randomness = SYSTEM) -> NDArray[np.float64]:
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (self.length,):
            raise UsageError(f"calibrated for {self.length} values, but given {array.shape}.")
        return array + noise.l2_laplace(float(self.scale), self.length, randomness)
