"""PEM's sparse-vector option: only coordinates that stand out are released (selection.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import Randomness
from tacit.errors import UsageError
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.mechanisms import Gaussian, Laplace, SparseVector
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["Selection"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Of each block at most `positives` coordinates above `threshold` in size; the rest are 0.

    `share` of ε pays for choosing, over all rounds; the rest of the promise pays for the noise of
    what is released. It needs the exact sums, so it is an option of the central channel only.
    """

    threshold: float
    positives: int
    share: Fraction = Fraction(1, 4)

    def __post_init__(self) -> None:
        if self.threshold <= 0 or self.positives < 1 or not 0 < self.share < 1:
            raise UsageError(
                f"a selection needs threshold > 0, positives ≥ 1 and 0 < share < 1, not {self}."
            )

    def split(self, promise: Promise, choices: int) -> tuple[Promise, Promise]:
        """The promise of each of `choices` choices, and of the releases; ε adds up."""
        epsilon = Fraction(promise.epsilon)
        each, rest = (
            math.nextafter(float(part), 0)  # rounded down: together never more than the promise
            for part in (epsilon * self.share / choices, epsilon * (1 - self.share))
        )
        return replace(promise, epsilon=each, delta=0.0), replace(promise, epsilon=rest)

    def choose(
        self,
        sums: NDArray[np.float64],
        mechanism: Laplace | Gaussian,
        promise: Promise,
        randomness: Randomness,
    ) -> tuple[NDArray[np.bool_], tuple[Release, ...]]:
        """Which coordinates are released, and what choosing them costs."""
        # No coordinate moves by more than the whole vector does, in L1 or in L2.
        bound = Bound(Norm.LINF, mechanism.bound.value)
        stream = SparseVector(bound, promise, self.threshold, self.positives, randomness=randomness)
        chosen = np.zeros(len(sums), dtype=np.bool_)
        for place, size in enumerate(np.abs(sums).tolist()):
            if not stream.left:
                break
            chosen[place] = stream.ask(size).above
        return chosen, stream.spend
