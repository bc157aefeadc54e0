"""Gaussian mixtures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import frozen, plain_number
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
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any = None) -> Self:
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        components, rounds = plain_number(self.n_components), plain_number(self.max_iter)
        self._fit(Program(components, self.covariance_type, rounds), X)
        return self

    @property
    def n_iter_(self) -> int:
        return self.n_rounds_

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

    @property
    def _in_own_units(self) -> MixtureModel:
        """The model in the units of X."""
        model: MixtureModel = self.model_
        return replace(model, means=self.means_, covariances=self.covariances_)

    def _checked(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of the density at each record."""
        X = self._checked(X)
        return self._in_own_units.log_likelihoods(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of a record."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        X = self._checked(X)
        return self._in_own_units.responsibilities(X)

    def predict(self, X: Any) -> NDArray[np.intp]:
        return np.asarray(self.predict_proba(X).argmax(axis=1))
