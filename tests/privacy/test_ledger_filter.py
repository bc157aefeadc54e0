"""Composition across studies: what the filter admits, and that what it admits is private."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import BudgetExceeded, InternalFault, Refused, UsageError
from tacit.privacy.accounting import GaussianLoss, PureLoss, SpendCost
from tacit.privacy.accounting.compose import ACCOUNTANTS, applicable
from tacit.privacy.accounting.gaussian import hockey_stick, largest_mu
from tacit.privacy.ledger import Amount, Composition, Ledger
from tacit.privacy.ledger.amounts import Charge
from tacit.privacy.ledger.filter import ORDERS, rule_of
from tacit.privacy.ledger.recompute import check_recomputed, recomputed
from tacit.privacy.promise import Promise
from tacit.programs.kmeans import KMeans

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema(columns=(Column(name="x", type="number", bounds=(-1.0, 1.0)),))
STUDY = Promise(0.5, 1e-6)


def gaussian(promise: Promise) -> SpendCost:
    return SpendCost(((GaussianLoss(largest_mu(promise.epsilon, promise.delta)),),))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "ledger.db")
    made.allow("adult", "record", 5.0, 1e-5)
    return made


def admitted(ledger: Ledger, promise: Promise, cost: SpendCost | None, most: int = 200) -> int:
    for number in range(most):
        try:
            ledger.reserve(promise, "adult", f"study {number}", cost=cost).commit()
        except BudgetExceeded:
            return number
    return most


def test_at_least_fifty_studies_of_the_k_means_program(ledger: Ledger) -> None:
    """Adding stops after ten; exact Gaussian composition, without adaptive choice, after 81."""
    channel = Central(ledger=ledger, dataset="adult")
    planned = channel.planned_cost(KMeans(2, 3), SCHEMA, STUDY)
    records = ArrayRecords(np.linspace(-1, 1, 50)[:, None])
    outcome = channel.run(KMeans(2, 3), records, SCHEMA, STUDY)
    (reserved,) = [e.body for e in ledger.entries() if e.kind == "reserve"]
    assert planned is not None
    assert reserved["cost"] == planned.as_body()  # known before, and what was then released
    assert SpendCost.of(outcome.certificate.releases, "add-remove") == planned
    count = 1 + admitted(ledger, STUDY, planned)
    assert 60 <= count <= 81
    balance = ledger.balance("adult", "record")
    assert balance.composition is Composition.FILTER
    assert balance.added == Amount(Fraction(count, 2), Fraction(count, 10**6))
    ledger.verify()


def test_what_was_admitted_is_private_by_exact_composition(ledger: Ledger) -> None:
    count = admitted(ledger, STUDY, gaussian(STUDY))
    mu = math.sqrt(count) * largest_mu(0.5, 1e-6)
    assert hockey_stick(mu, 5.0) <= 1e-5


def test_pure_spends_compose_too(ledger: Ledger) -> None:
    """Adding admits 50 of ε = 0.1; the divergence of randomised response nearly twice as many."""
    assert admitted(ledger, Promise(0.1), None) > 90


def test_without_delta_spends_add(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("adult", "record", 5.0)
    assert admitted(ledger, Promise(0.1), None) == 50
    assert ledger.balance("adult", "record").composition is Composition.ADDING


@pytest.mark.parametrize("with_cost", [True, False])
def test_one_study_may_take_the_whole_ceiling(ledger: Ledger, with_cost: bool) -> None:
    """Before the first spend there are no results: an account may still turn to adding."""
    whole = Promise(5.0, 1e-5)
    ledger.reserve(whole, "adult", "all", cost=gaussian(whole) if with_cost else None).commit()
    balance = ledger.balance("adult", "record")
    assert (balance.composition, balance.left) == (Composition.ADDING, Amount())


def test_an_account_that_knows_only_promises_is_never_worse_than_adding(ledger: Ledger) -> None:
    assert admitted(ledger, STUDY, None) == 10
    assert ledger.balance("adult", "record").left == Amount()


def test_the_rule_is_fixed_once_something_was_seen(ledger: Ledger) -> None:
    """Else it could be chosen by the results, and the two ways would leak twice (filter.md)."""
    ledger.reserve(STUDY, "adult", "first", cost=gaussian(STUDY)).commit()
    with pytest.raises(BudgetExceeded):  # adding alone would admit it
        ledger.reserve(Promise(4.5, 9e-6), "adult", "second")
    assert ledger.balance("adult", "record").composition is Composition.FILTER


def test_a_reservation_that_drew_nothing_fixes_nothing(ledger: Ledger) -> None:
    ledger.reserve(STUDY, "adult", "first", cost=gaussian(STUDY)).release()
    ledger.reserve(Promise(5.0, 1e-5), "adult", "second").commit()
    assert ledger.balance("adult", "record").composition is Composition.ADDING


def test_choosing_the_way_by_the_results_would_leak_more() -> None:
    """The counterexample of filter.md: adding and Gaussian composition, each with the whole δ.

    After one Gaussian of (0.5, 1e-6), go on with Gaussians where its loss is high, and else with a
    release that fails outright with probability 9e-6: more than 1e-5 in all.
    """
    epsilon, delta = 5.0, 1e-5
    mu, whole = largest_mu(0.5, 1e-6), largest_mu(epsilon, delta)
    rest = math.sqrt(whole**2 - mu**2)
    losses = np.linspace(-8 * mu, 8 * mu, 4001)  # of the first, in the worse direction
    density = np.exp(-(((losses - mu**2 / 2) / mu) ** 2) / 2)
    density /= density.sum()
    gaussians = np.array([hockey_stick(rest, epsilon - loss) for loss in losses])
    chosen = np.maximum(gaussians, 9e-6)
    assert float(density @ gaussians) == pytest.approx(delta, rel=1e-3)
    assert float(density @ chosen) > 1.1 * delta


def test_the_filter_knows_of_leaks(ledger: Ledger) -> None:
    """(ε, δ) without structure: its δ is charged apart from the conversion's."""
    ledger.allow("adult", "record", 5.0, 1e-5, composition="filter")
    assert admitted(ledger, Promise(0.01, 1e-6), None) == 5  # by adding, within half of δ
    assert admitted(ledger, STUDY, gaussian(STUDY)) == 0  # 5e-6 have leaked: above a quarter


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_a_budget_of_divergence_keeps_its_ceiling(epsilon: float, delta: float) -> None:
    """Gaussians that fill it, by exact composition; and no other order would hold many more."""
    rule = rule_of(Composition.FILTER, Amount.of(epsilon, delta))
    assert rule.order in ORDERS
    mu = math.sqrt(2 * rule.budget / 2**60 / rule.order)
    assert hockey_stick(mu, epsilon) <= delta / 4
    assert mu > 0.85 * largest_mu(epsilon, delta / 4)
    assert rule.admits(Charge(Amount.of(math.inf, 0.5), rule.budget))
    assert not rule.admits(Charge(Amount.of(math.inf, 0.5), rule.budget + 1))


COSTS = [
    SpendCost(((GaussianLoss(0.2, 3),),)),
    SpendCost(((GaussianLoss(0.5, 20, 0.01),),)),
    SpendCost(((PureLoss(Fraction(1, 10), 4, bounded_range=True),),)),
    SpendCost(((PureLoss(Fraction(1, 3), 2, 1e-8), GaussianLoss(0.1)), (GaussianLoss(0.3),))),
]


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_second_path_finds_the_same(ledger: Ledger, cost: SpendCost, steps: int) -> None:
    assert SpendCost.from_body(cost.as_body()) == cost
    ledger.allow("adult", "person", 900.0, 0.5, composition="filter", most_records=steps)
    ledger.allow("adult", "record", 900.0, 0.5, composition="filter")
    ledger.reserve(Promise(3.0, 1e-7), "adult", "study", cost=cost).commit()
    ledger.verify()  # raises InternalFault if they differ
    (order,) = {account.rule.order for account in ledger._state.accounts.values()}
    again = recomputed(ledger.entries(), "adult", "person", order, "add-remove")
    assert cost.grouped(steps).divergence(order) == pytest.approx(again.divergence, rel=1e-6)


def test_the_second_path_would_notice(ledger: Ledger) -> None:
    ledger.reserve(STUDY, "adult", "study", cost=gaussian(STUDY)).commit()
    entries, state = ledger.entries(), ledger._state.copy()
    (account,) = state.accounts.values()
    account.spent.whole = Charge(account.spent.whole.amount, account.spent.whole.divergence // 2)
    with pytest.raises(InternalFault, match="two ways"):
        check_recomputed(entries, state)


def test_a_sampled_plan_is_charged_with_its_sample(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("adult", "record", 5.0, 1e-5)
    channel = Central(ledger=ledger, dataset="adult", sampling=Fraction(1, 10))
    planned = channel.planned_cost(KMeans(2, 3), SCHEMA, STUDY)
    assert planned is not None
    assert any(isinstance(x, GaussianLoss) and x.sampling < 1 for x in planned.scenarios[0])
    assert admitted(ledger, STUDY, planned, most=70) >= 20


def test_no_noise_is_still_refused(ledger: Ledger) -> None:
    with pytest.raises(Refused, match="promises nothing"):
        ledger.reserve(Promise(math.inf), "adult", "comparison")


def test_a_cost_keeps_its_promise() -> None:
    """The planned cost of a program is within what it promises."""
    channel: Central = Central()
    planned = channel.planned_cost(KMeans(2, 3), SCHEMA, STUDY)
    assert planned is not None
    mu = math.sqrt(sum(x.count * x.mu**2 for x in planned.scenarios[0]))  # type: ignore[union-attr]
    assert hockey_stick(mu, 0.5) <= 1e-6


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("cost", COSTS)
def test_a_cost_beyond_its_promise_is_refused(
    ledger: Ledger, cost: SpendCost, share: float
) -> None:
    """Accounts that add would be charged less than is spent."""
    worst = max(
        min(ACCOUNTANTS[name].epsilon(losses, 1e-7) for name in applicable(losses, 1e-7))
        for losses in cost.scenarios
    )
    ledger.allow("adult", "record", 900.0, 0.5)
    head = ledger.head
    with pytest.raises(UsageError, match="is more than its promise"):
        ledger.reserve(Promise(share * worst, 1e-7), "adult", "study", cost=cost)
    assert ledger.head == head
    ledger.reserve(Promise(worst, 1e-7), "adult", "study", cost=cost)
