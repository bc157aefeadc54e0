"""Gaussian mixture: a tree of counts finds where records lie, three rounds of EM do the rest.

A few rounds of counts (count_tree.py) give boxes with records; merging them (merging.py) gives
components as good as counts can tell, which costs no privacy. From there expectation–maximisation
on noisy statistics (mixture_em.py) needs few rounds, so that each has much of the promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.errors import InputError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.cells import Cells
from tacit.programs.components import Components, Kind, moments_length, shares_of
from tacit.programs.contributions import Contribution
from tacit.programs.count_tree import (
    BITS,
    MOST_OPEN,
    PARTS,
    Opened,
    cells_of,
    depth_for,
    opened,
    shape_of,
)
from tacit.programs.divided import DIAGONAL, MOMENT, Divided, off_diagonal
from tacit.programs.features import FEATURE_STEP
from tacit.programs.levels import Levels
from tacit.programs.merging import fitted
from tacit.programs.mixture_em import (
    STATISTICS,
    Coordinates,
    MixtureModel,
    MixtureState,
    NoisyEM,
    joint_bound,
    reach_of,
)
from tacit.programs.program import Block, Plan, Query, Stage, norm_for
from tacit.programs.spread import box
from tacit.programs.windows import over, rounds_each

__all__ = ["Mixture", "MixtureModel", "MixtureState", "TreeState"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

WEIGHT_UNIT = 2**10  # responsibilities, as whole numbers
STEP = Fraction(1, WEIGHT_UNIT * DIAGONAL * MOMENT**2)
COUNT_STEP = Fraction(1, 2**10)
FARTHEST = 8.0  # in units of reach: a record that is farther is taken to be there
START = Fraction(1, 3)  # of the promise, for the counts (mixture.md)
# A count that is so many deviations above 0 is none of noise; Laplace noise has longer tails.
SURE = {Norm.L1: 6.0, Norm.L2: 4.0}
ROUNDS, EXACT_ROUNDS = 3, 100
TREE = "cells"


@dataclass(frozen=True, slots=True)
class TreeState(MixtureState):
    """Cells that are still looked into, and what was found (count_tree.Opened).

    low, high   the box of the schema
    sure        a count above it is not noise alone
    tree        rounds of counts
    counting    windows that only count, if records arrive in windows
    """

    varies: ClassVar[tuple[str, ...]] = MixtureState.varies
    grows: ClassVar[tuple[str, ...]] = ("cells", "counts", "leaves")

    low: Reals = None  # type: ignore[assignment]
    high: Reals = None  # type: ignore[assignment]
    cells: Integers = None  # type: ignore[assignment]
    counts: Reals = None  # type: ignore[assignment]
    leaves: Reals = None  # type: ignore[assignment]
    sure: float = 0.0
    tree: int = 0
    counting: int = 0

    @property
    def last(self) -> int:
        return self.tree + self.rounds * max(1, self.windows - self.counting)

    @property
    def before(self) -> int:
        return self.tree


class Mixture(NoisyEM[TreeState]):
    """A Gaussian mixture, by noisy counts and noisy expectation–maximisation.

    components    how many
    covariance    "full", "diag" or "spherical"
    rounds        of expectation–maximisation, of all windows together; by default 3; in windows
                  twice as many, and one at least in each that does not only count; without privacy
                  until nothing moves
    coordinates   "own": each component's, where a record that is farther than √d + 2 standard
                  deviations counts less; "shared": the unit ball's, where none does
    floor         the least variance in any direction
    """

    name = "gaussian-mixture"
    version = 2  # 1 started from made-up records
    reads = (1,)
    states = (TreeState,)
    settling = 5  # counts have told it where records are

    def __init__(
        self,
        components: int = 5,
        covariance: Kind = "full",
        rounds: int | None = None,
        coordinates: Coordinates = "own",
        floor: float = 1e-6,
    ) -> None:
        super().__init__(components, covariance, rounds, coordinates, floor)

    def init(self, schema: Schema, promise: Promise) -> TreeState:
        encoder = self.encoder(schema)
        low, high = box(encoder)
        tree, windows = depth_for(encoder.width), self._windows
        counting = min(windows // 3, tree) if windows >= 6 else 0
        usual = ROUNDS if promise.is_private else EXACT_ROUNDS
        rounds = self.rounds or usual * (2 if windows else 1)
        one = self._shaped(np.maximum((high - low) ** 2 / 12, self.floor))
        state = TreeState(
            weights=np.full(self.components, 1 / self.components),
            means=np.tile((low + high) / 2, (self.components, 1)),
            covariances=np.array([one] * self.components),
            kind=self.covariance,
            norm=norm_for(promise).value,
            noise=0.0,
            rounds=rounds_each(rounds, windows - counting),
            windows=windows,
            low=low,
            high=high,
            cells=np.zeros(1, dtype=np.int64),
            counts=np.zeros(1),
            leaves=np.zeros((0, 3)),
            tree=tree,
            counting=counting,
        )
        return self._with_noise(state, promise) if promise.is_private else state

    def plan(self, first: TreeState) -> Sequence[Stage]:
        norm, (components, width) = Norm(first.norm), first.means.shape
        length = components * (1 + width + moments_length(first.kind, width))
        bound = joint_bound(norm, first.kind, width)
        block = Block(STATISTICS, length, norm, bound, STEP, 1 - START)
        statistics = Stage(Query((block,)), first.rounds)
        tree = [_counting(depth, first) for depth in range(1, first.tree + 1)]
        if not first.windows:
            return [*tree, statistics]
        return list(_windowed(tree, statistics, first))

    def windowed(self, windows: int) -> Mixture:
        """The first windows count; components go on from window to window after that, as averages
        over later rounds (windows.md)."""
        return over(self, windows)

    def admit(self, state: TreeState) -> None:
        super().admit(state)
        if not 1 <= len(state.cells) <= MOST_OPEN:
            raise InputError(f"this state has {len(state.cells)} open cells, not 1 to {MOST_OPEN}.")

    def asked(self, state: TreeState, query: Query) -> Query | None:
        if _depth(query):
            # More cells than the depth has: those beyond are not counted.
            return query.shortened(min(PARTS * len(state.cells), query.length))
        return super().asked(state, query)

    def map(self, batch: Encoded, state: TreeState, query: Query) -> Sequence[Contribution]:
        depth = _depth(query)
        if depth:
            places = _places(batch.X * FEATURE_STEP if state.noise else batch.X, state, depth)
            return [Cells(places[:, None], (query.length,), query.blocks[0].limit)]
        return [self._divided(batch.X, state)]

    def _divided(self, X: Reals, state: TreeState) -> Divided:
        """Responsibilities, and the records as each component sees them, in units."""
        components = Components.of(state.weights, state.means, state.covariances)
        private, logs, seen = state.noise > 0, np.empty((len(X), len(state.means))), []
        ball = X * (FEATURE_STEP if private else 1.0)
        for k in range(len(state.means)):
            see = components.standardised_exactly if private else components.standardised
            own = see(k, X)
            logs[:, k] = components.log_density(k, own)
            if self.coordinates == "own":
                own *= MOMENT / reach_of(state)
            else:
                own = ball * MOMENT
            seen.append(self._whole(own) if private else own)
        shares = shares_of(logs) * WEIGHT_UNIT
        return Divided(shares, tuple(seen), state.kind, Norm(state.norm))

    def _whole(self, own: Reals) -> Reals:
        """The ball's records are rounded towards its middle: none becomes longer than 1."""
        np.clip(own, -FARTHEST * MOMENT, FARTHEST * MOMENT, out=own)
        np.copyto(own, 0.0, where=np.isnan(own))
        return np.rint(own, out=own) if self.coordinates == "own" else np.trunc(own, out=own)

    def reduce(self, total: Reals, state: TreeState) -> TreeState:
        if state.done >= state.tree:
            return self._maximised(total, state)
        ready = state.done + 1 == state.tree
        before = Opened(state.cells, state.counts, state.leaves)
        found = opened(before, total, state.done, state.sure, ready)
        cells = state.cells[:1] if ready else found.cells  # they are not looked at any more
        after = replace(
            state, cells=cells, counts=found.counts, leaves=found.leaves, done=state.done + 1
        )
        return self._started(after, found) if ready or state.windows else after

    def _started(self, state: TreeState, found: Opened) -> TreeState:
        """Components that fit the counts so far."""
        leaves = shape_of(found, state.done, state.low, state.high)
        start = fitted(leaves, self.components, self._matrix)
        covariances = np.array([self._cut(each) for each in start.covariances])
        return replace(state, weights=start.weights, means=start.means, covariances=covariances)

    def _matrix(self, covariance: Reals) -> Reals:
        """The nearest covariance matrix of our kind, within bounds."""
        if self.covariance == "full":
            return self._bounded(covariance)
        cut = np.broadcast_to(self._bounded(self._shaped(np.diag(covariance))), len(covariance))
        return np.diag(cut)

    def _cut(self, matrix: Reals) -> Reals:
        return matrix if self.covariance == "full" else self._shaped(np.diag(matrix))

    def _stretch(self, norm: Norm) -> float:
        return off_diagonal(norm)

    def _trusted(self, noise: float, state: TreeState) -> float:
        """The start's covariances are right within a factor: what has more noise than that is
        believed less."""
        return 1.0 if self.coordinates == "shared" else 1 / (1 + noise**2)

    def _unseen(self, state: TreeState, k: int, counts: Reals) -> tuple[float, Reals]:
        """It stays what the counts of cells told."""
        total = max(float(counts.sum()), state.noise, 1e-9)
        return state.weights[k] * total, state.covariances[k]

    def _with_noise(self, state: TreeState, promise: Promise) -> TreeState:
        plan, norm = Plan(tuple(self.plan(state))), Norm(state.norm)
        first = Levels.planned(promise, plan.part(min(1, state.windows)))
        later = Levels.planned(promise, plan.part(state.counting + 1)) if state.counting else first
        sure = SURE[norm] * _deviation(first, plan.stage(1).query)
        return replace(state, sure=sure, noise=_deviation(later, plan.stages[-1].query))


def _deviation(levels: Levels, query: Query) -> float:
    scale = float(levels.mechanism(query.blocks[0]).scale)
    return scale * (math.sqrt(2) if query.blocks[0].norm is Norm.L1 else 1.0)


def _counting(depth: int, first: TreeState) -> Stage:
    """One round of the tree: so many cells as there can be."""
    length = min(PARTS**depth, PARTS * MOST_OPEN)
    norm, weight = Norm(first.norm), START / first.tree
    return Stage(Query((Block(f"{TREE} {depth}", length, norm, Fraction(1), COUNT_STEP, weight),)))


def _windowed(tree: list[Stage], statistics: Stage, first: TreeState) -> Iterator[Stage]:
    """Counts in the first windows, statistics in the others; or all counts in the first one, which
    has statistics too."""
    parts = np.array_split(np.arange(len(tree)), max(1, first.counting))
    for window, part in enumerate(parts, start=1):
        for place in part:
            yield replace(tree[place], window=window)
    for window in range(first.counting + 1, first.windows + 1):
        yield replace(statistics, window=window)


def _depth(query: Query) -> int:
    """Of the cells that a round counts; 0 in a round of statistics."""
    what, _, depth = query.blocks[0].name.partition(" ")
    return int(depth) if what == TREE else 0


def _places(X: Reals, state: TreeState, depth: int) -> Integers:
    """Which part of which open cell each vector lies in; −1: none."""
    cells = cells_of(X, state.low, state.high, depth)
    parents = cells >> BITS
    # A hostile state's cells are in no order, and in such numpy finds what earlier records decide.
    order = np.argsort(state.cells, kind="stable")
    found = order[np.minimum(np.searchsorted(state.cells[order], parents), len(order) - 1)]
    places = found * PARTS + (cells & (PARTS - 1))
    return np.where(state.cells[found] == parents, places, -1)
