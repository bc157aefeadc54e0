"""The cost of many releases: who finds it, parallel parts, adjacency."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.errors import UsageError
from tacit.privacy import Bound, Release
from tacit.privacy.accounting import Cost, cost, delta_of, epsilon_of
from tacit.privacy.accounting.compose import ACCOUNTANTS, losses_of, scenarios
from tacit.privacy.accounting.losses import upward

few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def gaussian(scale: int = 10, count: int = 1, part: str | None = None) -> Release:
    return Release("gaussian", Bound("L2", 1), Fraction(scale), count=count, part=part)


def laplace(scale: int = 10, count: int = 1, part: str | None = None) -> Release:
    return Release("laplace", Bound("L1", 1), Fraction(scale), count=count, part=part)


def sampled(scale: int = 1, count: int = 100) -> Release:
    return replace(gaussian(scale, count), sampling=Fraction(1, 100))


def exponential(scale: int = 10, count: int = 1) -> Release:
    return Release("exponential", Bound("Linf", 1), Fraction(scale), count=count)


@pytest.mark.parametrize(
    ("releases", "delta", "accountant"),
    [
        ([laplace(count=10)], 0.0, "pure"),
        ([gaussian(), gaussian(20, 5)], 1e-6, "gaussian"),
        ([exponential(count=100)], 1e-6, "zcdp"),
        ([sampled()], 1e-6, "pld"),
        ([gaussian(), laplace(count=50)], 1e-6, "pld"),
        ([gaussian()], 0.0, "pure"),
    ],
)
def test_the_tightest_accountant_is_named(
    releases: list[Release], delta: float, accountant: str
) -> None:
    assert cost(releases, delta, "add-remove").accountant == accountant


def test_nothing_costs_nothing() -> None:
    assert cost([], 1e-6, "replace") == Cost(0.0, 1e-6, "pure")
    assert delta_of([], 0.0, "replace") == 0.0


def test_a_gaussian_has_no_cost_at_delta_zero() -> None:
    assert epsilon_of([gaussian()], 0.0, "add-remove") == math.inf


@few
@given(
    st.lists(
        st.sampled_from([laplace(), gaussian(), sampled(), exponential(), laplace(3)]),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([1e-8, 1e-5]),
)
def test_cost_is_the_least_and_order_does_not_matter(releases: list[Release], delta: float) -> None:
    found = cost(releases, delta, "add-remove")
    losses = losses_of(releases)
    assert found.epsilon <= min(a.epsilon(losses, delta) for a in ACCOUNTANTS.values())
    again = cost(releases[::-1], delta, "add-remove")
    assert again == found
    assert found.epsilon <= epsilon_of([*releases, laplace()], delta, "add-remove") * 1.002
    assert delta_of(releases, found.epsilon * (1 + 1e-9), "add-remove") <= delta * 1.01


# ── parallel composition ──────────────────────────────────────────────────────────────────────────


def test_parts_cost_the_worst_one_under_add_remove() -> None:
    parts = [laplace(10, part="a"), laplace(5, part="b"), laplace(20, part="c"), laplace(100)]
    assert cost(parts, 0.0, "add-remove").epsilon == upward(Fraction(21, 100))


def test_parts_cost_the_worst_two_under_replace() -> None:
    parts = [laplace(10, part="a"), laplace(5, part="b"), laplace(20, part="c"), laplace(100)]
    assert cost(parts, 0.0, "replace").epsilon == upward(Fraction(31, 100))


def test_equal_parts_count_twice_under_replace_and_one_part_once() -> None:
    many = [laplace(10, part=str(i)) for i in range(1000)]
    assert cost(many, 0.0, "replace").epsilon == 0.2
    assert cost(many, 0.0, "add-remove").epsilon == 0.1
    assert len(scenarios(many, "replace")) == 1
    assert cost(many[:1], 0.0, "replace").epsilon == 0.1


def test_a_part_of_several_releases_is_kept_together() -> None:
    parts = [laplace(10, part="a"), laplace(10, part="a"), laplace(6, part="b")]
    assert cost(parts, 0.0, "add-remove").epsilon == 0.2


def test_delta_of_parts_is_that_of_the_worst() -> None:
    parts = [gaussian(10, part="a"), gaussian(5, part="b")]
    assert delta_of(parts, 0.5, "add-remove") == delta_of([gaussian(5)], 0.5, "add-remove")
    both = delta_of([gaussian(10), gaussian(5)], 0.5, "replace")
    assert delta_of(parts, 0.5, "replace") == both


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────


def test_sampling_under_replace_is_refused() -> None:
    with pytest.raises(UsageError, match="add-remove"):
        cost([sampled()], 1e-6, "replace")


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan])
def test_impossible_deltas_are_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        cost([laplace()], delta, "replace")


def test_impossible_epsilons_are_refused() -> None:
    with pytest.raises(UsageError, match="epsilon"):
        delta_of([laplace()], -1.0, "replace")
    assert delta_of([laplace()], math.inf, "replace") == 0.0


def test_importing_and_gaussians_do_not_load_dp_accounting() -> None:
    code = (
        "import sys\n"
        "from tacit.privacy import Bound, Promise, Release\n"
        "from tacit.privacy.accounting import calibrate, cost\n"
        "assert 'scipy' not in sys.modules\n"
        "from fractions import Fraction\n"
        "some = [Release('gaussian', Bound('L2', 1), Fraction(1), count=1000)]\n"
        "done = calibrate(Promise(1.0, 1e-6), some)\n"
        "assert cost(done, 1e-6, 'replace').accountant == 'gaussian'\n"
        "calibrate(Promise(1.0), [Release('laplace', Bound('L1', 1), Fraction(1))])\n"
        "assert 'dp_accounting' not in sys.modules and 'scipy.stats' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
