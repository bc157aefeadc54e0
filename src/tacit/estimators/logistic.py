"""Logistic regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.estimators.certified import frozen
from tacit.estimators.classifier import PrivateClassifier
from tacit.programs.logistic import Logistic as Program

__all__ = ["LogisticRegression"]

TOLERANCE = 1e-4  # without privacy: that of scikit-learn


class LogisticRegression(PrivateClassifier):
    """Logistic regression by noisy gradients, with nothing to tune; two classes or more.

    Parameters: `tacit.estimators.classifier.PrivateClassifier`.
    """

    _program_type = Program

    def fit(self, X: Any, y: Any) -> Self:
        X, y = validate_data(self, X, y, dtype=np.float64)
        self._fit(Program(tolerance=TOLERANCE), X, labels=self._labels(y))
        return self

    @property
    def coef_(self) -> NDArray[np.float64]:
        slope, _ = self._affine()
        return frozen(self.model_.coef * slope)

    @property
    def intercept_(self) -> NDArray[np.float64]:
        _, offset = self._affine()
        return frozen(self.model_.intercept + self.model_.coef @ offset)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = np.asarray(X @ self.coef_.T + self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        scores = self.decision_function(X)
        places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(np.log(self.predict_proba(X)))
