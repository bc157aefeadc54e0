"""Features of records as whole numbers, so that weighted sums of them are exact in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm

__all__ = ["FEATURE_STEP", "Centred", "Features", "Whole", "exact_product", "whole_numbers"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

FEATURE_STEP = 2.0**-16  # to which values in [−1, 1] are rounded
LARGEST = 2.0**20  # of a feature, in its own units: up to 8,192 squares add up below 2^53
LARGEST_BASE = 2.0**16  # of a value that is seen from a centre: 1, in units of FEATURE_STEP
LARGEST_CONSTANT = 2.0**20
EXACT = 2**52


def whole_numbers(X: Reals, step: float = FEATURE_STEP, largest: float = 1.0) -> Reals:
    """Values within ±largest, as whole numbers of steps; what is NaN is 0."""
    whole = np.clip(X, -largest, largest)
    whole *= 1 / step
    np.rint(whole, out=whole)
    np.copyto(whole, 0.0, where=np.isnan(whole))
    return np.asarray(whole)


def exact_product(whole: Reals, matrix: Reals, largest: float) -> Reals:
    """whole @ matrix, the same bits for a row whatever other rows there are.

    `whole` are whole numbers up to `largest`; the matrix is rounded to so many binary digits that
    every sum is a whole number below 2^52, times a power of two: no order of adding changes a bit.
    """
    heaviest = float(np.abs(matrix).max(initial=0.0))
    if not (0.0 < heaviest < np.inf):
        return np.zeros((len(whole), matrix.shape[1]))
    room = EXACT / (largest * max(1, len(matrix)))
    # Within ±1020 the power and its inverse are floats; no room over no float is below 2^−1020.
    exponent = int(np.clip(np.floor(np.log2(room / heaviest)), -1020, 1020))
    rounded = np.rint(matrix * 2.0**exponent)
    # One column at a time where there are few: BLAS has no fast path for two.
    if matrix.shape[1] <= 2:
        found = np.column_stack([whole @ column for column in rounded.T])
    else:
        found = whole @ rounded
    found *= 2.0**-exponent
    return np.asarray(found)


class Features(ABC):
    """One row of whole numbers for each record."""

    # Of a weight that features are multiplied with.
    LARGEST_WEIGHT: ClassVar[float] = 2.0**30

    @property
    @abstractmethod
    def width(self) -> int: ...

    @abstractmethod
    def sizes(self, norm: Norm) -> Reals:
        """Of each record: the length in L1, the squared length in L2; exact."""

    @abstractmethod
    def without(self, which: Flags) -> Self:
        """The same with 0 for some records: those of which something is not finite."""

    @abstractmethod
    def dense(self) -> Reals:
        """All features, one row for each record."""

    @abstractmethod
    def weighted_sum(self, weights: Reals, limit: int) -> Integers:
        """Σ over records of weights ⊗ features, where no product is larger than `limit`."""


@dataclass(frozen=True, slots=True)
class Whole(Features):
    """Whole numbers as they stand; `of` makes such of any numbers."""

    values: Reals

    @classmethod
    def of(cls, X: Reals, step: float = 1.0, largest: float = LARGEST) -> Whole:
        """Values within ±largest, in whole numbers of steps."""
        return cls(whole_numbers(X, step, min(largest, LARGEST * step)))

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def sizes(self, norm: Norm) -> Reals:
        return sizes_of(self.values, norm)

    def without(self, which: Flags) -> Whole:
        return Whole(np.where(which[:, None], 0.0, self.values))

    def dense(self) -> Reals:
        return self.values

    def weighted_sum(self, weights: Reals, limit: int) -> Integers:
        return _product(weights, self.values, EXACT // limit)


@dataclass(frozen=True, slots=True)
class Centred(Features):
    """(base − centre, constant): records seen from a centre, and one feature that is always there.

    base       whole numbers up to 2^16; `squares` are the squared lengths of its rows
    centre     whole numbers too, and so is `constant`; whatever is given is brought to such

    Neither sums nor lengths build the centred vectors: ‖x − c‖² = ‖x‖² − 2 c·x + ‖c‖², and
    Σ w (x − c) = Σ w x − c Σ w. All of these are whole numbers below 2^53, so nothing is lost.
    """

    base: Reals
    squares: Reals
    centre: Reals
    constant: float

    @classmethod
    def of(cls, base: Reals, squares: Reals, centre: Reals, constant: float) -> Centred:
        whole = np.nan_to_num(np.rint(np.clip(centre, -LARGEST_BASE, LARGEST_BASE)), nan=0.0)
        fixed = float(np.nan_to_num(np.rint(np.clip(constant, 0.0, LARGEST_CONSTANT)), nan=0.0))
        return cls(base, squares, whole, fixed)

    @property
    def width(self) -> int:
        return int(self.base.shape[1]) + 1

    def sizes(self, norm: Norm) -> Reals:
        if norm is Norm.L1:
            return np.asarray(np.abs(self.base - self.centre).sum(axis=1) + self.constant)
        own = float(self.centre @ self.centre) + self.constant * self.constant
        return np.asarray(self.squares - 2.0 * (self.base @ self.centre) + own)

    def without(self, which: Flags) -> Centred:
        base = np.where(which[:, None], 0.0, self.base)
        return replace(self, base=base, squares=np.where(which, 0.0, self.squares))

    def dense(self) -> Reals:
        last = np.full((len(self.base), 1), self.constant)
        return np.hstack([self.base - self.centre, last])

    def weighted_sum(self, weights: Reals, limit: int) -> Integers:
        heaviest = max(1.0, float(np.abs(weights).max(initial=0.0)))
        found = _product(weights, self.base, int(EXACT // (heaviest * LARGEST_BASE)))
        sums = weights.astype(np.int64).sum(axis=0)[:, None]
        centre = self.centre.astype(np.int64)[None, :]
        return np.hstack([found - sums * centre, sums * int(self.constant)])


def sizes_of(values: Reals, norm: Norm) -> Reals:
    """Of whole numbers: the length of each row in L1, the squared length in L2.

    Exact below 2^53. Beyond it, a row is added up in the same order whatever lies around it in
    memory: without the copy, the order would follow the strides.
    """
    rows = np.ascontiguousarray(values)
    if norm is Norm.L1:
        return np.asarray(np.abs(rows).sum(axis=1))
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _product(weights: Reals, values: Reals, records: int) -> Integers:
    """weightsᵀ values, so many records at a time that every partial sum is exact."""
    if len(values) <= records:
        return np.asarray((weights.T @ values).astype(np.int64))
    total = np.zeros((weights.shape[1], values.shape[1]), dtype=np.int64)
    for start in range(0, len(values), max(1, records)):
        part = slice(start, start + max(1, records))
        total += (weights[part].T @ values[part]).astype(np.int64)
    return total
