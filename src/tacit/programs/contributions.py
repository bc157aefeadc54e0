"""What records contribute to a sum, and how it is kept within a bound (proof: sensitivity.md).

A `Contribution` is what every record of a batch adds to one block, in steps of the block's grid. It
is turned into whole numbers no longer than a limit by `within`, record by record: each record's
numbers are the same bits whatever else the batch holds. Sums of them are exact in any order,
because all of them, and all partial sums, are whole numbers below 2^53, which floating point (and
so BLAS) adds without rounding.

    Rows       any vectors: the plain way, for programs that have no better form
    Products   weights ⊗ features, as most programs have it (features.py)
    Divided    counts, sums and moments of records divided among components (divided.py)
    Pairs      all products of two coordinates of one vector (pairs.py)
    Cells      ones in some cells of a table (cells.py)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UsageError
from tacit.privacy.bound import Norm
from tacit.programs.features import Features

__all__ = ["EXACT", "Contribution", "Products", "Rows", "fitting", "integers_within", "rounded"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

EXACT = 2**52  # whole numbers up to here, and sums of two of them, are floats
# Squares of whole numbers below the first are added exactly; longer rows are told by their size.
ROW_LIMIT = 2**26
# How far a length that is computed in a few roundings may be from the true one, by far.
TOLERANCE = 2.0**-40


class Contribution(ABC):
    """What each record of a batch adds to one block, in steps; not clipped, not rounded yet."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Of `rows`: records, coordinates."""

    @abstractmethod
    def within(self, limit: int, norm: Norm) -> Self:
        """The same in whole numbers, no record's longer than `limit`; what is not finite is 0."""

    def nonnegative(self) -> Contribution:
        """Of what `within` gave: with 0 for every number below it, which lengthens no record."""
        return Rows(np.maximum(self.rows(), 0).astype(np.float64))

    @abstractmethod
    def rows(self) -> Integers:
        """Of what `within` gave: one row for each record."""

    @abstractmethod
    def total(self, limit: int) -> Integers:
        """Of what `within` gave for this limit: the sum of all rows, without building them."""

    @abstractmethod
    def unclipped(self) -> Integers:
        """The sum of what was given, rounded: only for where nothing is private."""


@dataclass(frozen=True, slots=True)
class Rows(Contribution):
    """One row of numbers for each record."""

    values: Reals

    @property
    def shape(self) -> tuple[int, int]:
        records, length = self.values.shape
        return records, length

    def within(self, limit: int, norm: Norm) -> Rows:
        if limit > ROW_LIMIT:
            raise UsageError(
                f"rows are clipped to at most 2^26 steps, not {limit}: give the block a step of at "
                "least 2^−26 of its bound."
            )
        finite = np.asarray(np.isfinite(self.values).all(axis=1))
        values = np.where(finite[:, None], self.values, 0.0)
        # Divided by its largest entry first: squares neither overflow nor vanish.
        largest = np.abs(values).max(axis=1, initial=0.0)
        shape = values / np.where(largest > 0, largest, 1.0)[:, None]
        length = _sizes(shape, norm) if norm is Norm.L1 else np.sqrt(_sizes(shape, norm))
        room = limit * (1 - TOLERANCE) / np.maximum(length, 1.0)
        short = np.where((largest > room)[:, None], shape * room[:, None], values)
        return Rows(rounded(short, lambda whole: fitting(_sizes(whole, norm), limit, norm)))

    def rows(self) -> Integers:
        return self.values.astype(np.int64)

    def total(self, limit: int) -> Integers:
        return np.asarray(self.rows().sum(axis=0))

    def unclipped(self) -> Integers:
        if not np.isfinite(self.values).all():
            raise UsageError("a contribution is NaN or infinite: treat missing values first.")
        return np.asarray(np.rint(self.values).astype(np.int64).sum(axis=0))


@dataclass(frozen=True, slots=True)
class Products(Contribution):
    """weights ⊗ features: coordinate (i, j) is weight i times feature j.

    ‖w ⊗ φ‖ = ‖w‖·‖φ‖ in L1 and in L2, so a contribution is shortened by shortening its weights.
    """

    weights: Reals
    features: Features

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.weights), self.weights.shape[1] * self.features.width

    def within(self, limit: int, norm: Norm) -> Products:
        features, sizes = _finite(self.features, norm)
        # The most that a weight may be: the limit over the length of the features.
        room = limit * (1 - TOLERANCE) / (sizes if norm is Norm.L1 else np.sqrt(sizes))
        weights = _shortened(self.weights, room, norm)

        def fits(whole: Reals) -> Flags:
            return fitting(_sizes(whole, norm) * sizes, limit, norm)

        return Products(rounded(weights, fits), features)

    def rows(self) -> Integers:
        values = self.features.dense()
        rows = self.weights[:, :, None] * values[:, None, :]
        return rows.reshape(self.shape).astype(np.int64)

    def total(self, limit: int) -> Integers:
        return self.features.weighted_sum(self.weights, limit).ravel()

    def unclipped(self) -> Integers:
        return np.rint(self.weights.T @ self.features.dense()).ravel().astype(np.int64)


def _finite(features: Features, norm: Norm) -> tuple[Features, Reals]:
    """Features with 0 for every record of which one is not finite, and their sizes.

    A weight of 0 is not enough: 0 times NaN is NaN, in that record's sum and in everybody's.
    """
    sizes = features.sizes(norm)
    finite = np.isfinite(sizes)
    if finite.all():
        return features, sizes
    return features.without(~finite), np.where(finite, sizes, 0.0)


def fitting(sizes: Reals, limit: int, norm: Norm) -> Flags:
    """Whether contributions are no longer than the limit.

    `sizes` are lengths in L1, squared lengths in L2: exact where they are below 2^53, else by a
    few roundings, for which some room is left. What is NaN fits nothing.
    """
    largest = limit if norm is Norm.L1 else limit * limit
    return np.asarray(sizes <= (largest if largest <= EXACT else largest * (1 - 2.0**-45)))


def integers_within(rows: Integers, limit: int, norm: Norm) -> Integers:
    """Sums of several contributions of one unit, shortened to the limit as a whole."""
    values = rows.astype(np.float64)  # beyond 2^53 they are rounded: the check below allows for it
    sizes = _sizes(values, norm)
    long = ~fitting(sizes, limit, norm)
    if not long.any():
        return rows
    length = sizes[long] if norm is Norm.L1 else np.sqrt(sizes[long])
    short = np.trunc(values[long] * (limit * (1 - TOLERANCE) / length)[:, None])
    short[~fitting(_sizes(short, norm), limit, norm)] = 0.0
    kept = rows.copy()
    kept[long] = short.astype(np.int64)
    return kept


def _shortened(weights: Reals, room: Reals, norm: Norm) -> Reals:
    """Each row at most `room` long, and no entry beyond what exact sums allow for."""
    weights = np.clip(weights, -Features.LARGEST_WEIGHT, Features.LARGEST_WEIGHT)
    length = _sizes(weights, norm)
    if norm is not Norm.L1:
        length = np.sqrt(length)
    factor = np.where(length > room, room / length, 1.0)
    return np.asarray(weights * factor[:, None])


def rounded(values: Reals, fits: Callable[[Reals], Flags]) -> Reals:
    """Whole numbers: the nearest, or where these are too long, those next towards zero."""
    whole = np.rint(values)
    long = ~fits(whole)
    if long.any():
        whole[long] = np.trunc(values[long])
        whole[~fits(whole)] = 0.0
    return whole


def _sizes(values: Reals, norm: Norm) -> Reals:
    """Length in L1, squared length in L2, of each row, always added up in the same order."""
    if values.shape[1] <= FEW:
        found = np.zeros(len(values))
        for column in values.T:
            found += np.abs(column) if norm is Norm.L1 else column * column
        return found
    square = np.abs(values) if norm is Norm.L1 else values * values
    return np.asarray(np.ascontiguousarray(square).sum(axis=1))


FEW = 16  # columns that are added up one by one
