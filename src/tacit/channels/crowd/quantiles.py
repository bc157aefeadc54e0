"""Where to cut a number into bins of about equally many people, without seeing anybody's number.

Algorithm 1 of AnonML, a noisy binary search for the median, generalised to all the quantiles that
a number of bins needs. In each step other people are asked in which interval between the current
thresholds their number lies, and every search reads its own threshold's rank off the same answers.
Thresholds are made of noisy answers and public bounds alone, so finding them costs nothing beyond
those answers (quantiles.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError, UsageError

__all__ = ["QuantileSearch", "intervals", "steps_of_search"]

FINEST = 2.0**-20  # the narrowest bin, as a share of the bounds: narrower is no use to anybody
COARSE, FINE = 64.0, 256.0  # a search ends with this share of the bounds, by how many are asked

Bracket = tuple[float, float]


@dataclass(frozen=True, slots=True)
class QuantileSearch:
    """The state of the search in one feature. It never changes: `learn` gives the next one.

    low, high  public bounds of the feature
    bins       how many bins there will be, two or more
    whole      the feature has whole numbers only, and so have its edges
    brackets   for each quantile, rising: between which two numbers it is looked for
    """

    low: float
    high: float
    bins: int
    whole: bool
    brackets: tuple[Bracket, ...]

    @classmethod
    def start(cls, low: float, high: float, bins: int, whole: bool = False) -> QuantileSearch:
        if bins < 2 or not low < high or (whole and bins > high - low + 1):
            raise UsageError(
                f"{bins} bins do not fit between {low:g} and {high:g}: take two or more, and for "
                "whole numbers no more than there are."
            )
        return cls(low, high, bins, whole, ((low, high),) * (bins - 1))

    @property
    def targets(self) -> tuple[float, ...]:
        """The share of people to be found below each edge."""
        return tuple(j / self.bins for j in range(1, self.bins))

    @property
    def places(self) -> tuple[float, ...]:
        """Each search's threshold: the middle of its bracket. Searches that still share a bracket
        spread evenly over it, so that they learn from one another's answers."""
        sharing, taken, found = Counter(self.brackets), Counter[Bracket](), []
        for bracket in self.brackets:
            taken[bracket] += 1
            low, high = bracket
            found.append(low + (high - low) * taken[bracket] / (sharing[bracket] + 1))
        return tuple(found)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """What people are asked next: rising, one fewer than the bins."""
        return tuple(sorted(self.places))

    def interval(self, values: ArrayLike) -> NDArray[np.int64]:
        """The interval between thresholds that each value lies in; NaN, missing, is the last."""
        return intervals(self.thresholds, values)

    def learn(self, counts: ArrayLike, reports: int, variance: float) -> QuantileSearch:
        """The search after one more step.

        counts    estimated numbers of people in the intervals; one for missing values may follow
        reports   how many people answered
        variance  of one of the estimated counts, of the randomiser alone
        """
        inside = np.asarray(counts, dtype=np.float64)[: self.bins]
        if len(inside) != self.bins or not np.isfinite(inside).all() or reports < 1:
            raise InputError(f"a step of the search needs {self.bins} counts of at least 1 report.")
        ranks, margins = _ranks(inside, reports, variance)
        judged = list(zip(self.thresholds, ranks, margins, strict=True))
        moved = [
            _narrowed(bracket, place, target, judged)
            for bracket, place, target in zip(self.brackets, self.places, self.targets, strict=True)
        ]
        return replace(self, brackets=tuple(moved))

    @property
    def edges(self) -> tuple[float, ...]:
        """The thresholds as edges of bins: rising, different, above low and not above high.

        A value that most people have pulls several edges towards itself. They are kept apart by the
        narrowest bin there may be (1 for whole numbers), and some bins stay nearly empty: how many
        cells a question has was agreed before anything was known about the numbers.
        """
        coarsest = math.ulp(max(abs(self.low), abs(self.high)))
        gap = 1.0 if self.whole else max((self.high - self.low) * FINEST, coarsest)
        wanted = [math.ceil(t) if self.whole else t for t in self.thresholds]
        rising = accumulate(wanted, lambda below, t: max(below + gap, t), initial=self.low)
        last = self.bins - 2
        return tuple(
            float(min(edge, self.high - (last - j) * gap))
            for j, edge in enumerate(list(rising)[1:])
        )


def steps_of_search(bins: int, epsilon: float, people: int, distinct: float = math.inf) -> int:
    """Into how many steps to divide the people who are asked for one feature's quantiles.

    Each step narrows the brackets about `bins` times, and leaves fewer people for the others. If
    all of them together could estimate a share with variance v, it is looked for in about 1/v parts
    of the bounds: 64 at least; 256 at most, since more gain little and every step is a window of
    waiting; and for a feature of few `distinct` values one step more than tells them apart. The
    variance is that of the best randomisers for a rare value (Wang, Blocki, Li, Jha 2017).
    """
    e = math.exp(min(epsilon, 50.0))
    variance = min(e + bins - 2, 4 * e) / (e - 1) ** 2 / max(people, 1)
    parts = min(max(1 / variance, COARSE), FINE, distinct * bins)
    return max(1, round(math.log(parts) / math.log(bins)))


def intervals(cuts: Sequence[float], values: ArrayLike) -> NDArray[np.int64]:
    """How many cuts each value reaches; NaN, a missing value, comes after the last interval."""
    numbers = np.asarray(values, dtype=np.float64)
    places = np.searchsorted(np.asarray(cuts), numbers, side="right")
    return np.where(np.isnan(numbers), len(cuts) + 1, places).astype(np.int64)


def _ranks(
    inside: NDArray[np.float64], reports: int, variance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The share of people below each threshold, and its standard error.

    With A counted below and B above, the share is A/(A + B): both sides are noisy, and to first
    order its variance is ((1 − F)²·Var A + F²·Var B)/(A + B)². Who is asked was drawn by lot, which
    adds F(1 − F)/(A + B), so that many answers of little noise do not look more certain than they
    are.
    """
    total = max(float(inside.sum()), 1.0)
    below = np.cumsum(inside)[:-1] / total
    rising = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2
    ranks = np.clip(rising, 0.0, 1.0)
    cells = np.arange(1, len(inside))
    noise = ((1 - ranks) ** 2 * cells + ranks**2 * (len(inside) - cells)) * variance / total**2
    return ranks, np.sqrt(noise + ranks * (1 - ranks) / min(total, reports))


def _narrowed(
    bracket: Bracket,
    place: float,
    target: float,
    judged: Sequence[tuple[float, float, float]],
) -> Bracket:
    """Half of the bracket: the half that the answers speak for, or the middle if they do not.

    The margin-of-error rule of algorithm 1: a search moves only if the rank of its threshold
    differs from its target by more than the error to be expected.
    """
    low, high = bracket
    reach = min((high - low) / 4, place - low, high - place)
    below = [t for t, rank, margin in judged if rank + margin < target and low < t < high]
    above = [t for t, rank, margin in judged if rank - margin > target and low < t < high]
    if place not in below and place not in above:
        below.append(place - reach)
        above.append(place + reach)
    return max([low, *below]), min([high, *above])
