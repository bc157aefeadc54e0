"""No training row knows anything that happens in the test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.personal.learning.splits import LEAST_MOMENTS, time_blocks, time_splits

MOMENTS = st.lists(st.integers(0, 60), min_size=10, max_size=120).filter(
    lambda times: len(set(times)) >= LEAST_MOMENTS
)


@given(MOMENTS, st.integers(0, 12))
def test_training_labels_are_complete_before_the_test_begins(times: list[int], span: int) -> None:
    cutoffs = np.array(times, np.int64)
    try:
        splits = time_splits(cutoffs, span, 0)
    except InputError:
        assume(False)
    assert splits.in_time
    for split in (*splits.folds, splits.final):
        begin = cutoffs[split.test].min()
        assert len(split.train)
        assert cutoffs[split.train].max() < begin
        assert (cutoffs[split.train] + span).max() <= begin


@given(MOMENTS)
def test_folds_are_in_order_and_the_last_test_is_in_none(times: list[int]) -> None:
    cutoffs = np.array(times, np.int64)
    splits = time_splits(cutoffs, 0, 0)
    last = set(splits.final.test.tolist())
    seen: set[int] = set()
    for fold in splits.folds:
        rows = set(fold.test.tolist())
        assert not rows & seen
        assert not last & (rows | set(fold.train.tolist()))
        assert cutoffs[fold.test].max() < cutoffs[splits.final.test].min()
        seen |= rows
    everything = set(splits.final.train.tolist()) | last
    assert everything == set(range(len(times)))


def test_rows_of_one_moment_stay_together() -> None:
    cutoffs = np.repeat(np.arange(20), 7).astype(np.int64)
    splits = time_splits(cutoffs, 1, 0)
    for split in (*splits.folds, splits.final):
        assert not set(cutoffs[split.train]) & set(cutoffs[split.test])
    assert len(splits.final.test) == 35
    assert len(splits.folds) == 5


def test_one_moment_is_split_at_random_and_says_so() -> None:
    cutoffs = np.zeros(40, np.int64)
    splits, again, other = (time_splits(cutoffs, 0, seed) for seed in (1, 1, 2))
    assert not splits.in_time
    assert splits.final.test.tolist() == again.final.test.tolist()
    assert splits.final.test.tolist() != other.final.test.tolist()
    for fold in splits.folds:
        assert not set(fold.train) & set(fold.test)
        assert not set(splits.final.test) & (set(fold.train) | set(fold.test))


def test_labels_that_look_too_far_ahead() -> None:
    with pytest.raises(InputError, match=r"look 0\.5 days ahead .* only 0\.25 days.* shorter"):
        time_splits(np.arange(0, 21_600_000_001, 1_080_000_000), 43_200_000_000, 0)


def test_blocks_hold_labels_that_overlap() -> None:
    cutoffs = np.array([0, 0, 1, 2, 3, 4, 9, 10], np.int64)
    assert time_blocks(cutoffs, 0).tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    assert time_blocks(cutoffs, 3).tolist() == [0, 0, 0, 0, 1, 1, 2, 2]
