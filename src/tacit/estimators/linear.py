"""Linear regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import frozen, plain_number
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
        ledger: str | None = None,
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

    def fit(self, X: Any, y: Any) -> Self:
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        program = Program(plain_number(self.fit_intercept))
        y = np.asarray(y, dtype=np.float64)
        self._fit(program, X, y, label_bounds=self.label_bounds)
        return self

    @property
    def coef_(self) -> NDArray[np.float64]:
        slope, _ = self._affine()
        return frozen((self.model_.high - self.model_.low) / 2 * self.model_.coef * slope)

    @property
    def intercept_(self) -> float:
        model, (_, offset) = self.model_, self._affine()
        stretch = (model.high - model.low) / 2
        return float(model.low + stretch * (1 + model.intercept + float(model.coef @ offset)))

    def predict(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)
