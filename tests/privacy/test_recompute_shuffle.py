"""What a shuffle hides, the verifier's way: against enumeration, and against `amplification`."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tacit.privacy.amplification import shuffle
from tacit.privacy.certificate import TOLERANCE
from tacit.privacy.recompute_shuffle import chance_of_fewer, shuffled_epsilon

few = settings(max_examples=15, deadline=None)
locals_ = st.floats(0.05, 6)
counts = st.integers(1, 2000)
deltas = st.sampled_from([1e-10, 1e-6, 1e-3])


def divergence(local: float, mixed: int, epsilon: float) -> float:
    """Theorem 3.2 as it is printed: every C, A and Δ, and the two coordinates that are seen."""
    clone, keeps = math.exp(-local), 1 / (1 + math.exp(-local))
    first: dict[tuple[int, int], float] = {}
    second: dict[tuple[int, int], float] = {}
    for c in range(mixed):
        of_c = comb(mixed - 1, c) * clone**c * (1 - clone) ** (mixed - 1 - c)
        for a in range(c + 1):
            of_a = of_c * comb(c, a) / 2**c
            for bit, chance in ((1, keeps), (0, 1 - keeps)):
                one, other = (a + bit, c - a + 1 - bit), (a + 1 - bit, c - a + bit)
                first[one] = first.get(one, 0.0) + of_a * chance
                second[other] = second.get(other, 0.0) + of_a * chance
    return math.fsum(max(p - math.exp(epsilon) * second.get(o, 0.0), 0) for o, p in first.items())


@pytest.mark.parametrize("mixed", [1, 2, 5, 20, 45])
@pytest.mark.parametrize("local", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.05, 1e-3, 1e-6])
def test_it_is_the_figure_of_enumeration(local: float, mixed: int, delta: float) -> None:
    found = shuffled_epsilon(local, mixed, delta)
    assert divergence(local, mixed, found) <= delta * (1 + 1e-6)
    if found > 1e-12:
        assert divergence(local, mixed, found * (1 - 1e-5)) > delta * (1 - 1e-6)


@pytest.mark.parametrize(
    ("local", "mixed", "delta"),
    [
        (0.1, 1000, 1e-6),
        (0.5, 400, 1e-8),
        (1.0, 100, 1e-6),
        (1.0, 10_000, 1e-6),
        (1.0, 200_000, 5e-7),
        (4.0, 1000, 1e-6),
        (4.0, 200_000, 5e-7),
        (8.0, 1_000_000, 5e-7),
        (12.0, 5000, 1e-6),
    ],
)
def test_two_computations_agree(local: float, mixed: int, delta: float) -> None:
    """Well within what a certificate may be off by, and not below, up to the other's bisection."""
    first, second = shuffle(local, mixed, delta), shuffled_epsilon(local, mixed, delta)
    assert first * (1 - 1e-6) <= second <= first * (1 + TOLERANCE / 5)


@few
@given(st.tuples(locals_, locals_), st.tuples(counts, counts), st.tuples(deltas, deltas))
def test_it_is_monotone(
    e: tuple[float, float], n: tuple[int, int], delta: tuple[float, float]
) -> None:
    (e1, e2), (n1, n2), (d1, d2) = sorted(e), sorted(n), sorted(delta)
    slack, least = 1 + 1e-4, 1e-12
    base = shuffled_epsilon(e1, n2, d2)
    assert base <= e1
    assert base <= shuffled_epsilon(e2, n2, d2) * slack + least
    assert base <= shuffled_epsilon(e1, n1, d2) * slack + least
    assert base <= shuffled_epsilon(e1, n2, d1) * slack + least


def test_nobody_hides_an_answer_without_noise() -> None:
    assert shuffled_epsilon(1000.0, 10_000, 1e-6) == 1000.0
    assert shuffled_epsilon(99.0, 10_000, 1e-6) == pytest.approx(99.0)


@pytest.mark.parametrize("chance", [Fraction(1), Fraction(1, 2), Fraction(1, 5)])
@pytest.mark.parametrize("others", [0, 1, 9, 200])
def test_the_chance_of_fewer_is_the_exact_sum(others: int, chance: Fraction) -> None:
    for mixed in {1, 2, others // 2 + 1, others, others + 1, others + 2}:
        exact = sum(
            comb(others, k) * chance**k * (1 - chance) ** (others - k)
            for k in range(min(mixed - 1, others + 1))
        )
        found = chance_of_fewer(mixed, others, float(chance))
        assert found == pytest.approx(float(exact), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("chance", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("reports", [1, 50, 10_000, 3_000_000])
def test_it_is_the_law_of_the_binomial(reports: int, chance: float) -> None:
    """As certificates of version 0.1 are read: their people met at random."""
    mixed = 1 + int(binom.ppf(1e-6, reports - 1, chance))
    assert chance_of_fewer(mixed, reports - 1, chance) <= 1e-6 * (1 + 1e-6)
    assert chance_of_fewer(mixed + 1, reports - 1, chance) > 1e-6
