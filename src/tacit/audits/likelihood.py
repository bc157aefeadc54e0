"""The loss of one round: how much likelier a noisy sum is with the unit than without it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.audits.claims import Shifts
from tacit.audits.game import Heard
from tacit.privacy.bound import Norm
from tacit.privacy.mechanisms import Gaussian, Laplace

__all__ = ["Losses", "amplified"]

Reals = NDArray[np.float64]


@dataclass
class Losses:
    """Adds up over blocks and rounds, which are independent given the states.

    Everything is in whole steps of a block's grid. `seen` is the noisy sum without what all other
    units contribute to it; `moved` is what the unit adds to it.
    """

    loss: float = 0.0
    _square: float = 0.0
    _laplace: list[float] = field(default_factory=list)
    _reach: float = 0.0

    def add(self, mechanism: Laplace | Gaussian, seen: Reals, moved: Reals) -> None:
        scale = float(mechanism.scale / mechanism.grid.step)
        bound = float(mechanism.bound.value / mechanism.grid.step)
        if isinstance(mechanism, Laplace):
            self.loss += float((np.abs(seen) - np.abs(seen - moved)).sum()) / scale
            self._laplace += (np.abs(moved[moved != 0]) / scale).tolist()
        else:
            self.loss += float(moved @ (seen - moved / 2)) / scale**2
            self._square += float(moved @ moved) / scale**2
        size = np.abs(moved).sum() if mechanism.bound.norm is Norm.L1 else math.hypot(*moved)
        self._reach = max(self._reach, float(size) / bound)

    def add_all(self, mechanisms: Sequence[Laplace | Gaussian], seen: Reals, moved: Reals) -> None:
        """Blocks one after another, as in the vector of a query."""
        start = 0
        for mechanism in mechanisms:
            place = slice(start, start + mechanism.length)
            self.add(mechanism, seen[place], moved[place])
            start += mechanism.length

    def heard(self, rate: float = 1.0, rounds: int = 1) -> Heard:
        """With sampling, the law of the loss is known in closed form for a single round only."""
        known = rate == 1 or rounds == 1
        shifts = Shifts(math.sqrt(self._square), tuple(self._laplace), rate) if known else None
        # Rounding of floats may put a sum that is just within its bound beyond it.
        reach = self._reach if self._reach > 1 + 1e-9 else min(self._reach, 1.0)
        return Heard(self.loss, shifts, reach)


def amplified(loss: float, rate: float) -> float:
    """The loss of a round over a secret sample: log(1 − q + q·e^loss)."""
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + loss))
