"""Frequent item sets: PEM's algorithm 3, Apriori under noise (proof of the bounds: itemsets.md).

Round k asks how many records hold each candidate of length k. Candidates come from the noisy
frequent sets of length k − 1, so choosing them costs nothing. PEM's sparse-vector selection is not
here: it asks one candidate after another, which is not a sum that a round could carry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Column, Schema
from tacit.errors import InputError, UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Adjacency, Promise
from tacit.programs.apriori import Sets, candidates
from tacit.programs.cells import unit_of
from tacit.programs.holds import Holds
from tacit.programs.itemsets_model import Itemsets, ItemsetsState
from tacit.programs.itemsets_windows import added_up, any_set, begun
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Program, Query, Stage, norm_for
from tacit.programs.supersets import Counts, Known, trust
from tacit.programs.windows import over

__all__ = ["FrequentItemsets", "Itemsets", "ItemsetsState", "transactions"]

LIMIT = 2**24  # steps to a bound of 1
STEP = Fraction(1, LIMIT)

# How the promise is divided: a quarter for single items, half for pairs, the rest for all longer
# sets together. Longer sets are foretold by pairs better than they can be counted (supersets.py).
SINGLES, PAIRS, LONGER = Fraction(2), Fraction(4), Fraction(2)


class FrequentItemsets(Program[ItemsetsState, Itemsets]):
    """All sets of items that at least `minsup` of the records hold, up to `max_length` items.

    minsup          the share of records, above 0 and at most 1
    longest         public: at most so many items of a record count, the first ones in the order of
                    the schema. By default one for each column, so that none is lost
    max_candidates  more candidates than this are cut to those of which most is expected
    shrink          draw noisy counts towards what shorter sets foretell, as far as noise drowns
                    them: far closer on average, but biased; the model's `trust` tells how far
    """

    name = "frequent-itemsets"
    selects = True
    states = (ItemsetsState,)
    models = (Itemsets,)

    def __init__(
        self,
        minsup: float = 0.1,
        max_length: int = 4,
        longest: int | None = None,
        max_candidates: int = 1 << 20,
        shrink: bool = True,
    ) -> None:
        if not 0 < minsup <= 1:
            raise UsageError(f"minsup is a share of the records, above 0 up to 1, not {minsup}.")
        for name, value in (("max_length", max_length), ("max_candidates", max_candidates)):
            if value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}.")
        if longest is not None and longest < 1:
            raise UsageError(f"longest must be at least 1, not {longest}.")
        self.minsup, self.max_length = float(minsup), int(max_length)
        self.longest, self.max_candidates, self.shrink = longest, int(max_candidates), bool(shrink)

    def encoder(self, schema: Schema) -> Encoder:
        """One coordinate per item, 1 where the record has it."""
        for column in schema.features:
            if column.is_number and column.edges is None:
                raise UsageError(
                    f"column {column.name!r} is a number, not items: give it edges in the schema, "
                    'and its bins are items, or role = "ignore".'
                )
        return Encoder(schema, interval="unit")

    def init(self, schema: Schema, promise: Promise) -> ItemsetsState:
        encoder = self.encoder(schema)
        widths = [Encoder(Schema(columns=(column,))).width for column in schema.features]
        longest = len(widths) if self.longest is None else min(self.longest, len(widths))
        return ItemsetsState(
            names=encoder.feature_names,
            columns=np.repeat(np.arange(len(widths), dtype=np.int32), widths),
            longest=longest,
            norm=norm_for(promise).value,
            spread=self._spread(promise, encoder.width, longest),
            candidates=np.arange(encoder.width, dtype=np.int32)[:, None],
            sets=np.empty((0, self.max_length), dtype=np.int32),
            below=np.empty((0, self.max_length), dtype=np.int32),
            counts=np.empty(0),
            records=0.0,
            trust=(),
            left_out=0,
            asked=np.empty((0, self.max_length), dtype=np.int32),
            found=np.empty((0, 3)),
            windows=self._windows,
        )

    def windowed(self, windows: int) -> FrequentItemsets:
        """Every window is asked about all lengths, and counts are added up (itemsets.md)."""
        return over(self, windows)

    def _spread(self, promise: Promise, items: int, longest: int) -> NDArray[np.float64]:
        if not promise.is_private:
            return np.zeros(self.max_length)
        plan = Plan(tuple(self._stages(items, norm_for(promise), self._lengths(longest))))
        multipliers = Levels.planned(promise, plan).multipliers.values()
        moved = 2.0 if promise.adjacency is Adjacency.REPLACE else 1.0
        shape = math.sqrt(2.0) if promise.delta == 0 else 1.0  # Laplace of scale b: b√2
        return np.array([float(m) * moved * shape for m in multipliers])

    def plan(self, first: ItemsetsState) -> Sequence[Stage]:
        lengths = self._lengths(first.longest)
        stages = self._stages(len(first.names), Norm(first.norm), lengths)
        if not first.windows:
            return stages
        windows = range(1, first.windows + 1)
        return [replace(stage, window=number) for number in windows for stage in stages]

    def _lengths(self, longest: int) -> int:
        """How many lengths are asked about. A run may end early; a window never does."""
        return min(self.max_length, longest) if self._windows else self.max_length

    def _stages(self, items: int, norm: Norm, most: int) -> list[Stage]:
        """A round for each length. The bound is 1 whatever is asked: a record that may hold many
        candidates counts for less in each of them (holds.py)."""
        longer = max(1, self.max_length - 2)
        weights = [SINGLES, PAIRS] + [LONGER / longer] * longer
        lengths = [items + 1] + [
            max(1, min(math.comb(items, k), self.max_candidates)) for k in range(2, most + 1)
        ]
        blocks = (
            Block(_named(k + 1), length, norm, Fraction(1), STEP, weights[k], nonnegative=True)
            for k, length in enumerate(lengths)
        )
        return [Stage(Query((block,))) for block in blocks]

    def admit(self, state: ItemsetsState) -> None:
        sets, items = state.candidates, len(state.names)
        inside = bool(((sets >= 0) & (sets < items)).all())
        if not inside or not _in_order(sets):
            raise InputError("this state's candidates are not different item sets in order.")

    def asked(self, state: ItemsetsState, query: Query) -> Query | None:
        asked, length = state.candidates.shape
        if asked == 0 or query.blocks[0].name != _named(length):
            return None
        return query.shortened(asked + (length == 1))

    def map(self, batch: Encoded, state: ItemsetsState, query: Query) -> Sequence[Holds]:
        first = state.candidates.shape[1] == 1
        return [Holds(batch.X, state.columns, state.longest, state.candidates, first, state.most)]

    def reduce(self, total: NDArray[np.float64], state: ItemsetsState) -> ItemsetsState:
        length = state.candidates.shape[1]
        total, variance = total / _value(state), 0.0
        if state.spread.any():
            variance = float(state.spread[length - 1] / _value(state)) ** 2
        if state.windows:
            state, total, variance = added_up(total, state, variance)
        if state.idle:
            return self._next(state, length + 1, more=False)
        known, records = state.known(), state.records
        if length == 1:
            records, weight = max(1.0, float(total[0])), 1.0
            counts = np.clip(total[1:], 0.0, records)
        else:
            counts, weight = self._settled(total, state, known, variance)
        frequent = counts / records >= self.minsup
        sets = state.candidates[frequent]
        found = replace(
            state,
            sets=np.concatenate([state.sets, self._filled(sets)]),
            below=np.concatenate([state.below, self._filled(known.tree.subsets_of(sets))]),
            counts=np.concatenate([state.counts, counts[frequent]]),
            records=records,
            trust=(*state.trust, weight),
        )
        return self._next(found, length + 1, bool(frequent.any()))

    def _settled(
        self, noisy: Counts, state: ItemsetsState, known: Known, variance: float
    ) -> tuple[Counts, float]:
        """The counts of the candidates, as far as noise lets us trust them, and how far that is."""
        if not state.spread.any():
            return noisy, 1.0
        expected, most = known.expected(state.candidates)
        weight = trust(noisy, expected, variance) if self.shrink else 1.0
        return np.clip(expected + weight * (noisy - expected), 0.0, most), weight

    def _filled(self, rows: NDArray[np.integer[Any]]) -> Sets:
        filled = np.full((len(rows), self.max_length), -1, dtype=np.int32)
        filled[:, : rows.shape[1]] = rows
        return filled

    def _next(self, state: ItemsetsState, length: int, more: bool) -> ItemsetsState:
        """The state with the next round's candidates."""
        asked, left_out = np.empty((0, length), dtype=np.int32), 0
        within = length <= min(self.max_length, state.longest)
        if more and within:
            asked, left_out = self._candidates(state.known(), state.columns, asked)
        if state.windows and not within:
            return begun(state)
        if state.windows and not len(asked):
            return replace(state, candidates=any_set(state, length), idle=True)
        return replace(state, candidates=asked, left_out=state.left_out + left_out)

    def _candidates(self, known: Known, columns: NDArray[np.int32], pool: Sets) -> tuple[Sets, int]:
        """All candidates; if they are too many, those of which most is expected, and how many not.

        The choice follows from noisy counts alone. Of equals the first in order is taken.
        """
        left_out = 0
        for part in candidates(known.tree, columns):
            pool = np.concatenate([pool, part])
            if len(pool) > self.max_candidates:
                left_out += len(pool) - self.max_candidates
                order = np.argsort(-known.expected(pool)[0], kind="stable")
                pool = pool[np.sort(order[: self.max_candidates])]
        return pool, left_out

    def result(self, state: ItemsetsState) -> Itemsets:
        return Itemsets(
            state.names, state.sets, state.counts, state.records, state.trust, state.left_out
        )


def transactions(items: Sequence[str]) -> Schema:
    """The schema of baskets: one column per item, 1 (true) where the basket has it."""
    return Schema(columns=tuple(Column(name=name, type="boolean") for name in items))


def _in_order(sets: Sets) -> bool:
    """Whether items rise within each set, and sets rise in order: so none is there twice."""
    if sets.shape[1] < 1 or not bool((sets[:, 1:] > sets[:, :-1]).all()):
        return False
    tied = np.ones(max(0, len(sets) - 1), dtype=np.bool_)
    for column in sets.T:
        if bool((tied & (column[1:] < column[:-1])).any()):
            return False
        tied &= column[1:] == column[:-1]
    return not bool(tied.any())


def _value(state: ItemsetsState) -> float:
    """What one record that holds a candidate adds to its sum; the block's bound is 1."""
    if not state.spread.any():
        return float(STEP)
    return unit_of(LIMIT, state.most, Norm(state.norm)) * float(STEP)


def _named(length: int) -> str:
    return f"length {length}"
