"""Logistic regression."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tacit.data.schema import Schema
from tacit.errors import CalibrationWarning
from tacit.estimators.arrays import validate_data
from tacit.estimators.certified import frozen, whole_number
from tacit.estimators.classifier import PrivateClassifier
from tacit.estimators.curves import Parts
from tacit.programs.encodings import checked_features
from tacit.programs.logistic import Logistic as Program
from tacit.programs.logistic_model import UNCALIBRATED, LogisticModel
from tacit.programs.logistic_parts import parts_of

__all__ = ["LogisticRegression"]

TOLERANCE = 1e-4  # without privacy: that of scikit-learn


class LogisticRegression(PrivateClassifier):
    """Logistic regression by noisy gradients, with nothing to tune; two classes or more.

    Parameters: `tacit.estimators.classifier.PrivateClassifier`, and

    features   how numbers are seen: "raw" as they are; as smooth "curves"; in "bins", by steps;
               "auto": as curves, where there are numbers that a schema does not cut into bins. No
               choice depends on records, so none costs anything
    """

    _program_type = Program

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        features: str = "raw",
        bounds: Any = None,
        schema: Any = None,
        classes: Any = None,
        adjacency: str = "add-remove",
        ledger: Any = None,
        dataset: str = "data",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            bounds=bounds,
            schema=schema,
            classes=classes,
            adjacency=adjacency,
            ledger=ledger,
            dataset=dataset,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.features = features

    def _new_program(self) -> Program:
        return Program(tolerance=TOLERANCE, features=checked_features(self.features))

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
        self._refuse_unless_raw("coef_")
        slope, _ = self._affine()
        return frozen(self.model_.coef * slope)

    @property
    def intercept_(self) -> NDArray[np.float64]:
        self._refuse_unless_raw("intercept_")
        _, offset = self._affine()
        return frozen(self.model_.intercept + self.model_.coef @ offset)

    def _refuse_unless_raw(self, name: str) -> None:
        seen = self.model_.features
        if seen is not None:
            raise AttributeError(
                f"a model that sees numbers as {seen} has no {name} in the units of X: see "
                'model_.coef, or fit with features = "raw".'
            )

    def curves(self, points: int = 101) -> Parts:
        """What each column adds to the scores, with the standard deviation of noise where it is
        known (features that are not "raw", noise, no windows). `plot` it, or read it."""
        check_is_fitted(self)
        encoder = self._program.encoder(Schema(columns=self.schema_.features))
        names = tuple(str(label) for label in self.classes_)
        many = whole_number(points, "points", 2)
        return Parts(parts_of(self.model_, encoder, names, many))

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
