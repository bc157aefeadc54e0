"""Logistic regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.estimators.base import PrivateEstimator
from tacit.estimators.labels import class_numbers
from tacit.programs.logistic import Logistic as Program

__all__ = ["LogisticRegression"]

TOLERANCE = 1e-4  # without privacy: that of scikit-learn


class LogisticRegression(ClassifierMixin, PrivateEstimator):
    """Logistic regression by noisy gradients, with nothing to tune; two classes or more.

    Parameters: `tacit.estimators.base.PrivateEstimator`. The set of labels is taken to be public.
    """

    def fit(self, X: Any, y: Any) -> Self:
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_, numbers = class_numbers(y)
        program = Program(tolerance=TOLERANCE)
        model, scaling = self._fit(program, X, numbers, self.classes_)
        slope, offset = scaling.affine(program)
        self.coef_ = model.coef * slope
        self.intercept_ = model.intercept + model.coef @ offset
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = np.asarray(X @ self.coef_.T + self.intercept_)
        return scores[:, 0] if len(self.coef_) == 1 else scores

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
