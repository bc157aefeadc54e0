"""Bounds found under the promise, in two rounds of noisy counts (proof: ranges.md).

For who cannot state public bounds. Each record puts one mark per column into the cell of its sign
and power of two, then one into a bin across the span that these cells showed. A range is meant to
leave out a small, stated share of the records (range_search.py). On its own this is a program like
any other; in front of another one, and paid from the same promise, it is part of `Ranged`.
"""

from __future__ import annotations

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
from tacit.programs.range_search import (
    BINS,
    CELLS,
    Noise,
    bin_of,
    cell_of,
    closely,
    roughly,
)

__all__ = ["BLOCKS", "Range", "RangeState", "Ranges", "searched_noise"]

Reals = NDArray[np.float64]
UNIT = 2**20  # what a mark counts for, in steps
STEP = Fraction(1, UNIT)
BLOCKS = ("ranges, roughly", "ranges, closely")
ROUGH = Fraction(1, 3)  # the first round's part of what the search is given


@dataclass(frozen=True)
class RangeState:
    """range_knots       what the first round found of each column (range_search.py)
    range_low, range_high, range_found   what the second round found
    ranges_done       rounds so far
    range_noise       standard deviation of the noise on a count, in each of the two rounds
    """

    varies: ClassVar[tuple[str, ...]] = (
        "range_knots",
        "range_known",
        "range_low",
        "range_high",
        "range_found",
        "ranges_done",
    )

    range_norm: str
    range_noise: tuple[float, float]
    range_knots: Reals
    range_known: NDArray[np.bool_]
    range_low: Reals
    range_high: Reals
    range_found: NDArray[np.bool_]
    ranges_done: int = 0


@dataclass(frozen=True)
class Range:
    """One low and one high per column, and whether it was found: if not, they are a guess."""

    low: Reals
    high: Reals
    found: NDArray[np.bool_]


class Ranges(Program[RangeState, Range]):
    """The range of each of `width` columns. It reads plain numbers, not encoded ones."""

    name = "ranges"
    version = 2
    states = (RangeState,)
    models = (Range,)

    def __init__(self, width: int) -> None:
        self.width = width

    def init(self, schema: Schema, promise: Promise) -> RangeState:
        draft = self.before(norm_for(promise))
        plan = Plan(tuple(self.plan(draft)))
        return replace(draft, range_noise=searched_noise(promise, plan))

    def before(self, norm: Norm) -> RangeState:
        """The state before any data, with nothing said of the noise yet."""
        width = self.width
        knots = np.tile(np.array([-1.0, -1.0, 1.0, 1.0]), (width, 1))
        nothing, low = np.zeros(width, dtype=np.bool_), np.full(width, -1.0)
        return RangeState(norm.value, (0.0, 0.0), knots, nothing, low, -low, nothing.copy())

    def plan(self, first: RangeState) -> Sequence[Stage]:
        return self.stages(Norm(first.range_norm), Fraction(1))

    def stages(self, norm: Norm, weight: Fraction) -> list[Stage]:
        """Both rounds, which have so much of the promise together."""
        # One mark per column: their L1 norm is the number of columns, the L2 norm its root.
        bound = marks_bound(self.width, norm, UNIT)
        rounds = zip(BLOCKS, (CELLS, BINS), (ROUGH, 1 - ROUGH), strict=True)
        blocks = (
            Block(name, self.width * size, norm, bound, STEP, part * weight, nonnegative=True)
            for name, size, part in rounds
        )
        return [Stage(Query((block,))) for block in blocks]

    def map(self, batch: Encoded, state: RangeState, query: Query) -> Sequence[Cells]:
        if query.blocks[0].name == BLOCKS[0]:
            return [Cells(cell_of(batch.X), (CELLS,) * self.width, UNIT)]
        return [Cells(bin_of(batch.X, state.range_knots), (BINS,) * self.width, UNIT)]

    def reduce(self, total: Reals, state: RangeState) -> RangeState:
        norm, counts = Norm(state.range_norm), total.reshape(self.width, -1)
        noise = [Noise(deviation, norm) for deviation in state.range_noise]
        if state.ranges_done == 0:
            spans = [roughly(column, noise[0]) for column in counts]
            knots = np.array([span for span, _ in spans])
            known = np.array([is_known for _, is_known in spans])
            return replace(state, range_knots=knots, range_known=known, ranges_done=1)
        pairs = zip(counts, state.range_knots, state.range_known, strict=True)
        ranges = [closely(column, knots, bool(known), noise[1]) for column, knots, known in pairs]
        low, high, found = (np.array(part) for part in zip(*ranges, strict=True))
        return replace(state, range_low=low, range_high=high, range_found=found, ranges_done=2)

    def result(self, state: RangeState) -> Range:
        return Range(state.range_low, state.range_high, state.range_found)


def searched_noise(promise: Promise, plan: Plan) -> tuple[float, float]:
    """Standard deviations of the noise on a count of each round: public, from plan and promise."""
    if not promise.is_private:
        return 0.0, 0.0
    levels = Levels.planned(promise, plan)
    blocks = [stage.query.blocks[0] for stage in plan.stages[:2]]
    spread = np.sqrt(2.0) if promise.delta == 0 else 1.0
    first, second = (float(levels.mechanism(block).scale) * float(spread) for block in blocks)
    return first, second
