"""Privacy losses without theory: laws of discrete mechanisms, outcome by outcome.

Nothing of tacit is imported. A law is a vector of probabilities on consecutive integers; a pair of
laws, one for each of two neighbouring inputs, becomes atoms (loss, probability); independent pairs
are multiplied out; and δ(ε) = Σ P·max(0, 1 − e^(ε − loss)) is summed over all outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

__all__ = [
    "Atoms",
    "atoms",
    "delta",
    "discrete_gaussian",
    "discrete_laplace",
    "epsilon",
    "first_above",
    "in_parts",
    "joint",
    "largest_loss",
    "sampled",
    "shifted_pair",
    "shuffled_answers",
]


# ── laws ──


def discrete_laplace(scale: float, reach: int) -> Reals:
    """P(k) ∝ e^(−|k|/scale) on −reach … reach."""
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    ratio = math.exp(-1 / scale)
    return weights * (1 - ratio) / (1 + ratio)


def discrete_gaussian(sigma: float, reach: int) -> Reals:
    """P(k) ∝ e^(−k²/2σ²) on −reach … reach, which must hold all that counts."""
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def in_parts(kind: str, scale: float, parts: int, reach: int) -> Reals:
    """The law of a sum of `parts` draws that together are to have `scale`: convolved.

    Laplace's part is a difference of two negative binomials of 1/parts successes. Single parts are
    computed further out than their sum is needed, so that nothing of it is missing.
    """
    far = reach if kind == "gaussian" else 4 * reach
    if kind == "gaussian":
        one = discrete_gaussian(scale / math.sqrt(parts), far)
    else:
        ratio, order = math.exp(-1 / scale), 1 / parts
        terms = [1.0]
        for k in range(1, 2 * far + 1):
            terms.append(terms[-1] * (order + k - 1) / k * ratio)
        half = np.array(terms) * (1 - ratio) ** order
        one = _middle(np.convolve(half, half[::-1]), far)
    return _middle(reduce(lambda law, _: np.convolve(law, one), range(parts - 1), one), reach)


def _middle(law: Reals, reach: int) -> Reals:
    middle = len(law) // 2
    return law[middle - reach : middle + reach + 1]


def shifted_pair(law: Reals, shift: int) -> tuple[Reals, Reals]:
    """The law of 0 + noise and of shift + noise, on the same integers."""
    pad = np.zeros(abs(shift))
    ahead, behind = np.concatenate([law, pad]), np.concatenate([pad, law])
    return (ahead, behind) if shift >= 0 else (behind, ahead)


def first_above(
    values: Sequence[float], threshold: float, threshold_scale: float, query_scale: float
) -> Reals:
    """Which of the values is the first above the threshold, each under Laplace noise, or none.

    The threshold's noise is integrated numerically.
    """
    width = 60 * threshold_scale
    noise = np.linspace(-width, width, 400_001)
    weights = np.exp(-np.abs(noise) / threshold_scale)
    weights /= weights.sum()

    def above(value: float) -> Reals:
        gap = (threshold + noise - value) / query_scale
        half = 0.5 * np.exp(-np.abs(gap))
        return np.where(gap > 0, half, 1 - half)

    found, none_so_far = [], np.ones_like(noise)
    for value in values:
        chance = above(value)
        found.append(float(weights @ (none_so_far * chance)))
        none_so_far = none_so_far * (1 - chance)
    return np.array([*found, float(weights @ none_so_far)])


def shuffled_answers(laws: Sequence[Reals], others: Sequence[int], own: int) -> Reals:
    """How many reports a shuffler shows that are likelier with value 0 than with value 1, and how
    many that are less likely. laws: of a report, by value; others: how many have each value."""
    kinds = laws[0] > laws[1], laws[0] < laws[1]
    law = np.zeros((sum(others) + 2, sum(others) + 2))
    law[0, 0] = 1.0
    for value in [own, *np.repeat(np.arange(len(others)), others)]:
        more, less = (float(laws[value][kind].sum()) for kind in kinds)
        following = (1 - more - less) * law
        following[1:, :] += more * law[:-1, :]
        following[:, 1:] += less * law[:, :-1]
        law = following
    return np.maximum(law, 0).ravel()


# ── losses ──


@dataclass(frozen=True)
class Atoms:
    """Every outcome's privacy loss ln(P/Q) and probability P; `sure` has P where Q is 0."""

    loss: Reals
    mass: Reals
    sure: float = 0.0


def atoms(first: Reals, second: Reals) -> Atoms:
    """Of one pair of laws, seen from the first."""
    both = (first > 0) & (second > 0)
    loss = np.log(first[both]) - np.log(second[both])
    return Atoms(loss, first[both], float(first[(first > 0) & (second <= 0)].sum()))


def joint(pairs: Sequence[tuple[Reals, Reals]]) -> tuple[Reals, Reals]:
    """Independent outputs side by side: all combinations, as one pair of laws."""
    first = reduce(lambda a, b: np.outer(a, b).ravel(), [p for p, _ in pairs])
    second = reduce(lambda a, b: np.outer(a, b).ravel(), [q for _, q in pairs])
    return first, second


def sampled(pair: tuple[Reals, Reals], rate: float) -> tuple[Reals, Reals]:
    """The unit of the second law is there with this probability only, in all outputs or in none."""
    without, present = pair
    return without, (1 - rate) * without + rate * present


def delta(runs: Sequence[Atoms], epsilon: float) -> float:
    """δ(ε) of one or two independent runs: over all (pairs of) outcomes, exactly."""
    certain = math.prod(1 - run.sure for run in runs)
    if len(runs) == 1:
        (one,) = runs
        return _excess(one.loss, one.mass, epsilon) + 1 - certain
    one, two = runs
    order = np.argsort(two.loss)
    loss, mass = two.loss[order], two.mass[order]
    # Over all of two's outcomes with loss > ε − (loss of one): Σ P and Σ P·e^(−loss).
    above = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    inverse = np.concatenate([np.cumsum((mass * np.exp(-loss))[::-1])[::-1], [0.0]])
    place = np.searchsorted(loss, epsilon - one.loss, side="right")
    terms = above[place] - np.exp(epsilon - one.loss) * inverse[place]
    return float(one.mass @ np.maximum(terms, 0)) + 1 - certain


def _excess(loss: Reals, mass: Reals, epsilon: float) -> float:
    over = loss > epsilon
    return float(mass[over] @ -np.expm1(epsilon - loss[over]))


def epsilon(runs: Sequence[Atoms], wanted: float) -> float:
    """The smallest ε with δ(ε) ≤ wanted."""
    return _root(lambda e: delta(runs, e), wanted)


def largest_loss(runs: Sequence[Atoms]) -> float:
    """The ε of δ = 0, of what is not cut off: runs are independent, so the worst outcomes meet."""
    return float(sum(run.loss.max() for run in runs))


def _root(function: Callable[[float], float], wanted: float) -> float:
    low, high = 0.0, 1.0
    if function(0.0) <= wanted:
        return 0.0
    while function(high) > wanted:
        low, high = high, 2 * high
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > wanted else (low, middle)
    return high
