"""Plain counting, for when there is too little for a model, or a model is no better.

The interval of a share is Wilson's (Journal of the American Statistical Association 22, 1927): it
stays between 0 and 1 and is honest for few cases, where the usual one is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.personal.problems.problem import Asked

__all__ = ["Counted", "counted", "wilson"]

_Z = 1.959963984540054  # 95 %
_MIDDLE = (0.1, 0.9)  # eight of ten numbers lie between


@dataclass(frozen=True)
class Counted:
    """What past answers were.

    value      the share of yes, the median number, or the most frequent value
    low, high  of a share, where it may truly lie (95 %); of numbers, between which 80 % were
    shares     of the five most frequent values of a category
    """

    value: float | str | None
    low: float | None
    high: float | None
    rows: int
    shares: tuple[tuple[str, float], ...] = ()


def counted(task: Asked, labels: NDArray[np.float64], classes: tuple[str, ...]) -> Counted:
    """Of the answers that are known."""
    known = labels[~np.isnan(labels)]
    if not len(known):
        return Counted(None, None, None, 0)
    if task == "boolean":
        yes = int((known > 0).sum())
        low, high = wilson(yes, len(known))
        return Counted(yes / len(known), low, high, len(known))
    if task == "number":
        low, middle, high = np.quantile(known, [_MIDDLE[0], 0.5, _MIDDLE[1]]).tolist()
        return Counted(middle, low, high, len(known))
    counts = np.bincount(known.astype(np.int64), minlength=len(classes))
    order = np.argsort(-counts, kind="stable")[:5]
    shares = tuple((classes[i], float(counts[i]) / len(known)) for i in order if counts[i])
    low, high = wilson(int(counts[order[0]]), len(known))
    return Counted(shares[0][0], low, high, len(known), shares)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Between which bounds a share truly lies, in 95 of 100 cases."""
    share, square = hits / of, _Z**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    reach = _Z * math.sqrt(share * (1 - share) / of + square / (4 * of**2)) / (1 + square / of)
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))
