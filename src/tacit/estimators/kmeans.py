"""k-means."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from tacit.estimators.arrays import validate_data
from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import count_or_none, frozen, whole_number
from tacit.programs.kmeans import KMeans as Program
from tacit.programs.kmeans import KMeansModel

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
        self.n_clusters = n_clusters
        self.max_iter = max_iter

    def _new_program(self) -> Program:
        return Program(
            whole_number(self.n_clusters, "n_clusters"), count_or_none(self.max_iter, "max_iter")
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        if self._is_table(X):
            self._fit_table(self._new_program(), X)
        else:
            X = validate_data(self, X, dtype=np.float64)
            self._fit(self._new_program(), X)
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
        return self._nearest(self._vectors(self._records))

    def predict(self, X: Any) -> NDArray[np.intp]:
        return self._nearest(self._encoded(X))

    def _nearest(self, vectors: NDArray[np.float64]) -> NDArray[np.intp]:
        model: KMeansModel = self.model_
        return model.nearest(vectors)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The distance of each record to each centre; a record beyond the bounds counts as the
        nearest one within them."""
        vectors = self._encoded(X)
        model: KMeansModel = self.model_
        slope, _ = self._affine()
        return np.asarray(model.distances(vectors) / float(slope[0]))  # one width for all features

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances to the nearest centre."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    @property
    def _n_features_out(self) -> int:
        return len(self.model_.centres)
