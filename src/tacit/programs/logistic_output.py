"""Logistic regression by output perturbation: train exactly, then add noise once (logistic.md).

It is not a sum over records, so it is no `Program`: a holder trains a model of his own, and what
leaves is the model, or the average of several holders' models, under noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import InternalFault, UsageError
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.clipping import clip_to_ball
from tacit.privacy.mechanisms import Gaussian, L2Laplace, Laplace
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["LogisticOutput", "OutputModel", "bound", "train"]

Reals = NDArray[np.float64]

NEWTON_STEPS = 200
PUBLISHED = (
    "Pathak's mechanism as published: Laplace noise per coordinate, scaled to a bound that holds "
    "in L2, not in L1. The promise does NOT hold."
)


@dataclass(frozen=True, slots=True)
class OutputModel:
    """Noisy weights, what they cost, and whether the promise holds."""

    weights: Reals
    releases: tuple[Release, ...]
    promise_holds: bool = True
    remarks: tuple[str, ...] = ()

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        return (clip_to_ball(_matrix(X), 1.0) @ self.weights > 0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LogisticOutput:
    """penalty is λ of the objective in logistic.md; tolerance the gradient norm trained down to.

    The bound counts on the tolerance, not on the gradient norm that was reached: that one depends
    on the data, and noise scaled to it would show it.
    """

    penalty: float
    tolerance: float = 1e-9
    as_published: bool = False

    def train(self, X: ArrayLike, y: ArrayLike) -> Reals:
        """The weights, within tolerance / penalty of the minimiser."""
        weights, norm = train(X, y, self.penalty, self.tolerance)
        if norm > self.tolerance:
            raise InternalFault(
                f"the solver did not reach its tolerance {self.tolerance:g}; nothing was released. "
                "Use a larger penalty."
            )
        return weights

    def bound(self, records: int, models: int = 1) -> Bound:
        """How far the average of `models` moves; `records` of the smallest, a public number."""
        return bound(records, self.penalty, self.tolerance, models)

    def mechanism(
        self, records: int, length: int, promise: Promise, models: int = 1
    ) -> Laplace | L2Laplace | Gaussian:
        found = self.bound(records, models)
        if self.as_published:
            return Laplace.calibrated(Bound(Norm.L1, found.value), promise, length)
        if promise.delta == 0:
            return L2Laplace.calibrated(found, promise, length)
        return Gaussian.calibrated(found, promise, length)

    def release(
        self,
        X: ArrayLike,
        y: ArrayLike,
        promise: Promise,
        records: int | None = None,
        randomness: Randomness = SYSTEM,
    ) -> OutputModel:
        """Train, then add noise. `records`: a public number that there are at least.

        Under replace-one the number of records is public and may be left out.
        """
        features = _matrix(X)
        known = _public(len(features), records, promise)
        weights = self.train(features, y)
        if not promise.is_private:
            return OutputModel(weights, ())
        mechanism = self.mechanism(known, len(weights), promise)
        noisy = mechanism.release(weights, randomness)
        remarks = (PUBLISHED,) if self.as_published else ()
        return OutputModel(noisy, mechanism.spend, not self.as_published, remarks)


def train(
    X: ArrayLike, y: ArrayLike, penalty: float, tolerance: float = 1e-9
) -> tuple[Reals, float]:
    """Minimiser of the objective by damped Newton steps, and the norm of the gradient there.

    y holds two classes as 0 and 1 (or −1 and 1). Records are shortened to the unit ball first, so
    that the bound holds whatever they are.
    """
    if not penalty > 0:
        raise UsageError(f"penalty must be above 0, not {penalty}: the bound is 2/(n·penalty).")
    features = clip_to_ball(_matrix(X), 1.0)
    signed = features * np.where(np.asarray(y) > 0, 1.0, -1.0)[:, None]
    weights = np.zeros(features.shape[1])
    value, slope, curvature = _objective(signed, weights, penalty)
    for _ in range(NEWTON_STEPS):
        if float(np.linalg.norm(slope)) <= tolerance:
            break
        move = np.linalg.solve(curvature, -slope)
        length, decrease = 1.0, float(slope @ move)
        while True:
            point = weights + length * move
            found = _objective(signed, point, penalty)
            if found[0] <= value + 1e-4 * length * decrease + 1e-15 or length < 1e-6:
                break
            length /= 2
        weights, (value, slope, curvature) = point, found
    return weights, float(np.linalg.norm(slope))


def bound(records: int, penalty: float, gradient_norm: float = 0.0, models: int = 1) -> Bound:
    """2/(nλ) + 2g/λ, divided by the number of models that are averaged (logistic.md)."""
    if records < 1 or models < 1:
        raise UsageError("a bound needs at least one record and one model.")
    exact = Fraction(2, records) + 2 * Fraction(gradient_norm)
    return Bound(Norm.L2, exact / Fraction(penalty) / models)


def _objective(signed: Reals, weights: Reals, penalty: float) -> tuple[float, Reals, Reals]:
    """Value, gradient and Hessian; `signed` holds the rows y·x."""
    from scipy.special import expit

    margins = signed @ weights
    missed = np.asarray(expit(-margins))
    value = float(np.logaddexp(0.0, -margins).mean()) + penalty / 2 * float(weights @ weights)
    slope = -(signed.T @ missed) / len(signed) + penalty * weights
    weighted = signed * (missed * (1 - missed))[:, None]
    curvature = signed.T @ weighted / len(signed) + penalty * np.eye(len(weights))
    return value, slope, curvature


def _matrix(X: ArrayLike) -> NDArray[Any]:
    features = np.asarray(X, dtype=np.float64)
    if features.ndim != 2 or not len(features):
        raise UsageError(f"records are rows of a table with at least one, not {features.shape}.")
    return features


def _public(actual: int, records: int | None, promise: Promise) -> int:
    if records is None:
        if promise.is_private and promise.adjacency == "add-remove":
            raise UsageError(
                "under add-remove the number of records is private: give records=, a public "
                "number that there are at least, or promise adjacency='replace'."
            )
        return actual
    if actual < records:
        raise UsageError(
            f"records={records} were promised as the least, and there are fewer: lower it."
        )
    if not math.isfinite(records):
        raise UsageError("records must be a whole number.")
    return records
