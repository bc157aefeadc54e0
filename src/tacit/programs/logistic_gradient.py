"""Clipped gradients of the logistic loss, in integers, so that sums are exact in any order.

Features, weights and residuals are rounded to powers of two coarse enough that every product and
partial sum below is an integer under 2^53, which floating point and so BLAS adds exactly. The
gradient of record i is residual ⊗ feature, and only the residual is clipped: what leaves here
needs no further rounding or clipping.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.privacy.bound import Norm

__all__ = [
    "FEATURE_STEP",
    "STEP",
    "View",
    "gradient_rows",
    "gradient_sum",
    "lengths",
    "plain",
    "quantised",
    "residuals",
]

Reals = NDArray[np.float64]

FEATURE_STEP = 2.0**-16
RESIDUAL_STEP = 2.0**-14
STEP = Fraction(1, 2**30)  # of their products
# Room for what the framework's own clipping holds back near the bound: (d + 8) ulp.
MARGIN = 1 - 2.0**-20
CHUNK = 2**12  # records worked on at a time


@dataclass(frozen=True, slots=True)
class View:
    """How a record is seen: features (x − centre, constant), one column of weights per output.

    centre and constant are multiples of FEATURE_STEP.
    """

    centre: Reals
    constant: float
    weights: Reals
    bound: float
    norm: str


def quantised(X: Reals) -> Reals:
    """Encoded values in units of FEATURE_STEP, and in a last column each row's squared length.

    Done once for all rounds. Encoded values lie in [−1, 1]; what does not is brought there.
    """
    ready = np.empty((len(X), X.shape[1] + 1))
    own = ready[:, :-1]
    np.clip(X, -1.0, 1.0, out=own)
    own *= 1 / FEATURE_STEP
    np.rint(own, out=own)
    np.einsum("ij,ij->i", own, own, out=ready[:, -1])
    _checked(ready[:, -1])
    return ready


def plain(ready: Reals) -> Reals:
    """The values that `quantised` was given, rounded."""
    return np.asarray(ready[:, :-1] * FEATURE_STEP)


def gradient_rows(ready: Reals, y: NDArray[np.int64], view: View) -> Reals:
    """The clipped gradient of each record, multiples of STEP."""
    width = ready.shape[1] - 1
    features = np.empty((len(ready), width + 1))
    features[:, :width] = ready[:, :-1] - view.centre / FEATURE_STEP
    features[:, width] = view.constant / FEATURE_STEP
    residual = _residuals(ready, y, view)
    rows = features[:, :, None] * residual[:, None, :]
    return rows.reshape(len(ready), view.weights.size) * float(STEP)


def gradient_sum(ready: Reals, y: NDArray[np.int64], view: View) -> NDArray[np.int64]:
    """The sum of `gradient_rows` in units of STEP."""
    total = np.zeros(view.weights.shape, dtype=np.int64)
    centre = (view.centre / FEATURE_STEP).astype(np.int64)
    for start in range(0, len(ready), CHUNK):
        part = slice(start, start + CHUNK)
        residual = _residuals(ready[part], y[part], view)
        # |feature| ≤ 2^16 and |residual| ≤ 2^14 over at most 2^12 rows: below 2^53. (The last
        # column, of squares, may round; it is not used.)
        products = (ready[part].T @ residual)[:-1].astype(np.int64)
        # Σ r (x − centre) = Σ r x − centre Σ r
        sums = residual.sum(axis=0).astype(np.int64)
        total[:-1] += products - centre[:, None] * sums
        total[-1] += int(view.constant / FEATURE_STEP) * sums
    return total.reshape(-1)


def lengths(X: Reals, centre: Reals, norm: Norm) -> Reals:
    """The distance of each record from the centre."""
    centred = np.clip(X, -1.0, 1.0) - centre
    return _checked(np.linalg.norm(centred, ord=1 if norm is Norm.L1 else 2, axis=1))


def residuals(scores: Reals, y: NDArray[np.int64]) -> Reals:
    """Predicted probability minus truth: the derivative of the loss by the score."""
    from scipy.special import expit

    if scores.shape[1] == 1:
        return np.asarray(expit(scores) - (y == 1)[:, None])
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return np.asarray(shifted - (y[:, None] == np.arange(scores.shape[1])))


def _residuals(ready: Reals, y: NDArray[np.int64], view: View) -> Reals:
    """Residuals in units of RESIDUAL_STEP, clipped so that the gradient keeps its bound."""
    scores, size = _scores(ready, view)
    residual = residuals(scores, y)
    if view.norm == Norm.L1:
        length = np.abs(residual).sum(axis=1)
    else:
        length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
    # The norm of an outer product is the product of the norms, in L1 and in L2.
    allowed = view.bound * MARGIN / (size * FEATURE_STEP)
    factor = np.minimum(1.0, allowed / np.maximum(length, 1e-300))
    # Toward zero, so that rounding never lengthens.
    return np.asarray(np.trunc(residual * (factor / RESIDUAL_STEP)[:, None]))


def _scores(ready: Reals, view: View) -> tuple[Reals, Reals]:
    """The scores of each record and the length of its features, without building the features.

    ‖x − c‖² = ‖x‖² − 2 c·x + ‖c‖². Weights are rounded so that every sum is an integer below 2^52:
    no order of adding up changes a bit.
    """
    centre, constant = view.centre / FEATURE_STEP, view.constant / FEATURE_STEP
    weights = view.weights * FEATURE_STEP
    heaviest = float(np.abs(weights).max())
    exponent = 0
    if heaviest > 0.0:
        # |x| ≤ 1 and |centre| ≤ 1.
        largest = 2 * max(2.0, view.constant) / FEATURE_STEP * len(weights)
        exponent = min(900, math.floor(math.log2(2.0**52 / largest / heaviest)))
    whole = np.rint(weights * 2.0**exponent)
    shift = constant * whole[-1] - centre @ whole[:-1]
    # One column at a time: BLAS has no fast path for two.
    seen = np.column_stack([ready @ np.append(column, 0.0) for column in whole[:-1].T])
    scores = np.asarray((seen + shift) * 2.0**-exponent)
    if view.norm == Norm.L1:
        return scores, np.abs(ready[:, :-1] - centre).sum(axis=1) + abs(constant)
    square = ready @ np.append(-2 * centre, 1.0) + (centre @ centre + constant * constant)
    return scores, np.sqrt(square)


def _checked(size: Reals) -> Reals:
    if not np.isfinite(size).all():
        raise InputError("a value is NaN or infinite: treat missing values in the schema.")
    return size
