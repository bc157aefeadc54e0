"""Where the values of a column lie, from noisy counts: first to a power of two, then closely.

Pure functions of public numbers and noisy counts; the program that asks for them is in ranges.py,
what they promise in ranges.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit.privacy.bound import Norm

__all__ = ["BINS", "CELLS", "SHARE", "Noise", "bin_of", "cell_of", "closely", "roughly"]

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

# Powers of two that are told apart: 2^-20 (a millionth) to 2^40 (a trillion); smaller magnitudes
# count as zero, larger ones as the largest.
LOWEST, HIGHEST = -20, 40
POWERS = HIGHEST - LOWEST + 1
CELLS = 2 * POWERS + 1  # −2^40 … −2^-20, 0, 2^-20 … 2^40
# Bins within the span that was found roughly, and beyond each of its ends up to the next power.
INSIDE, BEYOND = 28, 4
BINS = INSIDE + 2 * BEYOND
# In this share of the columns noise alone is taken for records: where there are none at all, and
# far from all others, which would spoil the range.
FALSE_ALARM, FAR_ALARM = 1e-4, 1e-9
# Neighbouring cells are looked at together too, and once a place is sure, cells within NEAR powers
# of it need less to be counted as occupied: what they do wrong, the second round puts right.
TOGETHER, NEAR, LIKELY = 3, 2, 3.0
# At most this share of the records is meant to lie below a range, and as many above it.
SHARE = 0.002
# Bins, so many neighbours at a time, or all from the outermost one, hold records where their count
# is so many standard deviations of its noise.
LENGTHS, SURE, SURELY = (1, 2, 4, 8, 16), 4.2, 3.7
# A tail is followed outwards by this part of the way from FURTHER times its share to its end.
FURTHER, NEARLY, FOLLOWED = 4.0, 0.5, 1.0


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviation of the noise on each count; 0 where there is none."""

    deviation: float
    norm: Norm

    def threshold(self, cells: int, alarm: float = FALSE_ALARM) -> float:
        """What the largest of so many noises exceeds with probability at most `alarm`."""
        if self.deviation == 0:
            return 0.5
        if self.norm is Norm.L1:
            return self.deviation / math.sqrt(2) * math.log(cells / (2 * alarm))
        return self.deviation * float(-ndtri(alarm / cells))


# ── roughly: sign and power of two ──


def cell_of(X: Reals) -> Integers:
    """The cell of each number, in the order of their values; −1 for what is no number."""
    # |x| = m · 2^e with m in [1/2, 1): exact, whereas a logarithm has last bits that may differ.
    power = np.frexp(X)[1] - 1
    power = np.where(np.isinf(X), HIGHEST, np.where(X == 0, LOWEST - 1, power))
    place = np.clip(power, LOWEST - 1, HIGHEST) - LOWEST + 1  # 0 for what counts as zero
    cells = POWERS + np.sign(X) * place
    return np.where(np.isnan(cells), -1, cells).astype(np.int64)


def roughly(counts: Reals, noise: Noise) -> tuple[Reals, bool]:
    """Four knots: the span of the surely occupied cells, and around it the next powers of two.

    False if nothing but zeros was surely there: the knots are those of a guess then. False too if
    records are among the largest that are told apart: how much larger they are, nobody sees.
    """
    span = _occupied(counts, noise)
    if span is None:
        return _guessed(counts, noise), False
    first, last = span
    low, high = _ends(first)[0], _ends(last)[1]
    # What begins close to zero, as seen from its far end, begins at zero.
    if 0 < low < high / 8:
        low = 0.0
    if low / 8 < high < 0:
        high = 0.0
    before = low * 2 if low < 0 else low / 2
    after = high * 2 if high > 0 else high / 2
    return np.array([before, low, high, after]), first > 0 and last < CELLS - 1


def _occupied(counts: Reals, noise: Noise) -> tuple[int, int] | None:
    """The first and the last occupied cell; None if none is sure, or zero alone."""
    threshold = noise.threshold(2 * CELLS)
    others = counts.copy()
    others[POWERS] = 0.0  # zeros say nothing of how large the others are
    sums = np.convolve(others, np.ones(TOGETHER), mode="same")
    heaviest = int(others.argmax())
    if others[heaviest] <= threshold:
        heaviest = int(sums.argmax())
        if sums[heaviest] <= threshold * math.sqrt(TOGETHER):
            return None
    sure = {heaviest, *np.flatnonzero(counts > noise.threshold(CELLS, FAR_ALARM)).tolist()}
    if counts[POWERS] > threshold:
        sure.add(POWERS)
    likely = np.flatnonzero(counts > max(LIKELY * noise.deviation, 0.5)).tolist()
    grown = True
    while grown:
        more = [cell for cell in likely if cell not in sure and _is_near(cell, sure)]
        sure.update(more)
        grown = bool(more)
    return min(sure), max(sure)


def _is_near(cell: int, others: set[int]) -> bool:
    """Of about the same size as one of the others, with its sign or the opposite one."""
    return any(min(abs(cell - one), abs(2 * POWERS - cell - one)) <= NEAR for one in others)


def _guessed(counts: Reals, noise: Noise) -> Reals:
    """Around zero: as far as the power of two that is the likeliest near 1, or 1."""
    scale = noise.deviation or 1.0
    powers = np.arange(LOWEST + 1, HIGHEST + 2, dtype=np.float64)
    both = (counts[POWERS + 1 :] + counts[POWERS - 1 :: -1]) / scale
    # Far from 1 a guess needs more behind it: for no reason but the noise, all are as likely.
    evidence = both - np.abs(powers) / 4
    best = int(evidence.argmax())
    reach = 2.0 ** float(powers[best]) if evidence[best] > LIKELY else 1.0
    return np.array([-reach, -reach, reach, reach])


def _ends(cell: int) -> tuple[float, float]:
    place = cell - POWERS
    if place == 0:
        return 0.0, 0.0
    near, far = 2.0 ** (LOWEST + abs(place) - 1), 2.0 ** (LOWEST + abs(place))
    return (near, far) if place > 0 else (-far, -near)


# ── closely: bins across the knots ──


def bin_of(X: Reals, knots: Reals) -> Integers:
    """The bin of each number, one column for each row of knots; −1 for what is no number.

    What lies beyond the outer knots is in the outermost bins.
    """
    before, low, high, after = knots.T
    last = BINS - BEYOND
    with np.errstate(all="ignore"):  # knots that lie on one another have no bins between them
        below = np.clip(BEYOND * (X - before) / (low - before), 0, BEYOND - 1)
        inside = np.clip(BEYOND + INSIDE * (X - low) / (high - low), BEYOND, last - 1)
        above = np.clip(last + BEYOND * (X - high) / (after - high), last, BINS - 1)
    bins = np.where(low > X, below, np.where(high >= X, inside, above))
    return np.where(np.isnan(bins) | np.isnan(X), -1, bins).astype(np.int64)


def closely(counts: Reals, knots: Reals, known: bool, noise: Noise) -> tuple[float, float, bool]:
    """low, high, and whether the counts tell of it; if not, they are the knots' own ends."""
    if not known:
        return float(knots[1]), float(knots[2]), False
    edges = _edges(knots)
    whole = float(counts.sum())
    left = _end(counts, edges, whole, noise)
    right = _end(counts[::-1], edges[::-1], whole, noise)
    if left is None or right is None or not left < right:
        return float(knots[1]), float(knots[2]), False
    low, high = max(left, float(knots[0])), min(right, float(knots[3]))
    return low, high, low < high and not _alone(counts, edges, left, right, noise)


def _alone(counts: Reals, edges: Reals, left: float, right: float, noise: Noise) -> bool:
    """Whether all records may lie in one bin: a constant, or so narrow beside its distance from
    zero that there is no telling where in the bin they are."""
    most = int(counts.argmax())
    if left >= edges[most] and right <= edges[most + 1]:
        return True
    others = float(counts.sum() - counts[most])
    noisy = SURE * noise.deviation * math.sqrt(len(counts))
    return bool(counts[most] > 0.9 * counts.sum() and 0 < others < noisy)


def _edges(knots: Reals) -> Reals:
    before, low, high, after = knots
    parts = (
        np.linspace(before, low, BEYOND, endpoint=False),
        np.linspace(low, high, INSIDE, endpoint=False),
        np.linspace(high, after, BEYOND + 1),
    )
    return np.concatenate(parts)


def _end(counts: Reals, edges: Reals, whole: float, noise: Noise) -> float | None:
    """From the first bin inwards: the first few bins that hold more than noise and more than SHARE
    of the records, followed outwards as the tail falls; None if that is nowhere."""
    if noise.deviation == 0:
        return float(edges[np.flatnonzero(counts > 0.5)[0]]) if whole > 0.5 else None
    below = np.concatenate([[0.0], np.cumsum(counts)])
    found = [_first_few(below, whole, noise), _outermost(below, whole, noise)]
    ends = [_followed(below, edges, whole, *one) for one in found if one is not None]
    if not ends:
        return None
    return min(ends) if edges[0] <= edges[-1] else max(ends)


def _first_few(below: Reals, whole: float, noise: Noise) -> tuple[int, float, float] | None:
    """Neighbouring bins that surely hold records: those that are complete first, coming inwards."""
    stops = []
    for length in LENGTHS:
        sums = below[length:] - below[:-length]
        needed = max(SURE * noise.deviation * math.sqrt(length), SHARE * whole)
        if (sums >= needed).any():
            start = int(np.argmax(sums >= needed))
            stops.append((start + length, length, start, float(sums[start])))
    return None if not stops else (*min(stops)[2:], NEARLY)


def _outermost(below: Reals, whole: float, noise: Noise) -> tuple[int, float, float] | None:
    """All bins from the outermost one that together surely hold records: that is where the bin
    begins which makes them enough."""
    count = np.arange(1, len(below))
    needed = np.maximum(SURELY * noise.deviation * np.sqrt(count), SHARE * whole)
    enough = below[1:] >= needed
    if not enough.any():
        return None
    start = int(np.argmax(enough))
    return start, float(needed[start]), FOLLOWED


def _followed(
    below: Reals, edges: Reals, whole: float, start: int, share: float, part: float
) -> float:
    """The outer edge of bin `start`, moved outwards as the tail falls: by a part of the way that
    lies between it and where the share outside is FURTHER times as large."""
    outer = float(edges[start])
    further = below[start] + min(FURTHER * share, max(share, whole / 2))
    inner = float(edges[max(start, int(np.argmax(below >= further)) - 1)])
    return outer + part * (outer - inner)
