"""The last stages of private logistic regression: scores that mean what they say (logistic.md).

Clipped gradients find the right direction and the wrong length: a clip cuts the residuals of
surprising records, so weights grow too large; noise on the weights spreads scores further. Both
are put right by few numbers, whatever the width: one slope for all scores, and one shift for each
class. They are found by Newton steps on sums over records that are short, so noise hardly hurts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.contributions import Rows
from tacit.programs.features import FEATURE_STEP, exact_product
from tacit.programs.logistic_gradient import probabilities

__all__ = [
    "LARGEST_SCORE",
    "SMALLEST",
    "Line",
    "advanced",
    "curvatures",
    "deviations",
    "is_calibrated",
    "length",
    "remaining",
    "settled",
    "started",
    "statistics",
    "weights_of",
]

Reals = NDArray[np.float64]

LARGEST_SCORE = 64.0  # of the histogram of scores: beyond it nothing is uncertain
START = 2.0  # a typical score to begin with: from there Newton steps do not overshoot
FAR = 3.0  # scores so far out are nearly certain: they are cut to this as factors of residuals
WIDE = 2.0  # … and to so many typical scores
SHIFT = 0.5  # the constant factor beside the scores'
MOST, LEAST = 1.0, -0.6  # by which part of itself the slope may change in a round
SMALLEST = 0.02  # slope
EXPECTED, DEVIATION = 0.8, 1.0  # of the slope, before anything is known; the latter of its log
# What one record's statistics can amount to at most, about; what is more the framework cuts.
LONGEST = {(Norm.L2, False): 1.15, (Norm.L1, False): 1.6, (Norm.L2, True): 2.2, (Norm.L1, True): 4}
# When probabilities can be relied on: slopes within [0.8, 1.25] were measured from n·ε = 5,000 and
# 100 for each feature on. A fifth less: counts are noisy, and ranges may have cost a share of ε.
ENOUGH_RECORDS, ENOUGH_PER_FEATURE, LARGEST_ERROR = 4000.0, 80.0, 0.25


@dataclass(frozen=True, slots=True)
class Line:
    """Of a record whose scores deviate by t from those at the centre, which are `at`:
    slope · (t + pivot) + at − pivot + shift.

    typical   the median of the largest |t| of a record
    """

    slope: float
    shift: Reals
    at: Reals
    typical: float

    @property
    def offset(self) -> Reals:
        """The scores at the centre."""
        return np.asarray(self.slope * self.pivot + self.at - self.pivot + self.shift)

    @property
    def pivot(self) -> Reals:
        """Where both classes are among the records it is `at`: if the slope changes alone, no
        record changes its class. Else as near to that as there are typical records."""
        return np.asarray(np.clip(self.at, -self.typical, self.typical))

    @property
    def reach(self) -> float:
        """Where deviations are cut when they are factors of residuals."""
        far = FAR + float(np.abs(self.offset).max())
        return min(WIDE * self.typical, far / self.slope)


def started(at: Reals, typical: float) -> Line:
    """All scores shortened alike, so that typical ones are START: no record changes its class.

    Where one class is rare, shortening around the pivot would leave it without any probability,
    from where the steps turn to a steeper slope first and do not come back in time."""
    slope = min(1.0, START / typical)
    line = Line(slope, np.zeros_like(at), at, typical)
    return replace(line, shift=slope * at - line.offset)


def length(outputs: int) -> int:
    """Of what a record contributes: see `statistics`."""
    return 2 + 3 * outputs


def weights_of(weights: Reals) -> Reals:
    """What all classes have in common makes no difference to a softmax: it is taken out."""
    if weights.shape[1] == 1:
        return weights
    return np.asarray(weights - weights.mean(axis=1, keepdims=True))


def deviations(ready: Reals, centre: Reals, matrix: Reals) -> Reals:
    """(x − centre) · matrix of quantised records: one column for each output, exact sums."""
    seen = exact_product(ready[:, :-1], matrix * FEATURE_STEP, 1 / FEATURE_STEP)
    return np.asarray(seen - centre @ matrix)


def statistics(deviation: Reals, y: NDArray[np.int64], line: Line, norm: Norm, limit: int) -> Rows:
    """Gradient and curvature of the likelihood by slope and shifts, of each record, in units in
    which `limit` is the block's bound.

    With factors s (deviations in units of `reach`, cut to [−1, 1]), residuals r, probabilities p:
    Σ r s, r/2 for each output, the variance of s under p, its covariance with each output, and
    half the variance of each output.
    """
    p = probabilities(line.slope * deviation + line.offset)
    single = deviation.shape[1] == 1
    truth = (y == 1)[:, None] if single else y[:, None] == np.arange(deviation.shape[1])
    s = np.clip(deviation / line.reach, -1.0, 1.0)
    r = truth - p
    mean = p * s if single else _summed(p * s)[:, None]
    # For two classes the other one's score is 0: the covariance is p (1 − p) s.
    covariance = p * (1 - p) * s if single else p * (s - mean)
    variance = covariance[:, 0] * s[:, 0] if single else _summed(covariance * s)
    parts = [_summed(r * s)[:, None], SHIFT * r, variance[:, None], covariance, SHIFT * p * (1 - p)]
    return Rows(np.concatenate(parts, axis=1) * (limit / LONGEST[norm, not single]))


def advanced(
    total: Reals, line: Line, noise: float, norm: Norm, parameters: float
) -> tuple[Line, float]:
    """One Newton step from the noisy sum of `statistics`, and the standard deviation of the slope
    that it leaves, relative to the slope. `noise`: on a sum with bound 1.

    Weights that were learned from these records follow their labels more closely than those of
    others: Σ r t is larger by about one for each parameter (Copas 1983), which is taken off.
    """
    outputs = len(line.shift)
    unit = LONGEST[norm, outputs > 1]
    g, curvature = _system(total * unit, outputs)
    g[0] -= parameters * line.slope / line.reach
    sizes, axes = np.linalg.eigh(curvature)
    # No step is longer than noise can tell; where it can tell nothing, the doubt is large.
    move = (axes / np.maximum(sizes, noise * unit)) @ axes.T @ g
    inverse = (axes / np.maximum(sizes, noise * unit / 4)) @ axes.T
    turn = move[0] / line.reach
    slope = line.slope + float(np.clip(turn, LEAST * line.slope, MOST * line.slope))
    shift = line.shift + np.clip(move[1:] - turn * line.pivot, -1.0, 1.0)
    spread = noise * unit * np.linalg.norm(inverse[0] * ([1.0] + [1 / SHIFT] * outputs))
    known = Line(max(SMALLEST, slope), shift, line.at, line.typical)
    return known, float(spread) / (line.reach * max(0.2, known.slope))


def remaining(mean: Reals, line: Line, noise: float, norm: Norm, parameters: float) -> float:
    """By which part of itself the slope may still be wrong, from the mean sum of all rounds that
    were averaged: how far it would move on, and the standard deviation of that by noise.

    Curvature below the noise is not believed: what a single round seems to know may be noise. Where
    classes can be told apart for sure, no slope is steep enough, and the first part says so.
    """
    outputs = len(line.shift)
    unit = LONGEST[norm, outputs > 1]
    g, curvature = _system(mean * unit, outputs)
    g[0] -= parameters * line.slope / line.reach
    sizes, axes = np.linalg.eigh(curvature)
    inverse = (axes / np.maximum(sizes - noise * unit, noise * unit / 4)) @ axes.T
    spread = noise * unit * np.linalg.norm(inverse[0] * ([1.0] + [1 / SHIFT] * outputs))
    return math.hypot(float(inverse[0] @ g), float(spread)) / (line.reach * line.slope)


def curvatures(total: Reals, norm: Norm) -> Reals:
    """Σ p (1 − p) of each output, from the noisy sum of `statistics`."""
    outputs = (len(total) - 2) // 3
    return np.asarray(total[-outputs:] * LONGEST[norm, outputs > 1] / SHIFT)


def settled(slope: float, doubt: float) -> float:
    """Towards what is usual, by as much as noise leaves in doubt."""
    kept = 1 / (1 + (doubt / DEVIATION) ** 2)
    return math.exp(kept * math.log(max(SMALLEST, slope)) + (1 - kept) * math.log(EXPECTED))


def is_calibrated(count: float, epsilon: float, features: int, wrong: float) -> bool:
    """Whether probabilities can be relied on: of public and noisy numbers alone. `wrong`: what
    `remaining` says."""
    needed = max(ENOUGH_RECORDS, ENOUGH_PER_FEATURE * features)
    return count * epsilon >= needed and wrong <= LARGEST_ERROR


def _system(total: Reals, outputs: int) -> tuple[Reals, Reals]:
    """Gradient and curvature, slope first. The outputs' own curvature is that of equally frequent
    classes: its diagonal is right, and what they take from each other is spread evenly."""
    ends = np.cumsum([1, outputs, 1, outputs])
    first, residual, variance, covariance, own = np.split(total, ends)
    curvature = np.zeros((1 + outputs, 1 + outputs))
    curvature[0, 0] = variance[0]
    curvature[0, 1:] = curvature[1:, 0] = covariance
    even = outputs / (outputs - 1) if outputs > 1 else 1.0
    curvature[1:, 1:] = np.diag(own / SHIFT * even)
    return np.concatenate([first, residual / SHIFT]), curvature


def _summed(values: Reals) -> Reals:
    """Over outputs, one after another: the same for every record, whatever its batch."""
    total = np.zeros(len(values))
    for column in values.T:
        total += column
    return total
