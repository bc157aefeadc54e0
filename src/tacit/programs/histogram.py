"""Histograms: noisy counts of the values of chosen columns (proof: histogram.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.cells import Cells
from tacit.programs.layout import layout
from tacit.programs.program import Block, Program, Query, Stage, norm_for

__all__ = ["Histogram", "HistogramModel", "HistogramState", "binned", "nearest_distribution"]

Reals = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HistogramState:
    """labels      what each cell of each column counts
    starts      the first coordinate of each column, −1 for the label
    kinds       how each column's cell is found: bins, boolean or values
    low, high   public bounds of numbers
    counts      noisy, column after column; empty before the round
    """

    varies: ClassVar[tuple[str, ...]] = ()
    grows: ClassVar[tuple[str, ...]] = ("counts",)

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    starts: tuple[int, ...]
    kinds: tuple[str, ...]
    low: Reals
    high: Reals
    bins: int
    norm: str
    counts: Reals

    @property
    def sizes(self) -> list[int]:
        return [len(labels) for labels in self.labels]


@dataclass(frozen=True, slots=True)
class HistogramModel:
    """Noisy counts, unbiased: some may be negative. `labels` say what each cell counts."""

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    kinds: tuple[str, ...]
    low: Reals
    high: Reals
    bins: int
    counts: Reals

    def of(self, column: str) -> Reals:
        """The counts of one column."""
        place = self._place(column)
        ends = np.cumsum([0, *(len(labels) for labels in self.labels)])
        return self.counts[ends[place] : ends[place + 1]]

    def edges(self, column: str) -> Reals:
        """The edges of a number's bins, as np.histogram gives them."""
        place = self._place(column)
        if self.kinds[place] != "bins":
            raise UsageError(f"{column!r} was not cut into equal bins: its labels name its cells.")
        return np.linspace(self.low[place], self.high[place], self.bins + 1)

    def shares(self, column: str) -> Reals:
        """The counts as a distribution: the nearest one, so that noise is not counted as data."""
        return nearest_distribution(self.of(column))

    def _place(self, column: str) -> int:
        if column not in self.columns:
            raise UsageError(f"there is no histogram of {column!r}, only of {self.columns}.")
        return self.columns.index(column)


class Histogram(Program[HistogramState, HistogramModel]):
    """Counts of the values of each of `columns` (all features and the label by default).

    A category, boolean or number with edges has the cells of the schema; any other number is cut
    into `bins` equal bins between its public bounds. Missing values, where the schema keeps them,
    have a cell of their own.
    """

    name = "histogram"
    states = (HistogramState,)
    models = (HistogramModel,)

    def __init__(self, columns: Sequence[str] | None = None, bins: int = 20) -> None:
        if bins < 1:
            raise UsageError(f"bins must be at least 1, not {bins}.")
        self.columns = None if columns is None else tuple(columns)
        self.bins = bins

    def init(self, schema: Schema, promise: Promise) -> HistogramState:
        places = {column.name: place.start for column, place in layout(schema)}
        if schema.label is not None:
            places[schema.label.name] = -1
        names = self.columns or tuple(places)
        for name in names:
            if name not in places:
                raise UsageError(f"{name!r} is no feature or label: choose from {tuple(places)}.")
        columns = [schema.column(name) for name in names]
        bounds = np.array([_bounds(column) for column in columns])
        return HistogramState(
            columns=names,
            labels=tuple(_labels(column, self.bins) for column in columns),
            starts=tuple(places[name] for name in names),
            kinds=tuple(_kind(column) for column in columns),
            low=bounds[:, 0].copy(),
            high=bounds[:, 1].copy(),
            bins=self.bins,
            norm=norm_for(promise),
            counts=np.zeros(0),
        )

    def plan(self, first: HistogramState) -> Sequence[Stage]:
        """The division with the least total squared error of all counts.

        L cells with noise variance 1/w each, Σw fixed: w ∝ √L. Pure: L/ε² each, Σε fixed: ε ∝ ∛L.
        """
        power = 1 / 3 if first.norm == Norm.L1 else 1 / 2
        blocks = [
            Block(
                name,
                size,
                Norm(first.norm),
                Fraction(1),
                weight=Fraction(size**power).limit_denominator(1000),
                nonnegative=True,
            )
            for name, size in zip(first.columns, first.sizes, strict=True)
        ]
        return [Stage(Query(tuple(blocks)))]

    def map(self, batch: Encoded, state: HistogramState, query: Query) -> Sequence[Cells]:
        pairs = zip(_cells(batch, state), query.blocks, strict=True)
        return [Cells(cells[:, None], (block.length,), block.limit) for cells, block in pairs]

    def reduce(self, total: Reals, state: HistogramState) -> HistogramState:
        return replace(state, counts=total)

    def result(self, state: HistogramState) -> HistogramModel:
        return HistogramModel(
            columns=state.columns,
            labels=state.labels,
            kinds=state.kinds,
            low=state.low,
            high=state.high,
            bins=state.bins,
            counts=state.counts,
        )


def binned(scaled: Reals, bins: int) -> Places:
    """The bin of each number that was scaled to [−1, 1]; the last one is closed on its right.

    What is NaN is in none: −1.
    """
    places = np.clip((scaled + 1.0) * (bins / 2.0), 0, bins - 1)
    if len(places) and np.isnan(places.min()):
        places[np.isnan(places)] = -1
    return np.asarray(places.astype(np.int64))


def nearest_distribution(counts: Reals) -> Reals:
    """The point of the simplex nearest to counts/Σcounts (Held, Wolfe, Crowder 1974)."""
    whole = float(counts.sum())
    if whole <= 0:
        return np.full(len(counts), 1 / len(counts))
    falling = np.sort(counts / whole)[::-1]
    levels = (np.cumsum(falling) - 1) / np.arange(1, len(counts) + 1)
    level = levels[np.flatnonzero(falling > levels)[-1]]
    found: Reals = np.maximum(counts / whole - level, 0.0)
    return found


def _cells(batch: Encoded, state: HistogramState) -> list[Places]:
    """For each column, the cell of each record: exactly one, whatever the record holds."""
    found = []
    for column, start in enumerate(state.starts):
        kind, size = state.kinds[column], len(state.labels[column])
        if start < 0:
            found.append(_label_cells(batch, kind, size, state.low[column], state.high[column]))
        else:
            found.append(_feature_cells(batch.X[:, start:], kind, size, state.bins))
    return found


def _feature_cells(X: Reals, kind: str, size: int, bins: int) -> Places:
    """X begins with the column's coordinates."""
    if kind == "values":
        return np.asarray(X[:, :size].argmax(axis=1), dtype=np.int64)
    cells = binned(X[:, 0], bins) if kind == "bins" else (X[:, 0] > 0.5).astype(np.int64)
    if size > (bins if kind == "bins" else 2):
        cells[X[:, 1] > 0.5] = size - 1
    return cells


def _label_cells(batch: Encoded, kind: str, size: int, low: float, high: float) -> Places:
    assert batch.y is not None  # the schema has a label
    if kind == "bins":
        return binned(2.0 * (batch.y - low) / (high - low) - 1.0, size)
    places = np.clip(batch.y, 0, size - 1)
    return np.where(np.isnan(places), -1, places).astype(np.int64)


def _kind(column: Column) -> str:
    """bins: a number to be cut; boolean: its first value has no coordinate; values: all others."""
    if column.type == "boolean":
        return "boolean"
    return "bins" if column.is_number and column.edges is None else "values"


def _bounds(column: Column) -> tuple[float, float]:
    return column.bounds if isinstance(column.bounds, tuple) else (0.0, 0.0)


def _labels(column: Column, bins: int) -> tuple[str, ...]:
    if column.is_number:
        low, high = _bounds(column)
        inner = np.linspace(low, high, bins + 1)[1:-1] if column.edges is None else column.edges
        ends = (low, high) if low < high else (-np.inf, np.inf)
        names = [f"[{a:g}, {b:g})" for a, b in pairwise((ends[0], *inner, ends[1]))]
    else:
        given = column.categories
        names = list(given) if isinstance(given, tuple) else ["false", "true"]
    return (*names, "missing") if column.when_missing == "category" else tuple(names)
