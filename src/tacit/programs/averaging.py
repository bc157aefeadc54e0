"""Programs that are averaged: each party trains a vector of its own, and their mean is released.

Not a sum over records, so not a `Program`: all that is asked is a vector of known length whose
distance from its neighbour's (one record exchanged, added or removed) is bounded.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Bound, Norm
from tacit.programs.logistic import Logistic, LogisticModel
from tacit.programs.logistic_output import LogisticOutput
from tacit.programs.prediction import Prediction, class_names
from tacit.programs.program import Learner

__all__ = ["Averaged", "AveragedLogistic"]

Reals = NDArray[np.float64]


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
    def bound(self, smallest: int) -> Bound:
        """How far one party's vector moves in L2 when one record changes, if every party has at
        least `smallest` records: a public number."""

    @abstractmethod
    def model(self, average: Reals, schema: Schema) -> Any:
        """What people use, from the noisy average."""


class AveragedLogistic(Averaged):
    """Regularised logistic regression, converged; the objective stands in logistic.md."""

    name = "averaged-logistic"
    models = (LogisticModel,)

    def __init__(self, penalty: float = 0.01, tolerance: float = 1e-9) -> None:
        if not (penalty > 0 and tolerance > 0):
            raise UsageError("penalty and tolerance must be above 0.")
        self.penalty, self.tolerance = penalty, tolerance
        self._output = LogisticOutput(penalty, tolerance)

    def length(self, schema: Schema) -> int:
        return self.encoder(schema).width + 1

    def largest(self, schema: Schema) -> float:
        # J(w) ≤ J(0) = ln 2 at the minimum, so ‖w‖² ≤ 2 ln 2 / λ; the residual adds tolerance / λ.
        return float(np.sqrt(2 * np.log(2) / self.penalty) + self.tolerance / self.penalty)

    def train(self, records: Encoded, schema: Schema) -> Reals:
        if records.y is None:
            raise UsageError("logistic regression needs labels: give y, or a label column.")
        _two_classes(schema)
        with_constant = np.column_stack([records.X, np.ones(len(records.X))])
        return self._output.train(with_constant * self._scale(schema), records.y)

    def bound(self, smallest: int) -> Bound:
        return self._output.bound(smallest)

    def model(self, average: Reals, schema: Schema) -> LogisticModel:
        scale = self._scale(schema)
        coef, intercept = average[:-1] * scale, average[-1:] * scale
        return LogisticModel(coef[None, :], intercept, _two_classes(schema))

    def predict(self, model: LogisticModel, X: Reals) -> Prediction | None:
        return Logistic().predict(model, X)

    def _scale(self, schema: Schema) -> float:
        """What brings every encoded record, with a constant feature for the intercept, into the
        unit ball. It follows from the schema, not from the data."""
        return 1.0 / math.hypot(self.encoder(schema).bound(Norm.L2), 1.0)


def _two_classes(schema: Schema) -> tuple[str, ...]:
    label = schema.label
    classes = () if label is None else class_names(label)
    if len(classes) != 2:
        raise UsageError(
            'averaged-logistic needs a column with role = "label" that has exactly two classes.'
        )
    return classes
