"""Made-up records, and how models are compared on them: for rehearsals of a study.

Records are drawn from the schema alone: uniform features, and labels by a fixed linear rule with
some disorder. Real data are different, so what is measured on them is called an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import Randomness
from tacit.data.batch import Batch
from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Column
from tacit.privacy.noise import uniform_below
from tacit.programs.prediction import class_names
from tacit.programs.program import Learner

__all__ = [
    "HELD_OUT",
    "MOST_RECORDS",
    "MOST_WORK",
    "SEED",
    "Loss",
    "Progress",
    "made_up",
    "rows_of",
    "scored",
]

Reals = NDArray[np.float64]
Progress = Callable[[int, int], None]

SEED = "rehearsal"  # one draw for everyone: the same study gives the same estimate
HELD_OUT = 5_000  # made-up records that the models are compared on
# Records times coordinates times rounds that are computed at most: some seconds. Fewer records than
# asked for give too high a loss, never too low.
MOST_WORK = 2 * 10**7
MOST_RECORDS = 200_000  # of all holders together
DISORDER = 0.5  # of the labels, in standard deviations of the rule


@dataclass(frozen=True, slots=True)
class Loss:
    """A score without noise and with that of the servers, on made-up records.

    holders, records   how many were made up, and how many records each
    asked              how many records each were asked for, if that was too many to compute with
    """

    measure: str
    without_noise: float
    with_noise: float
    holders: int
    records: int
    asked: int

    def __str__(self) -> str:
        size = f"{self.holders} holders with {self.records:,} records each"
        if self.records < self.asked:
            size += f" (not {self.asked:,}: it would take too long; with more the loss is smaller)"
        return (
            f"Estimate, on made-up data of {size}: {self.measure} {self.without_noise:.4g} without "
            f"privacy, {self.with_noise:.4g} with the noise of this study."
        )


# ── made-up records ──


def made_up(encoder: Encoder, rows: int, source: Randomness) -> Encoded:
    """Records from the schema alone."""
    schema = encoder.schema
    columns = {c.name: _values(c, rows, source) for c in schema.used}
    X, _, person = encoder.encode(Batch(schema, columns, rows))
    return Encoded(X, None if schema.label is None else _labels(schema.label, X, source), person)


def _values(column: Column, rows: int, source: Randomness) -> NDArray[Any]:
    if column.role == "person":
        return np.arange(rows)
    if not column.is_number:
        count = len(column.categories) if isinstance(column.categories, tuple) else 2
        return uniform_below(count, rows, source).astype(np.int32)
    edges = column.edges or (0.0,)
    low, high = (
        column.bounds if isinstance(column.bounds, tuple) else (edges[0] - 1.0, edges[-1] + 1.0)
    )
    values = low + (high - low) * _uniform(rows, source)
    return np.rint(values) if column.type == "integer" else values


def _labels(label: Column, X: Reals, source: Randomness) -> NDArray[Any]:
    """By a linear rule, with disorder; classes are equally common."""
    rule = X @ (2 * _uniform(X.shape[1], source) - 1)
    disorder = sum(_uniform(len(X), source) for _ in range(12)) - 6  # nearly normal
    scores = rule + DISORDER * float(rule.std() or 1.0) * disorder
    ranks = np.argsort(np.argsort(scores)) / len(X)
    classes = class_names(label)
    if classes:
        return (ranks * len(classes)).astype(np.int32)
    low, high = label.bounds if isinstance(label.bounds, tuple) else (-1.0, 1.0)
    spread = float(np.abs(scores).max() or 1.0)
    return np.asarray(low + (high - low) * (scores / spread + 1) / 2)


def _uniform(rows: int, source: Randomness) -> Reals:
    return uniform_below(2**53, rows, source) / 2.0**53


def rows_of(data: Encoded, rows: slice) -> Encoded:
    return Encoded(*(None if a is None else a[rows] for a in data))  # type: ignore[arg-type]


# ── the score ──


def scored(program: Learner, data: Encoded, exact: Any) -> tuple[str, Callable[[Any], float]]:
    """What the program's own predictions are measured by."""
    found = program.predict(exact, data.X)
    kind = None if found is None else found.kind

    def said(model: Any) -> NDArray[Any]:
        prediction = program.predict(model, data.X)
        assert prediction is not None  # one model of a program predicts if another does
        return prediction.values

    if kind == "class" and data.y is not None:
        return "accuracy", lambda model: float((said(model) == data.y).mean())
    if kind == "value" and data.y is not None:
        return "root mean square error", lambda model: float(
            np.sqrt(((said(model) - data.y) ** 2).mean())
        )
    if kind == "cluster":
        return "share of records in another cluster", lambda model: float(
            (said(model) != said(exact)).mean()
        )
    wanted = _numbers(exact)
    size = float(np.linalg.norm(wanted)) or 1.0

    def distance(model: Any) -> float:
        numbers = _numbers(model)
        if numbers.shape != wanted.shape:
            return math.nan
        return float(np.linalg.norm(numbers - wanted)) / size

    return "distance from the exact result, relative to it,", distance


def _numbers(model: Any) -> Reals:
    """All numbers of a model, one after another."""
    parts = [getattr(model, f.name) for f in fields(model)] if is_dataclass(model) else [model]
    flat = [
        np.ravel(np.asarray(p, dtype=np.float64))
        for p in parts
        if isinstance(p, (float, np.ndarray)) and not isinstance(p, bool)
    ]
    return np.concatenate(flat) if flat else np.zeros(1)
