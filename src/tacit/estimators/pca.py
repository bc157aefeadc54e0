"""Principal components."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.estimators.arrays import validate_data
from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import count_or_none, frozen
from tacit.programs.pca import PCA as Program

__all__ = ["PCA"]


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """The directions of largest variance, from noisy second moments.

    All features are scaled alike, so that components are directions in the space of X.
    Parameters: `tacit.estimators.base.PrivateEstimator`.
    """

    _uniform = True
    _program_type = Program

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        schema: Any = None,
        n_components: int | None = None,
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
        self.n_components = n_components

    def _new_program(self) -> Program:
        return Program(count_or_none(self.n_components, "n_components"))

    def fit(self, X: Any, y: Any = None) -> Self:
        if self._is_table(X):
            return self._fit_table(self._new_program(), X)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self._fit(self._new_program(), X)
        return self

    @property
    def components_(self) -> NDArray[np.float64]:
        return frozen(self.model_.components)

    @property
    def n_components_(self) -> int:
        return len(self.model_.components)

    @property
    def explained_variance_(self) -> NDArray[np.float64]:
        return frozen(self.model_.explained_variance / self._width**2)

    @property
    def explained_variance_ratio_(self) -> NDArray[np.float64]:
        return frozen(self.model_.explained_variance_ratio)

    @property
    def singular_values_(self) -> NDArray[np.float64]:
        return frozen(self.model_.singular_values / self._width)

    @property
    def mean_(self) -> NDArray[np.float64]:
        _, offset = self._affine()
        return frozen((self.model_.mean - offset) / self._width)

    @property
    def _width(self) -> float:
        """The slope, which is the same for every feature."""
        slope, _ = self._affine()
        return float(slope[0])

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Coordinates along the components, in the units of X; a record beyond the bounds counts as
        the nearest one within them."""
        return np.asarray(self._said(X).values / self._width)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """The records with these coordinates. They are the model's words, not records: nothing is
        brought within bounds."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X) @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)
