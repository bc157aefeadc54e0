"""Ones in some cells of a table: counts of values, bins and magnitudes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.contributions import Contribution

__all__ = ["Cells", "Nested", "marks_bound", "unit_of"]

Integers = NDArray[np.int64]


def unit_of(limit: int, most: int, norm: Norm) -> int:
    """What each of `most` ones may count for, so that together they are within the limit."""
    return limit // most if norm is Norm.L1 else isqrt(limit * limit // most)


def marks_bound(marks: int, norm: Norm, unit: int) -> Fraction:
    """The bound of so many ones, each `unit` steps of 1/unit: none of them is ever shortened."""
    if norm is Norm.L1:
        return Fraction(marks)
    return Fraction(isqrt(marks * unit * unit - 1) + 1, unit)


@dataclass(frozen=True, slots=True)
class Cells(Contribution):
    """For each record and each of several tables of `sizes` cells, the one cell it falls in.

    places   (records, tables): the cell in its own table; one that the table does not have is none.
             Tables lie one after another, so no two of a record's cells are the same
    unit     what a cell counts for, in steps; less where a record's cells would exceed the limit
    """

    places: Integers
    sizes: tuple[int, ...]
    unit: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.places), sum(self.sizes)

    def within(self, limit: int, norm: Norm) -> Cells:
        return replace(self, unit=min(self.unit, unit_of(limit, len(self.sizes), norm)))

    def nonnegative(self) -> Cells:
        return replace(self, unit=max(0, self.unit))

    def rows(self) -> Integers:
        rows = np.zeros(self.shape, dtype=np.int64)
        start = 0
        for places, size in zip(self.places.T, self.sizes, strict=True):
            (inside,) = np.nonzero((places >= 0) & (places < size))
            rows[inside, start + places[inside]] = self.unit
            start += size
        return rows

    def total(self, limit: int) -> Integers:
        return self.unclipped()

    def unclipped(self) -> Integers:
        pairs = zip(self.places.T, self.sizes, strict=True)
        return np.concatenate([_counts(places, size) for places, size in pairs]) * self.unit


@dataclass(frozen=True, slots=True)
class Nested(Contribution):
    """One cell in each of several tables over the same range, each finer than the one before.

    places   (records): the cell in the finest table; one that it does not have is none in any
    sizes    numbers of cells, each a multiple of the one before
    """

    places: Integers
    sizes: tuple[int, ...]
    unit: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.places), sum(self.sizes)

    def within(self, limit: int, norm: Norm) -> Nested:
        return replace(self, unit=min(self.unit, unit_of(limit, len(self.sizes), norm)))

    def nonnegative(self) -> Nested:
        return replace(self, unit=max(0, self.unit))

    def rows(self) -> Integers:
        inside = (self.places >= 0) & (self.places < self.sizes[-1])
        finest = np.where(inside, self.places, -1)
        coarser = [finest // (self.sizes[-1] // size) for size in self.sizes]
        return Cells(np.column_stack(coarser), self.sizes, self.unit).rows()

    def total(self, limit: int) -> Integers:
        return self.unclipped()

    def unclipped(self) -> Integers:
        finest = _counts(self.places, self.sizes[-1])
        levels = [finest.reshape(size, -1).sum(axis=1) for size in self.sizes]
        return np.concatenate(levels) * self.unit


def _counts(places: Integers, size: int) -> Integers:
    """How many records there are in each cell; who is in none is not counted."""
    if len(places) and (places.min() < 0 or places.max() >= size):
        places = places[(places >= 0) & (places < size)]
    return np.bincount(places, minlength=size)
