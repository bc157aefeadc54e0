"""Promises and bounds: wrong values raise errors that say what to do."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import Promise
from tacit.errors import InputError, PromiseError, PromiseWarning
from tacit.privacy import Adjacency, Bound, Grid, Norm, Unit
from tacit.privacy.bound import power_of_two_below, round_up


def test_defaults() -> None:
    promise = Promise(1)
    assert promise == Promise(1.0, 0.0, Unit.RECORD, Adjacency.ADD_REMOVE)
    assert str(Promise(0.5, 1e-6, "person", "replace")) == (
        "ε = 0.5, δ = 1e-06 per person (replace)"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0,), "above 0"),
        ((-1,), "above 0"),
        ((math.nan,), "NaN"),
        (("much",), "number"),
        ((1, 1), r"\[0, 1\)"),
        ((1, -1e-9), r"\[0, 1\)"),
        ((1, math.nan), "NaN"),
        ((1, 0, "patient"), "'record', 'person', 'holder'"),
        ((1, 0, "record", "swap"), "'add-remove', 'replace'"),
    ],
)
def test_impossible_promises(arguments: tuple[object, ...], says: str) -> None:
    with pytest.raises(PromiseError, match=says) as caught:
        Promise(*arguments)  # type: ignore[arg-type]
    assert isinstance(caught.value, ValueError)
    assert caught.value.exit_code == 2


def test_infinite_epsilon_means_no_privacy() -> None:
    assert not Promise(math.inf).is_private
    assert Promise(np.float32(0.5)).epsilon == 0.5


def test_delta_must_be_below_one_over_n() -> None:
    with pytest.warns(PromiseWarning, match=r"not below 1/n = 0\.001"):
        Promise(1, 1e-3).check_population(1000)
    Promise(1, 1e-6).check_population(1000)
    Promise(1).check_population(10**9)


def test_replacing_moves_twice_as_far() -> None:
    assert Bound.of_contribution("L2", 3, "add-remove") == Bound(Norm.L2, Fraction(3))
    assert Bound.of_contribution("L2", 3, "replace") == Bound(Norm.L2, Fraction(6))


@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan])
def test_impossible_bounds(value: float) -> None:
    with pytest.raises(PromiseError):
        Bound(Norm.L1, value)  # type: ignore[arg-type]


def test_a_grid_is_a_power_of_two() -> None:
    with pytest.raises(PromiseError, match="power of two"):
        Grid(Fraction(1, 10))


values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(values, st.integers(0, 20))
def test_rounding_moves_by_at_most_half_a_step(data: list[float], exponent: int) -> None:
    grid = Grid(Fraction(1, 2**exponent))
    for value, rounded in zip(data, grid.encode(data).tolist(), strict=True):
        assert abs(Fraction(value) - rounded * grid.step) <= grid.step / 2


@given(values, values, st.sampled_from(list(Norm)))
def test_widening_covers_the_rounding(a: list[float], b: list[float], norm: Norm) -> None:
    size = min(len(a), len(b))
    x, y = np.array(a[:size]), np.array(b[:size])
    order = {Norm.L1: 1, Norm.L2: 2, Norm.LINF: np.inf}[norm]
    distance = float(np.linalg.norm(x - y, order))
    if not distance:
        return
    grid = Grid(Fraction(1, 4))
    moved = np.linalg.norm((grid.encode(x) - grid.encode(y)) / 4, order)
    widened = grid.widen(Bound(norm, Fraction(distance)), size)
    assert moved <= float(widened.value) * (1 + 1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 2.0**62])
def test_values_that_do_not_fit_are_refused(bad: float) -> None:
    with pytest.raises(InputError):
        Grid(Fraction(1)).encode([bad])


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_directed_rounding(value: Fraction) -> None:
    up = round_up(value, bits=10)
    assert value <= up <= value * (1 + Fraction(1, 2**9))
    power = power_of_two_below(value)
    assert power <= value < 2 * power
