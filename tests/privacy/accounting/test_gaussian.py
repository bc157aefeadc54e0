"""Gaussians against computations in 50 digits, and the discrete Gaussian against its exact law."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy import Bound, Release
from tacit.privacy.accounting import gaussian
from tacit.privacy.accounting.losses import GaussianLoss, PureLoss, loss_of

mus = st.floats(1e-3, 30)
epsilons = st.floats(0, 60)
deltas = st.floats(-30, -1).map(lambda e: 10.0**e)


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """Balle & Wang 2018, theorem 8, in 50 digits and more where they cancel."""
    with mpmath.workdps(50):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        extra = int((e / m + m) ** 2)
    with mpmath.workdps(50 + extra):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@settings(deadline=None)  # 50 digits and more take their time
@given(mus, epsilons)
def test_delta_is_never_below_and_close_to_50_digits(mu: float, epsilon: float) -> None:
    if epsilon / mu > 60:  # below the smallest float
        return
    exact, found = exact_delta(mu, epsilon), gaussian.hockey_stick(mu, epsilon)
    assert mpmath.mpf(found) >= exact
    if exact > 1e-300:
        assert found <= float(exact) * (1 + 1e-8) + 1e-14 * (epsilon < mu * mu / 2)


@pytest.mark.parametrize(("mu", "epsilon"), [(1.0, 0.5), (0.3, 1.0), (3.0, 2.0)])
def test_delta_equals_the_integral_of_the_hockey_stick(mu: float, epsilon: float) -> None:
    with mpmath.workdps(40):
        start = mpmath.mpf(mu) / 2 + mpmath.mpf(epsilon) / mu

        def stick(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x, mu) - mpmath.exp(epsilon) * mpmath.npdf(x)

        integral = mpmath.quad(stick, [start, start + 5, start + 20, mpmath.inf])
    assert gaussian.hockey_stick(mu, epsilon) == pytest.approx(float(integral), rel=1e-10)


@given(mus, mus, epsilons, epsilons)
def test_delta_is_monotone(mu: float, mu2: float, epsilon: float, epsilon2: float) -> None:
    (mu, mu2), (epsilon, epsilon2) = sorted((mu, mu2)), sorted((epsilon, epsilon2))
    slack = 1 + 1e-7
    assert gaussian.hockey_stick(mu, epsilon) <= gaussian.hockey_stick(mu2, epsilon) * slack
    assert gaussian.hockey_stick(mu, epsilon2) <= gaussian.hockey_stick(mu, epsilon) * slack


@given(mus, deltas)
def test_epsilon_and_delta_are_inverse(mu: float, delta: float) -> None:
    epsilon = gaussian.smallest_epsilon(mu, delta)
    assert gaussian.hockey_stick(mu, epsilon) <= delta
    if epsilon > 1e-6:
        assert gaussian.hockey_stick(mu, epsilon * (1 - 1e-9)) > delta * (1 - 1e-6)


@given(st.floats(1e-3, 100), deltas)
def test_largest_mu_keeps_the_promise_and_wastes_nothing(epsilon: float, delta: float) -> None:
    mu = gaussian.largest_mu(epsilon, delta)
    assert gaussian.hockey_stick(mu, epsilon) <= delta
    assert gaussian.hockey_stick(mu * (1 + 1e-9), epsilon) > delta * (1 - 1e-6)


@given(st.lists(st.tuples(st.floats(1e-3, 3), st.integers(1, 1000)), min_size=1, max_size=5))
def test_many_gaussians_are_one(parts: list[tuple[float, int]]) -> None:
    losses = [GaussianLoss(mu, count) for mu, count in parts]
    exact = math.sqrt(math.fsum(count * mu * mu for mu, count in parts))
    found = gaussian.total(losses)
    assert found is not None
    assert exact <= found <= exact * (1 + 1e-14)


def test_it_does_not_apply_to_samples_and_pure_losses() -> None:
    for losses in ([GaussianLoss(1.0, 1, 0.5)], [GaussianLoss(1.0), PureLoss(Fraction(1))]):
        assert gaussian.epsilon(losses, 1e-6) == math.inf
        assert gaussian.delta(losses, 1.0) == 1.0


# ── the discrete Gaussian: gaussian.md, theorem 1 ─────────────────────────────────────────────────


def discrete_weights(sigma: int, reach: int) -> list[mpmath.mpf]:
    with mpmath.workdps(50):
        raw = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-reach, reach + 1)]
        total = mpmath.fsum(raw)
        return [w / total for w in raw]


def loss_on_grid(sigma: int, square: int) -> float:
    """μ for a movement of √square grid steps (any rational slightly above will do)."""
    bound = Fraction(math.nextafter(math.sqrt(square), math.inf))
    found = loss_of(Release("gaussian", Bound("L2", bound), Fraction(sigma), Fraction(1)))
    assert isinstance(found, GaussianLoss)
    return found.mu


@pytest.mark.parametrize("shift", [1, 2, 3])
@pytest.mark.parametrize("sigma", [5, 8, 20])
def test_ours_is_never_below_the_exact_discrete_gaussian(sigma: int, shift: int) -> None:
    reach = 16 * sigma
    weights = discrete_weights(sigma, reach)
    mu = loss_on_grid(sigma, shift**2)
    for epsilon in (0.0, 0.01, 0.1, 0.3, 0.6, 1.0, 2.0):
        with mpmath.workdps(50):
            factor = mpmath.exp(epsilon)
            exact = mpmath.fsum(
                max(weights[i - shift] - factor * weights[i], 0)
                for i in range(shift, 2 * reach + 1)
            )
            assert mpmath.mpf(gaussian.hockey_stick(mu, epsilon)) >= exact
        if exact > 1e-12:  # and not wasteful: σ is at most 9 % narrower at σ = 5h
            wider = mu * math.sqrt(1 - 4 / sigma**2) * 0.97
            assert gaussian.hockey_stick(wider, epsilon) < exact


@pytest.mark.parametrize(("sigma", "shift"), [(5, (1, 2)), (5, (3, 1)), (8, (2, 2))])
def test_the_same_in_two_dimensions(sigma: int, shift: tuple[int, int]) -> None:
    reach = 9 * sigma
    one = np.array([float(w) for w in discrete_weights(sigma, reach)])
    law = np.outer(one, one)
    moved = np.zeros_like(law)
    moved[shift[0] :, shift[1] :] = law[: -shift[0], : -shift[1]]
    mu = loss_on_grid(sigma, shift[0] ** 2 + shift[1] ** 2)
    for epsilon in (0.0, 0.05, 0.3, 0.8, 1.5):
        exact = np.maximum(moved - math.exp(epsilon) * law, 0).sum()
        assert gaussian.hockey_stick(mu, epsilon) >= exact > 0


@pytest.mark.parametrize(("sigma", "r"), [(5, 2), (8, 2), (20, 2)])
def test_the_theorem_itself(sigma: int, r: int) -> None:
    """Rounding N(0, σ²−r²) at random to integers gives the discrete Gaussian, up to 2κ."""
    with mpmath.workdps(60):
        sigma0 = mpmath.sqrt(sigma**2 - r**2)
        kappa = 2 * mpmath.exp(-2 * mpmath.pi**2 * r**2) * (1 + mpmath.mpf(10) ** -50)
        total = mpmath.fsum(mpmath.npdf(k, 0, sigma) for k in range(-30 * sigma, 30 * sigma + 1))
        for k in (0, 3):
            # The integrand is smooth and decays: the trapezium rule errs by far less than κ.
            h = mpmath.mpf(1) / 4
            law = h * mpmath.fsum(
                mpmath.npdf(x, 0, sigma0) * _rounds_to(k, x, r)
                for x in (k + h * i for i in range(-4 * 34, 4 * 34 + 1))
            )
            exact = mpmath.npdf(k, 0, sigma) / total
            assert abs(mpmath.log(law / exact)) <= 3 * kappa


def _rounds_to(k: int, x: mpmath.mpf, r: int) -> mpmath.mpf:
    near = range(int(x) - 36, int(x) + 37)
    weights = mpmath.fsum(mpmath.exp(-((j - x) ** 2) / (2 * r**2)) for j in near)
    return mpmath.exp(-((k - x) ** 2) / (2 * r**2)) / weights


# ── sums of discrete Gaussians: gaussian.md, theorem 3 ────────────────────────────────────────────


def tau(part: mpmath.mpf, parts: int) -> mpmath.mpf:
    steps = range(1, parts)
    return 10 * mpmath.fsum(
        mpmath.exp(-2 * mpmath.pi**2 * part**2 * j / mpmath.mpf(j + 1)) for j in steps
    )


def convolved(law: list[mpmath.mpf], other: list[mpmath.mpf]) -> list[mpmath.mpf]:
    size = len(law) + len(other) - 1
    return [
        mpmath.fsum(
            law[i] * other[n - i] for i in range(max(0, n - len(other) + 1), min(n + 1, len(law)))
        )
        for n in range(size)
    ]


@pytest.mark.parametrize("part", ["0.5", "0.7", "1"])
def test_a_sum_of_parts_is_a_discrete_gaussian_up_to_tau(part: str) -> None:
    """By exact convolution, where parts are so narrow that the difference shows."""
    with mpmath.workdps(60):
        s, reach = mpmath.mpf(part), 14
        raw = [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * s**2)) for x in range(-reach, reach + 1)]
        one = [w / mpmath.fsum(raw) for w in raw]
        law = one
        for parts in range(2, 5):
            law = convolved(law, one)
            middle, variance = len(law) // 2, parts * s**2
            whole = [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * variance)) for x in range(-80, 81)]
            total = mpmath.fsum(whole)
            # Near the middle, where the reach of a single part cuts nothing off.
            ratios = [mpmath.log(law[middle + x] * total / whole[80 + x]) for x in range(6)]
            worst = max(abs(ratio) for ratio in ratios)
            assert worst <= tau(s, parts)
            if parts == 2:  # the bound is not idle; with more parts the differences even out
                assert worst > tau(s, parts) / 15


def test_tau_of_parts_of_eight_steps_is_as_small_as_the_note_says() -> None:
    with mpmath.workdps(50):
        for parts in (2, 10, 100):
            assert tau(mpmath.mpf(8), parts) < mpmath.mpf("5.1e-274") * (parts - 1)
        assert 1e15 * mpmath.mpf("5.1e-274") * 1e6 < mpmath.mpf("1e-252")


@pytest.mark.parametrize("shift", [1, 4])
def test_the_exact_sum_of_parts_is_never_dearer_than_accounted(shift: int) -> None:
    """Two parts of 8 and a half steps each, convolved."""
    s, reach = 8.5, 140
    points = np.arange(-reach, reach + 1)
    one = np.exp(-(points**2) / (2 * s**2))
    law = np.convolve(one / one.sum(), one / one.sum())
    release = Release(
        "gaussian",
        Bound("L2", Fraction(shift)),
        Fraction(math.sqrt(2) * s),
        Fraction(1),
        parameters={"parts": Fraction(2)},
    )
    found = loss_of(release)
    assert isinstance(found, GaussianLoss)
    for epsilon in (0.0, 0.05, 0.2, 0.5):
        exact = np.maximum(law[:-shift] - math.exp(epsilon) * law[shift:], 0).sum()
        assert gaussian.hockey_stick(found.mu, epsilon) >= exact > 0
        assert gaussian.hockey_stick(found.mu * 0.97, epsilon) < exact


def test_kappa_is_as_small_as_the_note_says() -> None:
    with mpmath.workdps(50):
        kappa = 2 * mpmath.nsum(lambda j: mpmath.exp(-8 * mpmath.pi**2 * j**2), [1, 10])
    assert kappa < 1.1e-34
    assert 2 * 1e15 * 3 * kappa < 1e-18


def test_all_pairs_of_small_grids_are_dominated() -> None:
    """The σ² − 4h² term is needed: without it small σ would be claimed too private somewhere."""
    for sigma, shift in product((5, 6), (1, 4)):
        release = Release(
            "gaussian", Bound("L2", Fraction(shift)), Fraction(sigma), Fraction(1), length=3
        )
        found = loss_of(release)
        assert isinstance(found, GaussianLoss)
        assert found.mu >= shift / math.sqrt(sigma**2 - 4)
