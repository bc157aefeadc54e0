"""Bounds, limits and repeatability of the samplers; their laws are in tests/statistical."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto.prg import SYSTEM, SeededRandomness
from tacit.errors import PromiseError
from tacit.privacy import noise

variances = st.one_of(
    st.fractions(min_value=Fraction(1, 10), max_value=1000, max_denominator=1000),
    st.integers(1, 2**98).map(Fraction),
    st.tuples(st.integers(1, 2**60), st.integers(1, 2**20)).map(lambda p: Fraction(*p)),
)


@settings(max_examples=200)
@given(variances, st.floats(0, 70))
def test_integer_bounds_enclose_the_acceptance_probability(v: Fraction, deviations: float) -> None:
    """Lemma 4 of noise.md: what the fast path decides, it decides rightly."""
    acceptance = noise._Acceptance(v)
    reach = float(v) ** 0.5
    magnitudes = np.array(
        sorted({int(deviations * reach), int(reach), acceptance.t, 0, 1}), dtype=np.int64
    )
    low, high = acceptance.bounds(magnitudes)
    with mpmath.workprec(300):
        for magnitude, lo, hi in zip(magnitudes.tolist(), low, high, strict=True):
            gamma = acceptance.gamma(magnitude)
            exact = mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator) * 2**31
            assert int(lo) <= exact <= int(hi)


def test_the_bounds_leave_little_open() -> None:
    acceptance = noise._Acceptance(Fraction(10**10))
    low, high = acceptance.bounds(np.arange(0, 800_000, dtype=np.int64))
    assert int((high - low).max()) < 2**31 / 2**15


def test_exp_table_is_a_floor() -> None:
    gamma = np.arange(0, 64 << 20, 99_991, dtype=np.uint64)
    exact = np.exp(-gamma.astype(np.float64) / 2**20) * 2**31
    below = exact - noise._exp_floor(gamma)
    assert below.min() > -1e-5
    assert below.max() < 6


@pytest.mark.parametrize("size", [0, 1, 5, 4096, 10_001])
def test_sizes(size: int) -> None:
    assert noise.discrete_laplace(Fraction(3), size).shape == (size,)
    assert noise.discrete_laplace_part(Fraction(3), 2, size).shape == (size,)
    assert noise.discrete_gaussian(Fraction(3), size).shape == (size,)
    assert noise.uniform_below(3, size).shape == (size,)
    assert noise.bernoulli_bits(Fraction(1, 3), size, 11).shape == (size, 2)
    assert noise.substitute(np.zeros(size, dtype=np.int64), 3, Fraction(1, 2)).shape == (size,)
    assert sorted(noise.permutation(size)) == list(range(size))


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(1, 2**22), Fraction(2**51)])
def test_impossible_scales_are_refused(scale: Fraction) -> None:
    with pytest.raises(PromiseError, match="noise scale"):
        noise.discrete_laplace(scale, 1)
    with pytest.raises(PromiseError, match="noise scale"):
        noise.discrete_laplace_part(scale, 2, 1)
    with pytest.raises(PromiseError, match="noise scale"):
        noise.discrete_gaussian(scale * abs(scale), 1)


def rising(shape: Fraction, reach: int) -> list[Fraction]:
    """The a_n of the negative binomial law P[n] = a_n (1−q)^shape q^n."""
    found = [Fraction(1)]
    for n in range(1, reach):
        found.append(found[-1] * (1 - (1 - shape) / n))
    return found


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_parts_sum_to_the_whole_in_fractions(parts: int) -> None:
    """Lemma 5 of noise.md: `parts` negative binomials convolve to the geometric law, a_n = 1."""
    one = rising(Fraction(1, parts), 25)
    total = [Fraction(1)] + [Fraction(0)] * 24
    for _ in range(parts):
        total = [sum((total[i] * one[n - i] for i in range(n + 1)), Fraction(0)) for n in range(25)]
    assert total == [1] * 25


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 3), Fraction(2, 5)])
def test_kept_cycles_of_a_geometric_number_are_negative_binomial(share: Fraction) -> None:
    """The steps of `_kept_cycles` in fractions: given n things, K of them are kept with probability
    a_K · a′_(n−K), the product of the two shapes' weights. So q^n splits into two laws."""
    reach = 12
    law = {0: {0: Fraction(1)}}
    for n in range(1, reach):
        law[n] = dict.fromkeys(range(n + 1), Fraction(0))
        for length in range(1, n + 1):
            for kept, chance in law[n - length].items():
                law[n][kept + length] += chance * share / n
                law[n][kept] += chance * (1 - share) / n
    ours, others = rising(share, reach), rising(1 - share, reach)
    for n in range(reach):
        assert law[n] == {k: ours[k] * others[n - k] for k in range(n + 1)}


def test_noise_has_at_least_one_part() -> None:
    with pytest.raises(PromiseError, match="at least one part"):
        noise.discrete_laplace_part(Fraction(3), 0, 1)


def test_a_seed_repeats_and_the_system_does_not() -> None:
    def draw(source: object) -> list[int]:
        return noise.discrete_gaussian(Fraction(10**6), 20, source).tolist()  # type: ignore[arg-type]

    assert draw(SeededRandomness(1)) == draw(SeededRandomness(1))
    assert draw(SeededRandomness(1)) != draw(SeededRandomness(2))
    assert draw(SYSTEM) != draw(SYSTEM)
    source = SeededRandomness(1)
    assert draw(source) != draw(source)


def test_choices_refine_until_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nearly equal cumulative sums and a uniform number between their bounds."""
    seen: list[int] = []
    original = noise._cumulative

    def watch(weights: object, steps: object, rate: object, precision: int) -> object:
        seen.append(precision)
        low, high = original(weights, steps, rate, precision)  # type: ignore[arg-type]
        if len(seen) == 1:  # blunt the first look, so that it cannot decide
            return [0] * len(low), [h + (1 << precision) for h in high]
        return low, high

    monkeypatch.setattr(noise, "_cumulative", watch)
    assert noise.choose_exp([1, 1], [0, 5], Fraction(1), SeededRandomness(3)) in (0, 1)
    assert seen == [192, 384]


class TestPackedCoins:
    @pytest.mark.parametrize("digits", [1, 2, 5])
    def test_every_number_against_every_prefix(self, digits: int) -> None:
        """Lemma 6 of noise.md: all 2^digits numbers at once, one in each bit."""
        numbers = np.arange(2**digits)
        inverted = [~(numbers >> digit) & 1 for digit in range(digits)]
        words = np.packbits(np.array(inverted, dtype=np.uint8), axis=1)
        for prefix in range(2**digits):
            less, equal = (
                np.unpackbits(compare(words, prefix), count=2**digits).tolist()
                for compare in (noise._less, noise._equal)
            )
            assert less == (numbers < prefix).tolist()
            assert equal == (numbers == prefix).tolist()

    @pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 2), Fraction(0), Fraction(5, 2**40)])
    @pytest.mark.parametrize("width", [1, 8, 13])
    def test_spare_bits_are_zero(self, p: Fraction, width: int) -> None:
        packed = noise.bernoulli_bits(p, 1000, width)
        assert packed.shape == (1000, -(-width // 8))
        assert int(packed[:, -1].max()) < 1 << ((width - 1) % 8 + 1)
        assert packed.any() == (p > Fraction(1, 100))

    @pytest.mark.parametrize("p", [Fraction(1), Fraction(-1, 2)])
    def test_impossible_probabilities(self, p: Fraction) -> None:
        with pytest.raises(PromiseError, match="packed coins"):
            noise.bernoulli_bits(p, 1, 1)


class Counting:
    """A stream of all words of 16 digits, each once; what is drawn again is a 1, which is fair."""

    def __init__(self) -> None:
        self.asked = 0

    def words(self, size: int, dtype: type[np.uint16]) -> np.ndarray:
        self.asked += 1
        return np.arange(size, dtype=dtype) if self.asked == 1 else np.ones(size, dtype)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100, 255, 256])
def test_every_integer_has_as_many_words(limit: int) -> None:
    """Lemma 7 of noise.md, by enumeration."""
    drawn = noise._below(Counting(), limit, 2**16)  # type: ignore[arg-type]
    counts = np.bincount(drawn, minlength=limit)
    counts[0] -= 2**16 % limit  # those that were drawn again
    assert counts.tolist() == [2**16 // limit] * limit


@pytest.mark.parametrize("limit", [2, 256, 257, 2**16, 2**16 + 1, 2**24 + 2])
def test_substitutes_stay_below_the_limit(limit: int) -> None:
    values = np.full(5000, limit - 1)
    always = noise.substitute(values, limit, Fraction(1), SeededRandomness(1))
    never = noise.substitute(values, limit, Fraction(0), SeededRandomness(1))
    assert np.array_equal(always, values)
    assert int(never.max()) < limit - 1
