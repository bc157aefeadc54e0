"""Which descriptors a peer keeps after an exchange: Newscast's rule, with two limits (view.md).

Written once, over rows of numbers: a view asks for one row, the simulation of ten thousand peers
for hundreds at a time, and both therefore follow the same rule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["ABSENT", "TIE_BITS", "Integers", "freshest", "most_new", "thinned"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

TIE_BITS = 24
ABSENT = np.int64(1) << (62 - TIE_BITS)  # the age of nothing at all; all real ages are smaller


def most_new(size: int) -> int:
    """How many unknown peers one exchange may put in the place of known ones."""
    return -(-size // 2)


def freshest(ages: Integers, ties: Integers, new: Flags, size: int) -> Integers:
    """For each row of candidates the places of those kept, freshest first, then −1.

    No key stands twice in a row. Equal ages are decided by `ties`, random numbers of `TIE_BITS`
    bits. The `size` freshest are kept, except that unknown ones beyond `most_new` only fill places
    that would stay empty.
    """
    order = np.argsort(ages << TIE_BITS | ties, axis=1)
    unknown = np.take_along_axis(new, order, axis=1)
    behind = unknown & (np.cumsum(unknown, axis=1) > most_new(size))
    there = np.take_along_axis(ages, order, axis=1) < ABSENT
    first = there & ~behind
    rank = np.cumsum(first, axis=1)
    late = rank[:, -1:] + np.cumsum(there & behind, axis=1)
    rank = np.where(behind, late, rank) - 1
    row, column = np.nonzero(there & (rank < size))
    kept = np.full((len(ages), size), -1, dtype=np.int64)
    kept[row, rank[row, column]] = order[row, column]
    return kept


def thinned(ages: Integers, ties: Integers, origins: Integers, most: int) -> Integers:
    """The ages, with `ABSENT` for all but the `most` freshest of each origin in a row."""
    order = np.lexsort((ages << TIE_BITS | ties, origins), axis=1)
    sorted_origins = np.take_along_axis(origins, order, axis=1)
    places = np.broadcast_to(np.arange(ages.shape[1]), ages.shape)
    begins = np.ones_like(order, dtype=np.bool_)
    begins[:, 1:] = sorted_origins[:, 1:] != sorted_origins[:, :-1]
    start = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
    too_many = np.empty_like(begins)
    np.put_along_axis(too_many, order, places - start >= most, axis=1)
    return np.where(too_many, ABSENT, ages)
