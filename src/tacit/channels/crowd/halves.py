"""Halves of a table's cells: what is asked where liars must weigh little (proof: halves.md).

Cells are numbered from 0; K is the least power of two that is no less than their number. Half j,
for j from 1 to K − 1, holds the cells i for which i & j has an odd number of ones: where column j
of Sylvester's Hadamard matrix is −1. People are assigned to halves by lot and answer yes or no.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Halved", "halves_of", "in_half", "order_of", "weight_of"]

Reals = NDArray[np.float64]


def order_of(cells: int) -> int:
    """K: of the Hadamard matrix."""
    return 1 << (cells - 1).bit_length()


def halves_of(cells: int) -> int:
    """How many halves there are."""
    return order_of(cells) - 1


def weight_of(half: int) -> int:
    """How many times as many people as the least are asked about it.

    Odd halves say how features and label go together, which is what is learned; half 1 is of the
    label alone, which all tables tell, and even ones are of the features alone.
    """
    return 2 if half & 1 and half > 1 else 1


def in_half(cells: NDArray[np.int64], half: int) -> NDArray[np.int64]:
    """1 for the cells that are in it, 0 for the others."""
    return np.asarray(np.bitwise_count(cells & half) & 1, dtype=np.int64)


class Halved(NamedTuple):
    """What answers about the halves of one table say of its cells.

    counts     of people in each cell, unbiased
    variances  of these counts: by the randomiser's noise and by who was asked about which half
    """

    counts: Reals
    variances: Reals

    @classmethod
    def estimated(
        cls, cells: int, answers: Mapping[int, tuple[float, int]], contrast: float
    ) -> Halved:
        """From, for each half, the estimated number of people in it and how many were asked.

        contrast  hit − miss of the randomiser: an answer's mean is so much of the truth's
        """
        order, people = order_of(cells), sum(asked for _, asked in answers.values())
        # What column j of the matrix says of the shares: 1 − 2·(share of half j). Of all cells
        # together, column 0, it is 1. Nobody asked: anything between −1 and 1, so 0 and variance 1.
        means, spread = np.zeros(order), np.ones(order)
        means[0], spread[0] = 1.0, 0.0
        for half, (inside, asked) in answers.items():
            if asked:
                means[half] = 1 - 2 * inside / asked
                signal = contrast * np.clip(means[half], -1.0, 1.0)
                spread[half] = (1 - signal**2) / (contrast**2 * asked)
        signs = np.column_stack([1 - 2 * in_half(np.arange(cells), j) for j in range(order)])
        variance = people**2 * spread.sum() / order**2
        return cls(people * (signs @ means) / order, np.full(cells, variance))
