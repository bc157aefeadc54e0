"""Which rows train and which test, in the order of time.

A model is to say what comes next, so it is judged on rows later than those it learned from. Rows at
random would let it look at both sides of the row asked about, and whatever drifts with time would
seem to predict (Bergmeir and Benítez, "On the use of cross-validation for time series predictor
evaluation", Information Sciences 191, 2012). A label that looks ahead reaches past its cut-off:
training rows whose labels were not yet known when the test begins are left out (López de Prado,
"Advances in Financial Machine Learning", 2018, section 7.4, calls it purging).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.personal.learning.resampling import shuffled

__all__ = ["Split", "Splits", "time_blocks", "time_splits"]

Places = NDArray[np.int64]
Moments = NDArray[np.int64]

HELD_OUT = 0.25  # the latest share of the rows, for the last test
MOST_FOLDS = 5
ROWS_A_FOLD = 4  # no more folds than leave each this many rows
LEAST_TRAIN = 3
LEAST_MOMENTS = 8  # with fewer distinct cut-offs there is no order of time to speak of
DAY = 86_400_000_000


@dataclass(frozen=True)
class Split:
    """Places of rows, ascending in time. No training label reaches into the test."""

    train: Places
    test: Places


@dataclass(frozen=True)
class Splits:
    """Folds for choosing, and the last test, whose rows are in no fold.

    in_time  false where the cut-offs are too few to order the rows: these are then split at random
    blocks   for each row, which others it shares its time with: rows of one block are one example
             as far as chance is concerned
    """

    folds: tuple[Split, ...]
    final: Split
    in_time: bool
    blocks: Places


def time_splits(cutoffs: Moments, span: int, seed: int) -> Splits:
    """Split rows whose labels look at most `span` microseconds past their cut-offs.

    Rows of one cut-off stay together. With fewer than LEAST_MOMENTS distinct cut-offs, as when
    everything is asked at one date, no row is before another, and the split is random.
    """
    if len(np.unique(cutoffs)) < LEAST_MOMENTS:
        return _random(len(cutoffs), seed)
    order = np.argsort(cutoffs, kind="stable")
    (begin,) = _borders(cutoffs[order], [1 - HELD_OUT])
    final = _split(cutoffs, order, begin, None, span)
    early = final.train
    wanted = _fold_count(len(early))
    borders = _borders(cutoffs[early], [part / (wanted + 1) for part in range(1, wanted + 1)])
    ends = [*borders[1:], None] if borders else []
    folds = [
        _split(cutoffs, early, first, end, span) for first, end in zip(borders, ends, strict=True)
    ]
    usable = tuple(fold for fold in folds if len(fold.train) >= LEAST_TRAIN)
    if not usable:
        reach = (int(cutoffs.max()) - int(cutoffs.min())) / DAY
        raise InputError(
            f"the labels look {span / DAY:.3g} days ahead and the examples reach over only "
            f"{reach:.3g} days: none were known before the others began. Ask about a shorter "
            "horizon, or import older data."
        )
    return Splits(usable, final, True, time_blocks(cutoffs, span))


def time_blocks(cutoffs: Moments, span: int) -> Places:
    """For each row its block: cut-offs less than `span` apart share events in their labels.

    Blocks that do not overlap keep what rows have in common when they are drawn anew (Carlstein,
    Annals of Statistics 14, 1986).
    """
    moments, back = np.unique(cutoffs, return_inverse=True)
    blocks = np.empty(len(moments), np.int64)
    block, began = -1, 0
    for place, moment in enumerate(moments.tolist()):
        if block < 0 or moment - began >= max(span, 1):
            block, began = block + 1, moment
        blocks[place] = block
    result: Places = blocks[back]
    return result


def _fold_count(rows: int) -> int:
    return max(2, min(MOST_FOLDS, rows // ROWS_A_FOLD - 1))


def _borders(ordered: Moments, shares: list[float]) -> list[int]:
    """Moments that leave about these shares of the rows before them; each once, never the first."""
    moments, first = np.unique(ordered, return_index=True)
    moments, before = moments[1:], first[1:] / len(ordered)
    if not len(moments):
        return []
    nearest = {int(np.argmin(np.abs(before - share))) for share in shares}
    return [int(moments[place]) for place in sorted(nearest)]


def _split(cutoffs: Moments, places: Places, begin: int, end: int | None, span: int) -> Split:
    """Of these places, test [begin, end); train on what was known before `begin`."""
    times = cutoffs[places]
    tested = (times >= begin) & (times < end if end is not None else True)
    known = (times < begin) & (times <= begin - span)
    return Split(places[known], places[tested])


def _random(rows: int, seed: int) -> Splits:
    order = shuffled(rows, seed, "split")
    begin = rows - max(1, round(rows * HELD_OUT))
    early, late = order[:begin], order[begin:]
    parts = np.array_split(early, _fold_count(len(early)))
    folds = tuple(Split(np.setdiff1d(early, part), np.sort(part)) for part in parts)
    return Splits(folds, Split(np.sort(early), np.sort(late)), False, np.arange(rows))
