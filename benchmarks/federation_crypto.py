"""Sharing and adding shares, in processor time, against what memory alone costs.

The peers are the floor: one subtraction of that size (sharing with free randomness), reading or
copying the same bytes. Variants take turns in one process, and medians of the turns are compared.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from statistics import median

import numpy as np
from numpy.typing import NDArray

from tacit.cli.bench import Row
from tacit.crypto.ring import RingSum, to_ring
from tacit.crypto.sharing import PIECE, split, split_pieces
from tacit.privacy.bound import Grid

TURNS = 15
CONTEXT = bytes(range(32))
LONG = 1_000_000
SMALL = 124
HOLDERS = 10_000
WIDTH = 10_000
RADIUS = 100.0
GRID = Grid(Fraction(1, 1 << 20))

Run = Callable[[], object]


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    say(f"sharing a vector of {LONG:,}, {TURNS} turns …")
    yield from _sharing()
    say(f"adding {HOLDERS:,} shares of {SMALL}, {TURNS} turns …")
    yield from _adding_small()
    say(f"adding {HOLDERS:,} shares of {WIDTH:,}, {TURNS} turns …")
    yield from _adding_wide()


def _sharing() -> Iterator[Row]:
    reals = np.random.default_rng(1).normal(size=LONG)
    words = to_ring(GRID.encode(reals))
    mask, out = np.ones(LONG, dtype=np.uint64), np.zeros(LONG, dtype=np.uint64)
    floor, two, three, whole = _medians(
        lambda: np.subtract(words, mask, out=out),
        lambda: split(words, 2, CONTEXT),
        lambda: split(words, 3, CONTEXT),
        lambda: split_pieces(_clipped_and_encoded(reals), LONG, 2, CONTEXT),
    )
    peer = "one subtraction"
    yield Row(f"share {LONG:,} words, m = 2: s", two, floor, peer, 2.2, at_most=True)
    yield Row(f"share {LONG:,} words, m = 3: s", three, floor, peer, 3.5, at_most=True)
    what = f"clip, encode, share {LONG:,} reals, m = 2: s"
    yield Row(what, whole, floor, peer, 6.0, at_most=True)


def _clipped_and_encoded(reals: NDArray[np.float64]) -> Iterator[NDArray[np.uint64]]:
    """What `clip_to_ball` and `Grid.encode` make of one long row, a piece at a time."""
    pieces = [reals[i : i + PIECE] for i in range(0, len(reals), PIECE)]
    length = math.sqrt(sum(float(np.einsum("i,i->", piece, piece)) for piece in pieces))
    safe = RADIUS * (1.0 - (len(reals) + 8) * np.finfo(np.float64).eps)
    factor = min(1.0, safe / length)
    for piece in pieces:
        yield to_ring(GRID.encode(piece * factor))


def _adding_small() -> Iterator[Row]:
    matrix = np.frombuffer(os.urandom(8 * HOLDERS * SMALL), dtype=np.uint64).reshape(-1, SMALL)
    bodies = [row.tobytes() for row in matrix]
    seeds = [os.urandom(32) for _ in range(HOLDERS)]
    copy = np.zeros_like(matrix)
    copied, full, seeded = _medians(
        lambda: np.copyto(copy, matrix),
        lambda: RingSum(SMALL).add(bodies),
        lambda: RingSum(SMALL).add_seeds(seeds, CONTEXT),
    )
    what = f"add {HOLDERS:,} × {SMALL}"
    yield Row(f"{what}, full shares: s", full, copied, "one copy", 2.0, at_most=True)
    yield Row(f"{what}, seeds: s", seeded, full, "full shares", 6.0, at_most=True)


def _adding_wide() -> Iterator[Row]:
    matrix = np.zeros((HOLDERS, WIDTH), dtype=np.uint64)
    matrix += np.arange(HOLDERS, dtype=np.uint64)[:, None]
    read, added = _medians(
        lambda: matrix.reshape(-1).sum(), lambda: RingSum(WIDTH).add_rows(matrix)
    )
    what = f"add {HOLDERS:,} × {WIDTH:,}, full shares in one buffer: s"
    yield Row(what, added, read, "reading once", 1.3, at_most=True)


def _medians(*runs: Run) -> list[float]:
    turns = [[_seconds(run) for run in runs] for _ in range(TURNS)]
    return [median(side) for side in zip(*turns, strict=True)]


def _seconds(run: Run) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
