"""k-means: in each round the sum and the number of the records nearest to each centre.

Lloyd's algorithm as PEM's algorithm 2: two blocks, the sums and the counts, with a share of the
promise each. The first centres are made-up records (spread.py). Bounds and rules: kmeans.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Norm, round_up
from tacit.privacy.promise import Promise
from tacit.programs.cells import Cells
from tacit.programs.contributions import Contribution
from tacit.programs.features import FEATURE_STEP, exact_product, sizes_of, whole_numbers
from tacit.programs.groups import Groups
from tacit.programs.levels import Levels
from tacit.programs.prediction import Prediction, within
from tacit.programs.program import Block, Plan, Program, Query, Stage, norm_for
from tacit.programs.spread import box, made_up
from tacit.programs.windows import at_rest, late_share, late_variance, over, rounds_each

__all__ = ["KMeans", "KMeansModel", "KMeansState"]

Reals = NDArray[np.float64]

MARGIN = Fraction(1, 2**14)  # room in the bound: no record in range is within rounding of it
FINE = 2.0**-30  # without privacy: the step of sums
COUNT_STEP = Fraction(1, 2**10)
AGAIN = 10  # after so many rounds, empty clusters look as far away as in the first
EMPTY = 3.0  # a cluster whose count is within this many standard deviations of 0 may be empty


@dataclass(frozen=True, slots=True)
class KMeansState:
    """Centres so far, and the public numbers that the rounds need.

    low, high     the box of the schema
    spread        the first centres, seen from the middle of the box: where empty clusters go
    size          the largest norm of a vector
    fewest        a noisy count below it is taken for an empty cluster
    done          rounds so far
    seen          in windows: how many rounds each centre and count is an average of
    """

    varies: ClassVar[tuple[str, ...]] = ("centres", "counts", "done", "seen")

    centres: Reals
    counts: Reals
    low: Reals
    high: Reals
    spread: Reals
    norm: str
    size: Fraction
    split: Fraction
    fewest: float
    rounds: int
    seen: Reals
    done: int = 0
    private: bool = True
    windows: int = 0

    @property
    def last(self) -> int:
        """The number of the last round; `rounds` are those of one window, if there are any."""
        return self.rounds * max(1, self.windows)


@dataclass(frozen=True, slots=True)
class KMeansModel:
    """Centres in the encoder's coordinates, and how many records were nearest to each: noisy."""

    centres: Reals
    counts: Reals

    def nearest(self, X: Reals) -> NDArray[np.intp]:
        return _nearest(within(X), self.centres)

    def distances(self, X: Reals) -> Reals:
        """Of each record to each centre."""
        X = within(X)
        squares = [((X - centre) ** 2).sum(axis=1) for centre in self.centres]
        return np.asarray(np.sqrt(np.column_stack(squares)))


class KMeans(Program[KMeansState, KMeansModel]):
    """Lloyd's algorithm on noisy sums and counts.

    clusters   how many
    rounds     how often centres move, in all windows together; by default 10, or 20 in windows.
               When the promise is pure, the noise grows with the number of rounds instead of its
               root: then 5 per unit of ε, from 5 to 10
    split      the sums' share of the promise (PEM's ε-splitting); by default the share that makes
               the expected error of a centre least
    """

    name = "k-means"
    states = (KMeansState,)
    models = (KMeansModel,)

    def __init__(
        self, clusters: int = 5, rounds: int | None = None, split: Fraction | float | None = None
    ) -> None:
        if clusters < 1 or (rounds is not None and rounds < 1):
            raise UsageError(f"clusters and rounds must be at least 1, not {clusters}, {rounds}.")
        if split is not None and not 0 < split < 1:
            raise UsageError(f"split, the sums' share of the promise, lies in (0, 1), not {split}.")
        self.clusters, self.rounds = clusters, rounds
        self.split = None if split is None else Fraction(split)

    def init(self, schema: Schema, promise: Promise) -> KMeansState:
        encoder, norm = self.encoder(schema), norm_for(promise)
        low, high = box(encoder)
        middle = (low + high) / 2
        spread = (
            made_up(encoder, self.clusters) - middle
        ) / 2  # halfway out: data is rarely in corners
        size = encoder.bound(norm)
        # An average over rounds needs more of them until it has come to rest.
        rounds = self.rounds or _rounds(promise) * (2 if self._windows else 1)
        split = self.split or _split(norm, size, encoder.bound(Norm.L2), encoder.width)
        state = KMeansState(
            centres=middle + spread,
            counts=np.zeros(self.clusters),
            low=low,
            high=high,
            spread=spread,
            norm=norm.value,
            size=Fraction(size),
            split=split,
            fewest=0.5,
            rounds=rounds_each(rounds, self._windows),
            seen=np.zeros(self.clusters),
            private=promise.is_private,
            windows=self._windows,
        )
        return replace(state, fewest=self._fewest(state, promise)) if promise.is_private else state

    def plan(self, first: KMeansState) -> Sequence[Stage]:
        clusters, width = first.centres.shape
        norm, step = Norm(first.norm), FEATURE_STEP if first.private else FINE
        bound = first.size * (1 + MARGIN)
        sums = Block("sums", clusters * width, norm, bound, Fraction(step), first.split)
        counts = Block(
            "counts", clusters, norm, Fraction(1), COUNT_STEP, 1 - first.split, nonnegative=True
        )
        stage = Stage(Query((sums, counts)), first.rounds)
        if not first.windows:
            return [stage]
        return [replace(stage, window=number) for number in range(1, first.windows + 1)]

    def windowed(self, windows: int) -> KMeans:
        """Centres go on from window to window, as averages over later rounds (windows.md)."""
        return over(self, windows)

    def asked(self, state: KMeansState, query: Query) -> Query | None:
        return None if state.done >= state.last else query

    def prepare(self, batch: Encoded, first: KMeansState) -> Encoded:
        """Records as whole numbers of steps, and in a last column how long they are."""
        ready = np.empty((len(batch.X), batch.X.shape[1] + 1))
        if first.private:
            ready[:, :-1] = whole_numbers(batch.X)
            ready[:, -1] = sizes_of(ready[:, :-1], Norm(first.norm))
        else:
            np.multiply(batch.X, 1 / FINE, out=ready[:, :-1])
        return batch._replace(X=ready)

    def map(self, batch: Encoded, state: KMeansState, query: Query) -> Sequence[Contribution]:
        counts = query.blocks[1]
        records, clusters = batch.X[:, :-1], len(state.centres)
        half = (state.centres**2).sum(axis=1) / 2
        # ‖x − c‖² is least where x·c − ‖c‖²/2 is largest; among equals, the first.
        if state.private:
            seen = exact_product(records, state.centres.T * FEATURE_STEP, 1 / FEATURE_STEP)
        else:
            seen = records @ (state.centres.T * FINE)
        near = (seen - half).argmax(axis=1)
        known = batch.X[:, -1] if state.private else None
        return [
            Groups(near, clusters, records, known),
            Cells(near[:, None], (clusters,), counts.limit),
        ]

    def reduce(self, total: Reals, state: KMeansState) -> KMeansState:
        clusters, width = state.centres.shape
        sums, counts = total[:-clusters].reshape(clusters, width), total[-clusters:]
        fewest: float | Reals = state.fewest
        if state.windows:
            sums, counts, fewest = _averaged(sums, counts, state)
        full = counts >= fewest
        means = sums / np.where(full, counts, 1.0)[:, None]
        centres = np.where(full[:, None], np.clip(means, state.low, state.high), state.centres)
        done = state.done + 1
        still = full.all() and np.array_equal(centres, state.centres)
        if still and not state.private and not state.windows:
            done = state.rounds  # Lloyd's algorithm has converged
        elif done < state.last:
            centres = _refilled(centres, counts, full, state)
        seen = np.where(full, state.seen + 1, 0.0) if state.windows else state.seen
        counts = np.maximum(counts, 0.0)
        return replace(state, centres=centres, counts=counts, seen=seen, done=done)

    def result(self, state: KMeansState) -> KMeansModel:
        # In windows, counts are those of one: of all so far there are so many times as many.
        windows = max(1, math.ceil(state.done / state.rounds)) if state.windows else 1
        return KMeansModel(state.centres, state.counts * windows)

    def predict(self, model: KMeansModel, X: Reals) -> Prediction:
        return Prediction("cluster", model.nearest(X), model.distances(X))

    def _fewest(self, state: KMeansState, promise: Promise) -> float:
        plan = Plan(tuple(self.plan(state))).part(min(1, state.windows))
        counts = plan.stage(1).query.blocks[1]
        mechanism = Levels.planned(promise, plan).mechanism(counts)
        spread = math.sqrt(2) if promise.delta == 0 else 1.0  # a Laplace scale b has deviation √2·b
        return max(1.0, EMPTY * spread * float(mechanism.scale))


def _nearest(X: Reals, centres: Reals) -> NDArray[np.intp]:
    """‖x − c‖² is least where x·c − ‖c‖²/2 is largest; among equals, the first."""
    score = X @ centres.T - (centres**2).sum(axis=1) / 2
    return np.asarray(score.argmax(axis=1))


def _averaged(sums: Reals, counts: Reals, state: KMeansState) -> tuple[Reals, Reals, Reals]:
    """Sums and counts averaged with those of earlier rounds, and which counts are taken for none.

    A cluster that was moved, being empty, begins anew.
    """
    number = at_rest(state.seen + 1, state.last)
    share = late_share(number)
    before = np.where(state.seen > 0, state.counts, 0.0)
    averaged = (1 - share)[:, None] * before[:, None] * state.centres + share[:, None] * sums
    left = np.sqrt(np.minimum(1.0, late_variance(number)))
    return averaged, (1 - share) * before + share * counts, state.fewest * left


def _refilled(centres: Reals, counts: Reals, full: NDArray[np.bool_], state: KMeansState) -> Reals:
    """Empty clusters move next to the heaviest one, closer by half in each round.

    It costs no privacy, since it only looks at what is released already.
    """
    left = np.where(full, counts, 0.0)
    for empty in np.flatnonzero(~full):
        heaviest = int(left.argmax())
        left[heaviest] /= 2
        near = centres[heaviest] + state.spread[empty] / 2.0 ** (state.done % AGAIN + 1)
        centres[empty] = np.clip(near, state.low, state.high)
    return centres


def _rounds(promise: Promise) -> int:
    if not promise.is_private:
        return 50  # as PEM's evaluation
    return 10 if promise.delta > 0 else round(min(max(5 * promise.epsilon, 5), 10))


def _split(norm: Norm, size: float, length: float, width: int) -> Fraction:
    """The sums' share that makes the expected squared error of a centre least (kmeans.md).

    The error of sum/count is (noise of sum − centre · noise of count)/count, and ‖centre‖ ≤ length.
    """
    if norm is Norm.L1:
        ratio = (width * size**2 / length**2) ** (1 / 3)
    else:
        ratio = math.sqrt(width) * size / length
    return round_up(ratio / (1 + ratio), bits=20)
