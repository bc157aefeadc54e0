"""Features added up in groups: each record adds its own to the one group that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.contributions import EXACT, Contribution, fitting
from tacit.programs.features import sizes_of

__all__ = ["Groups"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Groups(Contribution):
    """One group after another; of a record, its values stand in its group, and 0 in all others.

    places   of each record, its group; one that there is not is none
    count    how many groups there are
    values   whole numbers up to 2^20, where anything is private
    known    their lengths (in L1) or squared lengths (in L2), if somebody knows them
    """

    places: Integers
    count: int
    values: Reals
    known: Reals | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.values), self.count * self.values.shape[1]

    def within(self, limit: int, norm: Norm) -> Groups:
        sizes = sizes_of(self.values, norm) if self.known is None else self.known
        long = ~fitting(sizes, limit, norm)
        if not long.any():
            return self
        length = sizes[long] if norm is Norm.L1 else np.sqrt(sizes[long])
        short = np.trunc(self.values[long] * (limit * (1 - 2.0**-40) / length)[:, None])
        short[~fitting(sizes_of(short, norm), limit, norm)] = 0.0
        values = self.values.copy()
        values[long] = short
        return replace(self, values=values, known=None)

    def rows(self) -> Integers:
        members = self._members(slice(None)).T.astype(np.int64)
        rows = members[:, :, None] * self.values.astype(np.int64)[:, None, :]
        return rows.reshape(self.shape)

    def total(self, limit: int) -> Integers:
        total = np.zeros((self.count, self.values.shape[1]), dtype=np.int64)
        records = max(1, EXACT // limit)
        for start in range(0, len(self.values), records):
            part = slice(start, start + records)
            total += (self._members(part) @ self.values[part]).astype(np.int64)
        return total.ravel()

    def unclipped(self) -> Integers:
        return np.rint(self._members(slice(None)) @ self.values).ravel().astype(np.int64)

    def _members(self, part: slice) -> Reals:
        """1 where a record is in a group: (groups, records)."""
        return np.equal.outer(np.arange(self.count), self.places[part]).astype(np.float64)
