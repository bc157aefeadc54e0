"""Sampling and shuffling: against brute force, and monotone in every argument."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import PromiseError
from tacit.privacy.amplification import local_epsilon_for, poisson, shuffle, shuffle_closed

few = settings(max_examples=30, deadline=None)
locals_ = st.floats(0.05, 6)
counts = st.integers(1, 20_000)
deltas = st.sampled_from([1e-10, 1e-6, 1e-3])


# ── Poisson sampling ──────────────────────────────────────────────────────────────────────────────


@given(st.floats(1e-9, 800), st.floats(1e-9, 1), st.floats(0, 0.5))
def test_sampling_is_never_below_60_digits(epsilon: float, rate: float, delta: float) -> None:
    found, failing = poisson(epsilon, delta, rate)
    with mpmath.workdps(60):
        exact = mpmath.log(1 + mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(epsilon)))
        assert mpmath.mpf(found) >= min(exact, mpmath.mpf(epsilon))
        assert found <= float(exact) * (1 + 1e-12) + 1e-15 * epsilon
        assert mpmath.mpf(failing) >= mpmath.mpf(rate) * mpmath.mpf(delta)


@given(st.floats(0, 50), st.floats(0, 50), st.floats(1e-6, 1), st.floats(1e-6, 1))
def test_sampling_is_monotone(e1: float, e2: float, q1: float, q2: float) -> None:
    (e1, e2), (q1, q2) = sorted((e1, e2)), sorted((q1, q2))
    assert poisson(e1, 0.0, q1)[0] <= poisson(e2, 0.0, q2)[0] * (1 + 1e-12)
    assert poisson(e1, 0.0, q1)[0] <= e1


def test_sampling_covers_a_sampled_randomised_response() -> None:
    """A bit that is asked with probability q, else a fair coin: its exact loss is the claim."""
    rate, epsilon = 0.2, 1.0
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    present = rate * p + (1 - rate) * (1 - p)
    exact = math.log(present / (1 - p))
    assert poisson(epsilon, 0.0, rate)[0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("arguments", [(-1, 0, 0.5), (1, 1, 0.5), (1, 0, 0), (1, 0, 1.5)])
def test_impossible_samples_are_refused(arguments: tuple[float, float, float]) -> None:
    with pytest.raises(PromiseError):
        poisson(*arguments)


# ── shuffling ─────────────────────────────────────────────────────────────────────────────────────


def brute_force(epsilon0: float, n: int, epsilon: float) -> mpmath.mpf:
    """The divergence of theorem 3.2 by enumerating C, A and Δ, in 40 digits."""
    with mpmath.workdps(40):
        e0, clone = mpmath.exp(mpmath.mpf(epsilon0)), mpmath.exp(-mpmath.mpf(epsilon0))
        first: dict[tuple[int, int], mpmath.mpf] = {}
        second: dict[tuple[int, int], mpmath.mpf] = {}
        for c in range(n):
            of_c = mpmath.binomial(n - 1, c) * clone**c * (1 - clone) ** (n - 1 - c)
            for a in range(c + 1):
                of_a = of_c * mpmath.binomial(c, a) / mpmath.mpf(2) ** c
                for bit, of_bit in ((1, e0 / (1 + e0)), (0, 1 / (1 + e0))):
                    p, q = (a + bit, c - a + 1 - bit), (a + 1 - bit, c - a + bit)
                    first[p] = first.get(p, mpmath.mpf(0)) + of_a * of_bit
                    second[q] = second.get(q, mpmath.mpf(0)) + of_a * of_bit
        factor = mpmath.exp(mpmath.mpf(epsilon))
        return mpmath.fsum(max(w - factor * second.get(o, 0), 0) for o, w in first.items())


@pytest.mark.parametrize("n", [1, 2, 5, 20, 40])
@pytest.mark.parametrize("epsilon0", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.05, 1e-3, 1e-6])
def test_shuffle_is_the_brute_force_figure(epsilon0: float, n: int, delta: float) -> None:
    found = shuffle(epsilon0, n, delta)
    assert brute_force(epsilon0, n, found) <= delta
    if found > 0:
        assert brute_force(epsilon0, n, found * (1 - 1e-5)) > delta * (1 - 1e-4)


def test_a_real_shuffle_of_randomised_response_is_covered() -> None:
    """n people with binary randomised response, shuffled: the exact law of the number of ones."""
    n, epsilon0, delta = 60, 1.0, 1e-4
    p = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    with mpmath.workdps(30):

        def ones(true: int) -> list[mpmath.mpf]:
            law = [mpmath.mpf(1)]
            for i in range(n):
                q = mpmath.mpf(p if i < true else 1 - p)
                law = [
                    (law[k] * (1 - q) if k < len(law) else 0) + (law[k - 1] * q if k else 0)
                    for k in range(len(law) + 1)
                ]
            return law

        found = mpmath.exp(mpmath.mpf(shuffle(epsilon0, n, delta)))
        for true in (0, 10, 30, 59):
            one, other = ones(true), ones(true + 1)
            for x, y in ((one, other), (other, one)):
                assert mpmath.fsum(max(a - found * b, 0) for a, b in zip(x, y)) <= delta  # noqa: B905


@few
@given(locals_, counts, deltas)
def test_numerical_is_never_above_closed_nor_local(e0: float, n: int, delta: float) -> None:
    assert shuffle(e0, n, delta) <= shuffle_closed(e0, n, delta) <= e0


@pytest.mark.parametrize("epsilon0", [0.5, 2.0])
def test_one_report_is_not_hidden(epsilon0: float) -> None:
    assert shuffle(epsilon0, 1, 1e-12) == pytest.approx(epsilon0, rel=1e-6)
    assert shuffle(epsilon0, 100, 0.0) == shuffle_closed(epsilon0, 100, 0.0) == epsilon0


@few
@given(st.tuples(locals_, locals_), st.tuples(counts, counts), st.tuples(deltas, deltas))
def test_shuffling_is_monotone(
    e: tuple[float, float], n: tuple[int, int], delta: tuple[float, float]
) -> None:
    slack, least = 1 + 1e-6, 1e-12
    (e1, e2), (n1, n2), (d1, d2) = sorted(e), sorted(n), sorted(delta)
    for bound in (shuffle, shuffle_closed):
        base = bound(e1, n2, d2)
        assert base <= bound(e2, n2, d2) * slack + least
        assert base <= bound(e1, n1, d2) * slack + least
        assert base <= bound(e1, n2, d1) * slack + least


def test_closed_form_is_the_printed_one() -> None:
    e, n, delta = math.exp(1.0), 10_000, 1e-6
    spread = 8 * math.sqrt(e * math.log(4 / delta)) / math.sqrt(n) + 8 * e / n
    expected = math.log(1 + (e - 1) / (e + 1) * spread)
    assert shuffle_closed(1.0, n, delta) == pytest.approx(expected, rel=1e-12)
    condition = math.log(n / (16 * math.log(2 / delta)))
    assert shuffle_closed(condition * 1.001, n, delta) == condition * 1.001


@few
@given(st.floats(0.01, 4), st.integers(1, 20_000), deltas)
def test_local_epsilon_is_the_largest_that_fits(epsilon: float, n: int, delta: float) -> None:
    local = local_epsilon_for(epsilon, delta, n)
    assert local >= epsilon
    assert shuffle(local, n, delta) <= epsilon
    assert shuffle(local * 1.0001, n, delta) > epsilon * (1 - 1e-6)


def test_a_million_reports_hide_well() -> None:
    assert shuffle(4.0, 10**6, 1e-6) < 0.05
    assert shuffle(1.0, 10**6, 1e-6) < 0.0044


@pytest.mark.parametrize(
    "arguments", [(0, 10, 1e-6), (math.inf, 10, 1e-6), (1, 0, 1e-6), (1, 9, 1)]
)
def test_impossible_shuffles_are_refused(arguments: tuple[float, int, float]) -> None:
    for bound in (shuffle, shuffle_closed):
        with pytest.raises(PromiseError):
            bound(*arguments)
