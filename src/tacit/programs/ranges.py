"""Bounds learned under budget: noisy counts of magnitudes on a logarithmic grid (ranges.md).

For who cannot state public bounds. Each record puts one mark per feature into the cell of its sign
and power of two; the range is what lies between the outermost cells that are surely not empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.cells import Cells, marks_bound
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Program, Query, Stage, norm_for

__all__ = ["Range", "Ranges"]

# Powers of two that are told apart: 2^-20 (a millionth) to 2^40 (a trillion); smaller magnitudes
# count as zero, larger ones as the largest.
LOWEST, HIGHEST = -20, 40
POWERS = HIGHEST - LOWEST + 1
CELLS = 2 * POWERS + 1  # −2^40 … −2^-20, 0, 2^-20 … 2^40
UNIT = 2**20  # what a mark counts for, in steps
STEP = Fraction(1, UNIT)
# A cell counts as occupied if noise alone reaches its count once in so many runs.
FALSE_ALARM = 1e-3


@dataclass(frozen=True)
class RangeState:
    varies: ClassVar[tuple[str, ...]] = ("counts", "done")

    width: int
    norm: str
    threshold: float
    counts: NDArray[np.float64]
    done: bool = False


@dataclass(frozen=True)
class Range:
    """One low and one high per feature."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Ranges(Program[RangeState, Range]):
    """The range of each of `width` features. It reads plain numbers, not encoded ones."""

    name = "ranges"
    states = (RangeState,)
    models = (Range,)

    def __init__(self, width: int) -> None:
        self.width = width

    def init(self, schema: Schema, promise: Promise) -> RangeState:
        norm = norm_for(promise)
        draft = RangeState(self.width, norm.value, 0.5, np.zeros((self.width, CELLS)))
        if not promise.is_private:
            return draft
        plan = Plan(tuple(self.plan(draft)))
        (block,) = plan.stage(1).query.blocks
        scale = float(Levels.planned(promise, plan).mechanism(block).scale)
        return replace(draft, threshold=_threshold(scale, norm, self.width * CELLS))

    def plan(self, first: RangeState) -> Sequence[Stage]:
        norm = Norm(first.norm)
        # One mark per feature: their L1 norm is the number of features, the L2 norm its root.
        bound = marks_bound(first.width, norm, UNIT)
        return [Stage(Query((Block("magnitudes", first.width * CELLS, norm, bound, STEP),)))]

    def map(self, batch: Encoded, state: RangeState, query: Query) -> Sequence[Cells]:
        return [Cells(_cells(batch.X), (CELLS,) * state.width, UNIT)]

    def reduce(self, total: NDArray[np.float64], state: RangeState) -> RangeState:
        return replace(state, counts=total.reshape(state.width, CELLS), done=True)

    def result(self, state: RangeState) -> Range:
        spans = [_span(counts, state.threshold) for counts in state.counts]
        low, high = np.array(spans).T
        return Range(low, high)


def _cells(X: NDArray[np.float64]) -> NDArray[np.int64]:
    # |x| = m · 2^e with m in [1/2, 1): exact, whereas a logarithm has last bits that may differ.
    power = np.frexp(X)[1] - 1
    power = np.where(np.isinf(X), HIGHEST, np.where(X == 0, LOWEST - 1, power))
    place = np.clip(power, LOWEST - 1, HIGHEST) - LOWEST + 1  # 0 for what counts as zero
    cells = POWERS + np.sign(X) * place
    return np.where(np.isnan(cells), -1, cells).astype(np.int64)


def _span(counts: NDArray[np.float64], threshold: float) -> tuple[float, float]:
    """Outer ends of the outermost occupied cells; [−1, 1] if none is."""
    found = np.flatnonzero(counts > threshold)
    if not found.size:
        return -1.0, 1.0
    low, high = _ends(int(found[0]))[0], _ends(int(found[-1]))[1]
    return (low, high) if low < high else (low - 1.0, high + 1.0)


def _ends(cell: int) -> tuple[float, float]:
    place = cell - POWERS
    if place == 0:
        return 0.0, 0.0
    near, far = 2.0 ** (LOWEST + abs(place) - 1), 2.0 ** (LOWEST + abs(place))
    return (near, far) if place > 0 else (-far, -near)


def _threshold(scale: float, norm: Norm, cells: int) -> float:
    """What the largest of so many noises exceeds with probability at most FALSE_ALARM."""
    if norm is Norm.L1:
        return scale * math.log(cells / (2 * FALSE_ALARM))
    return scale * math.sqrt(2 * math.log(cells / FALSE_ALARM))
