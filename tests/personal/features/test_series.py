"""Aggregates of many overlapping ranges, each against its definition, and how exact they are."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.personal.durations import DAY, HOUR
from tacit.personal.features.series import REDUCERS, Reach, Series

SIZES = st.sampled_from([1e-9, 1e-3, 1.0, 1e6, 1e15])


def series(values: Any, moments: Any = None) -> Series:
    data = np.asarray(values, np.float64)
    return Series("number", data, (), np.arange(len(data)) * HOUR if moments is None else moments)


def reduced(name: str, of: Series, ranges: list[tuple[int, int]]) -> list[float]:
    low, high = np.array(ranges, np.int64).reshape(-1, 2).T.copy()
    with np.errstate(all="ignore"):
        found: list[float] = REDUCERS[name](of, Reach(low, high, high)).tolist()
    return found


@st.composite
def columns(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], list[tuple[int, int]]]:
    """Values of very different sizes, and ranges in any order, within and across one another."""
    rng = np.random.default_rng(draw(st.integers(0, 10**9)))
    n = draw(st.integers(1, 200))
    sizes = rng.choice([1e-9, 1e-3, 1.0, 1e6, 1e15], n)
    data = rng.normal(size=n) * sizes
    ends = rng.integers(0, n + 1, (40, 2))
    return data, [(int(min(pair)), int(max(pair))) for pair in ends]


@settings(max_examples=60)
@given(columns())
def test_sums_are_as_exact_as_a_double_can_be(drawn: Any) -> None:
    data, ranges = drawn
    for name in ("sum", "mean"):
        for (low, high), found in zip(ranges, reduced(name, series(data), ranges), strict=True):
            true = math.fsum(data[low:high]) / (1 if name == "sum" else high - low or math.nan)
            assert found == pytest.approx(true, rel=1e-12, nan_ok=True)


def test_a_huge_value_elsewhere_and_cancellation_cost_nothing() -> None:
    data = [1e300, 1e-3, 2e-3, -1e300, 1e16, 1.0, -1e16]
    ranges = [(1, 3), (4, 7), (0, 4)]
    assert reduced("sum", series(data), ranges) == [3e-3, 1.0, 3e-3]


@settings(max_examples=60)
@given(columns())
def test_spread_and_slope(drawn: Any) -> None:
    data, ranges = drawn
    of = series(data)
    times = [Fraction(int(t)) for t in of.moments]
    exact = [Fraction(float(x)) for x in data]
    stds, trends = reduced("std", of, ranges), reduced("trend", of, ranges)
    for (low, high), std, trend in zip(ranges, stds, trends, strict=True):
        n, x, t = high - low, exact[low:high], times[low:high]
        if n < 2:
            assert math.isnan(std)
            assert math.isnan(trend)
            continue
        mean, middle = sum(x) / n, sum(t) / n
        spread = sum((v - mean) ** 2 for v in x) / (n - 1)
        assert std == pytest.approx(math.sqrt(spread), rel=1e-9)
        below = sum((s - middle) ** 2 for s in t)
        slope = sum((s - middle) * (v - mean) for s, v in zip(t, x, strict=True)) / below * DAY
        size = sum(abs(s - middle) * abs(v - mean) for s, v in zip(t, x, strict=True)) / below * DAY
        assert trend == pytest.approx(float(slope), rel=1e-9, abs=float(size) * 1e-12)


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e9])
def test_a_small_spread_far_from_zero(mean: float) -> None:
    data = mean + np.array([0.25, 0.5, 0.125, 1.0]) / 64
    true = float(np.std(data - mean, ddof=1))
    assert reduced("std", series(data), [(0, 4)])[0] == pytest.approx(true, rel=1e-9)
    assert reduced("std", series(np.full(7, mean + 0.1)), [(0, 7), (2, 5)]) == [0.0, 0.0]


def test_no_slope_at_one_moment() -> None:
    of = series([1.0, 2.0, 3.0], np.array([5, 5, 6], np.int64))
    trends = reduced("trend", of, [(0, 2), (0, 3)])
    assert math.isnan(trends[0])
    assert trends[1] == pytest.approx(1.5 * DAY)


@st.composite
def repeating(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], list[tuple[int, int]]]:
    rng = np.random.default_rng(draw(st.integers(0, 10**9)))
    n = draw(st.integers(1, 120))
    data = rng.integers(0, draw(st.sampled_from([1, 3, 40])), n) * 0.5
    ends = rng.integers(0, n + 1, (30, 2))
    return data, [(int(min(pair)), int(max(pair))) for pair in ends]


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _mode(values: list[float]) -> float:
    counts = Counter(values)
    return min(value for value, count in counts.items() if count == max(counts.values()))


def _entropy(values: list[float]) -> float:
    shares = [count / len(values) for count in Counter(values).values()]
    return -math.fsum(share * math.log(share) for share in shares)


TRUE: dict[str, Any] = {
    "count": len,
    "distinct": lambda values: len(set(values)),
    "median": _median,
    "mode": _mode,
    "entropy": _entropy,
    "min": min,
    "max": max,
    "range": lambda values: max(values) - min(values),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}


@settings(max_examples=80)
@given(repeating())
def test_ranges_of_any_order(drawn: Any) -> None:
    data, ranges = drawn
    of = series(data)
    for name, true in TRUE.items():
        for (low, high), found in zip(ranges, reduced(name, of, ranges), strict=True):
            values = data[low:high].tolist()
            if values or name in ("count", "distinct"):
                assert found == pytest.approx(true(values), abs=1e-10), name
            else:
                assert math.isnan(found), name


def test_entropy_does_not_drift() -> None:
    """A hundred thousand equal values, then few: what has left leaves nothing behind."""
    data = np.concatenate([np.zeros(100_000), [1.0, 2.0]])
    steps = [(begin, begin + 50_000) for begin in range(0, 50_000, 1000)]
    found = reduced("entropy", series(data), [*steps, (100_000, 100_002)])
    assert found == pytest.approx([0.0] * len(steps) + [math.log(2)], abs=1e-11)
