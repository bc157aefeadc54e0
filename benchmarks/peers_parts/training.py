"""Many peers' logistic regressions at once: the objective and minimum of `LogisticOutput.train`.

Fifty peers' small problems take one call to the linear algebra, not fifty, and nothing is clipped
here: as published, records lie in a box and not in the ball.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Reals = NDArray[np.float64]
TOLERANCE = 1e-9
STEPS = 100


def trained(X: Reals, y: NDArray[np.int64], penalty: float) -> Reals:
    """One row of weights for each peer; X holds peers × records × features, y peers × records."""
    signed = X * np.where(y > 0, 1.0, -1.0)[:, :, None]
    weights = np.zeros((len(X), X.shape[2]))
    value, slope, missed = _objective(signed, weights, penalty)
    for _ in range(STEPS):
        if np.linalg.norm(slope, axis=1).max() <= TOLERANCE:
            return weights
        move = _newton(signed, slope, missed, penalty)
        length = np.ones(len(X))
        gain = (slope * move).sum(axis=1)
        while True:  # each peer's step is halved by itself until it descends (Armijo)
            found = _objective(signed, weights + length[:, None] * move, penalty)
            far = found[0] > value + 1e-4 * length * gain + 1e-15
            if not far.any() or length.min() < 1e-6:
                break
            length[far] /= 2
        weights = weights + length[:, None] * move
        value, slope, missed = found
    raise AssertionError("the solver did not reach its tolerance")


def _objective(signed: Reals, weights: Reals, penalty: float) -> tuple[Reals, Reals, Reals]:
    """Value and gradient for each peer, and by how much each record is missed."""
    margins = np.matmul(signed, weights[:, :, None])[:, :, 0]
    missed = np.asarray(expit(-margins))
    value = np.logaddexp(0.0, -margins).mean(axis=1) + penalty / 2 * (weights**2).sum(axis=1)
    slope = -np.matmul(missed[:, None, :], signed)[:, 0, :] / signed.shape[1]
    return value, slope + penalty * weights, missed


def _newton(signed: Reals, slope: Reals, missed: Reals, penalty: float) -> Reals:
    weighted = signed * (missed * (1 - missed))[:, :, None]
    curvature = np.matmul(signed.transpose(0, 2, 1), weighted) / signed.shape[1]
    curvature += penalty * np.eye(signed.shape[2])
    return np.asarray(np.linalg.solve(curvature, -slope[:, :, None])[:, :, 0])
