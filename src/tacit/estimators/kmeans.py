"""k-means."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.estimators.base import PrivateEstimator
from tacit.programs.kmeans import KMeans as Program

__all__ = ["KMeans"]


class KMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, PrivateEstimator):
    """Lloyd's algorithm on noisy sums and counts; the first centres come from the bounds alone.

    All features are scaled alike, so that distances are those of X. `labels_` are computed from the
    data at hand and are as private as the data; they are not part of the promise.
    Parameters: `tacit.estimators.base.PrivateEstimator`.
    """

    _uniform = True

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
        program = Program(self.n_clusters, self.max_iter)
        model, scaling = self._fit(program, X)
        slope, offset = scaling.affine(program)
        self.cluster_centers_ = (model.centres - offset) / slope
        self.n_iter_ = self.n_rounds_
        self.labels_ = self.predict(X)
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        # ‖x − c‖² is least where x·c − ‖c‖²/2 is largest.
        score = X @ self.cluster_centers_.T - (self.cluster_centers_**2).sum(axis=1) / 2
        return np.asarray(score.argmax(axis=1))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The distance of each record to each centre."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        squares = (
            (X**2).sum(axis=1)[:, None]
            - 2 * X @ self.cluster_centers_.T
            + (self.cluster_centers_**2).sum(axis=1)
        )
        return np.asarray(np.sqrt(np.maximum(squares, 0)))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances to the nearest centre."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
