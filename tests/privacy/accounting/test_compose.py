"""The cost of many releases: who finds it, parallel parts, adjacency."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit import children
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


def response(odds: int, part: str | None = None) -> Release:
    """A fair coin's randomised response over two values: ε = ln(odds)."""
    parameters = {"m": Fraction(2), "p": Fraction(odds, odds + 1)}
    return Release("randomised-response", parameters=parameters, part=part)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_of_those_who_were_asked_the_worst_one_counts(adjacency: str) -> None:
    asked = [response(2, "a"), response(3, "b"), response(5, "c")]
    found = cost(asked, 0.0, adjacency).epsilon
    assert found == cost([response(5)], 0.0, adjacency).epsilon
    with_common = cost([*asked, response(4)], 0.0, adjacency).epsilon
    assert with_common == pytest.approx(math.log(20))
    two = [*asked, response(3, "b")]  # somebody in b is asked twice: 9 > 5
    assert cost(two, 0.0, adjacency).epsilon == pytest.approx(math.log(9))


def test_parts_by_value_still_count_twice_beside_parts_of_people_asked() -> None:
    asked = [response(5, "a"), response(5, "b")]
    placed = [laplace(2, part="c"), laplace(2, part="d"), laplace(10, part="e")]
    assert cost([*asked, *placed], 0.0, "replace").epsilon == pytest.approx(math.log(5))
    placed = [laplace(1, part="c"), laplace(1, part="d")]
    assert cost([*asked, *placed], 0.0, "replace").epsilon == 2.0
    assert cost([*asked, placed[0]], 0.0, "replace").epsilon == pytest.approx(math.log(5))


def test_one_release_that_is_not_local_makes_a_part_one_by_value() -> None:
    mixed = [response(2, "a"), laplace(10, part="a"), response(2, "b"), laplace(10, part="b")]
    assert cost(mixed, 0.0, "replace").epsilon == pytest.approx(2 * (math.log(2) + 0.1))
    assert cost(mixed, 0.0, "add-remove").epsilon == pytest.approx(math.log(2) + 0.1)


def test_many_people_asked_are_as_fast_as_one() -> None:
    many = [response(2 + i % 3, str(i)) for i in range(3000)]
    assert len(scenarios(many, "replace")) == 3


def test_an_enumerated_study_loses_what_its_worst_question_does() -> None:
    """Two people, two questions by lot; the adversary sees the lot and both reports."""
    odds = (3, 5)

    def law(values: tuple[int, int]) -> dict[tuple[int, ...], Fraction]:
        found = {}
        for lot, first, second in product((0, 1), repeat=3):
            probability = Fraction(1, 2)
            for person, report in enumerate((first, second)):
                k = odds[(lot + person) % 2]
                kept = report == values[person]
                probability *= Fraction(k if kept else 1, k + 1)
            found[lot, first, second] = probability
        return found

    laws = {values: law(values) for values in product((0, 1), repeat=2)}
    worst = max(
        laws[a][seen] / laws[b][seen]
        for a, b in product(laws, repeat=2)
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1
        for seen in laws[a]
    )
    claimed = cost([response(odds[0], "a"), response(odds[1], "b")], 0.0, "replace").epsilon
    assert math.log(worst) == pytest.approx(claimed)


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
    children.run([sys.executable, "-c", code], check=True, timeout=120)
