"""Quantiles of numbers, from noisy counts on a tree of intervals (proof: quantiles.md).

A sum like any other, so it runs through every channel; `tacit.privacy.mechanisms.Quantile` needs
all values in one place. The public bounds are cut into 4 parts, each into 4 again, five times over,
and every interval of every level is counted. A cumulative count then sums a few noisy intervals
instead of hundreds of noisy cells: with Gaussian noise a quarter of the error of 1024 cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.cells import Nested, marks_bound
from tacit.programs.histogram import binned
from tacit.programs.layout import layout
from tacit.programs.program import Block, Program, Query, Stage, norm_for

__all__ = ["Quantiles", "QuantilesModel", "QuantilesState", "consistent"]

Reals = NDArray[np.float64]
Places = NDArray[np.int64]
FAN_OUT, LEVELS = 4, 5  # by expected error: quantiles.md
SIZES = tuple(FAN_OUT**level for level in range(1, LEVELS + 1))
CELLS = SIZES[-1]
UNIT = 2**20  # what an interval counts for, in steps
STEP = Fraction(1, UNIT)


@dataclass(frozen=True, slots=True)
class QuantilesState:
    """places    the coordinate of each column
    missing   the coordinate that says its value is missing, or −1
    counts    noisy, one row per column, level after level; empty before the round
    """

    varies: ClassVar[tuple[str, ...]] = ()
    grows: ClassVar[tuple[str, ...]] = ("counts",)

    columns: tuple[str, ...]
    places: tuple[int, ...]
    missing: tuple[int, ...]
    low: Reals
    high: Reals
    norm: str
    counts: Reals


@dataclass(frozen=True, slots=True)
class QuantilesModel:
    """values    one row per column, one entry for each of `probabilities`
    cumulative   one row per column: how many values lie below each of the grid's 1025 points
    """

    columns: tuple[str, ...]
    probabilities: Reals
    values: Reals
    cumulative: Reals
    low: Reals
    high: Reals

    def quantile(self, column: str, probability: ArrayLike) -> Reals:
        """Any other quantiles of a column; they cost nothing more."""
        if column not in self.columns:
            raise UsageError(f"there are no quantiles of {column!r}, only of {self.columns}.")
        place = self.columns.index(column)
        part = _inverse(self.cumulative[place], np.asarray(probability, dtype=np.float64))
        found: Reals = self.low[place] + part * (self.high[place] - self.low[place])
        return found


class Quantiles(Program[QuantilesState, QuantilesModel]):
    """Quantiles of `columns` (all numbers without edges by default), to 1/1024 of their range."""

    name = "quantiles"
    states = (QuantilesState,)
    models = (QuantilesModel,)

    def __init__(
        self,
        probabilities: Sequence[float] = (0.25, 0.5, 0.75),
        columns: Sequence[str] | None = None,
    ) -> None:
        if not probabilities or not all(0 <= p <= 1 for p in probabilities):
            raise UsageError(f"probabilities must lie in [0, 1], not {tuple(probabilities)}.")
        self.probabilities = tuple(float(p) for p in probabilities)
        self.columns = None if columns is None else tuple(columns)

    def init(self, schema: Schema, promise: Promise) -> QuantilesState:
        places = {c.name: (c, place.start) for c, place in layout(schema) if _is_measured(c)}
        names = self.columns or tuple(places)
        wrong = [name for name in names if name not in places]
        if wrong or not names:
            raise UsageError(
                f"quantiles are of features that are numbers without edges: {tuple(places)}; "
                f"not of {wrong}."
            )
        chosen = [places[name] for name in names]
        bounds = np.array([column.bounds for column, _ in chosen], dtype=np.float64)
        return QuantilesState(
            columns=names,
            places=tuple(start for _, start in chosen),
            missing=tuple(s + 1 if c.when_missing == "category" else -1 for c, s in chosen),
            low=bounds[:, 0].copy(),
            high=bounds[:, 1].copy(),
            norm=norm_for(promise),
            counts=np.zeros((0, 0)),
        )

    def plan(self, first: QuantilesState) -> Sequence[Stage]:
        # A value lies in one interval of each level.
        norm = Norm(first.norm)
        bound = marks_bound(LEVELS, norm, UNIT)
        blocks = (Block(n, sum(SIZES), norm, bound, STEP, nonnegative=True) for n in first.columns)
        return [Stage(Query(tuple(blocks)))]

    def map(self, batch: Encoded, state: QuantilesState, query: Query) -> Sequence[Nested]:
        return [Nested(cells, SIZES, UNIT) for cells in _cells(batch, state)]

    def reduce(self, total: Reals, state: QuantilesState) -> QuantilesState:
        return replace(state, counts=total.reshape(len(state.columns), sum(SIZES)))

    def result(self, state: QuantilesState) -> QuantilesModel:
        cumulative = np.array([_cumulative(counts) for counts in state.counts])
        probabilities = np.array(self.probabilities)
        parts = np.array([_inverse(row, probabilities) for row in cumulative])
        values = state.low[:, None] + parts * (state.high - state.low)[:, None]
        return QuantilesModel(
            state.columns, probabilities, values, cumulative, state.low, state.high
        )


def consistent(levels: Sequence[Reals]) -> Reals:
    """The least-squares counts of the finest intervals, given noisy counts of all levels.

    Upward, each count is averaged with the sum of its parts, by their precision; downward, the
    parts are shifted to add up to their whole (Hay, Rastogi, Miklau, Suciu 2010, theorem 3).
    """
    b = FAN_OUT
    up = [levels[-1]]
    for height, counts in enumerate(reversed(levels[:-1]), start=2):
        parts = up[-1].reshape(-1, b).sum(axis=1)
        own = (b**height - b ** (height - 1)) / (b**height - 1)
        up.append(own * counts + (1 - own) * parts)
    found = up.pop()
    while up:
        parts = up.pop().reshape(-1, b)
        found = (parts + (found - parts.sum(axis=1))[:, None] / b).ravel()
    return found


def _cumulative(counts: Reals) -> Reals:
    """How many values lie below each point of the grid: rising from 0."""
    from scipy.optimize import isotonic_regression

    levels = np.split(counts, np.cumsum(SIZES)[:-1])
    below = np.concatenate([[0.0], np.cumsum(consistent(levels))])
    found: Reals = np.maximum(isotonic_regression(below).x, 0.0)
    found[0] = 0.0
    return found if found[-1] > 0 else np.linspace(0.0, 1.0, CELLS + 1)


def _inverse(cumulative: Reals, probability: Reals) -> Reals:
    """The part of the range below which the wanted share of the values lies."""
    wanted = probability * cumulative[-1]
    right = np.clip(np.searchsorted(cumulative, wanted, side="left"), 1, CELLS)
    below, above = cumulative[right - 1], cumulative[right]
    inside = (wanted - below) / np.where(above > below, above - below, 1.0)
    found: Reals = (right - 1 + np.clip(inside, 0.0, 1.0)) / CELLS
    return found


def _cells(batch: Encoded, state: QuantilesState) -> list[Places]:
    """For each column the finest interval of each record; −1 where it has no value."""
    found = []
    for place, missing in zip(state.places, state.missing, strict=True):
        cells = binned(batch.X[:, place], CELLS)
        if missing >= 0:
            cells[batch.X[:, missing] > 0.5] = -1
        found.append(cells)
    return found


def _is_measured(column: Column) -> bool:
    return column.is_number and column.edges is None
