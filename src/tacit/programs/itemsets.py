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
from tacit.errors import UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Adjacency, Promise
from tacit.programs.apriori import Sets, Words, candidates, largest_overlap, packed, support
from tacit.programs.itemsets_model import Itemsets, ItemsetsState
from tacit.programs.levels import Levels, block_grid
from tacit.programs.program import Block, Program, Query, Share, norm_for
from tacit.programs.supersets import Counts, Known, trust

__all__ = ["FrequentItemsets", "Itemsets", "ItemsetsState", "transactions"]

PRESENT = 0.5  # a coordinate above this means that the record has the item

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

    name = "itemsets"
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
            spread=self._spread(promise),
            candidates=np.arange(encoder.width, dtype=np.int32)[:, None],
            overlap=longest,
            sets=np.empty((0, self.max_length), dtype=np.int32),
            below=np.empty((0, self.max_length), dtype=np.int32),
            counts=np.empty(0),
            records=0.0,
            trust=(),
            left_out=0,
        )

    def _spread(self, promise: Promise) -> NDArray[np.float64]:
        if not promise.is_private:
            return np.zeros(self.max_length)
        multipliers = Levels.planned(promise, self._shares()).multipliers.values()
        moved = 2.0 if promise.adjacency is Adjacency.REPLACE else 1.0
        shape = math.sqrt(2.0) if promise.delta == 0 else 1.0  # Laplace of scale b: b√2
        return np.array([float(m) * moved * shape for m in multipliers])

    def plan(self, state: ItemsetsState) -> Sequence[Share]:
        return self._shares()

    def _shares(self) -> list[Share]:
        longer = max(1, self.max_length - 2)
        weights = [SINGLES, PAIRS] + [LONGER / longer] * longer
        return [Share(_named(k + 1), weights[k]) for k in range(self.max_length)]

    def query(self, state: ItemsetsState) -> Query | None:
        asked, length = state.candidates.shape
        if asked == 0:
            return None
        held = state.overlap
        if length == 1:  # one more coordinate, 1 for every record: their number
            asked, held = asked + 1, held + 1
        norm = Norm(state.norm)
        bound = Fraction(held) if norm is Norm.L1 else _root_up(held)
        return Query((Block(_named(length), asked, norm, bound),))

    def map(self, batch: Encoded, state: ItemsetsState) -> NDArray[np.float64]:
        present = _present(batch.X, state)
        holds = np.ones((len(present), len(state.candidates)), dtype=np.bool_)
        for items in state.candidates.T:
            holds &= present[:, items]
        if state.candidates.shape[1] == 1:
            holds = np.column_stack([np.ones(len(holds), dtype=np.bool_), holds])
        return holds.astype(np.float64)

    def map_sum(self, batch: Encoded, state: ItemsetsState) -> NDArray[np.int64]:
        query = self.query(state)
        assert query is not None  # there is a round
        counts = support(_words(batch.X, state), state.candidates)
        if state.candidates.shape[1] == 1:
            counts = np.append(len(batch.X), counts)
        # Held sets count 1 each and are within the bound: nothing is clipped, and 1 is on the grid.
        return block_grid(query.blocks[0]).encode(counts)

    def reduce(self, total: NDArray[np.float64], state: ItemsetsState) -> ItemsetsState:
        known, records = state.known(), state.records
        length = state.candidates.shape[1]
        if length == 1:
            records, weight = max(1.0, float(total[0])), 1.0
            counts = np.clip(total[1:], 0.0, records)
        else:
            counts, weight = self._settled(total, state, known)
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

    def _settled(self, noisy: Counts, state: ItemsetsState, known: Known) -> tuple[Counts, float]:
        """The counts of the candidates, as far as noise lets us trust them, and how far that is."""
        if not state.spread.any():
            return noisy, 1.0
        expected, most = known.expected(state.candidates)
        held = state.overlap if state.norm == Norm.L1 else math.sqrt(state.overlap)
        variance = float(state.spread[state.candidates.shape[1] - 1] * held) ** 2
        weight = trust(noisy, expected, variance) if self.shrink else 1.0
        return np.clip(expected + weight * (noisy - expected), 0.0, most), weight

    def _filled(self, rows: NDArray[np.integer[Any]]) -> Sets:
        filled = np.full((len(rows), self.max_length), -1, dtype=np.int32)
        filled[:, : rows.shape[1]] = rows
        return filled

    def _next(self, state: ItemsetsState, length: int, more: bool) -> ItemsetsState:
        """The state with the next round's candidates."""
        asked, left_out = np.empty((0, length), dtype=np.int32), 0
        if more and length <= min(self.max_length, state.longest):
            asked, left_out = self._candidates(state.known(), state.columns, asked)
        overlap = min(math.comb(state.longest, length), len(asked))
        if len(asked) and state.spread.any():
            overlap = largest_overlap(asked, state.columns, state.longest)
        return replace(state, candidates=asked, overlap=overlap, left_out=state.left_out + left_out)

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


def _present(X: NDArray[np.float64], state: ItemsetsState) -> NDArray[np.bool_]:
    """Which items each record has. Of several values of one column the first counts, and of all
    items the first `longest`: no encoder gives more, but the bound must hold for any vector."""
    present = X > PRESENT
    starts = np.flatnonzero(np.diff(state.columns, prepend=-1))
    running = np.cumsum(present, axis=1)
    before = np.column_stack([np.zeros(len(X), dtype=np.int64), running])[:, starts]
    present &= running - before[:, state.columns] <= 1
    present &= np.cumsum(present, axis=1) <= state.longest
    return present


def _words(X: NDArray[np.float64], state: ItemsetsState) -> Words:
    """`_present`, packed; where `longest` cuts nothing, the rule for columns works on words."""
    if state.longest <= state.columns[-1]:
        return packed(_present(X, state))
    words = packed(X > PRESENT)
    taken = words[0]
    for item in range(1, len(words)):
        if state.columns[item] != state.columns[item - 1]:
            taken = words[item]
        else:
            words[item] &= ~taken
            taken = taken | words[item]
    return words


def _named(length: int) -> str:
    return f"length {length}"


def _root_up(count: int) -> Fraction:
    """√count to 40 binary digits, rounded up; exact for squares."""
    root = math.isqrt(count << 80)
    return Fraction(root + (root * root < count << 80), 2**40)
