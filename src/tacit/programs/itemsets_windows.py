"""Frequent item sets over windows: what earlier windows have counted is added to what this one has.

Every window goes through all lengths. Its candidates follow from what all windows so far say of
shorter sets, so sets come and go; each is judged by the windows that were asked about it. All of
this works on noisy numbers only, so it costs no privacy (itemsets.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.programs.apriori import Sets
from tacit.programs.itemsets_model import ItemsetsState
from tacit.programs.supersets import Counts

__all__ = ["added_up", "any_set", "begun"]


def begun(state: ItemsetsState) -> ItemsetsState:
    """Before a window: single items are asked about again; what was found stays the model."""
    items = np.arange(len(state.names), dtype=np.int32)[:, None]
    return replace(state, candidates=items, idle=False)


def any_set(state: ItemsetsState, length: int) -> Sets:
    """A set that a record may hold: what is asked where nothing is left to ask."""
    firsts = np.searchsorted(state.columns, np.arange(length))
    return firsts.astype(np.int32)[None, :]


def added_up(
    counts: Counts, state: ItemsetsState, variance: float
) -> tuple[ItemsetsState, Counts, float]:
    """The state that knows of this round, the counts that all records so far would have, and the
    variance of their noise on average. In the first round their number stands before the counts."""
    if state.idle:
        return state, counts, variance
    first = state.candidates.shape[1] == 1
    if first:
        state = _afresh(state, max(1.0, float(counts[0])))
        counts = counts[1:]
    asked, found, places = _joined(state, counts, variance)
    state = replace(state, asked=asked, found=found)
    sums, records, variances = found[places].T
    scale = state.records / records
    estimated = sums * scale
    if first:
        estimated = np.concatenate([[state.records], estimated])
    return state, estimated, float(np.mean(variances * scale**2))


def _afresh(state: ItemsetsState, own: float) -> ItemsetsState:
    """A window begins: what is frequent is found anew, from the counts of all windows."""
    none = np.empty((0, state.sets.shape[1]), dtype=np.int32)
    return replace(
        state,
        sets=none,
        below=none,
        counts=np.empty(0),
        records=state.records + own,
        own=own,
        trust=(),
        left_out=0,
    )


def _joined(
    state: ItemsetsState, counts: Counts, variance: float
) -> tuple[Sets, Counts, NDArray[np.intp]]:
    """All sets that were ever asked about, what was found of them, and where the candidates are."""
    number, length = state.candidates.shape
    rows = np.full((number, state.asked.shape[1]), -1, dtype=np.int32)
    rows[:, :length] = state.candidates
    new = np.column_stack([counts, np.full(number, state.own), np.full(number, variance)])
    asked, places = np.unique(np.concatenate([state.asked, rows]), axis=0, return_inverse=True)
    places = places.ravel()
    found = np.zeros((len(asked), 3))
    np.add.at(found, places, np.concatenate([state.found, new]))
    return asked, found, places[len(state.asked) :]
