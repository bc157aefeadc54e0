"""Ranges cover all but a small share of the records, or it is said that they are guesses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Schema
from tacit.data.records import ArrayRecords
from tacit.privacy import Promise
from tacit.privacy.bound import Norm
from tacit.programs.range_search import (
    BINS,
    CELLS,
    Noise,
    bin_of,
    cell_of,
    closely,
    roughly,
)
from tacit.programs.ranges import Range, Ranges

Column = NDArray[np.float64]
PROMISE = Promise(1.0, 1e-6)
ANY = Schema.from_dict({"columns": {"x": {"type": "number", "bounds": [0, 1]}}})
ROWS = 7_400

# What a range must leave out at most, on both sides together, and how much wider than the middle
# 99 % of the records it may be.
KINDS: dict[str, tuple[Callable[[Generator], Column], float, float]] = {
    "normal": (lambda g: g.normal(size=ROWS), 0.04, 2.0),
    "shifted": (lambda g: g.normal(1000, 60, ROWS), 0.04, 4.0),
    "kelvin": (lambda g: g.uniform(270, 310, ROWS), 0.04, 3.0),
    "lognormal": (lambda g: np.exp(g.normal(size=ROWS)), 0.06, 2.0),
    "heavy": (lambda g: g.standard_cauchy(ROWS), 0.15, 1.0),
    "small": (lambda g: 1e-4 * g.uniform(-1, 1, ROWS), 0.04, 3.0),
    "binary": (lambda g: (g.random(ROWS) < 0.4).astype(float), 0.0, 4.0),
    "mostly zero": (
        lambda g: np.where(g.random(ROWS) < 0.7, 0, g.exponential(40, ROWS)),
        0.12,
        2.0,
    ),
}


def searched(X: Column, seed: int, promise: Promise = PROMISE) -> Range:
    channel = Central(randomness=SeededRandomness(seed))
    return channel.run(Ranges(X.shape[1]), ArrayRecords(X), ANY, promise).model


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_covers_its_column_and_not_much_more(kind: str) -> None:
    """Among 20 columns, with the part of the promise that a search has in front of a program."""
    make, left_out, width = KINDS[kind]
    for seed in range(3):
        generator = default_rng(seed)
        column = make(generator)
        X = np.column_stack([column, generator.normal(size=(ROWS, 19))])
        found = searched(X, seed, Promise(0.39, 1e-6))
        low, high = found.low[0], found.high[0]
        assert found.found[0]
        assert np.mean((column < low) | (column > high)) <= left_out
        middle = np.diff(np.quantile(column, (0.005, 0.995)))[0]
        assert high - low <= width * middle


def test_what_cannot_be_known_is_said() -> None:
    generator = default_rng(0)
    constant = np.column_stack([np.full(ROWS, 5.0), np.zeros(ROWS), generator.normal(size=ROWS)])
    assert searched(constant, 1).found.tolist() == [False, False, True]
    narrow = 1e5 + generator.uniform(0, 100, (ROWS, 1))  # as seen from zero: one value
    found = searched(narrow, 1)
    assert not found.found.any()
    assert found.low <= narrow.min()
    assert narrow.max() <= found.high <= 2e5
    few = generator.normal(size=(60, 3))
    assert not searched(few, 1).found.any()
    many = generator.normal(size=(500, 200))
    assert not searched(many, 1).found.any()


@pytest.mark.parametrize("promise", [PROMISE, Promise(1.0)], ids=["gaussian", "pure"])
def test_noise_alone_is_never_taken_for_a_range(promise: Promise) -> None:
    """40 columns of one record: no wild range, and none that is said to be found."""
    found = searched(np.full((1, 40), 3.0), 5, promise)
    assert not found.found.any()
    assert (np.abs(found.high) < 2.0**30).all()


def test_a_wrong_place_far_away_does_not_spoil_the_range() -> None:
    """5 standard deviations of noise, 20 powers of two away, happen in one fit of thousands."""
    noise = Noise(30.0, Norm.L2)
    counts = np.bincount(cell_of(default_rng(1).normal(size=2000)), minlength=CELLS).astype(float)
    counts[100] += 5 * noise.deviation
    knots, known = roughly(counts, noise)
    assert known
    assert np.abs(knots).max() <= 16


def test_more_records_bring_the_range_closer_to_the_stated_share() -> None:
    shares = []
    for rows in (2_000, 20_000, 200_000):
        x = default_rng(3).normal(size=(rows, 1))
        found = searched(x, 3)
        shares.append(float(np.mean((x < found.low) | (x > found.high))))
    assert shares[-1] < 0.004
    assert shares[-1] <= shares[0]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    centre=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    rows=st.integers(1, 5000),
)
def test_without_noise_every_record_is_inside(
    seed: int, centre: float, width: float, rows: int
) -> None:
    column = centre + width * default_rng(seed).standard_t(2, rows)
    none = Noise(0.0, Norm.L2)
    counts = np.bincount(cell_of(column), minlength=CELLS).astype(float)
    knots, known = roughly(counts, none)
    assert known
    bins = bin_of(column[:, None], knots[None, :])[:, 0]
    low, high, _ = closely(np.bincount(bins, minlength=BINS).astype(float), knots, known, none)
    room = 1e-9 * max(abs(low), abs(high))
    assert low - room <= column.min()
    assert column.max() <= high + room


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_every_number_has_one_cell_and_one_bin(data: Any) -> None:
    """Whatever the knots, which may come from an aggregator that nobody trusts."""
    numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)
    X = np.array(data.draw(st.lists(numbers, min_size=1, max_size=20)))
    finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
    knots = np.array(data.draw(st.lists(finite, min_size=4, max_size=4)))
    with np.errstate(all="ignore"):
        for places, size in ((cell_of(X), CELLS), (bin_of(X[:, None], knots[None])[:, 0], BINS)):
            assert ((places >= -1) & (places < size)).all()
            assert (places[np.isnan(X)] == -1).all()
