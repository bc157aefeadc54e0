"""Naive Bayes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.estimators.arrays import validate_data
from tacit.estimators.certified import frozen
from tacit.estimators.classifier import PrivateClassifier
from tacit.programs.naive_bayes import NaiveBayes as Program
from tacit.programs.naive_bayes import NaiveBayesModel

__all__ = ["NaiveBayes"]


class NaiveBayes(PrivateClassifier):
    """Gaussian naive Bayes on noisy counts, sums and squares of each class.

    Parameters: `tacit.estimators.classifier.PrivateClassifier`.
    """

    _program_type = Program

    def _new_program(self) -> Program:
        return Program()

    def fit(self, X: Any, y: Any = None) -> Self:
        """X with labels y; or a table with the schema's label column, alone."""
        if self._is_table(X):
            return self._fit_table(self._new_program(), X, self._target(X, y))
        X, y = validate_data(self, X, y, dtype=np.float64)
        self._fit(self._new_program(), X, labels=self._labels(y))
        return self

    @property
    def class_prior_(self) -> NDArray[np.float64]:
        return frozen(np.exp(self.model_.class_log_prior))

    @property
    def theta_(self) -> NDArray[np.float64]:
        """The mean of each feature in each class."""
        (slope, offset), numbers = self._affine(), self.model_.numbers
        return frozen((self.model_.mean - offset[numbers]) / slope[numbers])

    @property
    def var_(self) -> NDArray[np.float64]:
        slope, _ = self._affine()
        return frozen(self.model_.variance / slope[self.model_.numbers] ** 2)

    def predict(self, X: Any) -> NDArray[Any]:
        places = self._said(X).values
        return np.asarray(self.classes_[places])

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        vectors = self._encoded(X)
        model: NaiveBayesModel = self.model_
        return model.predict_log_proba(vectors)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self._said(X).scores)
