"""The search for quantiles: algorithm 1 for one of them, and edges that are always valid."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.channels.crowd.quantiles import QuantileSearch, intervals, steps_of_search
from tacit.errors import InputError, UsageError

PEOPLE = 10_000


def told(search: QuantileSearch, values: np.ndarray, variance: float = 0.0) -> QuantileSearch:
    """A step in which everybody says the truth."""
    counts = np.bincount(search.interval(values), minlength=search.bins)
    return search.learn(counts, len(values), variance)


def algorithm_1(low: float, high: float, steps: list[tuple[float, float]]) -> float:
    """The thesis's algorithm, its first estimate put right: the middle is min + (max − min)/2.

    `steps` holds for each step the estimated share of people above the estimate, and its margin.
    """
    estimate, step = low + (high - low) / 2, (high - low) / 2
    for share, margin in steps:
        step /= 2
        if share - margin > 0.5:
            estimate += step
        elif share + margin < 0.5:
            estimate -= step
    return estimate


@given(
    st.floats(-1000, 1000),
    st.floats(0.1, 1000),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12),
    st.floats(0.0, 100_000.0),
)
def test_one_quantile_is_algorithm_1(
    low: float, width: float, shares: list[float], variance: float
) -> None:
    search, steps = QuantileSearch.start(low, low + width, 2), []
    for share in shares:
        noise = ((1 - share) ** 2 + share**2) * variance / PEOPLE**2
        margin = (noise + share * (1 - share) / PEOPLE) ** 0.5
        if abs(abs(share - 0.5) - margin) < 1e-9:  # rounding alone would decide
            return
        steps.append((share, margin))
        search = search.learn([(1 - share) * PEOPLE, share * PEOPLE], PEOPLE, variance)
    expected = algorithm_1(low, low + width, steps)
    assert search.thresholds == pytest.approx((expected,), rel=1e-9, abs=1e-9)


def test_the_first_estimate_is_the_middle() -> None:
    """The thesis starts at (max − min)/2, which lies outside these bounds."""
    assert QuantileSearch.start(1900.0, 2000.0, 2).thresholds == (1950.0,)
    assert QuantileSearch.start(0.0, 100.0, 4).thresholds == (25.0, 50.0, 75.0)


def test_a_search_moves_only_beyond_the_margin_of_error() -> None:
    start = QuantileSearch.start(0.0, 100.0, 2)
    above = [4_000, 6_000]  # six in ten lie above 50
    sure, unsure = start.learn(above, PEOPLE, 1e4), start.learn(above, PEOPLE, 1e7)
    assert sure.thresholds == (75.0,)
    assert unsure.thresholds == (50.0,)
    assert unsure.brackets == ((25.0, 75.0),)  # it may still move, by half as much


POPULATIONS = {
    "uniform": (np.linspace(0.0, 100.0, PEOPLE), 0.0, 100.0),
    "skewed": (np.geomspace(1.0, 1e5, PEOPLE), 0.0, 1e5),
    "narrow": (np.linspace(61.0, 62.0, PEOPLE), 0.0, 100.0),
    "at the top": (np.linspace(99.0, 100.0, PEOPLE), 0.0, 100.0),
}


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("bins", [2, 3, 4, 8])
def test_without_noise_it_finds_the_quantiles(name: str, bins: int) -> None:
    values, low, high = POPULATIONS[name]
    search = QuantileSearch.start(low, high, bins)
    for _ in range(16):
        search = told(search, values)
    ranks = [(values < edge).mean() for edge in search.edges]
    assert ranks == pytest.approx(search.targets, abs=0.015)


def test_quantiles_help_one_another() -> None:
    """With four bins the brackets fall by four in a step, with two by two."""
    values, low, high = POPULATIONS["narrow"]
    widths = {}
    for bins in (2, 4):
        search = told(told(QuantileSearch.start(low, high, bins), values), values)
        widths[bins] = max(b - a for a, b in search.brackets)
    assert widths == {2: 25.0, 4: 6.25}


@given(
    st.integers(-1000, 1000),
    st.integers(1, 400),
    st.integers(2, 8),
    st.booleans(),
    st.lists(st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=8), max_size=6),
    st.floats(0.0, 1e6),
)
def test_edges_are_always_valid(
    low: int, width: int, bins: int, whole: bool, answers: list[list[float]], variance: float
) -> None:
    """Whatever people answered, and however loudly the noise contradicts itself."""
    bins = min(bins, width + 1)
    search = QuantileSearch.start(float(low), float(low + width), bins, whole)
    for counts in answers:
        search = search.learn(counts[:bins], 100, variance)
        thresholds = search.thresholds
        assert all(a <= b for a, b in search.brackets)  # never turned inside out
        assert len(thresholds) == bins - 1
        assert all(a <= b for a, b in pairwise(thresholds))
        assert all(low <= t <= low + width for t in thresholds)
    edges = search.edges
    assert len(edges) == bins - 1
    assert all(a < b for a, b in pairwise((float(low), *edges)))
    assert edges[-1] <= low + width
    assert not whole or all(edge.is_integer() for edge in edges)


def test_a_value_that_most_people_have_still_leaves_valid_edges() -> None:
    """Nine in ten are at zero: the edges crowd just above it, apart by the least there may be."""
    values = np.where(np.arange(PEOPLE) % 10 == 0, 5_000.0, 0.0)
    search = QuantileSearch.start(0.0, 100_000.0, 4, whole=True)
    for _ in range(12):
        search = told(search, values)
    assert search.edges == (1.0, 2.0, 3.0)
    codes = intervals(search.edges, values)
    assert set(codes.tolist()) == {0, 3}  # nobody is between, and the two kinds are told apart
    real = QuantileSearch.start(0.0, 1.0, 4)
    for _ in range(60):
        real = told(real, np.zeros(100))
    assert 0.0 < real.edges[0] < real.edges[1] < real.edges[2] < 1e-5


def test_as_many_bins_as_values_need_no_search() -> None:
    assert QuantileSearch.start(0.0, 3.0, 4, whole=True).edges == (1.0, 2.0, 3.0)


def test_whole_edges_mean_what_was_asked() -> None:
    """x ≥ 12.5 and x ≥ 13 are the same for whole x: an edge is its threshold, rounded up."""
    search = QuantileSearch.start(0.0, 25.0, 2, whole=True)
    assert (search.thresholds, search.edges) == ((12.5,), (13.0,))
    values = np.arange(26.0)
    assert (search.interval(values) == intervals(search.edges, values)).all()


def test_missing_values_have_an_interval_and_are_left_out_of_ranks() -> None:
    search = QuantileSearch.start(0.0, 100.0, 4)
    assert search.interval([0.0, 25.0, 99.0, float("nan")]).tolist() == [0, 1, 3, 4]
    counts = [1_000, 500, 1_000, 2_000]
    assert search.learn([*counts, 7_000], 11_500, 10.0) == search.learn(counts, 4_500, 10.0)


@pytest.mark.parametrize(
    ("low", "high", "bins", "whole"),
    [(0.0, 1.0, 1, False), (1.0, 1.0, 2, False), (2.0, 1.0, 2, False), (0.0, 2.0, 4, True)],
)
def test_impossible_searches_are_refused(low: float, high: float, bins: int, whole: bool) -> None:
    with pytest.raises(UsageError, match="do not fit"):
        QuantileSearch.start(low, high, bins, whole)


@pytest.mark.parametrize("counts", [[1.0], [1.0, float("nan")], [float("inf"), 1.0]])
def test_impossible_answers_are_refused(counts: list[float]) -> None:
    with pytest.raises(InputError, match="2 counts"):
        QuantileSearch.start(0.0, 1.0, 2).learn(counts, 10, 1.0)
    with pytest.raises(InputError, match="at least 1 report"):
        QuantileSearch.start(0.0, 1.0, 2).learn([1.0, 1.0], 0, 1.0)


def test_steps_follow_a_public_rule() -> None:
    assert steps_of_search(4, 1.0, 10_000) == 4  # 256 parts of the bounds
    assert steps_of_search(2, 1.0, 10_000) == 8
    assert steps_of_search(4, 0.1, 100) == 3  # 64 parts: few people, each of whom says little
    assert steps_of_search(4, 1.0, 10_000, distinct=16.0) == 3  # two tell sixteen values apart
    assert steps_of_search(4, 800.0, 1) == 4  # no overflow
    assert steps_of_search(16, 1e-9, 0) == 2
