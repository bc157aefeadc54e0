"""What a shuffle makes of known randomisers: against every outcome of small crowds, and sane."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import comb, factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import PromiseError
from tacit.privacy.amplification import local_epsilon_for, shuffle
from tacit.privacy.certificate import TOLERANCE
from tacit.privacy.mechanisms import (
    HadamardResponse,
    PQPerturbation,
    RandomisedResponse,
    SubsetSelection,
)
from tacit.privacy.mechanisms.local import Randomiser
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.privacy.recompute_response import _noise, response_epsilon
from tacit.privacy.release import Release
from tacit.privacy.shuffled_response import (
    ResponseLaw,
    _Crowd,
    law_of,
    local_epsilon_of_response,
    shuffled_response,
)

KINDS = (RandomisedResponse, HadamardResponse, SubsetSelection, PQPerturbation)
DELTAS = (1e-12, 1e-6, 0.01)
few = settings(max_examples=25, deadline=None)
Law = dict[int, Fraction]
Seen = tuple[int, ...]


def made(kind: type[Randomiser], m: int, epsilon: float) -> Release:
    promise = Promise(epsilon, 0.0, Unit.PERSON, Adjacency.REPLACE)
    return kind.calibrated(m, promise).spend[0]  # type: ignore[attr-defined, no-any-return]


def reports(release: Release, m: int, value: int) -> Law:
    """Every report and its probability, as the mechanisms' notes define them."""
    p, get = release.parameters["p"], release.parameters
    match release.mechanism:
        case "randomised-response":
            return {y: p if y == value else (1 - p) / (m - 1) for y in range(m)}
        case "hadamard-response":
            order = 1 << m.bit_length()
            signs = [((value + 1) & y).bit_count() % 2 for y in range(order)]
            return {y: 2 * (1 - p if sign else p) / order for y, sign in enumerate(signs)}
        case "subset-selection":
            size = int(get["size"])
            sets = [y for y in range(1 << m) if y.bit_count() == size]
            ways = comb(m - 1, size - 1), comb(m - 1, size)
            return {y: p / ways[0] if y >> value & 1 else (1 - p) / ways[1] for y in sets}
    found: Law = {}
    for y in range(1 << m):
        chances = [p if i == value else get["q"] for i in range(m)]
        found[y] = math.prod(
            (c if y >> i & 1 else 1 - c for i, c in enumerate(chances)), start=Fraction(1)
        )
    return found


# ── the true mechanism ──


def shuffled(laws: list[Law], start: Mapping[Seen, float] | None = None) -> dict[Seen, float]:
    """The law of the multiset of independent reports, as how often each report was seen."""
    found = dict(start or {(0,) * len(laws[0]): 1.0})
    for law in laws:
        following: dict[Seen, float] = defaultdict(float)
        chances = [float(chance) for chance in law.values()]
        for seen, chance in found.items():
            for i, other in enumerate(chances):
                following[(*seen[:i], seen[i] + 1, *seen[i + 1 :])] += chance * other
        found = following
    return found


SMALL = [
    (RandomisedResponse, 2, 7),
    (RandomisedResponse, 3, 6),
    (RandomisedResponse, 4, 5),
    (RandomisedResponse, 5, 4),
    (HadamardResponse, 3, 4),
    (HadamardResponse, 2, 4),
    (SubsetSelection, 4, 4),
    (PQPerturbation, 2, 4),
    (PQPerturbation, 3, 3),
]


@pytest.mark.parametrize("epsilon0", [0.4, 1.5])
@pytest.mark.parametrize(("kind", "m", "n"), SMALL)
def test_no_small_crowd_tells_more(kind: type[Randomiser], m: int, n: int, epsilon0: float) -> None:
    """Whatever the others' values are, by enumeration of all multisets of reports."""
    release = made(kind, m, epsilon0)
    law = law_of(release)
    assert law is not None
    laws = [reports(release, m, value) for value in range(m)]
    bounds = [(shuffled_response(release, epsilon0, n, d), d) for d in (0.2, 0.05, 0.01, 1e-3)]
    assert bounds[0][0] < epsilon0
    for others in combinations_with_replacement(range(m), n - 1):
        rest = shuffled([laws[value] for value in others])
        for pair in ((0, 1), (m - 1, 0)):
            one, other = (shuffled([laws[value]], rest) for value in pair)
            for epsilon, delta in bounds:
                e = math.exp(epsilon)
                told = math.fsum(max(one[y] - e * other[y], 0) for y in one)
                assert told <= delta * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("epsilon0", [0.2, 3.0])
def test_the_law_is_that_of_the_reports(kind: type[Randomiser], m: int, epsilon0: float) -> None:
    """Three kinds of reports for each pair of values, and noise in which everybody shares."""
    release = made(kind, m, epsilon0)
    law = law_of(release)
    assert law is not None
    every = [reports(release, m, value) for value in range(m)]
    assert all(sum(one.values()) == 1 for one in every)
    for v, w in product(range(m), repeat=2):
        if v == w:
            continue
        mine, yours = every[v], every[w]
        own = {y for y in mine if mine[y] > yours[y]}
        other = {y for y in mine if mine[y] < yours[y]}
        assert sum(mine[y] for y in own) == sum(yours[y] for y in other) == law.own
        assert sum(mine[y] for y in other) == sum(yours[y] for y in own) == law.other
        assert {mine[y] / yours[y] for y in own} == {law.own / law.other}
        neither = set(mine) - own - other
        rest = 1 - law.own - law.other
        for some in every:
            for y in own:
                assert some[y] * law.own >= law.other * mine[y]
            for y in other:
                assert some[y] * law.own >= law.other * yours[y]
            for y in neither:
                assert some[y] * rest >= law.neutral * mine[y]


# ── the pair that dominates ──


def divergence(law: ResponseLaw, n: int, epsilon: float) -> float:
    """The two laws of the three counts, as the proof has them: no densities, no thresholds."""
    own, other, neutral = map(float, law)
    rest, noise = 1 - own - other, 2 * other + neutral

    def counts(first: float, second: float) -> dict[tuple[int, int, int], float]:
        found: dict[tuple[int, int, int], float] = defaultdict(float)
        for size in range(n):  # others that are noise
            of_size = comb(n - 1, size) * noise**size * (1 - noise) ** (n - 1 - size)
            for a in range(size + 1):
                for b in range(size - a + 1):
                    z = size - a - b
                    ways = factorial(size) / (factorial(a) * factorial(b) * factorial(z))
                    chance = of_size * ways * (other / noise) ** (a + b) * (neutral / noise) ** z
                    found[a + 1, b, z] += first * chance
                    found[a, b + 1, z] += second * chance
                    found[a, b, z + 1] += rest * chance
        return found

    mine, yours = counts(own, other), counts(other, own)
    return math.fsum(max(mine[y] - math.exp(epsilon) * yours[y], 0) for y in mine)


@pytest.mark.parametrize("n", [1, 2, 7, 25])
@pytest.mark.parametrize(("kind", "m"), [(kind, m) for kind in KINDS for m in (2, 3, 9)])
def test_the_sum_is_the_divergence(kind: type[Randomiser], m: int, n: int) -> None:
    for epsilon0 in (0.3, 2.0):
        law = law_of(made(kind, m, epsilon0))
        assert law is not None
        crowd = _Crowd(law, n, 1e-6)
        for share in (0.0, 0.1, 0.5, 0.95):
            exact = divergence(law, n, share * epsilon0)
            found = crowd.delta(share * epsilon0)
            assert exact * (1 - 1e-10) - 1e-14 <= found <= exact * (1 + 1e-8) + 1e-11


# ── two computations ──


CASES = [
    (RandomisedResponse, 2, 0.5, 1000, 1e-6),
    (RandomisedResponse, 3, 2.0, 300, 1e-6),
    (RandomisedResponse, 12, 4.0, 20_000, 1e-9),
    (RandomisedResponse, 1000, 8.0, 5000, 1e-12),
    (RandomisedResponse, 2, 10.0, 1_000_000, 1e-6),
    (RandomisedResponse, 4, 0.5, 1_000_000, 1e-8),
    (HadamardResponse, 60, 1.0, 10_000, 1e-6),
    (SubsetSelection, 60, 2.0, 4000, 1e-6),
    (PQPerturbation, 5, 1.0, 500, 1e-4),
]


@pytest.mark.parametrize(("kind", "m", "epsilon0", "n", "delta"), CASES)
def test_two_computations_agree(
    kind: type[Randomiser], m: int, epsilon0: float, n: int, delta: float
) -> None:
    release = made(kind, m, epsilon0)
    first = shuffled_response(release, epsilon0, n, delta)
    second = response_epsilon(release, epsilon0, n, delta)
    assert first * (1 - 5e-3) <= second <= first * (1 + TOLERANCE / 5)


@pytest.mark.parametrize("kind", KINDS)
def test_both_find_the_same_probabilities(kind: type[Randomiser]) -> None:
    """From the table of reports, and from hit, miss and the ratio."""
    for m, epsilon0 in product((2, 3, 40, 1000), (0.05, 1.0, 6.0)):
        release = made(kind, m, epsilon0)
        law, noise = law_of(release), _noise(release)
        assert law is not None
        assert noise.ratio == pytest.approx(float(law.own / law.other), rel=1e-12)
        assert noise.share == pytest.approx(float(2 * law.other + law.neutral), rel=1e-12)
        assert noise.pointing * noise.share == pytest.approx(float(law.other), rel=1e-12)


# ── how it moves ──


@few
@given(
    st.sampled_from(KINDS),
    st.sampled_from([2, 3, 7, 50, 1000]),
    st.floats(0.01, 10),
    st.integers(1, 20_000),
    st.sampled_from(DELTAS),
)
def test_it_is_never_above_the_general_figure(
    kind: type[Randomiser], m: int, epsilon0: float, n: int, delta: float
) -> None:
    release = made(kind, m, epsilon0)
    found = shuffled_response(release, epsilon0, n, delta)
    assert 0 <= found <= shuffle(epsilon0, n, delta) <= epsilon0
    assert response_epsilon(release, epsilon0, n, delta) <= max(found, 1e-9) * (1 + TOLERANCE)


@few
@given(
    st.sampled_from(KINDS),
    st.sampled_from([2, 3, 7, 50]),
    st.floats(0.01, 10),
    st.tuples(st.integers(1, 20_000), st.integers(1, 20_000)),
    st.tuples(st.sampled_from(DELTAS), st.sampled_from(DELTAS)),
)
def test_it_is_monotone(
    kind: type[Randomiser],
    m: int,
    epsilon0: float,
    n: tuple[int, int],
    delta: tuple[float, float],
) -> None:
    release, slack = made(kind, m, epsilon0), 1 + 1e-5
    (n1, n2), (d1, d2) = sorted(n), sorted(delta)
    base = shuffled_response(release, epsilon0, n2, d2)
    assert base <= shuffled_response(release, epsilon0, n1, d2) * slack + 1e-12
    assert base <= shuffled_response(release, epsilon0, n2, d1) * slack + 1e-12


def test_one_more_never_hides_worse() -> None:
    """Also where numbers are rounded to so many digits."""
    release = made(RandomisedResponse, 3, 1.0)
    found = [shuffled_response(release, 1.0, n, 1e-6) for n in [*range(1, 60), *range(700, 712)]]
    assert all(after <= before * (1 + 1e-6) for before, after in pairwise(found))


@pytest.mark.parametrize("n", [1, 2, 1000, 1_000_000])
@pytest.mark.parametrize("epsilon0", [0.01, 10.0])
def test_extremes(n: int, epsilon0: float) -> None:
    for m in (2, 1000):
        release = made(RandomisedResponse, m, epsilon0)
        found = shuffled_response(release, epsilon0, n, 1e-12)
        assert 0 <= found <= epsilon0
        assert math.isfinite(found)


@pytest.mark.parametrize(
    ("m", "epsilon0", "n", "factor"),
    [(2, 1.0, 10_000, 1.2), (2, 4.0, 10_000, 1.4), (4, 2.0, 10_000, 1.5), (16, 2.0, 10_000, 2.0)],
)
def test_it_is_much_smaller(m: int, epsilon0: float, n: int, factor: float) -> None:
    release = made(RandomisedResponse, m, epsilon0)
    found = shuffled_response(release, epsilon0, n, 1e-6)
    assert shuffle(epsilon0, n, 1e-6) / found > factor


@pytest.mark.parametrize("values", [2, 5])
def test_how_large_a_local_epsilon_may_be(values: int) -> None:
    local = local_epsilon_of_response(0.2, 1e-6, 500, values)
    assert local > 1.1 * local_epsilon_for(0.2, 1e-6, 500)
    for epsilon0, fits in ((local, True), (local * 1.001, False)):
        release = made(RandomisedResponse, values, epsilon0)
        assert (shuffled_response(release, epsilon0, 500, 1e-6) <= 0.2) == fits
    assert local_epsilon_of_response(1.0, 1e-6, 1, values) == pytest.approx(1.0, rel=1e-3)
    assert local_epsilon_of_response(1.0, 0.0, 500, values) == pytest.approx(1.0, rel=1e-3)


# ── what is not a randomiser of the crowd ──


def test_others_get_the_general_figure() -> None:
    """Nothing is assumed of a mechanism that is not known."""
    for release in (
        Release("laplace", parameters={"p": Fraction(1, 2)}),
        Release("randomised-response", parameters={"m": Fraction(2), "p": Fraction(1, 4)}),
        Release("randomised-response", parameters={"p": Fraction(3, 4)}),
        Release("pq-perturbation", parameters={"p": Fraction(3, 4)}),
    ):
        assert law_of(release) is None
        assert shuffled_response(release, 1.0, 1000, 1e-6) == shuffle(1.0, 1000, 1e-6)
        with pytest.raises((ValueError, KeyError)):
            response_epsilon(release, 1.0, 1000, 1e-6)


def test_nothing_is_hidden_without_delta_or_noise() -> None:
    release = made(RandomisedResponse, 3, 1.0)
    assert shuffled_response(release, 1.0, 1000, 0.0) == 1.0
    assert shuffled_response(release, 500.0, 1000, 1e-6) == 500.0
    assert response_epsilon(release, 500.0, 1000, 1e-6) == 500.0
    with pytest.raises(PromiseError):
        shuffled_response(release, 1.0, 0, 1e-6)
