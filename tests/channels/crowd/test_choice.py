"""The public rule of which tables are asked for."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.channels.crowd.choice import FEWEST, MOST_CELLS, default_tables
from tacit.errors import UsageError


def tables(sizes: list[int], epsilon: float, people: int = 30_000) -> list[tuple[int, ...]]:
    return [table for table, _ in default_tables(sizes, epsilon, people)]


def test_little_epsilon_asks_for_features_alone() -> None:
    assert tables([4, 3, 2, 6], 0.5) == [(0,), (1,), (2,), (3,)]


def test_much_epsilon_asks_for_pairs() -> None:
    assert tables([4, 3, 2, 6], 8.0) == list(combinations(range(4), 2))


def test_a_feature_of_many_codes_is_asked_for_alone() -> None:
    found = dict(default_tables([3, 3, 500], 8.0, 30_000))
    assert found.keys() == {(2,), (0, 1), (0,), (1,)}
    # As many people answer about it as about the others, or more: it has more cells.
    assert found[2,] > found[0, 1] + found[0,]


def test_few_people_are_not_spread_over_pairs() -> None:
    sizes = [4] * 10  # 45 pairs, all alike
    assert len(tables(sizes, 8.0, 45 * FEWEST)) == 45
    assert len(tables(sizes, 8.0, 45 * FEWEST - 1)) == 10


def test_larger_tables_get_more_people() -> None:
    found = dict(default_tables([2, 8], 0.5, 1000))
    assert found[1,] / found[0,] == pytest.approx(2.0)


def test_one_feature() -> None:
    assert default_tables([5], 8.0, 10) == [((0,), math.sqrt(10))]


def test_nothing_to_ask() -> None:
    with pytest.raises(UsageError, match="at least one feature"):
        default_tables([], 1.0, 100)


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=8),
    st.floats(0.05, 12.0),
    st.integers(10, 200_000),
)
def test_every_feature_is_asked_for(sizes: list[int], epsilon: float, people: int) -> None:
    found = default_tables(sizes, epsilon, people)
    assert {place for table, _ in found for place in table} == set(range(len(sizes)))
    assert len({table for table, _ in found}) == len(found)
    assert all(weight > 0 for _, weight in found)
    for table, _ in found:
        if len(table) > 1:
            assert 2 * math.prod(sizes[place] for place in table) <= MOST_CELLS


def test_halves_are_asked_of_features_alone() -> None:
    found = default_tables([4, 3, 2, 6], 8.0, 30_000, together=False)
    assert [table for table, _ in found] == [(0,), (1,), (2,), (3,)]
