"""Sums of products of pairs: what linear regression and PCA need from the data, in one release.

A record becomes z = (a, x) or (a, x, b·y), and contributes the upper triangle of z zᵀ: count, sums,
second moments, and products with the label, jointly. Proof of the bound: moments.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm, round_up
from tacit.privacy.promise import Promise
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Share

__all__ = ["EXACT", "SLACK", "Moments", "noise_std", "without_impossible"]

Reals = NDArray[np.float64]
SLACK = 1 + Fraction(1, 2**20)  # no record in range is within rounding of the bound: none is moved
EXACT = 2.0**53  # whole numbers below are float64s, and so are their sums


@dataclass(frozen=True, slots=True)
class Moments:
    """The upper triangle of Σ z zᵀ over records with `columns` columns in `width` coordinates.

    weight   a and b: the count's and the label's share of the joint bound. Second moments have
             about columns²/2 entries of size 1; columns^(1/4) lets sums and products with the
             label be c^(1/4) times more exact than they, for little more noise on them.
    step     z is rounded to its multiples, so that every product is a multiple of step² and sums
             of products are exact, in any order, in float64 as in integers
    """

    columns: int
    width: int
    labelled: bool
    norm: Norm
    private: bool

    @property
    def weight(self) -> float:
        return round(self.columns**0.25 * 2**8) / 2**8 if self.private else 1.0

    @property
    def step(self) -> float:
        return 2.0**-16 if self.private else 2.0**-18

    @property
    def length(self) -> int:
        """Of z."""
        return 1 + self.width + self.labelled

    def block(self, name: str) -> Block:
        length = self.length * (self.length + 1) // 2
        return Block(name, length, self.norm, self.bound, Fraction(self.step) ** 2)

    @property
    def bound(self) -> Fraction:
        """The largest norm of the triangle: ((Σz²)² + Σz⁴)/2 is its square, and in L1 it is
        ((Σ|z|)² + Σz²)/2; each column adds at most 1 to each of these sums (moments.md)."""
        extras, w = 1 + self.labelled, Fraction(self.weight)
        ones, squares, fourths = (extras * w**p + self.columns for p in (1, 2, 4))
        if self.norm is Norm.L1:
            return round_up((ones**2 + squares) / 2 * SLACK)
        return round_up(Fraction(math.sqrt((squares**2 + fourths) / 2)) * SLACK)

    def vectors(self, X: Reals, y: Reals | None) -> Reals:
        """z of each record as whole numbers of steps; y is in [−1, 1] already."""
        Z = np.empty((len(X), self.length))
        Z[:, 0] = 1.0
        Z[:, 1 : 1 + self.width] = X
        if y is not None:
            Z[:, -1] = y
        if self.private:  # beyond its public bounds nothing is learned from a value
            np.clip(Z, -1.0, 1.0, out=Z)
        Z *= self._weights() / self.step
        return np.rint(Z, out=Z)

    def rows(self, Z: Reals) -> Reals:
        """Each record's contribution."""
        first, second = np.triu_indices(self.length)
        found: Reals = Z[:, first] * Z[:, second] * self.step**2
        return found

    def total(self, Z: Reals) -> NDArray[np.int64] | None:
        """The sum of all rows on the grid, by one product of matrices; None if one needs clipping.

        All products and partial sums are whole numbers below 2^53: nothing is rounded.
        """
        largest = max(float(Z.max(initial=1.0)), -float(Z.min(initial=0.0)))
        if len(Z) * largest * largest >= EXACT or not self._in_range(Z):
            return None
        product = Z.T @ Z
        found: NDArray[np.int64] = product[np.triu_indices(self.length)].astype(np.int64)
        return found

    def _in_range(self, Z: Reals) -> bool:
        """Whether every x is as short as the bound takes it to be (entries are clipped already)."""
        if not self.private:
            return True
        X = Z[:, 1 : 1 + self.width]
        # |x| ≤ 1 makes Σx⁴ ≤ Σx² ≤ Σ|x|: the sum that grows fastest decides.
        if self.norm is Norm.L1:
            return bool((np.abs(X).sum(axis=1) <= self.columns / self.step).all())
        return bool((np.einsum("ij,ij->i", X, X) <= self.columns / self.step**2).all())

    def _weights(self) -> Reals:
        weights = np.ones(self.length)
        weights[0] = self.weight
        if self.labelled:
            weights[-1] = self.weight
        return weights

    def matrix(self, total: Reals) -> Reals:
        """Σ (1, x, y)(1, x, y)ᵀ, symmetric, from the released triangle."""
        upper = np.zeros((self.length, self.length))
        upper[np.triu_indices(self.length)] = total
        both: Reals = upper + np.triu(upper, 1).T
        both /= np.outer(self._weights(), self._weights())
        return both


def noise_std(promise: Promise, plan: Sequence[Share], block: Block) -> float:
    """The standard deviation of the noise on each number of a block: public, from the plan."""
    if not promise.is_private:
        return 0.0
    scale: Any = Levels.planned(promise, plan).mechanism(block).scale
    return float(scale) * (math.sqrt(2) if promise.delta == 0 else 1.0)


def without_impossible(second: Reals, owner: NDArray[np.int64]) -> Reals:
    """Second moments with 0 where two coordinates of one column meet: only one of them is not 0."""
    same = np.equal.outer(owner, owner) & ~np.eye(len(owner), dtype=bool)
    return np.where(same, 0.0, second)
