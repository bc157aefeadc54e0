"""Ones in some cells of a table: counts of values, bins and magnitudes."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.contributions import Contribution

__all__ = ["Cells", "marks_bound"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cells(Contribution):
    """For each record and each of several tables of `sizes` cells, the one cell it falls in.

    places   (records, tables): the cell in its own table; one that the table does not have is none.
             Tables lie one after another, so no two of a record's cells are the same
    unit     what a cell counts for, in steps
    """

    places: Integers
    sizes: tuple[int, ...]
    unit: int
    weights: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.places), sum(self.sizes)

    def within(self, limit: int, norm: Norm) -> Cells:
        counts = self._inside().sum(axis=1)
        allowed = [self.unit] + [
            min(self.unit, limit // marks if norm is Norm.L1 else isqrt(limit * limit // marks))
            for marks in range(1, len(self.sizes) + 1)
        ]
        return Cells(self.places, self.sizes, self.unit, np.array(allowed)[counts])

    def rows(self) -> Integers:
        rows = np.zeros(self.shape, dtype=np.int64)
        records, _ = inside = np.nonzero(self._inside())
        rows[records, self._cells()[inside]] = self.weights[records]
        return rows

    def total(self, limit: int) -> Integers:
        if (self.weights == self.unit).all():
            return self.unclipped()
        return np.asarray(self.rows().sum(axis=0))

    def unclipped(self) -> Integers:
        inside = self._inside()
        counts = [
            np.bincount(places[here], minlength=size)
            for places, here, size in zip(self.places.T, inside.T, self.sizes, strict=True)
        ]
        return np.concatenate(counts) * self.unit

    def _inside(self) -> NDArray[np.bool_]:
        return np.asarray((self.places >= 0) & (self.places < np.array(self.sizes)))

    def _cells(self) -> Integers:
        ends = np.cumsum((0, *self.sizes))
        starts = np.array([start for start, _ in pairwise(ends)], dtype=np.int64)
        return np.asarray(self.places + starts)


def marks_bound(marks: int, norm: Norm, unit: int) -> Fraction:
    """The bound of so many ones, each `unit` steps of 1/unit: none of them is ever shortened."""
    if norm is Norm.L1:
        return Fraction(marks)
    return Fraction(isqrt(marks * unit * unit - 1) + 1, unit)
