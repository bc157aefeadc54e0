"""Where records lie, by noisy counts: a tree of nested cells, refined only where records are.

Each round cuts every open cell into 16 parts, halving four axes, and counts the records in each.
The parts whose counts are surely not noise are opened in the next round. So a thousand counts a
round find places that a grid would need a million cells for (Zhang, Xiao & Xie 2016 decide by noisy
counts, too, where to go on). Proof: mixture.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_OPEN", "PARTS", "Leaves", "Opened", "cells_of", "depth_for", "opened", "shape_of"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

BITS = 4  # of each round: halvings
PARTS = 2**BITS
MOST_OPEN = 64  # cells that one round cuts: the fullest
DEEPEST = 5  # rounds
FINEST = 10  # halvings of one axis, about: to a thousandth of its range


@dataclass(frozen=True, slots=True)
class Opened:
    """What is left to look into, and what is not looked into any more.

    cells    those to be cut in the next round, as numbers of the depth they are at, rising
    counts   of these
    leaves   (leaves, 3): depth, number and count of each cell that is not cut
    """

    cells: Integers
    counts: Reals
    leaves: Reals


@dataclass(frozen=True, slots=True)
class Leaves:
    """Boxes with records: their middles, half widths squared / 3 (the variance inside), counts."""

    middles: Reals
    variances: Reals
    counts: Reals


def depth_for(width: int) -> int:
    """How many rounds: no axis is halved much more often than `FINEST` times."""
    return min(DEEPEST, -(-FINEST * width // BITS))


def opened(before: Opened, counts: Reals, depth: int, sure: float, last: bool) -> Opened:
    """After a round: `counts` are those of the parts of `before.cells`, which are at `depth`.

    `sure`   a count above it is not noise alone
    """
    parts = counts.reshape(len(before.cells), PARTS)
    kept = _fullest(parts, sure)
    # What a cell holds beside its opened parts stays behind in it, if that is sure to be there.
    rest = before.counts - np.where(kept, parts, 0.0).sum(axis=1)
    left = rest > sure * np.sqrt(1.0 + kept.sum(axis=1))
    leaves = _rows(depth, before.cells[left], rest[left])
    numbers = before.cells[:, None] * PARTS + np.arange(PARTS)
    cells, found = numbers[kept], parts[kept]
    leaves = np.vstack([before.leaves, leaves])
    if last:
        leaves = np.vstack([leaves, _rows(depth + 1, cells, found)])
        cells, found = cells[:0], found[:0]
    return Opened(cells, found, leaves)


def _fullest(parts: Reals, sure: float) -> NDArray[np.bool_]:
    """Those that surely hold records, and the fullest; no more than may be open."""
    flat = parts.ravel()
    kept = flat > sure
    if kept.sum() > MOST_OPEN:
        kept = np.zeros(len(flat), dtype=np.bool_)
        kept[np.argsort(-flat, kind="stable")[:MOST_OPEN]] = True
    kept[flat.argmax()] = True  # so that there is always one
    return kept.reshape(parts.shape)


def _rows(depth: int, cells: Integers, counts: Reals) -> Reals:
    return np.column_stack([np.full(len(cells), float(depth)), cells, counts])


def cells_of(X: Reals, low: Reals, high: Reals, depth: int) -> Integers:
    """The cell of each vector at this depth. Axes are halved in turn, first to last, over again."""
    bits = depth * BITS
    halvings = _halvings(len(low), bits)
    values = (X - low) / _range(low, high) * 2.0**halvings
    steps = np.clip(np.nan_to_num(values), 0.0, 2.0**halvings - 1).astype(np.int64)
    found, left = np.zeros(len(X), dtype=np.int64), halvings.copy()
    for bit in range(bits):
        axis = bit % len(low)
        left[axis] -= 1
        found = 2 * found + ((steps[:, axis] >> left[axis]) & 1)
    return found


def shape_of(opened: Opened, depth: int, low: Reals, high: Reals) -> Leaves:
    """All boxes that records were found in; `depth` is that of the cells still open."""
    rows = np.vstack([opened.leaves, _rows(depth, opened.cells, opened.counts)])
    rows = rows[rows[:, 2] > 0]
    if not len(rows):
        rows = np.array([[0.0, 0.0, 1.0]])  # nobody was found: anywhere
    middles, sides = np.empty((len(rows), len(low))), np.empty((len(rows), len(low)))
    for level in np.unique(rows[:, 0]).astype(int):
        here = rows[:, 0] == level
        middles[here], sides[here] = _boxes(rows[here, 1].astype(np.int64), level, len(low))
    middles = low + middles * (high - low)
    return Leaves(middles, (sides * (high - low)) ** 2 / 12, rows[:, 2])


def _boxes(cells: Integers, depth: int, width: int) -> tuple[Reals, Reals]:
    """Middles and sides in the unit cube."""
    bits = depth * BITS
    low, side = np.zeros((len(cells), width)), np.ones(width)
    for bit in range(bits):
        axis = bit % width
        side[axis] /= 2
        low[:, axis] += ((cells >> (bits - 1 - bit)) & 1) * side[axis]
    return low + side / 2, np.broadcast_to(side, low.shape)


def _halvings(width: int, bits: int) -> Integers:
    return np.bincount(np.arange(bits) % width, minlength=width)


def _range(low: Reals, high: Reals) -> Reals:
    return np.where(high > low, high - low, 1.0)
