"""Scaling and filling gaps before a private fit: with public numbers, or with private medians."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.data.schema import PRIVATE, Column, Schema
from tacit.errors import UsageError, UtilityWarning
from tacit.estimators.arrays import validate_data
from tacit.estimators.base import PrivateEstimator
from tacit.estimators.certified import frozen
from tacit.estimators.run import column_bounds
from tacit.programs.quantiles import Quantiles as Program

__all__ = ["Imputer", "Scaler"]

Reals = NDArray[np.float64]
QUARTILES = (0.25, 0.5, 0.75)
CLEAR = 10  # how many times its noise a column's number of values must be, to have quartiles
NORMAL = 1.3489795003921634  # between the quartiles of a normal law of deviation 1


class _Quartiles(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Quartiles of each column under a promise, unless all that is needed was stated.

    What is stated is public, costs nothing and is not certified: there is nothing to certify.
    """

    _program_type = Program
    _takes_sparse = False
    schema = None

    @property
    def _stated(self) -> bool:
        """Whether no record has to be looked at."""
        raise NotImplementedError

    def _new_program(self) -> Program:
        return Program(QUARTILES)

    def fit(self, X: Any, y: Any = None) -> Self:
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        self.__dict__.pop("_release", None)
        self._check()
        if self._stated:
            return self
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
        columns = tuple(
            Column(
                name=str(name),
                type="number",
                bounds=PRIVATE if bounds is None else bounds,
                when_missing="category",
            )
            for name, bounds in zip(names, column_bounds(self.bounds, X.shape[1]), strict=True)
        )
        self._fit_table(self._new_program(), X, schema=Schema(columns=columns))
        self._warn_of_hidden()
        return self

    def _warn_of_hidden(self) -> None:
        """Columns with so few values that the noise is what their quartiles say: it costs nothing
        to look at the noisy totals, and at the noise that the certificate states."""
        noise = max((float(r.scale) for r in self.certificate_.releases if r.scale), default=0.0)
        totals = self.model_.cumulative[:, -1]
        hidden = [n for n, t in zip(self.model_.columns, totals, strict=True) if t < CLEAR * noise]
        if hidden:
            warnings.warn(
                f"Columns {', '.join(hidden)} have few values or none, and noise hides their "
                "quartiles: state public numbers for them, leave them out, or take a larger "
                "epsilon.",
                UtilityWarning,
                stacklevel=3,  # the line that called fit
            )

    def _check(self) -> None:
        """UsageError if what is stated cannot be."""

    def _given(self, value: Any, name: str, positive: bool = False) -> Reals | None:
        """A stated number, or one for each column."""
        if value is None:
            return None
        try:
            found = np.array(np.broadcast_to(value, self.n_features_in_), dtype=np.float64)
        except (TypeError, ValueError):
            raise UsageError(
                f"{name} must be a number, or one for each of {self.n_features_in_} columns."
            ) from None
        if not np.isfinite(found).all() or (positive and not (found > 0).all()):
            raise UsageError(f"{name} must be finite{' and above 0' if positive else ''}.")
        return found

    def _quartile(self, place: int) -> Reals:
        found: Reals = self.model_.values[:, place]
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return "_release" in vars(self) or (self._stated and hasattr(self, "n_features_in_"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _html_repr(self) -> str:
        return super()._html_repr() if "_release" in vars(self) else str(self)

    def _numbers(self, X: Any) -> Reals:
        check_is_fitted(self)
        found: Reals = validate_data(
            self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan", copy=True
        )
        return found


class Scaler(_Quartiles):
    """(x − center) / scale for each column: the median, and the deviation that a normal law with
    the same quartiles has. Gaps stay gaps.

    center, scale   stated, public: one number, or one for each column. With both, nothing is spent
    The other parameters are explained in `tacit.estimators.base.PrivateEstimator`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        center: Any = None,
        scale: Any = None,
        bounds: Any = None,
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
            adjacency=adjacency,
            ledger=ledger,
            dataset=dataset,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.center = center
        self.scale = scale

    @property
    def _stated(self) -> bool:
        return self.center is not None and self.scale is not None

    def _check(self) -> None:
        self._given(self.center, "center")
        self._given(self.scale, "scale", positive=True)

    @property
    def center_(self) -> Reals:
        stated = self._given(self.center, "center")
        return frozen(self._quartile(1) if stated is None else stated)

    @property
    def scale_(self) -> Reals:
        stated = self._given(self.scale, "scale", positive=True)
        if stated is not None:
            return frozen(stated)
        width = (self._quartile(2) - self._quartile(0)) / NORMAL
        # A column that hardly varies keeps the width of its bounds.
        return frozen(np.where(width > 0, width, self.model_.high - self.model_.low))

    def transform(self, X: Any) -> Reals:
        numbers = self._numbers(X)
        return np.asarray((numbers - self.center_) / self.scale_)

    def inverse_transform(self, X: Any) -> Reals:
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) * self.scale_ + self.center_)


class Imputer(_Quartiles):
    """Gaps (NaN) filled with the column's median, or with stated values.

    values   stated, public: one number, or one for each column; then nothing is spent
    The other parameters are explained in `tacit.estimators.base.PrivateEstimator`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        values: Any = None,
        bounds: Any = None,
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
            adjacency=adjacency,
            ledger=ledger,
            dataset=dataset,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.values = values

    @property
    def _stated(self) -> bool:
        return self.values is not None

    def _check(self) -> None:
        self._given(self.values, "values")

    @property
    def statistics_(self) -> Reals:
        """What stands in for a gap in each column, as scikit-learn calls it."""
        stated = self._given(self.values, "values")
        return frozen(self._quartile(1) if stated is None else stated)

    def transform(self, X: Any) -> Reals:
        numbers = self._numbers(X)
        return np.where(np.isnan(numbers), self.statistics_, numbers)
