"""Sums of products of pairs: what linear regression and PCA need from the data, in one release.

A record becomes z = (a, x) or (a, x, b·y), and contributes the upper triangle of z zᵀ: count, sums,
second moments, and products with the label, jointly. Proof of the bound: moments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm, round_up
from tacit.privacy.promise import Promise
from tacit.programs.levels import Levels
from tacit.programs.pairs import Pairs
from tacit.programs.program import Block, Plan, Query, Stage

__all__ = ["SLACK", "Moments", "noise_std", "without_impossible"]

Reals = NDArray[np.float64]
SLACK = 1 + Fraction(1, 2**20)  # no record in range is within rounding of the bound: none is moved


@dataclass(frozen=True, slots=True)
class Moments:
    """The upper triangle of Σ z zᵀ over records with `columns` columns in `width` coordinates.

    weight   a and b: the count's and the label's share of the joint bound. Second moments have
             about columns²/2 entries of size 1; columns^(1/4) lets sums and products with the
             label be c^(1/4) times more exact than they, for little more noise on them.
    step     z is rounded to its multiples, so that every product is a multiple of step²
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

    def contribution(self, X: Reals, y: Reals | None) -> Pairs:
        """z of each record as whole numbers of steps; y is in [−1, 1] already."""
        Z = np.empty((len(X), self.length))
        Z[:, 0] = 1.0
        Z[:, 1 : 1 + self.width] = X
        if y is not None:
            Z[:, -1] = y
        if self.private:  # beyond its public bounds nothing is learned from a value
            np.clip(Z, -1.0, 1.0, out=Z)
        Z *= self._weights() / self.step
        return Pairs(np.rint(Z, out=Z))

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


def noise_std(promise: Promise, block: Block) -> float:
    """The standard deviation of the noise on each number of a block that has the whole promise."""
    if not promise.is_private:
        return 0.0
    levels = Levels.planned(promise, Plan((Stage(Query((block,))),)))
    scale: Any = levels.mechanism(block).scale
    return float(scale) * (math.sqrt(2) if promise.delta == 0 else 1.0)


def without_impossible(second: Reals, owner: NDArray[np.int64]) -> Reals:
    """Second moments with 0 where two coordinates of one column meet: only one of them is not 0."""
    same = np.equal.outer(owner, owner) & ~np.eye(len(owner), dtype=bool)
    return np.where(same, 0.0, second)
