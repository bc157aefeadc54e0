"""Which features a model lives by: how much worse it answers when one is shuffled.

Breiman, "Random forests" (Machine Learning 45, 2001), section 10, on rows that the model has not
seen. Features that say the same share what they are worth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.personal.learning.report import Useful
from tacit.personal.learning.resampling import shuffled
from tacit.personal.learning.scores import Sureness, losses
from tacit.personal.problems.problem import Asked

__all__ = ["useful_features"]

Reals = NDArray[np.float64]

MOST_ROWS = 1000  # the latest ones
ANSWERS = 2000  # for each feature: few rows are shuffled more often
SHUFFLES = (3, 20)


def useful_features(
    answer: Callable[[Reals], Reals],
    task: Asked,
    columns: Reals,
    names: tuple[str, ...],
    truth: Reals,
    guessed: Reals,
    blocks: NDArray[np.int64],
    seed: int,
) -> tuple[Useful, ...]:
    """All features, the most useful first. `answer` takes columns; rows are in order of time."""
    columns, truth = columns[-MOST_ROWS:], truth[-MOST_ROWS:]
    guessed, blocks = guessed[-MOST_ROWS:], blocks[-MOST_ROWS:]
    rows = len(truth)
    times = min(max(ANSWERS // rows, SHUFFLES[0]), SHUFFLES[1])
    before = losses(task, truth, answer(columns))
    unit = float(losses(task, truth, guessed).mean()) or 1.0
    sure = Sureness(blocks, seed)
    found = []
    for place, name in enumerate(names):
        mixed = np.tile(columns, (times, 1))
        mixed[:, place] = columns[shuffled(rows, seed, f"feature {place}", times), place]
        after = losses(task, np.tile(truth, times), answer(mixed)).reshape(times, rows)
        worse = (after.mean(axis=0) - before) / unit
        value, low, high = sure.of(_mean_of(worse))
        found.append(Useful(name, value or 0.0, low, high))
    return tuple(sorted(found, key=lambda each: -each.lost))


def _mean_of(worse: Reals) -> Callable[[Reals], Reals]:
    return lambda weights: np.asarray(weights @ worse / weights.sum(axis=1))
