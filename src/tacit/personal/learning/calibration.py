"""Chances that mean what they say: of all days given 70 %, it should be true on 70 %.

Corrections are learned from answers to rows that the model had not seen, in the order of time, and
used only where they helped on rows later still.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tacit.personal.learning.scores import losses

__all__ = [
    "AS_IT_IS",
    "Calibration",
    "Curve",
    "Point",
    "choose_calibration",
    "fit_calibration",
    "reliability",
]

Reals = NDArray[np.float64]
Answers = tuple[Reals, Reals]  # the truth as places of classes, the chances (rows × classes)
Method = Literal["none", "sigmoid", "isotonic"]

# Isotonic regression is better from about a thousand examples on and overfits below; a sigmoid
# needs few (Niculescu-Mizil and Caruana, "Predicting good probabilities with supervised learning",
# ICML 2005, figure 7).
LEAST_ROWS: dict[Method, int] = {"sigmoid": 50, "isotonic": 1000}
LEAST_OF_A_CLASS = 10
EDGE = 1e-6
MOST_POINTS = 10
ROWS_A_POINT = 10


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one class. sigmoid: xs = (slope,), ys = (height,) of the log-odds; isotonic: corners."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A correction of chances. With two classes, the one curve is that of the second."""

    method: Method
    curves: tuple[Curve, ...] = ()

    def of(self, chances: Reals) -> Reals:
        """The chances corrected, summing to one."""
        if self.method == "none":
            return chances
        if chances.shape[1] == 2:
            second = _corrected(self.method, self.curves[0], chances[:, 1])
            return np.column_stack([1 - second, second])
        columns = [
            _corrected(self.method, curve, chances[:, place])
            for place, curve in enumerate(self.curves)
        ]
        found = np.column_stack(columns) + EDGE
        summed: Reals = found / found.sum(axis=1, keepdims=True)
        return summed


AS_IT_IS = Calibration("none")


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows that were given about one chance: what was said, what was true, between which bounds."""

    said: float
    true: float
    low: float
    high: float
    rows: int


def choose_calibration(folds: Sequence[Answers]) -> Calibration:
    """The method that helped when learned from earlier folds and used on later ones, and that
    correction learned from all of them."""
    best: Method = "none"
    gain = 0.0
    for method in LEAST_ROWS:
        differences = _later_gains(method, folds)
        if len(differences) < 2:
            continue
        mean, error = differences.mean(), differences.std(ddof=1) / np.sqrt(len(differences))
        if mean > max(error, gain):  # by more than chance: otherwise the simplest
            best, gain = method, float(mean)
    return fit_calibration(best, _joined(folds))


def fit_calibration(method: Method, answers: Answers) -> Calibration:
    """A correction learned from answers; none where there are too few of them."""
    truth, chances = answers
    if method == "none" or not _enough(method, answers):
        return AS_IT_IS
    places = [1] if chances.shape[1] == 2 else range(chances.shape[1])
    fit = _sigmoid if method == "sigmoid" else _isotonic
    return Calibration(method, tuple(fit(truth == place, chances[:, place]) for place in places))


def reliability(is_true: NDArray[np.bool_], said: Reals) -> tuple[Point, ...]:
    """What was true of rows of about the same chance, in groups of about equal size."""
    if not len(said):
        return ()
    order = np.argsort(said, kind="stable")
    many = max(1, min(MOST_POINTS, len(said) // ROWS_A_POINT))
    starts = np.arange(1, many) * len(said) // many
    ties = np.searchsorted(said[order], said[order][starts])  # equal chances are one group
    groups = [group for group in np.split(order, np.unique(ties)) if len(group)]
    return tuple(_point(is_true[group], said[group]) for group in groups)


def _later_gains(method: Method, folds: Sequence[Answers]) -> Reals:
    """Row by row, what the correction saves on each fold when learned from those before."""
    gains = []
    for place in range(1, len(folds)):
        earlier, (truth, chances) = _joined(folds[:place]), folds[place]
        if _enough(method, earlier):
            corrected = fit_calibration(method, earlier).of(chances)
            gains.append(losses("category", truth, chances) - losses("category", truth, corrected))
    return np.concatenate(gains) if gains else np.empty(0)


def _joined(folds: Sequence[Answers]) -> Answers:
    return np.concatenate([t for t, _ in folds]), np.concatenate([c for _, c in folds])


def _enough(method: Method, answers: Answers) -> bool:
    truth, chances = answers
    rarest = min(np.bincount(truth.astype(np.int64), minlength=chances.shape[1]))
    return len(truth) >= LEAST_ROWS[method] and int(rarest) >= LEAST_OF_A_CLASS


def _corrected(method: Method, curve: Curve, chances: Reals) -> Reals:
    if method == "isotonic":
        return np.clip(np.interp(chances, curve.xs, curve.ys), EDGE, 1 - EDGE)
    from scipy.special import expit

    return np.asarray(expit(curve.xs[0] * _log_odds(chances) + curve.ys[0]))


def _sigmoid(is_true: NDArray[np.bool_], chances: Reals) -> Curve:
    """Platt's (Advances in Large Margin Classifiers, 1999), on log-odds: the identity is in it."""
    from sklearn.linear_model import LogisticRegression

    odds = _log_odds(chances)
    scale = float(odds.std()) or 1.0  # so that the small penalty means the same everywhere
    found = LogisticRegression(C=10.0, max_iter=1000).fit(odds[:, None] / scale, is_true)
    return Curve((float(found.coef_[0, 0]) / scale,), (float(found.intercept_[0]),))


def _isotonic(is_true: NDArray[np.bool_], chances: Reals) -> Curve:
    from sklearn.isotonic import IsotonicRegression

    found = IsotonicRegression(out_of_bounds="clip").fit(chances, is_true.astype(np.float64))
    return Curve(tuple(found.X_thresholds_.tolist()), tuple(found.y_thresholds_.tolist()))


def _log_odds(chances: Reals) -> Reals:
    inner = np.clip(chances, EDGE, 1 - EDGE)
    return np.asarray(np.log(inner / (1 - inner)))


def _point(is_true: NDArray[np.bool_], said: Reals) -> Point:
    """With Wilson's interval for the share (Journal of the American Statistical Association 22,
    1927), which stays within 0 and 1 and is right for few rows."""
    rows, share, z = len(said), float(is_true.mean()), 1.959964
    middle = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    reach = z / (1 + z * z / rows) * np.sqrt(share * (1 - share) / rows + (z / (2 * rows)) ** 2)
    low, high = min(share, middle - reach), max(share, middle + reach)
    return Point(float(said.mean()), share, max(0.0, float(low)), min(1.0, float(high)), rows)
