"""What an aggregator may ask with: the states of an honest one, and those of one that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audits.central import Table
from tacit.programs.count_tree import PARTS
from tacit.programs.kmeans import KMeansState
from tacit.programs.logistic import Learning
from tacit.programs.mixture import TreeState

__all__ = ["HostileStates", "honest_states"]

HUGE, TINY = 1e200, 1e-200


def honest_states(state: Any, number: int) -> Iterator[Any]:
    """What follows from the releases, and nothing else."""
    yield state


@dataclass
class HostileStates:
    """Invented states, each round from another place of the list; first those by which the unit
    moves the sums farthest, which the adversary can compute; last of all the honest one.

    Some would have let the unit count for far more than it may where bounds followed from states,
    and some are refused.
    """

    table: Table
    _known: dict[int, list[Any]] = field(default_factory=dict)

    def __call__(self, state: Any, number: int) -> Iterator[Any]:
        if number not in self._known:
            invented = INVENTED[type(state)](state)
            start = number % len(invented)
            turned = invented[start:] + invented[:start]
            self._known[number] = sorted(turned, key=lambda each: -self._moved(each, number))
        yield from self._known[number]
        yield state

    def _moved(self, state: Any, number: int) -> float:
        """In whole per cent of the bounds, so that those that are as good take turns."""
        query = self.table.program().asked(state, self.table.plan.stage(number).query)
        if query is None:
            return 0.0
        parts = self.table.parts(self.table.moved(state, query), query)
        return round(sum(float(part @ part) for part in parts), 2)


def _kmeans(state: KMeansState) -> list[KMeansState]:
    shape = state.centres.shape
    rising: NDArray[np.float64] = np.arange(state.centres.size, dtype=np.float64).reshape(shape)
    return [
        replace(state, done=0, centres=np.full(shape, HUGE)),
        replace(state, done=0, centres=np.full(shape, TINY)),
        replace(state, done=0, centres=rising * -HUGE),
        replace(state, done=-5, counts=np.full(len(state.counts), -HUGE)),
        replace(state, done=10**9),
        replace(state, done=0, centres=np.full(shape, np.nan)),
    ]


def _logistic(state: Learning) -> list[Learning]:
    # The unit has label 1 and x = 1: weights that deny it make its residual 1.
    away = np.full(state.weights.shape, -1e8)
    return [
        replace(state, weights=away, scale=1.0, bound=TINY, constant=1.0),
        replace(state, weights=away, scale=TINY, bound=1e-9, centre=-np.ones_like(state.centre)),
        replace(state, weights=-away * HUGE, bound=1e-6, centre=np.full_like(state.centre, HUGE)),
        replace(state, stage="size", round=-1, weights=away, bound=0.25),
        replace(state, bound=0.0, scale=0.0),
        replace(state, weights=away, constant=HUGE, bound=-1.0),
    ]


def _mixture(state: TreeState) -> list[TreeState]:
    small = np.broadcast_to(np.eye(state.means.shape[1]), state.covariances.shape) * 1e-12
    unordered = np.array([2**62, -1, 0, 0], dtype=np.int64)
    corner = np.array([PARTS**state.done - 1], dtype=np.int64)  # where the unit is
    return [
        replace(state, cells=corner, covariances=small.copy(), means=-np.ones_like(state.means)),
        replace(state, cells=np.zeros(64, dtype=np.int64)),  # one cell, many times
        replace(state, cells=np.zeros(1_000, dtype=np.int64)),  # more than may be open
        replace(state, cells=unordered, done=0),
        replace(state, covariances=small.copy(), means=-np.ones_like(state.means), done=0),
        replace(state, covariances=small * 1e24, done=0),
        replace(state, means=np.full_like(state.means, HUGE), done=0),
        replace(state, covariances=np.zeros_like(state.covariances), done=0),
        replace(state, weights=np.full_like(state.weights, -1.0), done=0),
    ]


INVENTED: dict[type[Any], Callable[[Any], list[Any]]] = {
    KMeansState: _kmeans,
    Learning: _logistic,
    TreeState: _mixture,
}
