"""Linear regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from tacit.estimators.arrays import numbers_of, validate_data
from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import frozen, plain_number
from tacit.estimators.run import known_schema, stated_bounds
from tacit.estimators.tables import Target, read_target
from tacit.programs.linear import LinearRegression as Program

__all__ = ["LinearRegression"]


class LinearRegression(RegressorMixin, PrivateEstimator):
    """Least squares on noisy sufficient statistics.

    `label_bounds` are the public bounds of y, (low, high). The other parameters are explained in
    `tacit.estimators.base.PrivateEstimator`.
    """

    _program_type = Program

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        schema: Any = None,
        label_bounds: Any = None,
        fit_intercept: bool = True,
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
            adjacency=adjacency,
            ledger=ledger,
            dataset=dataset,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.label_bounds = label_bounds
        self.fit_intercept = fit_intercept

    def _new_program(self) -> Program:
        return Program(plain_number(self.fit_intercept))

    def fit(self, X: Any, y: Any = None) -> Self:
        """X with values y; or a table with the schema's label column, alone."""
        if self._is_table(X):
            return self._fit_table(self._new_program(), X, self._target(X, y))
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = numbers_of(y)
        self._fit(self._new_program(), X, y, label_bounds=self.label_bounds)
        return self

    @property
    def coef_(self) -> NDArray[np.float64]:
        """In the units of X and y: with `intercept_`, what predict says within the bounds."""
        slope, _ = self._affine()
        return frozen((self.model_.high - self.model_.low) / 2 * self.model_.coef * slope)

    @property
    def intercept_(self) -> float:
        model, (_, offset) = self.model_, self._affine()
        stretch = (model.high - model.low) / 2
        return float(model.low + stretch * (1 + model.intercept + float(model.coef @ offset)))

    def _target(self, X: Any, y: Any) -> Target:
        schema, given = known_schema(self.schema), self.label_bounds
        assert schema is not None  # a table is read with one
        bounds = None if given is None else stated_bounds(given)
        return read_target(X, y, schema, bounds=bounds, is_class=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R²; of a table, with its own label column if y is left out."""
        if not self._is_table(X):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        vectors, values, _ = self._table_vectors(X, self._target(X, y))
        _, program = self._known_encoding()
        found = program.predict(self.model_, vectors)
        assert found is not None
        assert values is not None  # there is a target
        return float(r2_score(values, found.values, sample_weight=sample_weight))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """In the unit of y; a record beyond the bounds counts as the nearest one within them."""
        return np.asarray(self._said(X).values)
