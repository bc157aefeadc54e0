"""Naive Bayes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.estimators.certified import frozen
from tacit.estimators.classifier import PrivateClassifier
from tacit.programs.naive_bayes import NaiveBayes as Program

__all__ = ["NaiveBayes"]


class NaiveBayes(PrivateClassifier):
    """Gaussian naive Bayes on noisy counts, sums and squares of each class.

    Parameters: `tacit.estimators.classifier.PrivateClassifier`.
    """

    _program_type = Program

    def fit(self, X: Any, y: Any) -> Self:
        X, y = validate_data(self, X, y, dtype=np.float64)
        self._fit(Program(), X, labels=self._labels(y))
        return self

    @property
    def class_prior_(self) -> NDArray[np.float64]:
        return frozen(np.exp(self.model_.class_log_prior))

    @property
    def theta_(self) -> NDArray[np.float64]:
        """The mean of each feature in each class."""
        slope, offset = self._affine()
        return frozen((self.model_.mean - offset) / slope)

    @property
    def var_(self) -> NDArray[np.float64]:
        slope, _ = self._affine()
        return frozen(self.model_.variance / slope**2)

    def _joint(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        joint = np.tile(np.log(self.class_prior_), (len(X), 1))
        for k, (mean, variance) in enumerate(zip(self.theta_, self.var_, strict=True)):
            far = (X - mean) ** 2 / variance + np.log(2 * np.pi * variance)
            joint[:, k] -= 0.5 * far.sum(axis=1)
        return joint

    def predict(self, X: Any) -> NDArray[Any]:
        likeliest = self._joint(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        joint = self._joint(X)
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(np.exp(self.predict_log_proba(X)))
