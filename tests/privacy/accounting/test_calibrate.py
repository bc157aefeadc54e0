"""Calibration: it keeps the promise, wastes less than 1 %, and asks the accountants rarely."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.errors import PromiseError, UsageError
from tacit.privacy import Bound, Promise, Release
from tacit.privacy.accounting import (
    calibrate,
    compose,
    cost,
    delta_of,
    epsilon_of,
    gaussian_scale,
    pld,
)

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
epsilons = st.floats(0.01, 20)
scales = st.fractions(min_value=Fraction(1, 100), max_value=100, max_denominator=1000)
GAUSSIAN = Release("gaussian", Bound("L2", 1), Fraction(1))
LAPLACE = Release("laplace", Bound("L1", 1), Fraction(1))
RESPONSE = Release("randomised-response", parameters={"m": Fraction(2), "p": Fraction(3, 4)})


def scale_of(release: Release) -> float:
    assert release.scale is not None
    return float(release.scale)


# ── Gaussians ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rounds", [1, 100, 1000])
def test_gaussian_noise_is_within_one_percent_of_fine_pld(rounds: int) -> None:
    from dp_accounting.pld import privacy_loss_distribution

    (found,) = calibrate(Promise(1.0, 1e-6), [replace(GAUSSIAN, count=rounds)])

    def fine(sigma: float) -> float:
        one = privacy_loss_distribution.from_gaussian_mechanism(
            sigma, value_discretization_interval=0.02 / sigma
        )
        return float(one.self_compose(rounds).get_epsilon_for_delta(1e-6))

    sigma = scale_of(found)
    assert 0.99 <= fine(sigma) <= 1.01
    assert fine(sigma * 0.99) > 1.0  # 1 % less noise would break the promise


@few
@given(
    epsilons,
    st.sampled_from([1e-12, 1e-6, 1e-2]),
    st.lists(st.tuples(scales, st.integers(1, 500)), min_size=1, max_size=3),
    st.sampled_from([0, 1, 64]),
)
def test_gaussians_keep_the_promise_to_the_last_digits(
    epsilon: float, delta: float, parts: list[tuple[Fraction, int]], steps: int
) -> None:
    asked = [
        replace(GAUSSIAN, scale=scale, count=count, step=Fraction(steps, 1024))
        for scale, count in parts
    ]
    found = calibrate(Promise(epsilon, delta), asked)
    assert delta_of(found, epsilon, "add-remove") <= delta
    assert epsilon_of(found, delta, "add-remove") <= epsilon * (1 + 1e-11)
    shrunk = [replace(r, scale=(r.scale or 0) * (1 - Fraction(1, 10**6))) for r in found]
    coarse = [r for r in shrunk if (r.scale or 0) <= 4 * r.step]
    assert coarse or delta_of(shrunk, epsilon, "add-remove") > delta
    ratios = {(a.scale or 0) / (b.scale or 1) for a, b in zip(found, asked, strict=True)}
    assert max(ratios) / min(ratios) < 1 + Fraction(1, 2**38)
    assert [r.step for r in found] == [r.step for r in asked]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (10.0, 1e-9), (1, 0.5)])
def test_gaussian_scale_is_the_analytic_one(epsilon: float, delta: float) -> None:
    from tacit.privacy.accounting.gaussian import hockey_stick

    sigma = gaussian_scale(epsilon, delta)
    assert hockey_stick(1 / sigma, epsilon) <= delta < hockey_stick(1 / (0.9999 * sigma), epsilon)
    (one,) = calibrate(Promise(epsilon, delta), [GAUSSIAN])
    assert scale_of(one) == pytest.approx(sigma, rel=1e-9)


# ── pure ──────────────────────────────────────────────────────────────────────────────────────────


@given(epsilons, st.lists(st.tuples(scales, st.integers(1, 99)), min_size=1, max_size=4))
def test_pure_releases_meet_the_promise_exactly(
    epsilon: float, parts: list[tuple[Fraction, int]]
) -> None:
    asked = [replace(LAPLACE, scale=scale, count=count) for scale, count in parts]
    found = calibrate(Promise(epsilon), asked)
    total = sum((r.count / (r.scale or Fraction(0)) for r in found), Fraction(0))
    assert total <= Fraction(epsilon)
    assert total >= Fraction(epsilon) * (1 - Fraction(1, 2**38))
    assert cost(found, 0.0, "replace").epsilon <= epsilon


def test_round_numbers_stay_round() -> None:
    (found,) = calibrate(Promise(1.0), [replace(LAPLACE, count=3)])
    assert found.scale == 3


def test_fixed_releases_are_kept_and_paid_first() -> None:
    found = calibrate(Promise(2.0), [LAPLACE, RESPONSE])
    assert found[1] == RESPONSE
    assert scale_of(found[0]) == pytest.approx(1 / (2 - math.log(3)), rel=1e-9)
    assert cost(found, 0.0, "replace").epsilon <= 2.0
    assert calibrate(Promise(2.0), [RESPONSE]) == [RESPONSE]


def test_the_scales_of_above_threshold_are_calibrated_together() -> None:
    both = {"threshold_scale": Fraction(1), "query_scale": Fraction(2)}
    (found,) = calibrate(
        Promise(0.5), [Release("above-threshold", Bound("Linf", 1), parameters=both)]
    )
    assert found.parameters == {"threshold_scale": 4, "query_scale": 8}


# ── searched ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rounds", "rate", "epsilon"), [(1000, Fraction(1, 100), 1.0), (10, Fraction(1, 4), 3.0)]
)
def test_sampled_noise_is_within_one_percent_of_fine_pld_in_few_trials(
    rounds: int, rate: Fraction, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dp_accounting.pld import privacy_loss_distribution

    calls = []

    def counted(losses: list[compose.Loss], delta: float) -> float:
        calls.append(losses)
        return pld.epsilon(losses, delta)

    monkeypatch.setitem(compose.ACCOUNTANTS, "pld", compose.Accountant(counted, pld.delta))
    asked = replace(GAUSSIAN, count=rounds, sampling=rate)
    (found,) = calibrate(Promise(epsilon, 1e-6), [asked])
    assert len(calls) <= 8
    assert epsilon_of([found], 1e-6, "add-remove") <= epsilon

    def fine(sigma: float) -> float:
        one = privacy_loss_distribution.from_gaussian_mechanism(
            sigma, sampling_prob=float(rate), value_discretization_interval=2e-4
        )
        return float(one.self_compose(rounds).get_epsilon_for_delta(1e-6))

    assert 0.99 * epsilon <= fine(scale_of(found)) <= epsilon * (1 + 1e-4)
    assert fine(scale_of(found) * 0.99) > epsilon


@few
@given(epsilons, st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_mixtures_keep_the_promise_and_waste_little(
    epsilon: float, laplaces: int, gaussians: int, fixed: bool
) -> None:
    asked = [
        replace(LAPLACE, count=laplaces),
        replace(GAUSSIAN, count=gaussians, step=Fraction(1, 128)),
        Release("exponential", Bound("Linf", 1), Fraction(2), count=5),
    ]
    if fixed:
        small = {"m": Fraction(2), "p": Fraction(501, 1000)}
        asked.append(Release("randomised-response", parameters=small))
    found = calibrate(Promise(epsilon, 1e-6), asked)
    spent = epsilon_of(found, 1e-6, "replace")
    assert spent <= epsilon
    shrunk = [replace(r, scale=r.scale and r.scale * Fraction(99, 100)) for r in found]
    assert epsilon_of(shrunk, 1e-6, "replace") > epsilon


def test_sampled_laplace_at_delta_zero() -> None:
    (found,) = calibrate(Promise(0.1), [replace(LAPLACE, sampling=Fraction(1, 10))])
    spent = epsilon_of([found], 0.0, "add-remove")
    assert 0.0998 < spent <= 0.1
    assert scale_of(found) < 2  # unsampled it would be 10


def test_less_promise_means_more_noise() -> None:
    asked = [replace(GAUSSIAN, count=50, sampling=Fraction(1, 20))]
    found = [scale_of(calibrate(Promise(e, 1e-6), asked)[0]) for e in (0.5, 1.0, 2.0)]
    assert found == sorted(found, reverse=True)
    found = [scale_of(calibrate(Promise(1.0, d), asked)[0]) for d in (1e-8, 1e-6, 1e-4)]
    assert found == sorted(found, reverse=True)


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_worst_part_decides(delta: float, adjacency: str) -> None:
    kind = GAUSSIAN if delta else LAPLACE
    asked = [replace(kind, part="a"), replace(kind, part="b", count=4), replace(kind, part="c")]
    promise = Promise(1.0, delta, adjacency=adjacency)  # type: ignore[arg-type]
    found = calibrate(promise, asked)
    assert 1 - 1e-6 < epsilon_of(found, delta, adjacency) <= 1.0
    assert [r.part for r in found] == ["a", "b", "c"]


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_calibrated_is_refused_with_a_remedy() -> None:
    with pytest.raises(UsageError, match="no noise to calibrate"):
        calibrate(Promise(math.inf), [LAPLACE])
    with pytest.raises(PromiseError, match="use Laplace"):
        calibrate(Promise(1.0), [GAUSSIAN])
    with pytest.raises(PromiseError, match="use Laplace"):
        gaussian_scale(1.0, 0.0)
    with pytest.raises(PromiseError, match=r"over by 0\.09861"):
        calibrate(Promise(1.0), [LAPLACE, RESPONSE])
    with pytest.raises(UsageError, match="add-remove"):
        calibrate(
            Promise(1.0, 1e-6, adjacency="replace"),  # type: ignore[arg-type]
            [replace(GAUSSIAN, sampling=Fraction(1, 2))],
        )
