"""Programs that are averaged: each party trains a vector of its own, and their mean is released.

Not a sum over records, so not a `Program`: all that is asked is a vector of known length whose
distance from its neighbour's (one record exchanged, added or removed; or all of a party's records
exchanged for others) is bounded.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Bound, Norm, round_up
from tacit.privacy.clipping import clip_to_ball
from tacit.privacy.promise import Unit
from tacit.programs.logistic import LogisticModel
from tacit.programs.logistic_output import LogisticOutput
from tacit.programs.prediction import Prediction, class_names, within
from tacit.programs.program import Learner

__all__ = ["UNBOUNDED", "Averaged", "AveragedLogistic", "RootedLogisticModel"]

Reals = NDArray[np.float64]
# The constant feature of rooted records, beside features of length 1: short, so that with a large
# penalty the intercept does not outweigh what was learned (averaging.md).
CONSTANT = 0.25
UNBOUNDED = 1e9  # a radius that no trained vector comes near


class Averaged(Learner):
    """Trained by each party alone; what leaves is the noisy average of the parties' vectors."""

    @abstractmethod
    def length(self, schema: Schema) -> int:
        """Of the vector that each party trains."""

    @abstractmethod
    def largest(self, schema: Schema) -> float:
        """The largest size that a coordinate of the vector can have."""

    @abstractmethod
    def train(self, records: Encoded, schema: Schema) -> Reals:
        """One party's vector."""

    @abstractmethod
    def bound(self, smallest: int, unit: Unit = Unit.RECORD) -> Bound:
        """How far one party's vector moves in L2 when one record changes, if every party has at
        least `smallest` records: a public number. For a whole holder, when all of its records are
        exchanged: twice the length that no trained vector exceeds."""

    @abstractmethod
    def model(self, average: Reals, schema: Schema) -> Any:
        """What people use, from the noisy average."""

    @abstractmethod
    def vector(self, model: Any, schema: Schema) -> Reals:
        """The average that `model` was made of."""


@dataclass(frozen=True, slots=True)
class RootedLogisticModel:
    """For records that are rooted (see AveragedLogistic): one weight for each encoded feature."""

    coef: Reals
    intercept: Reals
    classes: tuple[str, ...]

    @property
    def linear(self) -> LogisticModel:
        """What is said of rooted records."""
        return LogisticModel(self.coef, self.intercept, self.classes)

    def predict(self, X: Reals) -> NDArray[np.int64]:
        """The class of each row, as its place in `classes`."""
        return self.linear.predict(_rooted(within(X)))

    def probabilities(self, X: Reals) -> Reals:
        """Of each class, one column each."""
        return self.linear.probabilities(_rooted(within(X)))


class AveragedLogistic(Averaged):
    """Regularised logistic regression, converged; the objective stands in logistic.md.

    The bound holds for records in the unit ball. How they get there, `records` says:

    boxed    numbers in [−1, 1]; all are divided by the largest length that the schema allows
    rooted   numbers in [0, 1], the square root of each, then every record scaled to length 1. For
             counts and frequencies, most of them small: their roots spread evenly, and no record
             is shorter than what its noise was paid for

    A trained vector longer than `radius` is shortened to it. That protects a whole holder with less
    noise, and does nothing for a record.
    """

    name = "averaged-logistic"
    models = (LogisticModel, RootedLogisticModel)

    def __init__(
        self,
        penalty: float = 0.01,
        tolerance: float = 1e-9,
        records: Literal["boxed", "rooted"] = "boxed",
        radius: float = UNBOUNDED,
    ) -> None:
        if not (penalty > 0 and tolerance > 0 and 0 < radius <= UNBOUNDED):
            raise UsageError(
                f"penalty, tolerance and radius must be above 0, and radius at most {UNBOUNDED:g}."
            )
        if records not in ("boxed", "rooted"):
            raise UsageError(f'records must be "boxed" or "rooted", not {records!r}.')
        self.penalty, self.tolerance, self.records = penalty, tolerance, records
        self.radius = radius
        self._output = LogisticOutput(penalty, tolerance)

    def encoder(self, schema: Schema) -> Encoder:
        return Encoder(schema, interval="unit" if self.records == "rooted" else "symmetric")

    def length(self, schema: Schema) -> int:
        return self.encoder(schema).width + 1

    def largest(self, schema: Schema) -> float:
        return self._longest

    def train(self, records: Encoded, schema: Schema) -> Reals:
        if records.y is None:
            raise UsageError("logistic regression needs labels: give y, or a label column.")
        _two_classes(schema)
        found = self._output.train(self.prepared(records.X, schema), records.y)
        return np.asarray(clip_to_ball(found, self.radius)[0])

    def prepared(self, X: Reals, schema: Schema) -> Reals:
        """Encoded records with a constant feature for the intercept, in the unit ball."""
        features = _rooted(X) if self.records == "rooted" else X
        constant = np.full(len(X), self._constant)
        return np.column_stack([features, constant]) * self._scale(schema)

    def bound(self, smallest: int, unit: Unit = Unit.RECORD) -> Bound:
        if unit is Unit.HOLDER:
            return Bound(Norm.L2, 2 * round_up(self._longest))
        return self._output.bound(smallest)

    def model(self, average: Reals, schema: Schema) -> LogisticModel | RootedLogisticModel:
        scale = self._scale(schema)
        coef, intercept = average[:-1] * scale, average[-1:] * scale * self._constant
        kind = RootedLogisticModel if self.records == "rooted" else LogisticModel
        return kind(coef[None, :], intercept, _two_classes(schema))

    def vector(self, model: LogisticModel | RootedLogisticModel, schema: Schema) -> Reals:
        joined = np.append(model.coef[0], model.intercept / self._constant)
        return np.asarray(joined / self._scale(schema))

    def predict(self, model: LogisticModel | RootedLogisticModel, X: Reals) -> Prediction | None:
        return Prediction("class", model.predict(X), model.probabilities(X))

    @property
    def _longest(self) -> float:
        """No trained vector is longer. J(w) ≤ J(0) = ln 2 at the minimum, so ‖w‖² ≤ 2 ln 2 / λ, and
        ‖w‖ ≤ 1/(2λ) (averaging_bounds.md, claim 1); the residual adds tolerance / λ."""
        by_value, by_slope = math.sqrt(2 * math.log(2) / self.penalty), 0.5 / self.penalty
        return min(self.radius, min(by_value, by_slope) + self.tolerance / self.penalty)

    @property
    def _constant(self) -> float:
        return CONSTANT if self.records == "rooted" else 1.0

    def _scale(self, schema: Schema) -> float:
        """What brings every record, with its constant feature, into the unit ball. It follows from
        the schema, not from the data."""
        rooted = self.records == "rooted"
        longest = 1.0 if rooted else self.encoder(schema).bound(Norm.L2)
        return 1.0 / math.hypot(longest, self._constant)


def _rooted(X: Reals) -> Reals:
    """The root of each coordinate, and every row scaled to length 1; a row of zeros stays.

    Each row is a function of itself alone, so this costs no privacy.
    """
    roots = np.sqrt(np.maximum(X, 0.0))
    lengths = np.linalg.norm(roots, axis=1, keepdims=True)
    return np.asarray(roots / np.where(lengths > 0, lengths, 1.0))


def _two_classes(schema: Schema) -> tuple[str, ...]:
    label = schema.label
    classes = () if label is None else class_names(label)
    if len(classes) != 2:
        raise UsageError(
            'averaged-logistic needs a column with role = "label" that has exactly two classes.'
        )
    return classes
