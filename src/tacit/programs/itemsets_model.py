"""What a search for frequent item sets knows between rounds, and what it has found in the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.programs.apriori import Sets, Tree, largest_overlap
from tacit.programs.supersets import Counts, Known

__all__ = ["Itemsets", "ItemsetsState"]


@dataclass(frozen=True)
class ItemsetsState:
    """Before a round: what is frequent so far, and which sets are asked about next.

    columns     of each item, which column of the schema it is a value of
    longest     no record has more items (PEM's l_m); further ones are not looked at
    spread      per round: the noise's standard deviation in multiples of the bound
    candidates  (sets, k): rows rise, and are in order; empty when nothing is left to ask
    sets        (sets, max_length): the frequent sets by length, then order; filled up with −1
    below       for each set, where it stands without its i-th item, among those of its length
    trust       of each length so far: how far its counts were counted rather than foretold
    left_out    candidates that were dropped because there were more than max_candidates

    In windows, which ask for all lengths each:

    windows     how many there are
    own         the noisy number of records of this window; `records` are those of all so far
    idle        nothing is left to ask in this window: the candidate is any set, to no purpose
    asked       (sets, max_length): all sets that any window has been asked about
    found       for each of these: its counts, the records and the noise's variance, added up over
                the windows that were asked
    """

    varies: ClassVar[tuple[str, ...]] = ("records", "trust", "left_out", "own", "idle")
    grows: ClassVar[tuple[str, ...]] = ("candidates", "sets", "below", "counts", "asked", "found")

    names: tuple[str, ...]
    columns: NDArray[np.int32]
    longest: int
    norm: str
    spread: NDArray[np.float64]
    candidates: Sets
    sets: Sets
    below: Sets
    counts: Counts
    records: float
    trust: tuple[float, ...]
    left_out: int
    asked: Sets
    found: Counts
    own: float = 0.0
    idle: bool = False
    windows: int = 0

    @cached_property
    def most(self) -> int:
        """No record counts for more ones than this: computed from the candidates by everyone.

        In the first round one more coordinate is 1 for every record: their number.
        """
        asked, length = self.candidates.shape
        if length == 1:
            return int(min(self.longest, asked)) + 1
        if not self.spread.any():  # nothing is private: any bound will do
            return int(min(math.comb(self.longest, length), asked))
        # An aggregator may ask for sets that no record can hold, of two values of a column say.
        return max(1, largest_overlap(self.candidates, self.columns, self.longest))

    def known(self) -> Known:
        """What is known when the next candidates are chosen, and their counts are judged."""
        parts = list(enumerate(_parts(self.sets), start=1))
        families = [self.sets[part, :length] for length, part in parts]
        below = [self.below[part, :length] for length, part in parts]
        counts = [self.counts[part] for _, part in parts]
        return Known(Tree(families, len(self.names), below), counts, self.records)


@dataclass(frozen=True)
class Itemsets:
    """The frequent sets with their (noisy) counts; a set never has more than its subsets.

    sets      (sets, max_length): places in `names`, by length, then order; filled up with −1
    records   the (noisy) number of records
    trust     of each length: 1 if its counts were counted, 0 if noise drowned them, so that they
              are foretold by shorter sets alone; between, a mean of both with this weight
    left_out  candidates that were not asked about; if not 0, raise max_candidates or minsup
    """

    names: tuple[str, ...]
    sets: Sets
    counts: Counts
    records: float
    trust: tuple[float, ...]
    left_out: int

    @property
    def support(self) -> Counts:
        """The share of the records that hold each set."""
        return self.counts / self.records

    @property
    def lengths(self) -> NDArray[np.int64]:
        lengths: NDArray[np.int64] = np.sum(self.sets >= 0, axis=1, dtype=np.int64)
        return lengths

    def named(self) -> list[tuple[str, ...]]:
        """Each set by the names of its items."""
        return [tuple(self.names[i] for i in row if i >= 0) for row in self.sets.tolist()]

    def families(self) -> tuple[list[Sets], list[Counts]]:
        """The sets, and their counts, of length 1, 2, …"""
        parts = _parts(self.sets)
        sets = [self.sets[part, :length] for length, part in enumerate(parts, start=1)]
        return sets, [self.counts[part] for part in parts]


def _parts(sets: Sets) -> list[slice]:
    """Where the sets of length 1, 2, … stand."""
    lengths = np.sum(sets >= 0, axis=1)
    ends = np.searchsorted(lengths, np.arange(1, lengths.max(initial=0) + 1), side="right").tolist()
    return [slice(*ends_of) for ends_of in pairwise([0, *ends])]
