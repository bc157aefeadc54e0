"""Bounds learned under budget: noisy counts of magnitudes on a logarithmic grid (ranges.md).

For who cannot state public bounds. Each record puts one mark per feature into the cell of its sign
and power of two; the range is what lies between the outermost cells that are surely not empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.levels import Levels, block_grid
from tacit.programs.program import Block, Program, Query, Share, norm_for

__all__ = ["Range", "Ranges"]

# Powers of two that are told apart: 2^-20 (a millionth) to 2^40 (a trillion); smaller magnitudes
# count as zero, larger ones as the largest.
LOWEST, HIGHEST = -20, 40
POWERS = HIGHEST - LOWEST + 1
CELLS = 2 * POWERS + 1  # −2^40 … −2^-20, 0, 2^-20 … 2^40
# A cell counts as occupied if noise alone reaches its count once in so many runs.
FALSE_ALARM = 1e-3


@dataclass(frozen=True)
class RangeState:
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
        query = self.query(draft)
        assert query is not None
        (block,) = query.blocks
        scale = float(Levels.planned(promise, self.plan(draft)).mechanism(block).scale)
        return replace(draft, threshold=_threshold(scale, norm, self.width * CELLS))

    def plan(self, state: RangeState) -> Sequence[Share]:
        return [Share("magnitudes", Fraction(1))]

    def query(self, state: RangeState) -> Query | None:
        if state.done:
            return None
        norm = Norm(state.norm)
        # One mark per feature: their L1 norm is the number of features, the L2 norm its root.
        bound = Fraction(state.width) if norm is Norm.L1 else _root(state.width)
        return Query((Block("magnitudes", state.width * CELLS, norm, bound),))

    def map(self, batch: Encoded, state: RangeState) -> NDArray[np.float64]:
        rows, width = batch.X.shape
        marks = np.zeros((rows, width, CELLS))
        marks[np.arange(rows)[:, None], np.arange(width), _cells(batch.X)] = 1.0
        return marks.reshape(rows, width * CELLS)

    def map_sum(self, batch: Encoded, state: RangeState) -> NDArray[np.int64] | None:
        query = self.query(state)
        assert query is not None
        cells = _cells(batch.X) + np.arange(state.width) * CELLS
        marks = np.bincount(cells.ravel(), minlength=state.width * CELLS)
        return marks * block_grid(query.blocks[0]).step.denominator

    def reduce(self, total: NDArray[np.float64], state: RangeState) -> RangeState:
        return replace(state, counts=total.reshape(state.width, CELLS), done=True)

    def result(self, state: RangeState) -> Range:
        spans = [_span(counts, state.threshold) for counts in state.counts]
        low, high = np.array(spans).T
        return Range(low, high)


def _cells(X: NDArray[np.float64]) -> NDArray[np.int64]:
    with np.errstate(divide="ignore"):
        power = np.floor(np.log2(np.abs(X)))
    place = np.clip(power, LOWEST - 1, HIGHEST) - LOWEST + 1  # 0 for what counts as zero
    return np.asarray(POWERS + np.sign(X) * place, dtype=np.int64)


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


def _root(value: int) -> Fraction:
    return Fraction(math.nextafter(math.sqrt(value), math.inf))
