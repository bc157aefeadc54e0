"""Exact probabilities, against mpmath."""

from __future__ import annotations

from fractions import Fraction

import mpmath
from hypothesis import given
from hypothesis import strategies as st

from tacit.privacy.exact import Probability, exp_of_minus, logistic_of_minus

exponents = st.one_of(
    st.fractions(min_value=0, max_value=200, max_denominator=10**30),
    st.integers(1, 2**60).map(lambda n: Fraction(1, n)),
)


def reference(exponent: Fraction) -> mpmath.mpf:
    return mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)


@given(exponents, st.integers(1, 300))
def test_exp_bounds_hold_and_are_close(exponent: Fraction, bits: int) -> None:
    low, high = exp_of_minus(exponent, bits)
    with mpmath.workprec(1200):
        exact = reference(exponent) * mpmath.mpf(2) ** bits
        assert low <= exact <= high
    assert high - low <= 2


@given(exponents.filter(bool), st.integers(1, 200))
def test_prefix_is_the_floor(exponent: Fraction, bits: int) -> None:
    with mpmath.workprec(1200):
        expected = int(mpmath.floor(reference(exponent) * mpmath.mpf(2) ** bits))
        e = mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator)
        logistic = int(mpmath.floor(mpmath.mpf(2) ** bits / (1 + e)))
    assert Probability.exp(exponent).prefix(bits) == expected
    assert logistic_of_minus(exponent).prefix(bits) == logistic


@given(st.fractions(0, 1), st.integers(1, 80), st.integers(1, 80))
def test_digits_continue_the_prefix(value: Fraction, skip: int, bits: int) -> None:
    probability = Probability.rational(value)
    joined = (probability.prefix(skip) << bits) + probability.digits(skip, bits)
    assert joined == probability.prefix(skip + bits) == int(value * 2 ** (skip + bits))
