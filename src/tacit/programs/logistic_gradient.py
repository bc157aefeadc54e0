"""Gradients of the logistic loss, as products of residuals and features (logistic.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.contributions import Products
from tacit.programs.features import FEATURE_STEP, Centred, exact_product, sizes_of, whole_numbers

__all__ = ["View", "gradients", "lengths", "probabilities", "quantised", "residuals", "seen_from"]

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class View:
    """How a record is seen: features (x − centre, constant), one column of weights per output.

    unit   by how much residuals are multiplied, so that a gradient of the wanted length is as long
           as the block's bound
    """

    centre: Reals
    constant: float
    weights: Reals
    unit: float


def quantised(X: Reals) -> Reals:
    """Encoded values in units of FEATURE_STEP, and in a last column each row's squared length.

    Done once for all rounds. Encoded values lie in [−1, 1]; what does not is brought there.
    """
    ready = np.empty((len(X), X.shape[1] + 1))
    ready[:, :-1] = whole_numbers(X)
    ready[:, -1] = sizes_of(ready[:, :-1], Norm.L2)
    return ready


def seen_from(ready: Reals, centre: Reals, constant: float = 0.0) -> Centred:
    """Quantised records as features: what they are from the centre, and a constant."""
    return Centred.of(ready[:, :-1], ready[:, -1], centre / FEATURE_STEP, constant / FEATURE_STEP)


def lengths(ready: Reals, centre: Reals, norm: Norm) -> Reals:
    """The distance of each record from the centre."""
    sizes = seen_from(ready, centre).sizes(norm)
    return np.asarray((sizes if norm is Norm.L1 else np.sqrt(sizes)) * FEATURE_STEP)


def gradients(ready: Reals, y: NDArray[np.int64], view: View) -> Products:
    """The gradient of each record: residual ⊗ features. The framework shortens the residuals."""
    features = seen_from(ready, view.centre, view.constant)
    matrix, last = view.weights[:-1], view.weights[-1]
    seen = exact_product(features.base, matrix * FEATURE_STEP, 1 / FEATURE_STEP)
    scores = seen + (view.constant * last - view.centre @ matrix)
    return Products(residuals(scores, y) * view.unit, features)


def residuals(scores: Reals, y: NDArray[np.int64]) -> Reals:
    """Predicted probability minus truth: the derivative of the loss by the score."""
    found = probabilities(scores)
    if scores.shape[1] == 1:
        return np.asarray(found - (y == 1)[:, None])
    return np.asarray(found - (y[:, None] == np.arange(scores.shape[1])))


def probabilities(scores: Reals) -> Reals:
    """Of each class; of the second alone, where there is one column of scores.

    Sums over classes are made class by class, in the same order for every record.
    """
    from scipy.special import expit

    if scores.shape[1] == 1:
        return np.asarray(expit(scores))
    # numpy's exp has other last bits for other strides.
    shifted = np.exp(np.ascontiguousarray(scores - scores.max(axis=1, keepdims=True)))
    total = np.zeros(len(scores))
    for column in shifted.T:
        total += column
    shifted /= total[:, None]
    return np.asarray(shifted)
