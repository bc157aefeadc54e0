"""The rule of freshest.py against the same rule in plain words, row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.channels.peers.freshest import ABSENT, freshest, most_new, thinned

CANDIDATE = st.tuples(
    st.one_of(st.integers(0, 50), st.just(int(ABSENT))), st.booleans(), st.integers(0, 4)
)
ROWS = st.integers(1, 25).flatmap(
    lambda width: st.lists(
        st.lists(CANDIDATE, min_size=width, max_size=width), min_size=1, max_size=4
    )
)


def plainly(row: list[tuple[int, bool, int]], size: int) -> list[int]:
    """Ties go to the left: `ties` is the place."""
    places = sorted((age, place) for place, (age, _, _) in enumerate(row) if age < ABSENT)
    kept: list[int] = []
    late: list[int] = []
    unknown = 0
    for _, place in places:
        unknown += row[place][1]
        (late if row[place][1] and unknown > most_new(size) else kept).append(place)
    return (kept + late)[:size]


def columns(rows: list[list[tuple[int, bool, int]]]) -> tuple[np.ndarray, ...]:
    ages, new, origins = (np.array([[c[k] for c in row] for row in rows]) for k in range(3))
    ties = np.broadcast_to(np.arange(ages.shape[1]), ages.shape)
    return ages.astype(np.int64), ties.astype(np.int64), new.astype(bool), origins


@given(rows=ROWS, size=st.integers(1, 12))
def test_freshest_is_the_plain_rule(rows: list[list[tuple[int, bool, int]]], size: int) -> None:
    ages, ties, new, _ = columns(rows)
    for row, kept in zip(rows, freshest(ages, ties, new, size), strict=True):
        expected = plainly(row, size)
        assert kept.tolist() == expected + [-1] * (size - len(expected))


@given(rows=ROWS, most=st.integers(1, 4))
def test_thinned_keeps_the_freshest_of_each_origin(
    rows: list[list[tuple[int, bool, int]]], most: int
) -> None:
    ages, ties, _, origins = columns(rows)
    for row, left in zip(rows, thinned(ages, ties, origins, most), strict=True):
        for origin in range(5):
            own = sorted((age, p) for p, (age, _, o) in enumerate(row) if o == origin)
            for rank, (age, place) in enumerate(own):
                assert left[place] == (age if rank < most else ABSENT)


def test_ties_are_decided_by_the_random_numbers() -> None:
    ages = np.zeros((1, 3), dtype=np.int64)
    for ties in ([[2, 0, 1]], [[0, 2, 1]]):
        kept = freshest(ages, np.array(ties), np.zeros((1, 3), dtype=bool), 1)
        assert kept.tolist() == [[int(np.argmin(ties))]]


def test_one_exchange_replaces_at_most_half() -> None:
    """Twenty known ones, stale; twenty unknown ones, signed just now."""
    ages = np.array([[100] * 20 + [0] * 20])
    new = np.array([[False] * 20 + [True] * 20])
    kept = freshest(ages, np.arange(40)[None, :], new, 20)[0]
    assert np.count_nonzero(kept >= 20) == 10
