"""Sums of products of pairs: what linear regression and PCA need from the data, in one release.

A record becomes z = (a, u) or (a, u, a·v), and contributes the upper triangle of z zᵀ: count, sums,
second moments, and products with the label, jointly. u is the record and v its label, seen from a
centre and in a scale that the state names (moment_rounds.py). Proof of the bound: moments.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.levels import Levels
from tacit.programs.pairs import Pairs
from tacit.programs.program import Block, Plan, Query, Stage

__all__ = ["STEP", "Moments", "View", "joined", "known_products", "noise_std", "seen_count"]

Reals = NDArray[np.float64]
# Triangles are at most 1 long; z is rounded to multiples of this, so products to multiples of its
# square.
STEP = 2.0**-19
SLACK = 1 + 2.0**-12  # rounding z lengthens no record in its box beyond the bound
LARGEST = 2.0**20  # of z: whatever a state names, far beyond the bound and far from overflow
GROWTH = 0.05  # of the longest triangle with data relative to noise: moments.md
MEAN_SIZE = 0.8  # of a number of variance 1: √(2/π) of a normal one
FEWEST = 5.0  # a number of records within so many deviations of 0 may be none
MANY_VALUES = 1.5  # coordinates a column, from which on pure promises leave records in their box


@dataclass(frozen=True, slots=True)
class View:
    """How records are seen: (x − centre) / scale, the label last; triangles in units of unit²."""

    centre: Reals
    scale: Reals
    unit: float


@dataclass(frozen=True, slots=True)
class Moments:
    """The upper triangle of Σ z zᵀ over records with `columns` columns in `width` coordinates.

    Nothing of it is private: it follows from the study.
    """

    columns: int
    width: int
    labelled: bool
    norm: Norm
    private: bool

    @property
    def boxed(self) -> bool:
        """Whether records are seen as they are, from 0 and in their public bounds: without privacy,
        and where columns of many values are shorter in L1 as they are than from any centre."""
        many = self.width > MANY_VALUES * self.columns
        return not self.private or (self.norm is Norm.L1 and many)

    @property
    def weight(self) -> float:
        """a: the count's and the label's share of the joint bound. Second moments have about
        width²/2 entries; with width^(1/4) sums and products with the label are so many times more
        exact than they, for little more noise on them."""
        if not self.private:
            return 1.0
        return float((self.columns if self.boxed else self.width) ** 0.25)

    @property
    def length(self) -> int:
        """Of z."""
        return 1 + self.width + self.labelled

    def block(self, name: str, weight: Fraction = Fraction(1)) -> Block:
        length = self.length * (self.length + 1) // 2
        return Block(name, length, self.norm, Fraction(1), Fraction(STEP) ** 2, weight)

    @property
    def box(self) -> float:
        """The largest norm of a triangle whose record is seen as it is: ((Σz²)² + Σz⁴)/2 is its
        square, and in L1 it is ((Σ|z|)² + Σz²)/2; each column adds at most 1 to each of these."""
        extras, w = 1 + self.labelled, self.weight
        ones, squares, fourths = (extras * w**p + self.columns for p in (1, 2, 4))
        if self.norm is Norm.L1:
            return (ones**2 + squares) / 2 * SLACK
        return math.sqrt((squares**2 + fourths) / 2) * SLACK

    @property
    def typical(self) -> float:
        """The norm of a triangle whose record has variance 1 in every coordinate."""
        extras, w = 1 + self.labelled, self.weight
        squares = self.width + extras * w**2
        if self.norm is Norm.L1:
            return float((MEAN_SIZE * self.width + extras * w) ** 2 + squares) / 2
        return float(squares / math.sqrt(2))

    def longest(self, noise: float, records: float) -> float:
        """Beyond which triangles are shortened: typical ones where noise rules, and the longer the
        more records there are. `noise` is the deviation on a sum whose records are 1 at most."""
        if noise <= 0:
            return self.box
        against = noise * self.typical * 2 * (math.sqrt(self.width) + 1) / records
        return self.typical * math.sqrt(max(1.0, GROWTH / against))

    def exact_unit(self) -> float:
        """A power of two, so that nothing is rounded on the way, in which no record is cut."""
        return float(2.0 ** math.ceil(math.log2(self.box) / 2))

    def contribution(self, X: Reals, y: Reals | None, view: View) -> Pairs:
        """z of each record as whole numbers of steps."""
        Z = np.empty((len(X), self.length))
        Z[:, 0] = 1.0
        Z[:, 1:] = (joined(X, y, self.private) - view.centre) / view.scale
        Z *= self._weights() / (view.unit * STEP)
        np.clip(Z, -LARGEST / STEP, LARGEST / STEP, out=Z)
        return Pairs(np.rint(Z, out=Z))

    def _weights(self) -> Reals:
        weights = np.ones(self.length)
        weights[0] = self.weight
        if self.labelled:
            weights[-1] = self.weight
        return weights

    def matrix(self, total: Reals, unit: float) -> Reals:
        """Σ (1, u, v)(1, u, v)ᵀ, symmetric, from the released triangle."""
        upper = np.zeros((self.length, self.length))
        upper[np.triu_indices(self.length)] = total
        both: Reals = upper + np.triu(upper, 1).T
        both *= unit**2 / np.outer(self._weights(), self._weights())
        return both


def joined(X: Reals, y: Reals | None, private: bool) -> Reals:
    """Records with their labels in [−1, 1], if they have such, as last coordinate. Where something
    is private, nothing is learned from what lies beyond public bounds."""
    whole = X if y is None else np.column_stack([X, y])
    return np.clip(whole, -1.0, 1.0) if private else whole


def noise_std(promise: Promise, block: Block) -> float:
    """The standard deviation of the noise on each number of a block that has the whole promise."""
    if not promise.is_private:
        return 0.0
    levels = Levels.planned(promise, Plan((Stage(Query((block,))),)))
    scale: Any = levels.mechanism(block).scale
    return float(scale) * (math.sqrt(2) if promise.delta == 0 else 1.0)


def seen_count(total: float, noise: float) -> float | None:
    """A noisy number of records, if it stands out from its noise; None if there is none."""
    return total if 0 < FEWEST * noise < total else None


def known_products(
    second: Reals, owner: NDArray[np.int64], count: float, mean: Reals, view: View
) -> Reals:
    """Second moments with what follows from the means where two coordinates of one column meet:
    only one of them is not 0, so the products of (x − centre)/scale need no looking at data."""
    same = np.equal.outer(owner, owner) & ~np.eye(len(owner), dtype=bool)
    if not same.any():
        return second
    centre, scale = view.centre[: len(owner)], view.scale[: len(owner)]
    moved = np.outer(centre, scale * mean)
    product = -(moved + moved.T + np.outer(centre, centre)) * count / np.outer(scale, scale)
    return np.where(same, product, second)
