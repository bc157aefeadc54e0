"""How far noise moves the parts of a logistic regression: from what was released anyway.

The noise of every gradient is known. What is left of it in the averaged weights depends on how
strongly the data pull back, the curvature of the loss along each direction: within one column, its
covariance times p(1 − p). The noisy mean of curves tells the covariance of curves, since
T_j T_k = (T_{j+k} + T_{|j−k|}) / 2; that of bins and categories tells theirs, diag(m) − m mᵀ. So
this costs nothing, and it is right within a factor, not to the digit (logistic.md, *bands*).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.encodings import DEGREES, Encoding
from tacit.programs.logistic_calibration import curvatures
from tacit.programs.logistic_model import LogisticModel, Noise
from tacit.programs.logistic_state import Learning
from tacit.programs.logistic_steps import settled_line

__all__ = ["band", "noise_left"]

Reals = NDArray[np.float64]

LEAST = 0.01  # of a mean p(1 − p), of which only noise may have been seen


def noise_left(state: Learning) -> Noise | None:
    """What a model keeps for its bands; None where they are not known: of records as they are,
    whose models are as they were, and in windows, which average otherwise."""
    if state.features is None or state.windows:
        return None
    clip = min(1.0, state.bound / (state.reach * state.scale))
    # Residuals r that are cut pull with one strength, wherever the weights are. With p spread
    # evenly, so much of the curvature is left: 12 ∫₀^clip r (1 − r)² dr.
    slope = settled_line(state).slope
    kept = 12 * (clip**2 / 2 - 2 * clip**3 / 3 + clip**4 / 4)
    # What is seen is of calibrated scores; those of the descent were larger by 1 / slope, so that
    # about so much fewer records were uncertain.
    kept *= min(1.0, slope)
    seen = np.clip(curvatures(state.seen, Norm(state.norm)) / state.count, LEAST, 0.25)
    gradient = state.noise_of("gradient") * state.bound / (state.count * state.scale)
    return (
        gradient * slope / state.scale,
        state.step,
        state.schedule.momentum,
        float(state.schedule.rounds),
        min(state.doubt, 1.0),
        *(kept * seen / state.scale**2).tolist(),
    )


def band(model: LogisticModel, place: slice, looks: Reals) -> Reals | None:
    """The standard deviation of noise in (a row of `looks`) · (the coefficients at this place), for
    each class with scores of its own; None where it is not known."""
    encoding = model.encoding
    if encoding is None or model.noise is None or model.centre is None:
        return None
    gradient, step, momentum, rounds, doubt, *curvature = model.noise
    sizes, axes = np.linalg.eigh(_covariance(encoding, place, np.array(model.centre[place])))
    pulls = np.concatenate([[0.0], np.geomspace(1e-5, 1.9, 60)]) / step
    left = [gradient**2 * _left(float(h) * step, step, momentum, int(rounds)) for h in pulls]
    of_slope = doubt * looks @ model.coef[:, place].T
    found = np.empty((len(looks), len(model.coef)))
    for output, strength in enumerate(curvature):
        variances = np.interp(strength * np.maximum(sizes, 0.0), pulls, left)
        found[:, output] = (looks @ axes) ** 2 @ variances
    return np.asarray(np.sqrt(found + of_slope**2))


def _left(pull: float, step: float, momentum: float, rounds: int) -> float:
    """The variance of the mean of the second half of weights, of which each gradient has noise of
    variance 1, where curvature times step is `pull`."""
    moved, velocity, at = np.zeros(rounds + 1), 0.0, 0.0
    for turn in range(rounds):  # what noise of one round does to the weights after it
        velocity = momentum * velocity + (1.0 if turn == 0 else 0.0) + pull / step * at
        at -= step * velocity
        moved[turn + 1] = moved[turn] + at
    half, turns = rounds // 2, np.arange(rounds)
    shares = (moved[rounds - turns] - moved[np.maximum(half - turns, 0)]) / (rounds - half)
    return float(shares @ shares)


def _covariance(encoding: Encoding, place: slice, mean: Reals) -> Reals:
    if encoding.kind == "bins" or place.start < len(encoding.others):
        return np.diag(mean) - np.outer(mean, mean)
    weights, degrees = np.array(DEGREES), np.arange(1, len(DEGREES) + 1)
    # Of degrees beyond those that were measured nothing is known: 0, as where values are spread.
    means = np.concatenate([[1.0], mean / weights, np.zeros(len(DEGREES))])
    products = (means[degrees[:, None] + degrees] + means[abs(degrees[:, None] - degrees)]) / 2
    inner = products - np.outer(means[degrees], means[degrees])
    return np.asarray(inner * np.outer(weights, weights))
