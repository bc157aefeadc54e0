"""Which of many item sets each record holds, counted on packed columns (proof: itemsets.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.apriori import Sets, Words, packed, support
from tacit.programs.cells import unit_of
from tacit.programs.contributions import Contribution

__all__ = ["Holds"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

PRESENT = 0.5  # a coordinate above this means that the record has the item


@dataclass(frozen=True, slots=True)
class Holds(Contribution):
    """For each of `sets`, and with `everyone` before them for every record, whether it is held.

    columns   of each item, which column of the schema it is a value of
    longest   of all its items, a record's first so many count
    most      no record holds more of the sets than this, everyone's one included
    """

    X: NDArray[np.float64]
    columns: NDArray[np.int32]
    longest: int
    sets: Sets
    everyone: bool
    most: int
    unit: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.X), len(self.sets) + self.everyone

    def within(self, limit: int, norm: Norm) -> Holds:
        return replace(self, unit=unit_of(limit, self.most, norm))

    def nonnegative(self) -> Holds:
        return self  # each counts `unit_of` the limit, which is never below 0

    def rows(self) -> Integers:
        present = self._present()
        holds = np.ones((len(present), len(self.sets)), dtype=np.bool_)
        for items in self.sets.T:
            holds &= present[:, items]
        if self.everyone:
            holds = np.column_stack([np.ones(len(holds), dtype=np.bool_), holds])
        return holds.astype(np.int64) * self.unit

    def total(self, limit: int) -> Integers:
        counts = support(self._words(), self.sets)
        if self.everyone:
            counts = np.append(len(self.X), counts)
        return np.asarray(counts * self.unit)

    def unclipped(self) -> Integers:
        return replace(self, unit=1).total(1)

    def _present(self) -> Flags:
        """Which items each record has. Of several values of one column the first counts, and of all
        items the first `longest`: no encoder gives more, but the bound must hold for any vector."""
        present = self.X > PRESENT
        starts = np.flatnonzero(np.diff(self.columns, prepend=-1))
        running = np.cumsum(present, axis=1)
        before = np.column_stack([np.zeros(len(present), dtype=np.int64), running])[:, starts]
        present &= running - before[:, self.columns] <= 1
        present &= np.cumsum(present, axis=1) <= self.longest
        return np.asarray(present)

    def _words(self) -> Words:
        """`_present`, packed; where `longest` cuts nothing, the rule for columns works on words."""
        if self.longest <= self.columns[-1]:
            return packed(self._present())
        words = packed(self.X > PRESENT)
        taken = words[0]
        for item in range(1, len(words)):
            if self.columns[item] != self.columns[item - 1]:
                taken = words[item]
            else:
                words[item] &= ~taken
                taken = taken | words[item]
        return words
