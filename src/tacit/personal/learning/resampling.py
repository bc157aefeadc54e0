"""Orders and draws with repetition that follow from a seed.

They decide nothing that protects anybody: only which rows are drawn again to see how far a score
moves by chance. They come from the one source of random numbers in the house, so that the same seed
gives the same report whatever the version of numpy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import SeededRandomness
from tacit.privacy.noise import uniform_below

__all__ = ["block_weights", "shuffled"]

TIES_NEVER = 2**62


def shuffled(rows: int, seed: int, purpose: str, times: int = 1) -> NDArray[np.int64]:
    """All rows in random order: one order, or (times > 1) as many, one after the other."""
    drawn = uniform_below(TIES_NEVER, rows * times, SeededRandomness(f"{purpose} {seed}"))
    return np.argsort(drawn.reshape(times, rows), axis=1, kind="stable").ravel()


def block_weights(blocks: NDArray[np.int64], draws: int, seed: int) -> NDArray[np.float64]:
    """How often each row is drawn (draws × rows) when whole blocks are drawn with repetition."""
    _, place = np.unique(blocks, return_inverse=True)
    many = int(place.max()) + 1
    drawn = uniform_below(many, draws * many, SeededRandomness(f"bootstrap {seed}"))
    rows = np.repeat(np.arange(draws), many)
    counts = np.bincount(rows * many + drawn, minlength=draws * many).reshape(draws, many)
    result: NDArray[np.float64] = counts[:, place].astype(np.float64)
    return result
