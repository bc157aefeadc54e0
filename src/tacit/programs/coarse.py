"""Sums of so many units that their finest digits would not fit an integer (proof: coarse.md).

Contributions are clipped and added on the block's own fine grid. Only the holder's whole sum is
rounded, once, to 2^shift steps: one rounding for all of its records, instead of one for each of
them. Until then a sum is carried in two integers, its high and its low digits, each far from
overflow; so what is rounded is the exact sum, in whatever order and batches it was added.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.programs.program import Block, Query

__all__ = ["carried_length", "carry", "combined", "is_coarse"]

Integers = NDArray[np.int64]


def is_coarse(query: Query) -> bool:
    """Whether sums of any block are rounded."""
    return any(block.shift for block in query.blocks)


def carried_length(query: Query) -> int:
    """Of what `carry` gives for one vector."""
    return query.length * (2 if is_coarse(query) else 1)


def carry(vectors: Integers, query: Query) -> Integers:
    """Exact integers (along the last axis) as high digits and, behind them, low ones: such vectors
    can be added up as they are. Where nothing is rounded, the integers themselves."""
    if not is_coarse(query):
        return vectors
    shifts = _shifts(query)
    high = vectors >> shifts
    return np.concatenate([high, vectors - (high << shifts)], axis=-1)


def combined(carried: Integers, query: Query) -> Integers:
    """What leaves the holder: the carried sum, rounded to the nearest multiple of 2^shift steps of
    each block and counted in these; halves are rounded up."""
    if not is_coarse(query):
        return carried
    high, low = carried[: query.length], carried[query.length :]
    shifts = _shifts(query)
    half = (np.int64(1) << shifts) >> 1
    return np.asarray(high + ((low + half) >> shifts))


def _shifts(query: Query) -> Integers:
    return np.concatenate([_shift(block) for block in query.blocks])


def _shift(block: Block) -> Integers:
    return np.full(block.length, block.shift, dtype=np.int64)
