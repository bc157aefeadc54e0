"""Whether a classifier's probabilities are true: calibration slope and log loss, any classes.

The slope is that of a logistic regression of held-out labels on the model's scores, with one shift
for each class: 1 if probabilities mean what they say, below 1 if they are too sure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.cli.bench import Row

__all__ = [
    "Quality",
    "calibration_slope",
    "log_loss",
    "log_odds",
    "quality",
    "quality_rows",
    "slope_limits",
    "slope_row",
]

Reals = NDArray[np.float64]

STEPS, LONGEST, CLOSE = 60, 0.5, 1e-6  # of Newton's method
SMALLEST = 1e-3  # slope
TRUE = "a true slope"
LEAST_PROBABILITY = 1e-6  # of those that models state as such: their scores are logarithms


class Quality(NamedTuple):
    """Of one model on held-out records."""

    error: float
    slope: float
    loss: float


def quality(scores: Reals, y: NDArray[Any]) -> Quality:
    """Scores as models give them: a vector for two classes, otherwise a column for each."""
    both = _columns(scores)
    wrong = float(np.mean(both.argmax(axis=1) != y))
    return Quality(wrong, calibration_slope(both, y), log_loss(both, y))


def calibration_slope(scores: Reals, y: NDArray[Any]) -> float:
    """By Newton steps that are cut; at least SMALLEST, so that its logarithm can be judged."""
    scores = _columns(scores)
    truth = np.asarray(y)[:, None] == np.arange(scores.shape[1])
    line = np.zeros(scores.shape[1])  # the slope, then shifts of all classes but the first
    line[0] = 1.0
    for _ in range(STEPS):
        p = _probabilities(line[0] * scores + np.append(0.0, line[1:]))
        gradient, curvature = _newton(p, truth - p, scores)
        move = np.clip(np.linalg.solve(curvature, gradient), -LONGEST, LONGEST)
        line += move
        if np.abs(move).max() < CLOSE:
            break
    return max(SMALLEST, float(line[0]))


def log_loss(scores: Reals, y: NDArray[Any]) -> float:
    """The mean of −log of the probability given to the truth."""
    scores = _columns(scores)
    top = scores.max(axis=1)
    total = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return float(np.mean(total - scores[np.arange(len(scores)), np.asarray(y, dtype=int)]))


def log_odds(probabilities: Reals) -> Reals:
    """Scores of a model that only states probabilities of two classes: a column for each."""
    p = np.clip(probabilities[:, 1], LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return np.asarray(np.log(p / (1 - p)))


def slope_limits(size: float, features: int) -> tuple[float, float] | None:
    """What a slope is judged by, from n·ε and the number of features; None: not at all."""
    if size < max(5_000, 100 * features):
        return None
    return (0.9, 1.1) if size >= 20_000 else (0.8, 1.25)


def quality_rows(
    head: str,
    ours: Sequence[Quality],
    peer: tuple[str, float],
    limits: tuple[float, float] | None = None,
) -> Iterator[Row]:
    """Mean slope and log loss, to stand beside a row of the error. The peer has a name and a log
    loss; at most 0.01 more is allowed where the slope must be in [0.9, 1.1]."""
    name, theirs = peer
    yield slope_row(head, fmean(q.slope for q in ours), limits)
    judged = limits == (0.9, 1.1)
    note = "at most 0.01 more" if judged else "shown only"
    bar = (theirs + 0.01) / theirs if judged else 0.0
    loss = fmean(q.loss for q in ours)
    yield Row(f"{head}: log loss ({note})", loss, theirs, name, bar, at_most=judged)


def slope_row(head: str, slope: float, limits: tuple[float, float] | None) -> Row:
    """Within both limits, as one bar: by which factor it is away from 1. None: shown only."""
    if limits is None:
        return Row(f"{head}: calibration slope (shown only)", slope, 1.0, TRUE, 0.0)
    low, high = limits
    what = (
        f"{head}: calibration slope {slope:.3f} (in [{low:g}, {high:g}]), away from 1 by a factor"
    )
    limit = 1 / low if slope < 1 else high
    return Row(what, math.exp(abs(math.log(slope))), 1.0, TRUE, limit, at_most=True)


def _columns(scores: Reals) -> Reals:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 2 and scores.shape[1] > 1:
        return scores
    return np.column_stack([np.zeros(len(scores)), scores.reshape(-1)])


def _probabilities(scores: Reals) -> Reals:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _newton(p: Reals, left: Reals, scores: Reals) -> tuple[Reals, Reals]:
    """Gradient and curvature of the likelihood by the slope and the shifts."""
    mean = (p * scores).sum(axis=1, keepdims=True)
    apart = p * (scores - mean)
    gradient = np.append((left * scores).sum(), left.sum(axis=0)[1:])
    shifts = np.diag(p.sum(axis=0)) - p.T @ p
    curvature = np.zeros((p.shape[1], p.shape[1]))
    curvature[0, 0] = (apart * scores).sum()
    curvature[0, 1:] = curvature[1:, 0] = apart.sum(axis=0)[1:]
    curvature[1:, 1:] = shifts[1:, 1:]
    return gradient, curvature + 1e-9 * np.eye(len(curvature))
