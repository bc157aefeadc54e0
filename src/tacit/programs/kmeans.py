"""k-means: in each round the sum and the number of the records nearest to each centre.

Lloyd's algorithm as PEM's algorithm 2: two blocks, the sums and the counts, with a share of the
promise each. The first centres are made-up records (spread.py). Bounds and rules: kmeans.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Norm, round_up
from tacit.privacy.clipping import clip_to_ball
from tacit.privacy.promise import Promise
from tacit.programs.levels import Levels, block_grid
from tacit.programs.prediction import Prediction
from tacit.programs.program import Block, Program, Query, Share, norm_for
from tacit.programs.spread import box, made_up

__all__ = ["KMeans", "KMeansModel", "KMeansState"]

Reals = NDArray[np.float64]

# Room in the bound, times √d, for rounding records to the grid before they are added up.
MARGIN = Fraction(1, 2**18)
TIES = 2.0**30  # distances are compared to 30 binary digits, so that ties do not hang on a last bit
EMPTY = 3.0  # a cluster whose count is within this many standard deviations of 0 may be empty


@dataclass(frozen=True, slots=True)
class KMeansState:
    """Centres so far, and the public numbers that the rounds need.

    low, high     the box of the schema
    spread        the first centres, seen from the middle of the box: where empty clusters go
    size          the largest norm of a vector
    fewest        a noisy count below it is taken for an empty cluster
    """

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
    done: int = 0
    private: bool = True


@dataclass(frozen=True, slots=True)
class KMeansModel:
    """Centres in the encoder's coordinates, and how many records were nearest to each: noisy."""

    centres: Reals
    counts: Reals

    def nearest(self, X: Reals) -> NDArray[np.intp]:
        return _nearest(X, self.centres)

    def distances(self, X: Reals) -> Reals:
        """Of each record to each centre."""
        squares = [((X - centre) ** 2).sum(axis=1) for centre in self.centres]
        return np.asarray(np.sqrt(np.column_stack(squares)))


class KMeans(Program[KMeansState, KMeansModel]):
    """Lloyd's algorithm on noisy sums and counts.

    clusters   how many
    rounds     how often centres move; by default 10. When the promise is pure, the noise grows
               with the number of rounds instead of its root: then 5 per unit of ε, from 5 to 10
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
            rounds=self.rounds or _rounds(promise),
            private=promise.is_private,
        )
        return replace(state, fewest=self._fewest(state, promise)) if promise.is_private else state

    def plan(self, state: KMeansState) -> Sequence[Share]:
        return [
            Share("sums", state.split, state.rounds),
            Share("counts", 1 - state.split, state.rounds),
        ]

    def query(self, state: KMeansState) -> Query | None:
        return None if state.done >= state.rounds else Query(self._blocks(state))

    def _blocks(self, state: KMeansState) -> tuple[Block, Block]:
        clusters, width = state.centres.shape
        norm = Norm(state.norm)
        return (
            Block("sums", clusters * width, norm, state.size * (1 + MARGIN)),
            Block("counts", clusters, norm, Fraction(1), Fraction(1, 2**10)),
        )

    def prepare(self, batch: Encoded, state: KMeansState) -> Encoded:
        return batch._replace(X=self._on_grid(batch.X, state))

    def map(self, batch: Encoded, state: KMeansState) -> Reals:
        clusters, width = state.centres.shape
        rows, near = np.arange(len(batch.X)), _nearest(batch.X, state.centres)
        sums = np.zeros((len(rows), clusters, width))
        counts = np.zeros((len(rows), clusters))
        sums[rows, near] = batch.X
        counts[rows, near] = 1.0
        return np.hstack([sums.reshape(len(rows), -1), counts])

    def map_sum(self, batch: Encoded, state: KMeansState) -> NDArray[np.int64]:
        clusters = len(state.centres)
        near = _nearest(batch.X, state.centres)
        integers = batch.X / self._step(state)
        # Records are whole numbers here, below 2^36 each: float64 adds 2^17 of them exactly.
        total = np.zeros(state.centres.size, dtype=np.int64)
        for start in range(0, len(near), 2**16):
            part = slice(start, start + 2**16)
            chosen = np.equal.outer(np.arange(clusters), near[part]).astype(np.float64)
            total += (chosen @ integers[part]).astype(np.int64).ravel()
        counts = np.bincount(near, minlength=clusters) * 2**10
        return np.concatenate([total, counts])

    def reduce(self, total: Reals, state: KMeansState) -> KMeansState:
        clusters, width = state.centres.shape
        sums, counts = total[:-clusters].reshape(clusters, width), total[-clusters:]
        full = counts >= state.fewest
        means = sums / np.where(full, counts, 1.0)[:, None]
        centres = np.where(full[:, None], np.clip(means, state.low, state.high), state.centres)
        done = state.done + 1
        if not state.private and full.all() and np.array_equal(centres, state.centres):
            done = state.rounds  # Lloyd's algorithm has converged
        elif done < state.rounds:
            centres = _refilled(centres, counts, full, state)
        return replace(state, centres=centres, counts=np.maximum(counts, 0.0), done=done)

    def result(self, state: KMeansState) -> KMeansModel:
        return KMeansModel(state.centres, state.counts)

    def predict(self, model: KMeansModel, X: Reals) -> Prediction:
        return Prediction("cluster", model.nearest(X), model.distances(X))

    def _on_grid(self, X: Reals, state: KMeansState) -> Reals:
        """Records as whole multiples of the sums' step.

        Clipped to `size` here and rounded, a record is still shorter than the declared bound, so
        that the framework's clipping leaves it alone and adding up is exact (kmeans.md).
        """
        if state.private:
            X = clip_to_ball(X, float(state.size), state.norm)
        step = self._step(state)
        return np.asarray(np.rint(X / step) * step)

    def _step(self, state: KMeansState) -> float:
        sums = self._blocks(state)[0]
        return float(block_grid(sums).step)

    def _fewest(self, state: KMeansState, promise: Promise) -> float:
        query = self.query(state)
        assert query is not None
        mechanism = Levels.planned(promise, self.plan(state)).mechanism(query.blocks[1])
        spread = math.sqrt(2) if promise.delta == 0 else 1.0  # a Laplace scale b has deviation √2·b
        return max(1.0, EMPTY * spread * float(mechanism.scale))


def _nearest(X: Reals, centres: Reals) -> NDArray[np.intp]:
    """‖x − c‖² is least where x·c − ‖c‖²/2 is largest; among equals, the first."""
    score = X @ centres.T - (centres**2).sum(axis=1) / 2
    return np.asarray(np.rint(score * TIES).argmax(axis=1))


def _refilled(centres: Reals, counts: Reals, full: NDArray[np.bool_], state: KMeansState) -> Reals:
    """Empty clusters move next to the heaviest one, closer by half in each round.

    It costs no privacy, since it only looks at what is released already.
    """
    left = np.where(full, counts, 0.0)
    for empty in np.flatnonzero(~full):
        heaviest = int(left.argmax())
        left[heaviest] /= 2
        near = centres[heaviest] + state.spread[empty] / 2.0 ** (state.done + 1)
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
