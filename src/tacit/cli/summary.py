"""A private summary of a table: its size, histograms and quartiles under one promise.

Cells come from the schema alone: its categories, or ten equal bins of its public bounds. One
record counts in one cell, so a histogram moves by 1 in L1 when a record is added, by 2 when one is
replaced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.data import Batch, Column
from tacit.errors import InternalFault
from tacit.privacy import Bound, Promise, Release
from tacit.privacy.mechanisms import Laplace, Quantile

__all__ = ["Answer", "Question", "answer", "questions", "spends"]

BINS = 10
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
# Parts of the budget: histograms have many cells to fill, quartiles and the size need little.
PARTS = {"count": 1, "histogram": 3, "quantile": 1}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one column (or of none: how many records there are)."""

    kind: str
    column: Column | None
    cells: tuple[str, ...]
    mechanism: Laplace | Quantile

    @property
    def name(self) -> str:
        return self.column.name if self.column else "records"


@dataclass(frozen=True, slots=True)
class Answer:
    """The figures under noise, the exact ones, and how far 95 % of the noise reaches."""

    question: Question
    exact: tuple[float, ...]
    private: tuple[float, ...]
    reach: float | None

    def released(self) -> dict[str, Any]:
        """What may leave: the noisy figures only."""
        figures = dict(zip(self.question.cells, self.private, strict=True))
        return {"kind": self.question.kind, "of": self.question.name, "figures": figures}


def questions(columns: Sequence[Column], promise: Promise) -> list[Question]:
    """All questions, each with its share of the promise's epsilon."""
    asked: list[tuple[str, Column | None, tuple[str, ...], Fraction | None]] = [
        ("count", None, ("all",), None)
    ]
    for column in columns:
        asked.append(("histogram", column, _cells(column), None))
        if column.is_number:
            asked.extend(("quantile", column, (f"{float(q):.0%}",), q) for q in QUARTILES)
    total = sum(PARTS[kind] for kind, *_ in asked)
    return [
        Question(kind, column, cells, _mechanism(kind, column, len(cells), q, promise, total))
        for kind, column, cells, q in asked
    ]


def spends(asked: Sequence[Question]) -> tuple[Release, ...]:
    """What all the answers cost, before any is drawn."""
    return tuple(release for question in asked for release in question.mechanism.spend)


def answer(question: Question, batch: Batch, randomness: Randomness = SYSTEM) -> Answer:
    mechanism, column = question.mechanism, question.column
    if isinstance(mechanism, Quantile):
        values = _values(batch, column)
        exact = float(np.quantile(values, float(mechanism.q)))
        return Answer(question, (exact,), (mechanism.release(values, randomness),), None)
    counts = _counts(batch, question)
    noisy = mechanism.release(counts, randomness)
    reach = float(mechanism.scale) * math.log(20)  # P[|Laplace(b)| > b ln 20] = 1/20
    return Answer(question, tuple(map(float, counts)), tuple(map(float, noisy)), reach)


def _mechanism(
    kind: str, column: Column | None, cells: int, q: Fraction | None, promise: Promise, total: int
) -> Laplace | Quantile:
    part = Fraction(promise.epsilon) * PARTS[kind] / total
    epsilon = math.nextafter(float(part), 0)  # down: the parts never exceed the whole
    share = Promise(epsilon, 0.0, promise.unit, promise.adjacency)
    if q is not None and column is not None:
        return Quantile.calibrated(q, *_bounds(column), share)
    bound = Bound.of_contribution("L1", 1, promise.adjacency)
    return Laplace.calibrated(bound, share, length=cells, integral=True)


def _cells(column: Column) -> tuple[str, ...]:
    if not column.is_number:
        names = column.categories if isinstance(column.categories, tuple) else ()
        return (*names, "(missing)") if column.when_missing == "category" else names
    edges = _edges(column)
    return tuple(f"{a:g}–{b:g}" for a, b in pairwise(edges))


def _counts(batch: Batch, question: Question) -> NDArray[np.int64]:
    column = question.column
    if column is None:
        return np.array([batch.rows])
    places = batch.columns[column.name]
    if column.is_number:
        inner = _edges(column)[1:-1]
        places = np.searchsorted(inner, _values(batch, column), side="right")
    return np.bincount(places, minlength=len(question.cells))


def _values(batch: Batch, column: Column | None) -> NDArray[np.float64]:
    if column is None:
        raise InternalFault("a quantile needs a column")
    values: NDArray[np.float64] = batch.columns[column.name]
    return values[~np.isnan(values)]


def _bounds(column: Column) -> tuple[float, float]:
    if not isinstance(column.bounds, tuple):
        raise InternalFault("the schema was checked to have bounds")
    return column.bounds


def _edges(column: Column) -> NDArray[np.float64]:
    return np.linspace(*_bounds(column), BINS + 1)
