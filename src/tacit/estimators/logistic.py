"""Logistic regression."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import CalibrationWarning
from tacit.estimators.arrays import validate_data
from tacit.estimators.certified import frozen
from tacit.estimators.classifier import PrivateClassifier
from tacit.programs.logistic import Logistic as Program
from tacit.programs.logistic_model import UNCALIBRATED, LogisticModel

__all__ = ["LogisticRegression"]

TOLERANCE = 1e-4  # without privacy: that of scikit-learn


class LogisticRegression(PrivateClassifier):
    """Logistic regression by noisy gradients, with nothing to tune; two classes or more.

    Parameters: `tacit.estimators.classifier.PrivateClassifier`.
    """

    _program_type = Program

    def _new_program(self) -> Program:
        return Program(tolerance=TOLERANCE)

    def fit(self, X: Any, y: Any = None) -> Self:
        """X with labels y; or a table with the schema's label column, alone."""
        if self._is_table(X):
            self._fit_table(self._new_program(), X, self._target(X, y))
        else:
            X, y = validate_data(self, X, y, dtype=np.float64)
            self._fit(self._new_program(), X, labels=self._labels(y))
        if self.calibrated_ is False:
            warnings.warn(UNCALIBRATED, CalibrationWarning, stacklevel=2)
        return self

    @property
    def calibrated_(self) -> bool | None:
        """Whether probabilities and the size of coefficients can be relied on, by public and noisy
        numbers; None where nothing is known of it: without privacy, or saved by version 0.1."""
        found: bool | None = self.model_.calibrated
        return found

    @property
    def coef_(self) -> NDArray[np.float64]:
        """In the units of X: with `intercept_`, what decision_function says within the bounds."""
        slope, _ = self._affine()
        return frozen(self.model_.coef * slope)

    @property
    def intercept_(self) -> NDArray[np.float64]:
        _, offset = self._affine()
        return frozen(self.model_.intercept + self.model_.coef @ offset)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        vectors = self._encoded(X)
        model: LogisticModel = self.model_
        scores = model.scores(vectors)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        places = self._said(X).values
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self._said(X).scores)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(np.log(self.predict_proba(X)))
