"""Z_2^64, the ring that shares live in: integers modulo 2^64, as numpy's uint64.

Numpy's unsigned arithmetic wraps silently, which here is the arithmetic that is wanted: additions
cost what memory costs, and there is no reduction to forget. A signed sum is recovered exactly if it
fits 64 bits, whatever wrapped on the way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.sharing import add_expansions
from tacit.errors import InputError, UsageError

__all__ = ["WORD_BYTES", "RingSum", "from_ring", "to_ring"]

WORD_BYTES = 8
# Bodies up to SMALL words are joined and added as one matrix, which saves a call per body; beyond,
# copying costs more than calling. JOINED words at a time (512 kB) stay in the second-level cache.
SMALL = 1 << 11
JOINED = 1 << 16
# Rows of a large matrix are added as wider rows of about 1 MB, folded at the end: longer runs let
# the processor fetch ahead (1.4 times faster at d = 10,000).
WIDE = 1 << 17


def to_ring(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The same 64 bits, read modulo 2^64: −1 is 2^64 − 1. A view, nothing is copied."""
    if values.dtype != np.int64:
        raise UsageError(f"only int64 becomes ring elements, not {values.dtype}: encode it first.")
    return values.view(np.uint64)


def from_ring(elements: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The representative in [−2^63, 2^63) of each element. A view, nothing is copied."""
    if elements.dtype != np.uint64:
        raise UsageError(f"ring elements are uint64, not {elements.dtype}.")
    return elements.view(np.int64)


class RingSum:
    """A running sum of share vectors of one length, as a server keeps it.

    Shares come as stored bodies (8 bytes a word, little-endian), as rows of a matrix, or as seeds.
    What is refused changes nothing.
    """

    def __init__(self, length: int) -> None:
        if length < 1:
            raise UsageError(f"a share has at least one word, not {length}.")
        self._sum = np.zeros(length, dtype=np.uint64)

    @property
    def total(self) -> NDArray[np.uint64]:
        """A copy of the sum so far."""
        return self._sum.copy()

    def add(self, bodies: Sequence[bytes]) -> None:
        """Add full shares as they were received, each of a length that was checked then."""
        length = len(self._sum)
        added = np.zeros(length, dtype=np.uint64)
        count = JOINED // length if length <= SMALL else 1
        for first in range(0, len(bodies), count):
            some = bodies[first : first + count]
            joined = some[0] if count == 1 else b"".join(some)
            # One look at the joined length is a quarter of the time of a look at every body.
            if len(joined) != WORD_BYTES * length * len(some):
                self._refuse(some)
            added += np.frombuffer(joined, dtype="<u8").reshape(-1, length).sum(axis=0)
        self._sum += added

    def _refuse(self, bodies: Sequence[bytes]) -> None:
        length = len(self._sum)
        size = WORD_BYTES * length
        wrong = next(len(body) for body in bodies if len(body) != size)
        raise InputError(
            f"a share of {length} words has {size} bytes, not {wrong}: its holder follows another "
            "study or round."
        )

    def add_rows(self, rows: NDArray[np.uint64]) -> None:
        """Add full shares that lie one after another in memory: the rows of one matrix."""
        length = len(self._sum)
        if rows.dtype != np.uint64 or rows.ndim != 2 or rows.shape[1] != length:
            raise InputError(
                f"shares to add are a matrix of uint64 with {length} columns, not of "
                f"{rows.dtype} with shape {rows.shape}."
            )
        count = max(1, WIDE // length)
        whole = len(rows) // count * count
        if whole:
            wide = rows[:whole].reshape(-1, count * length).sum(axis=0)
            self._sum += wide.reshape(count, length).sum(axis=0)
        self._sum += rows[whole:].sum(axis=0)

    def add_seeds(self, seeds: Sequence[bytes], context: bytes) -> None:
        """Add the shares that seeds stand for, under the context their holders used."""
        add_expansions(self._sum, seeds, context)
