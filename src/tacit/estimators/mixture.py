"""Gaussian mixtures."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin

from tacit.estimators.arrays import validate_data
from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import count_or_none, frozen, whole_number
from tacit.programs.count_tree import depth_for
from tacit.programs.mixture import Mixture as Program
from tacit.programs.mixture import MixtureModel

__all__ = ["GaussianMixture"]


class GaussianMixture(DensityMixin, PrivateEstimator):
    """A mixture of Gaussians by noisy expectation–maximisation.

    All features are scaled alike, so that densities are those of X.
    Parameters: `tacit.estimators.base.PrivateEstimator`.
    """

    _uniform = True
    _program_type = Program
    _takes_sparse = False  # densities of zeros and ones say nothing

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        schema: Any = None,
        n_components: int = 1,
        covariance_type: Literal["full", "diag", "spherical"] = "full",
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
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.max_iter = max_iter

    def _new_program(self) -> Program:
        components = whole_number(self.n_components, "n_components")
        rounds = count_or_none(self.max_iter, "max_iter")
        return Program(components, self.covariance_type, rounds)

    def fit(self, X: Any, y: Any = None) -> Self:
        if self._is_table(X):
            return self._fit_table(self._new_program(), X)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self._fit(self._new_program(), X)
        return self

    @property
    def n_iter_(self) -> int:
        """Rounds of expectation–maximisation; those before it count where records are."""
        return self.n_rounds_ - depth_for(self.model_.means.shape[1])

    @property
    def weights_(self) -> NDArray[np.float64]:
        return frozen(self.model_.weights)

    @property
    def means_(self) -> NDArray[np.float64]:
        slope, offset = self._affine()
        return frozen((self.model_.means - offset) / slope)

    @property
    def covariances_(self) -> NDArray[np.float64]:
        slope, _ = self._affine()
        return frozen(self.model_.covariances / float(slope[0]) ** 2)  # one width for all features

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of the density at each record; one beyond the bounds counts as the nearest
        one within them."""
        vectors = self._encoded(X)
        model: MixtureModel = self.model_
        slope, _ = self._affine()
        # A density in the units of X is that of the vectors times how much space shrinks to them.
        return np.asarray(model.log_likelihoods(vectors) + np.log(slope).sum())

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of a record."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self._said(X).scores)

    def predict(self, X: Any) -> NDArray[np.intp]:
        return np.asarray(self._said(X).values)
