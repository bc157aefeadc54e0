"""k-means."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import frozen, plain_number
from tacit.programs.kmeans import KMeans as Program

__all__ = ["KMeans"]


class KMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, PrivateEstimator):
    """Lloyd's algorithm on noisy sums and counts; the first centres come from the bounds alone.

    All features are scaled alike, so that distances are those of X. `labels_` are computed when
    asked for, from the records that were fitted, and are as private as these: the promise does not
    cover them, and no pickle, copy or file has them.
    Parameters: `tacit.estimators.base.PrivateEstimator`.
    """

    _uniform = True
    _program_type = Program
    _records: NDArray[np.float64]

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        schema: Any = None,
        n_clusters: int = 8,
        max_iter: int | None = None,
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
        self.n_clusters = n_clusters
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any = None) -> Self:
        X = validate_data(self, X, dtype=np.float64)
        self._fit(Program(plain_number(self.n_clusters), plain_number(self.max_iter)), X)
        self._records = X
        return self

    @property
    def cluster_centers_(self) -> NDArray[np.float64]:
        slope, offset = self._affine()
        return frozen((self.model_.centres - offset) / slope)

    @property
    def n_iter_(self) -> int:
        return self.n_rounds_

    @property
    def labels_(self) -> NDArray[np.intp]:
        """The cluster of each record that was fitted; only where the fit was."""
        if "_records" not in vars(self):
            raise AttributeError(
                "labels_ belong to the records that were fitted, which no copy of an estimator "
                "has: call predict(X)."
            )
        return self._nearest(self._records)

    def predict(self, X: Any) -> NDArray[np.intp]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._nearest(X)

    def _nearest(self, X: NDArray[np.float64]) -> NDArray[np.intp]:
        # ‖x − c‖² is least where x·c − ‖c‖²/2 is largest.
        centres = self.cluster_centers_
        return np.asarray((X @ centres.T - (centres**2).sum(axis=1) / 2).argmax(axis=1))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The distance of each record to each centre."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        centres = self.cluster_centers_
        squares = (X**2).sum(axis=1)[:, None] - 2 * X @ centres.T + (centres**2).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(squares, 0)))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances to the nearest centre."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.model_.centres)
