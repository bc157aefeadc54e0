"""One contract for every accountant, and each against a second, independent computation."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tacit.privacy.accounting import gaussian, pld, pure, renyi, zcdp
from tacit.privacy.accounting.compose import ACCOUNTANTS
from tacit.privacy.accounting.losses import GaussianLoss, Loss, PureLoss

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
rates = st.sampled_from([1.0, 0.5, 0.1, 0.01])
gaussians = st.builds(GaussianLoss, st.floats(0.02, 2), st.integers(1, 200), rates)
pures = st.builds(
    PureLoss,
    st.fractions(min_value=Fraction(1, 100), max_value=2, max_denominator=1000),
    st.integers(1, 50),
    st.sampled_from([0.0, 0.0, 1e-12]),
    st.booleans(),
)
losses_of_all_kinds = st.lists(st.one_of(gaussians, pures), min_size=1, max_size=3)
deltas = st.sampled_from([1e-9, 1e-6, 1e-3])


# ── the contract ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ACCOUNTANTS)
@few
@given(losses=losses_of_all_kinds, delta=deltas, data=st.data())
def test_costs_rise_with_every_loss(
    name: str, losses: list[Loss], delta: float, data: st.DataObject
) -> None:
    accountant, first = ACCOUNTANTS[name], losses[0]
    base = accountant.epsilon(losses, delta)
    # The grid of privacy-loss distributions moves with the losses: it is monotone up to 0.2 %.
    slack = 1.002 if name == "pld" else 1 + 1e-9
    worse: list[Loss] = [replace(first, count=2 * first.count)]
    if isinstance(first, GaussianLoss):
        worse += [replace(first, mu=1.1 * first.mu)]
        if name != "gaussian":  # which says nothing about samples
            worse += [replace(first, sampling=min(1.0, 2 * first.sampling))]
    else:
        worse += [replace(first, epsilon=first.epsilon * 11 / 10)]
    changed = [data.draw(st.sampled_from(worse)), *losses[1:]]
    assert base <= accountant.epsilon(changed, delta) * slack
    assert base <= accountant.epsilon([*losses, PureLoss(Fraction(1, 50))], delta) * slack


@pytest.mark.parametrize("name", ACCOUNTANTS)
@few
@given(losses=losses_of_all_kinds, delta=deltas)
def test_epsilon_falls_with_delta_and_back(name: str, losses: list[Loss], delta: float) -> None:
    accountant = ACCOUNTANTS[name]
    epsilon = accountant.epsilon(losses, delta)
    slack = 1.002 if name == "pld" else 1.0
    assert accountant.epsilon(losses, delta * 10) <= epsilon * slack
    assert accountant.epsilon(losses, 0.0) == math.inf or name == "pure"
    if epsilon == math.inf:
        assert accountant.delta(losses, 0.0) == 1.0 or delta < 1e-8 or name == "pure"
    else:
        assert accountant.delta(losses, epsilon * (1 + 1e-9)) <= delta * (1 + 1e-2)
        assert accountant.delta(losses, epsilon * 2) <= accountant.delta(losses, epsilon) * 1.01


def test_no_loss_costs_nothing() -> None:
    assert pure.epsilon([], 0.0) == 0.0
    assert gaussian.epsilon([], 1e-6) == 0.0
    assert pure.delta([], 0.0) == 0.0


# ── pure ──────────────────────────────────────────────────────────────────────────────────────────


def test_thirds_add_up_exactly() -> None:
    assert pure.epsilon([PureLoss(Fraction(1, 3), 3)], 0.0) == 1.0
    assert pure.epsilon([PureLoss(Fraction(1, 10), 10)], 0.0) == 1.0
    assert pure.epsilon([PureLoss(Fraction(1), 1, 1e-7)], 1e-8) == math.inf


def kairouz(epsilon: Fraction, count: int, target: float) -> mpmath.mpf:
    """δ of `count` ε-private releases, exactly (Kairouz, Oh & Viswanath 2015, theorem 3.3)."""
    with mpmath.workdps(60):
        e, g = mpmath.mpf(epsilon.numerator) / epsilon.denominator, mpmath.mpf(target)
        terms = (
            mpmath.binomial(count, k)
            * max(mpmath.exp((count - k) * e) - mpmath.exp(g + k * e), mpmath.mpf(0))
            for k in range(count + 1)
        )
        return mpmath.fsum(terms) / (1 + mpmath.exp(e)) ** count


@pytest.mark.parametrize(
    ("epsilon", "count"),
    [(Fraction(1), 1), (Fraction(1, 3), 7), (Fraction(1, 10), 100), (Fraction(1, 50), 1000)],
)
@pytest.mark.parametrize("name", ["pure", "zcdp", "renyi", "pld"])
def test_pure_composition_is_never_below_the_optimum(
    name: str, epsilon: Fraction, count: int
) -> None:
    losses = [PureLoss(epsilon, count)]
    spread = float(epsilon) * math.sqrt(count)
    for target in (0.3 * spread, spread, 2 * spread, 4 * spread):
        exact = kairouz(epsilon, count, target)
        found = ACCOUNTANTS[name].delta(losses, target)
        assert found >= float(exact)
        if name == "pld" and exact > 1e-9:
            assert found <= float(exact) * 1.02
    at = ACCOUNTANTS[name].epsilon(losses, 1e-6)
    assert float(kairouz(epsilon, count, at)) <= 1e-6


def test_the_optimum_for_unlike_losses_with_deltas() -> None:
    """Two different pure losses: all four outcomes by hand."""
    (a, d), (b, f) = (0.7, 1e-4), (0.2, 1e-5)
    losses = [PureLoss(Fraction(a), 1, d), PureLoss(Fraction(b), 1, f)]
    for target in (0.1, 0.4, 0.6, 0.8):
        live = 0.0
        for s in (a, -a):
            for t in (b, -b):
                weight = 1 / (1 + math.exp(-s)) / (1 + math.exp(-t))
                live += weight * max(0.0, 1 - math.exp(target - s - t))
        exact = 1 - (1 - d) * (1 - f) * (1 - live)
        found = pld.delta(losses, target)
        assert exact <= found * (1 + 1e-12)
        assert found == pytest.approx(exact, rel=0.02)


# ── zCDP and Rényi ────────────────────────────────────────────────────────────────────────────────


@given(st.floats(1e-3, 20))
def test_rho_covers_randomised_response_at_every_order(epsilon: float) -> None:
    """D ≤ ρα for the exact curve; at α near 1 they meet, so ρ cannot be smaller."""
    rho = zcdp.rho(PureLoss(Fraction(epsilon)))
    assert rho <= epsilon**2 / 2
    with mpmath.workdps(40):
        for order in (1.0001, 1.5, 2, 10, 1000):
            a, e = mpmath.mpf(order), mpmath.mpf(epsilon)
            exact = mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2)) / (a - 1)
            assert mpmath.mpf(rho) * a * (1 + mpmath.mpf(10) ** -14) >= exact
            if order == 1.0001:
                assert float(exact / a) == pytest.approx(rho, rel=1e-3)


def test_bounded_range_is_a_quarter_of_the_pure_rho() -> None:
    tiny = Fraction(1, 1000)
    assert zcdp.rho(PureLoss(tiny, bounded_range=True)) == float(tiny) ** 2 / 8
    assert zcdp.rho(PureLoss(tiny)) == pytest.approx(float(tiny) ** 2 / 2, rel=1e-5)


@pytest.mark.parametrize("order", [1.5, 2.0, 5.0, 40.0])
def test_bounded_range_covers_the_exponential_mechanism(order: float) -> None:
    """Many score vectors, moved by up to 1 each way: the exact divergence stays below ρα."""
    generator = np.random.default_rng(0)
    scale = 2.0  # ε = 2Δ/s = 1
    rho = zcdp.rho(PureLoss(Fraction(1), bounded_range=True))
    for _ in range(300):
        scores = generator.normal(size=4) * generator.choice([0.1, 1, 5])
        moved = scores + generator.choice([-1.0, 1.0], size=4)
        p, q = (np.exp(s / scale) / np.exp(s / scale).sum() for s in (scores, moved))
        divergence = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
        assert divergence <= rho * order


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.01), (0.3, 0.2), (2.0, 0.001), (0.05, 0.5)])
def test_sampled_curve_equals_that_of_dp_accounting(mu: float, rate: float) -> None:
    from dp_accounting.rdp import rdp_privacy_accountant

    theirs = rdp_privacy_accountant._compute_rdp_poisson_subsampled_gaussian(
        rate, 1 / mu, renyi.ORDERS[:100]
    )
    ours = renyi.curve(GaussianLoss(mu, 1, rate))[:100]
    assert ours == pytest.approx(theirs, rel=1e-7, abs=1e-15)


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.1), (0.5, 0.5)])
def test_sampled_curve_equals_its_integral(mu: float, rate: float) -> None:
    ours = dict(zip(renyi.ORDERS, renyi.curve(GaussianLoss(mu, 1, rate)), strict=True))
    for order in (2, 3, 8):

        def moment(x: float, order: int = order) -> float:
            ratio = 1 - rate + rate * math.exp(mu * x - mu * mu / 2)
            return float(stats.norm.pdf(x)) * ratio**order

        value, _ = integrate.quad(moment, -12, 12 + order * mu, limit=200)
        assert ours[order] == pytest.approx(math.log(value) / (order - 1), rel=1e-6)


@few
@given(st.floats(0.01, 3), st.integers(1, 1000), deltas)
def test_every_gaussian_bound_is_above_the_exact_one(mu: float, count: int, delta: float) -> None:
    losses = [GaussianLoss(mu, count)]
    exact = gaussian.epsilon(losses, delta)
    for accountant in (zcdp, renyi, pld):
        assert accountant.epsilon(losses, delta) >= exact
    if mu * mu * count / 2 < 100:
        # The grid adds 0.1 %; near ε = 0, the step itself, 5 % of μ.
        assert pld.epsilon(losses, delta) <= exact * 1.001 + 0.01 * mu * math.sqrt(count)


# ── privacy-loss distributions of sampled Gaussians ───────────────────────────────────────────────


def sampled_stick(mu: float, rate: float, epsilon: float, removed: bool) -> float:
    """The hockey-stick divergence by direct integration."""

    def stick(x: float) -> float:
        plain = float(stats.norm.pdf(x))
        mixed = (1 - rate) * plain + rate * float(stats.norm.pdf(x, mu))
        first, second = (mixed, plain) if removed else (plain, mixed)
        return max(0.0, first - math.exp(epsilon) * second)

    points = np.linspace(-12, 12 + mu, 60)
    return math.fsum(integrate.quad(stick, a, b, limit=100)[0] for a, b in pairwise(points))


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.1), (0.4, 0.5), (3.0, 0.01)])
def test_one_sampled_round_is_never_below_its_integral(mu: float, rate: float) -> None:
    losses = [GaussianLoss(mu, 1, rate)]
    for epsilon in (0.02, 0.1, 0.5):
        exact = max(sampled_stick(mu, rate, epsilon, removed) for removed in (True, False))
        for name in ("renyi", "pld"):
            assert ACCOUNTANTS[name].delta(losses, epsilon) >= exact * (1 - 1e-7)
        assert pld.delta(losses, epsilon) <= exact * 1.02 + 1e-6


@pytest.mark.parametrize(
    ("mu", "rate", "count"), [(1.0, 0.01, 1000), (0.1, 0.5, 100), (3.0, 1e-4, 100), (2.0, 0.1, 1)]
)
def test_many_sampled_rounds_are_those_of_dp_accounting(mu: float, rate: float, count: int) -> None:
    from dp_accounting.pld import privacy_loss_distribution

    loss = GaussianLoss(mu, count, rate)
    finest, _ = pld._steps([loss])
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu, sampling_prob=rate, value_discretization_interval=finest / 4
    )
    fine = theirs.self_compose(count).get_epsilon_for_delta(1e-6)
    ours = pld.epsilon([loss], 1e-6)
    assert fine * (1 - 1e-5) <= ours <= fine * 1.001
    assert renyi.epsilon([loss], 1e-6) >= ours


def test_a_fine_grid_stays_sound_where_rates_are_tiny() -> None:
    """Finer grids must come down ever more slowly, not fall below by rounding."""
    loss = GaussianLoss(1.0, 10_000, 1e-4)
    finest, _ = pld._steps([loss])
    found = [
        pld._compose([loss], finest * factor).get_epsilon_for_delta(1e-6) for factor in (4, 2, 1)
    ]
    assert found[0] >= found[1] >= found[2] >= found[1] - (found[0] - found[1])


def test_it_declines_what_floating_point_cannot_carry() -> None:
    assert pld.epsilon([GaussianLoss(0.001, 1000, 0.5)], 1e-14) == math.inf
    assert pld.epsilon([GaussianLoss(1.0, 10**9, 0.5)], 1e-6) == math.inf
    assert pld.epsilon([PureLoss(Fraction(1000))], 1e-6) == math.inf
    assert pld.delta([PureLoss(Fraction(1000))], 1.0) == 1.0
