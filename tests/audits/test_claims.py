"""What a promise lets an adversary win, against closed forms and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.audits.claims import (
    Claim,
    Shifts,
    any_claim,
    choice_and_value,
    gaussian_mu,
    laplace_claim,
)
from tacit.audits.game import power
from tacit.audits.programs import PURE, table_of
from tacit.errors import UsageError
from tacit.privacy.audit import clopper_pearson
from tacit.privacy.promise import Promise


def test_mu_of_a_promise() -> None:
    """At ε = 1, δ = 10⁻⁶ the noise is μ = 0.24, as it must be by the definition of δ(ε)."""
    mu = gaussian_mu(Promise(1.0, 1e-6))
    assert mu == pytest.approx(0.2367, abs=1e-4)
    delta = stats.norm.cdf(mu / 2 - 1 / mu) - math.e * stats.norm.cdf(-mu / 2 - 1 / mu)
    assert delta == pytest.approx(1e-6, rel=1e-6)
    with pytest.raises(UsageError, match="δ above 0"):
        gaussian_mu(Promise(1.0))


@pytest.mark.parametrize("noise", [1.0, 0.5])
@pytest.mark.parametrize("shift", [0.05, 0.5, 3.0, 8.0])
def test_one_laplace_release(shift: float, noise: float) -> None:
    exact = 1 - math.exp(-shift / (2 * noise)) / 2
    assert Shifts(0.0, (shift,)).success(noise) == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("noise", [1.0, 0.5])
def test_many_releases_of_both_kinds(noise: float) -> None:
    """Against 400,000 draws: their standard error is below 0.0008."""
    generator = np.random.default_rng(1)
    shifts, mu = np.array([0.3, 0.3, 1.1, 0.05]), 0.7
    x = shifts + generator.laplace(scale=noise, size=(400_000, 4))
    loss = (np.abs(x) - np.abs(x - shifts)).sum(axis=1)
    loss += mu**2 / 2 + mu * noise * generator.normal(size=len(loss))
    found = Shifts(mu, tuple(shifts)).success(noise)
    assert found == pytest.approx((loss > 0).mean(), abs=0.004)
    assert Shifts(mu).success(noise) == pytest.approx(stats.norm.cdf(mu / (2 * noise)))
    assert Shifts(0.0, (0.0,)).success() == 0.5


def test_a_secret_sample() -> None:
    generator = np.random.default_rng(3)
    mu, rate, noise = 1.5, 0.75, 0.5
    there = generator.random(400_000) < 0.5
    drawn = there & (generator.random(len(there)) < rate)
    loss = mu * (mu * drawn + noise * generator.normal(size=len(there)) - mu / 2)
    sampled = np.log(1 - rate + rate * np.exp(loss))
    exact = ((sampled > 0) == there).mean()
    assert Shifts(mu, rate=rate).success(noise) == pytest.approx(exact, abs=0.004)


def test_a_choice_and_a_value() -> None:
    generator = np.random.default_rng(2)
    choosing, epsilon = 0.8, 1.5
    right = generator.random(400_000) < 1 / (1 + math.exp(-choosing))
    x = epsilon + generator.laplace(size=len(right))
    loss = np.where(right, choosing, -choosing) + np.abs(x) - np.abs(x - epsilon)
    assert choice_and_value(choosing, epsilon) == pytest.approx((loss > 0).mean(), abs=0.004)


def test_what_is_spread_is_harder_to_see() -> None:
    for name in ("ranges", "quantiles"):
        table = table_of(name, Promise(PURE[name]))
        worst = laplace_claim(table.promise, table.plan)
        assert table.claim.success < worst.success - 0.05
        # No claim of Laplace noise exceeds what ε alone allows.
        assert worst.success <= any_claim(table.promise).success


def test_any_noise() -> None:
    assert any_claim(Promise(2.0)).success == pytest.approx(math.exp(2) / (1 + math.exp(2)))
    assert any_claim(Promise(1e-9, 0.3)).success == pytest.approx(0.65)


@pytest.mark.parametrize(("trials", "confidence"), [(60, 0.99), (250, 1 - 1e-6)])
def test_power_is_a_binomial_tail(trials: int, confidence: float) -> None:
    claim = Claim(Promise(1.0), 0.84)
    caught = [
        wins
        for wins in range(trials + 1)
        if clopper_pearson(wins, trials, 1 - confidence)[0] > claim.success
    ]
    for success in (0.84, 0.9, 0.977):
        tail = stats.binom.sf(min(caught) - 1, trials, success)
        assert power(claim, success, trials, confidence) == pytest.approx(tail)
    assert power(claim, claim.success, trials, confidence) <= 1 - confidence
    assert power(claim, 1.0, 20, 1 - 1e-6) == 0.0  # too few trials to show anything
