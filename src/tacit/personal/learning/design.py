"""From a matrix of features to the numbers that models take.

What is learned here (middles, spreads, which categories there are) is learned from training rows
alone. Rows that come later are read by the names of their features and categories, since their own
matrix may list both in another order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.personal.matrix import FeatureMatrix

__all__ = ["UNSEEN", "Design", "aligned"]

Reals = NDArray[np.float64]

UNSEEN = -1.0  # the code of a category that training did not have; missing is NaN
MOST_VALUES = 30  # of a category get a column of their own, the most frequent ones
TOO_LARGE = 1e30  # trees count in single precision; such a number is none
FARTHEST = 8.0  # standard deviations: one absurd value must not decide a linear model


def aligned(matrix: FeatureMatrix, like: FeatureMatrix) -> Reals:
    """The columns of `like` out of another matrix, categories in the codes of `like`."""
    missing = [name for name in like.names if name not in matrix.names]
    if missing:
        raise InputError(
            f"the model needs the feature {missing[0]}, which these rows do not have. Make them "
            "with the problem it was trained for."
        )
    columns = matrix.columns[:, [matrix.names.index(name) for name in like.names]].copy()
    columns[~(np.abs(columns) < TOO_LARGE)] = np.nan
    for place, (name, kind) in enumerate(zip(like.names, like.kinds, strict=True)):
        if kind == "category":
            there, known = (matrix.values or {}).get(name, ()), (like.values or {}).get(name, ())
            columns[:, place] = _recoded(columns[:, place], there, known)
    return columns


def _recoded(codes: Reals, there: tuple[str, ...], known: tuple[str, ...]) -> Reals:
    places = {value: float(place) for place, value in enumerate(known)}
    table = np.array([places.get(value, UNSEEN) for value in there] + [np.nan])
    filled = np.where(np.isnan(codes), len(there), codes).astype(np.int64)
    filled[(filled < 0) | (filled > len(there))] = len(there)
    result: Reals = table[filled]
    return result


@dataclass(frozen=True)
class Design:
    """What training rows have taught about columns.

    is_category  which columns hold codes
    middle       the median: what a missing number is taken for
    centre       the mean, and `spread` the standard deviation, of numbers so filled
    with_gaps    numbers that were missing somewhere: that they are is a column of its own
    values       of each category the codes with a column of their own; NaN among them if missing
    """

    is_category: tuple[bool, ...]
    middle: Reals
    centre: Reals
    spread: Reals
    with_gaps: tuple[int, ...]
    values: dict[int, tuple[float, ...]]

    @classmethod
    def learned(cls, columns: Reals, is_category: tuple[bool, ...]) -> Design:
        numbers = [place for place, coded in enumerate(is_category) if not coded]
        part = columns[:, numbers]
        gaps = np.isnan(part)
        middle = np.array([np.median(c[~g]) if not g.all() else 0.0 for c, g in _each(part, gaps)])
        filled = np.where(gaps, middle, part)
        spread = filled.std(axis=0)
        values = {
            place: _frequent(columns[:, place]) for place, coded in enumerate(is_category) if coded
        }
        return cls(
            is_category,
            middle,
            filled.mean(axis=0),
            np.where(spread > 0, spread, 1.0),
            tuple(np.flatnonzero(gaps.any(axis=0)).tolist()),
            values,
        )

    def dense(self, columns: Reals) -> Reals:
        """For linear models and distances: everything filled, centred, of spread one."""
        part = self._numbers(columns)
        gaps = np.isnan(part)
        scaled = (np.where(gaps, self.middle, part) - self.centre) / self.spread
        return np.hstack(
            [
                np.clip(scaled, -FARTHEST, FARTHEST),
                gaps[:, list(self.with_gaps)].astype(np.float64),
                self._indicators(columns),
            ]
        )

    def gappy(self, columns: Reals) -> Reals:
        """For trees, which know what to do where a number is missing."""
        return np.hstack([self._numbers(columns), self._indicators(columns)])

    def _numbers(self, columns: Reals) -> Reals:
        return columns[:, [not coded for coded in self.is_category]]

    def _indicators(self, columns: Reals) -> Reals:
        """A column for each value of each category; none of them is 1 for a value unseen."""
        found = [
            np.isnan(columns[:, place]) if np.isnan(value) else columns[:, place] == value
            for place, values in self.values.items()
            for value in values
        ]
        return np.column_stack(found).astype(np.float64) if found else np.empty((len(columns), 0))


def _each(part: Reals, gaps: NDArray[np.bool_]) -> list[tuple[Reals, NDArray[np.bool_]]]:
    return [(part[:, place], gaps[:, place]) for place in range(part.shape[1])]


def _frequent(codes: Reals) -> tuple[float, ...]:
    values, counts = np.unique(codes, return_counts=True)  # NaN is one value, the last
    return tuple(values[np.argsort(-counts, kind="stable")][:MOST_VALUES].tolist())
