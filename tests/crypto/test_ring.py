"""The ring Z_2^64: signed numbers in and out, and sums of shares in every form they come in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto import ring
from tacit.crypto.ring import RingSum, from_ring, to_ring
from tacit.crypto.sharing import SHORT, expand
from tacit.errors import InputError, UsageError

CONTEXT = bytes(range(32))
INT64 = st.integers(-(2**63), 2**63 - 1)
# On both sides of the lengths at which the way of adding changes.
LENGTHS = [1, 2, 124, ring.SMALL, ring.SMALL + 1, ring.WIDE // 2 + 1, ring.WIDE + 1]


def some_words(count: int, length: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    return np.random.default_rng(length).integers(0, 2**64, (count, length), dtype=np.uint64)


def exact(matrix: np.ndarray[tuple[int, int], np.dtype[np.uint64]], column: int) -> int:
    """The sum of a column in Python's integers, which do not wrap."""
    return sum(int(word) for word in matrix[:, column]) % 2**64


@given(st.lists(INT64, min_size=1, max_size=20))
def test_signed_numbers_survive(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    assert to_ring(array).tolist() == [value % 2**64 for value in values]
    assert from_ring(to_ring(array)).tolist() == values


def test_conversions_are_views() -> None:
    values = np.zeros(3, dtype=np.int64)
    assert np.shares_memory(to_ring(values), values)
    assert np.shares_memory(from_ring(to_ring(values)), values)


@given(st.lists(INT64, min_size=1, max_size=40))
def test_a_sum_that_fits_is_exact_whatever_wrapped_on_the_way(values: list[int]) -> None:
    total = RingSum(1)
    total.add([to_ring(np.array([value], dtype=np.int64)).tobytes() for value in values])
    wrapped = (sum(values) + 2**63) % 2**64 - 2**63
    assert from_ring(total.total).tolist() == [wrapped]


@pytest.mark.parametrize("length", LENGTHS)
def test_bodies_and_rows_have_the_same_exact_sum(length: int) -> None:
    count = max(3, min(2 * ring.JOINED // length + 5, 1200))
    matrix = some_words(count, length)
    bodies, rows = RingSum(length), RingSum(length)
    bodies.add([row.astype("<u8").tobytes() for row in matrix])
    rows.add_rows(matrix)
    assert np.array_equal(bodies.total, rows.total)
    for column in {0, length // 2, length - 1}:
        assert int(rows.total[column]) == exact(matrix, column)


def test_batches_add_up_and_none_is_nothing() -> None:
    matrix = some_words(7, 5)
    total = RingSum(5)
    total.add([])
    total.add_rows(matrix[:0])
    total.add_seeds([], CONTEXT)
    assert not total.total.any()
    total.add([row.tobytes() for row in matrix[:3]])
    total.add_rows(matrix[3:])
    assert total.total.tolist() == [exact(matrix, column) for column in range(5)]


def test_rows_need_not_be_contiguous() -> None:
    matrix = some_words(40, 2 * ring.WIDE // 8)
    total = RingSum(ring.WIDE // 8)
    total.add_rows(matrix[:, ::2])
    assert np.array_equal(total.total, matrix[:, ::2].sum(axis=0))


@pytest.mark.parametrize("length", [1, 124, SHORT, SHORT + 1])
def test_seeds_add_what_they_expand_to(length: int) -> None:
    seeds = [bytes([number]) * 32 for number in range(20)]
    total = RingSum(length)
    total.add_seeds(seeds, CONTEXT)
    one_by_one = np.zeros(length, dtype=np.uint64)
    for seed in seeds:
        one_by_one += expand(seed, length, CONTEXT)
    assert np.array_equal(total.total, one_by_one)


def test_the_total_is_a_copy() -> None:
    total = RingSum(2)
    total.total[:] = 9
    assert not total.total.any()


@pytest.mark.parametrize("length", [4, ring.SMALL + 1])
def test_wrong_bodies_are_refused_and_change_nothing(length: int) -> None:
    good = bytes([1]) * (8 * length)
    total = RingSum(length)
    for bad in (good[:-8], good + good[:8], good[:-1], b""):
        with pytest.raises(InputError, match=f"{8 * length} bytes"):
            total.add([good, bad])
    assert not total.total.any()


def test_wrong_rows_and_seeds_are_refused() -> None:
    total = RingSum(4)
    for rows in (np.zeros((2, 3), np.uint64), np.zeros(4, np.uint64), np.zeros((2, 4), np.int64)):
        with pytest.raises(InputError, match="4 columns"):
            total.add_rows(rows)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="32 bytes"):
        total.add_seeds([bytes(32), bytes(31)], CONTEXT)
    assert not total.total.any()


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(UsageError, match="at least one word"):
        RingSum(0)
    with pytest.raises(UsageError, match="int64"):
        to_ring(np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="uint64"):
        from_ring(np.zeros(3))  # type: ignore[arg-type]
