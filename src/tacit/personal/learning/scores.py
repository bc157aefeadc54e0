"""How good answers are, against guessing, and how far chance alone could move that.

Every score is a function of row weights, so that the same lines compute it for the rows as they are
and for the rows drawn with repetition (the bootstrap: Efron, Annals of Statistics 7, 1979).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from tacit.personal.learning.resampling import block_weights
from tacit.personal.problems.problem import Asked

__all__ = ["LEVEL", "Score", "Sureness", "losses", "scores", "skill"]

Reals = NDArray[np.float64]
Places = NDArray[np.int64]
Measure = Callable[[Reals], Reals]

LEVEL = 0.95  # of every interval
DRAWS = 1000
CELLS = 4_000_000  # draws × rows at once: 32 MB
SMALLEST = 1e-6  # a chance of exactly 0 would make one mistake cost infinitely much


class Score(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A measure of the answers on rows nobody had seen; None where it cannot be computed.

    low, high  where chance leaves it (LEVEL)
    baseline   the same measure of guessing
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    baseline: float | None


class Sureness:
    """Draws rows anew by blocks, and says between which bounds a measure lies."""

    def __init__(self, blocks: Places, seed: int) -> None:
        self.rows = len(blocks)
        self.blocks = len(np.unique(blocks))
        self._of, self._seed = blocks, seed

    def of(self, measure: Measure) -> tuple[float | None, float | None, float | None]:
        """(value, low, high): a t-interval with the spread of the draws.

        Student's t with as many degrees of freedom as there are further blocks, since percentiles
        of few blocks are too narrow (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
        chapter 12).
        """
        from scipy.special import stdtrit

        value = _plain(measure(np.ones((1, self.rows)))[0])
        if value is None or self.blocks < 2:
            return value, None, None
        drawn = np.concatenate([measure(weights) for weights in self._draws()])
        drawn = drawn[np.isfinite(drawn)]
        if len(drawn) < DRAWS / 10:
            return value, None, None
        spread = float(drawn.std()) * np.sqrt(self.blocks / (self.blocks - 1))
        reach = float(stdtrit(self.blocks - 1, (1 + LEVEL) / 2) * spread)
        return value, value - reach, value + reach

    def _draws(self) -> Iterator[Reals]:
        """Fewer of them for very many rows, whose scores hardly move anyway."""
        step = max(1, min(DRAWS, CELLS // max(self.rows, 1)))
        most = min(DRAWS, max(200, 10 * step))
        for first in range(0, most, step):
            yield block_weights(self._of, min(step, most - first), self._seed + first)


def losses(task: Asked, truth: Reals, said: Reals) -> Reals:
    """What each answer costs: the absolute error, or Brier's score.

    Brier's (Monthly Weather Review 78, 1950) is the squared distance of all chances from the truth,
    from 0 to 2. No chances cost less on average than the true ones, and one mistake cannot cost
    more than 2, so that few rows are enough to estimate it.
    """
    if task == "number":
        return np.abs(truth - said)
    distance: Reals = ((said - _one_hot(truth, said.shape[1])) ** 2).sum(axis=1)
    return distance


def skill(task: Asked, truth: Reals, said: Reals, guessed: Reals) -> Measure:
    """The share of guessing's error that the answers avoid: 1 is perfect, 0 no better."""
    own, other = losses(task, truth, said), losses(task, truth, guessed)

    def measure(weights: Reals) -> Reals:
        with np.errstate(divide="ignore", invalid="ignore"):
            share: Reals = 1 - (weights @ own) / (weights @ other)
        return share

    return measure


def scores(
    task: Asked, truth: Reals, said: Reals, guessed: Reals, sure: Sureness
) -> tuple[Score, ...]:
    """All measures of a task, each beside that of guessing."""
    names = _measures(task, truth, said)
    guesses = _measures(task, truth, guessed)
    even = np.ones((1, len(truth)))
    found = []
    for name, measure in names.items():
        value, low, high = sure.of(measure)
        low, high = _within(name, low, high)
        found.append(Score(name, value, low, high, _plain(guesses[name](even)[0])))
    return tuple(found)


BOUNDS: dict[str, tuple[float, float]] = {
    "accuracy": (0.0, 1.0),
    "log loss": (0.0, np.inf),
    "Brier": (0.0, 2.0),
    "ROC AUC": (0.0, 1.0),
    "mean absolute error": (0.0, np.inf),
    "root mean squared error": (0.0, np.inf),
    "R²": (-np.inf, 1.0),
}


def _within(name: str, low: float | None, high: float | None) -> tuple[float | None, float | None]:
    least, most = BOUNDS[name]
    return (
        None if low is None else max(least, low),
        None if high is None else min(most, high),
    )


def _measures(task: Asked, truth: Reals, said: Reals) -> dict[str, Measure]:
    if task == "number":
        return _of_numbers(truth, said)
    hits = (np.argmax(said, axis=1) == truth).astype(np.float64)
    chance = said[np.arange(len(truth)), truth.astype(np.int64)]
    return {
        "accuracy": _mean(hits),
        "log loss": _mean(-np.log(np.maximum(chance, SMALLEST))),
        "Brier": _mean(losses(task, truth, said)),
        "ROC AUC": _area(truth, said),
    }


def _of_numbers(truth: Reals, said: Reals) -> dict[str, Measure]:
    squares = (truth - said) ** 2
    centred = truth - truth.mean()  # or squares of large numbers would cancel

    def explained(weights: Reals) -> Reals:
        total = weights.sum(axis=1)
        spread = weights @ centred**2 - (weights @ centred) ** 2 / total
        with np.errstate(divide="ignore", invalid="ignore"):
            share: Reals = 1 - (weights @ squares) / np.where(spread > 0, spread, np.nan)
        return share

    return {
        "mean absolute error": _mean(np.abs(truth - said)),
        "root mean squared error": lambda weights: np.sqrt(_mean(squares)(weights)),
        "R²": explained,
    }


def _mean(of: Reals) -> Measure:
    def measure(weights: Reals) -> Reals:
        mean: Reals = weights @ of / weights.sum(axis=1)
        return mean

    return measure


def _area(truth: Reals, said: Reals) -> Measure:
    """The area under the ROC curve; of several classes, the mean of each against the others."""
    classes = [1] if said.shape[1] == 2 else sorted(set(truth.astype(int).tolist()))
    parts = [_area_of_one(truth == place, said[:, place]) for place in classes]

    def measure(weights: Reals) -> Reals:
        mean: Reals = np.mean([part(weights) for part in parts], axis=0)
        return mean

    return measure


def _area_of_one(is_it: NDArray[np.bool_], chance: Reals) -> Measure:
    """The chance that one that is has a higher value than one that is not (ties count half)."""
    order = np.argsort(chance, kind="stable")
    _, first = np.unique(chance[order], return_index=True)
    positive = is_it[order].astype(np.float64)

    def measure(weights: Reals) -> Reals:
        sorted_ = weights[:, order]
        hits = np.add.reduceat(sorted_ * positive, first, axis=1)
        misses = np.add.reduceat(sorted_ * (1 - positive), first, axis=1)
        below = np.cumsum(misses, axis=1) - misses / 2
        pairs = hits.sum(axis=1) * misses.sum(axis=1)
        area: Reals = (hits * below).sum(axis=1) / np.where(pairs > 0, pairs, np.nan)
        return area

    return measure


def _one_hot(places: Reals, width: int) -> Reals:
    return np.eye(width)[places.astype(np.int64)]


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
