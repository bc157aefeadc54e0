"""All products of two coordinates of a vector z: the upper triangle of z zᵀ (moments.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.programs.contributions import EXACT, Contribution, fitting
from tacit.programs.features import sizes_of

__all__ = ["Pairs"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

UNIT = 2.0**-16  # fourth powers are added up as squares of z² · 2^−16, rounded up


@dataclass(frozen=True, slots=True)
class Pairs(Contribution):
    """zᵢzⱼ for i ≤ j, in units of z's own unit squared; z in whole numbers.

    The triangle's squared length is ((Σz²)² + Σz⁴)/2, and in L1 it is ((Σ|z|)² + Σz²)/2. It is
    shortened by shortening z, by the root of what the triangle has to be shortened by.
    """

    vectors: Reals

    @property
    def shape(self) -> tuple[int, int]:
        records, width = self.vectors.shape
        return records, width * (width + 1) // 2

    def within(self, limit: int, norm: Norm) -> Pairs:
        sizes = _sizes(self.vectors, limit, norm)
        long = ~fitting(sizes, limit, norm)
        if not long.any():
            return self
        length = sizes[long] if norm is Norm.L1 else np.sqrt(sizes[long])
        factor = np.sqrt(limit * (1 - 2.0**-40) / length)
        short = np.trunc(self.vectors[long] * factor[:, None])
        short[~fitting(_sizes(short, limit, norm), limit, norm)] = 0.0
        vectors = self.vectors.copy()
        vectors[long] = short
        return Pairs(vectors)

    def rows(self) -> Integers:
        first, second = np.triu_indices(self.vectors.shape[1])
        return (self.vectors[:, first] * self.vectors[:, second]).astype(np.int64)

    def total(self, limit: int) -> Integers:
        # No product is longer than the triangle it is in, so so many of them add up exactly.
        records, width = max(1, EXACT // limit), self.vectors.shape[1]
        total = np.zeros((width, width), dtype=np.int64)
        for start in range(0, len(self.vectors), records):
            part = self.vectors[start : start + records]
            total += (part.T @ part).astype(np.int64)
        return total[np.triu_indices(width)]

    def unclipped(self) -> Integers:
        product = self.vectors.T @ self.vectors
        return np.rint(product[np.triu_indices(len(product))]).astype(np.int64)


def _sizes(whole: Reals, limit: int, norm: Norm) -> Reals:
    """Of each triangle: its length in L1, its squared length in L2, never less than it is but for a
    few roundings, which `fitting` allows for.

    Sums are of whole numbers: exact below 2^53, and beyond it always in the same order.
    """
    squares = sizes_of(whole, Norm.L2)
    if norm is Norm.L1:
        ones = sizes_of(whole, Norm.L1)
        return np.asarray((ones * ones + squares) / 2)
    fourths = squares * squares  # no less than Σz⁴, and enough to know for most records
    (near,) = np.nonzero(~(squares <= limit))
    if len(near):
        fourths[near] = sizes_of(np.ceil(whole[near] ** 2 * UNIT), Norm.L2) / UNIT**2
    return np.asarray((squares * squares + fourths) / 2)
