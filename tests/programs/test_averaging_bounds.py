"""Averages of local models stay within their bounds, and the bounds are no looser than they say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.crypto.prg import SeededRandomness
from tacit.data import load_dataset
from tacit.data.partitions import partition
from tacit.errors import DatasetError, UsageError
from tacit.privacy import Promise
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.mechanisms import Gaussian, L2Laplace, Laplace
from tacit.programs.averaging_bounds import (
    dealt_distance_bound,
    distance_bound,
    empirical_excess_risk,
    noise_norm,
    true_excess_risk,
)
from tacit.programs.logistic_output import train

Reals = NDArray[np.float64]
Part = tuple[Any, Any]

FAILURE = 0.01
SPLITS = {
    "one": [4000],
    "two, even": [2000, 2000],
    "two, uneven": [400, 3600],
    "five, even": [800] * 5,
    "five, uneven": [100, 400, 500, 1000, 2000],
    "twenty, even": [200] * 20,
    "twenty, uneven": [20] * 10 + [380] * 10,
}


def made(records: int, seed: int = 0, width: int = 6) -> Part:
    generator = np.random.default_rng(seed)
    X = generator.normal(0, 1, (records, width))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    scores = X @ np.arange(1.0, width + 1) + generator.logistic(0, 1, records)
    return X, (scores > 0).astype(int)


def models(parts: Sequence[Part], penalty: float) -> tuple[Reals, Reals]:
    """The average of local models, and the model of all records together."""
    local = [train(*part, penalty)[0] for part in parts]
    pooled = [np.concatenate([part[i] for part in parts]) for i in (0, 1)]
    return np.mean(local, axis=0), train(*pooled, penalty)[0]


def distance(parts: Sequence[Part], penalty: float) -> float:
    average, pooled = models(parts, penalty)
    return float(np.linalg.norm(average - pooled))


def objective(weights: Reals, X: Reals, y: Any, penalty: float) -> float:
    margins = np.where(y > 0, 1, -1) * (X @ weights)
    return float(np.logaddexp(0, -margins).mean() + penalty / 2 * weights @ weights)


def mechanisms(size: float, length: int, epsilon: float = 0.5) -> list[Any]:
    pure, usual = Promise(epsilon), Promise(epsilon, 1e-6)
    bound = Bound(Norm.L2, size)  # type: ignore[arg-type]
    return [
        Gaussian.calibrated(bound, usual, length),
        L2Laplace.calibrated(bound, pure, length),
        Laplace.calibrated(Bound(Norm.L1, size * math.sqrt(length)), pure, length),  # type: ignore[arg-type]
    ]


# -- distance -------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [0.003, 0.1, 2.0])
@pytest.mark.parametrize("name", SPLITS)
def test_dealt_records_keep_both_bounds(name: str, penalty: float) -> None:
    sizes = SPLITS[name]
    found = distance(partition(made(4000), how=sizes), penalty)
    dealt = dealt_distance_bound(sizes, penalty, FAILURE)
    assert found <= dealt + 1e-9
    assert dealt <= distance_bound(sizes, penalty)
    if len(sizes) == 1:
        assert dealt == 0
    else:
        assert found > 0


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.integers(1, 3),
    st.sampled_from([0.003, 0.1, 1.0, 20.0]),
)
@settings(max_examples=80, deadline=None)
def test_the_bound_holds_whatever_the_records_are(
    seed: int, sizes: list[int], width: int, penalty: float
) -> None:
    """Each holder has a distribution and a rule of his own."""
    generator = np.random.default_rng(seed)
    parts = []
    for size in sizes:
        X = generator.normal(generator.normal(0, 3, width), generator.exponential(), (size, width))
        rule = generator.normal(0, 1, width)
        parts.append((X, (X @ rule > generator.normal()).astype(int)))
    local = [train(*part, penalty)[0] for part in parts]
    assert max(float(np.linalg.norm(weights)) for weights in local) <= 0.5 / penalty + 1e-7
    assert distance(parts, penalty) <= distance_bound(sizes, penalty) + 1e-7


@pytest.mark.parametrize("parties", [2, 5, 20])
def test_the_bound_is_nearly_met(parties: int) -> None:
    """All but the largest hold one record each, which says the opposite: (1 − 1/K)/λ apart."""
    penalty, largest = 100.0, 10_000
    parts = [(np.ones((1, 1)), np.array([0]))] * (parties - 1)
    parts.append((np.ones((largest, 1)), np.ones(largest)))
    limit = distance_bound([1] * (parties - 1) + [largest], penalty)
    assert 0.95 * limit < distance(parts, penalty) <= limit


def test_without_curvature_to_help_the_bound_is_met_within_its_stated_factor() -> None:
    """(1 − 1/(2K))/λ at most, for every λ and all sizes."""
    for parties in (2, 5, 20):
        sizes = [1] * (parties - 1) + [10_000]
        assert distance_bound(sizes, 1e-3) <= (1 - 1 / (2 * parties)) / 1e-3 * (1 + 1e-12)


def test_as_published_is_exceeded_by_equal_holders_of_unlike_records() -> None:
    size, penalty = 1000, 0.01
    parts = [(np.tile(row, (size, 1)), np.ones(size)) for row in np.eye(2)]
    found = distance(parts, penalty)
    assert found > 10 * distance_bound([size] * 2, penalty, as_published=True)
    assert found <= distance_bound([size] * 2, penalty)


def test_as_published_is_exceeded_by_unequal_holders_of_like_records() -> None:
    sizes, penalty = SPLITS["two, uneven"], 1.0
    published = distance_bound(sizes, penalty, as_published=True)
    assert published == 1 / (400 * penalty)
    assert distance(partition(made(4000), how=sizes), penalty) > 2 * published


def test_a_deal_brings_models_together_with_the_root_of_its_size() -> None:
    small, large = (dealt_distance_bound([n, 9 * n], 1.0, FAILURE) for n in (10**5, 10**7))
    assert small / large == pytest.approx(10, rel=0.1)


# -- noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(3), ids=["gaussian", "l2-laplace", "laplace"])
@pytest.mark.parametrize("length", [3, 8, 123])
def test_noise_is_rarely_longer_than_its_bound(place: int, length: int) -> None:
    mechanism = mechanisms(0.01, length)[place]
    randomness, zero = SeededRandomness(length), np.zeros(length)
    drawn = np.array([np.linalg.norm(mechanism.release(zero, randomness)) for _ in range(400)])
    limit = noise_norm(mechanism, 0.1)
    allowed = 0.1 + 3 * math.sqrt(0.09 / len(drawn))
    assert np.mean(drawn > limit) <= allowed
    assert np.mean(drawn > limit / 2) > allowed  # half the bound would be wrong


@pytest.mark.parametrize("failure", [0.3, 0.01, 1e-6])
def test_laplace_is_bounded_better_than_as_published(failure: float) -> None:
    mechanism = mechanisms(0.01, 123)[2]
    published = noise_norm(mechanism, failure, as_published=True)
    assert published == pytest.approx(123 * float(mechanism.scale) * math.log(123 / failure))
    assert noise_norm(mechanism, failure) < published / 10


# -- risk -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPLITS)
def test_excess_risk_stays_below_its_bounds(name: str) -> None:
    """Over the records, and over a population that they were drawn from."""
    sizes, penalty = SPLITS[name], 0.05
    everyone = made(100_000, seed=1)
    drawn = np.random.default_rng(2).permutation(100_000)[:4000]
    records = everyone[0][drawn], everyone[1][drawn]
    average, pooled = models(partition(records, how=sizes), penalty)
    least = train(*everyone, penalty)[0]
    apart = dealt_distance_bound(sizes, penalty, FAILURE)
    for mechanism in mechanisms(2 / (len(sizes) * min(sizes) * penalty), len(pooled)):
        noisy = mechanism.release(average, SeededRandomness(3))
        noise = noise_norm(mechanism, FAILURE)
        empirical = empirical_excess_risk(penalty, apart, noise)
        excess = objective(noisy, *records, penalty) - objective(pooled, *records, penalty)
        assert 0 < excess <= empirical
        true = true_excess_risk(penalty, empirical, len(drawn), FAILURE)
        excess = objective(noisy, *everyone, penalty) - objective(least, *everyone, penalty)
        assert 0 < excess <= true


def test_the_empirical_bound_is_nearly_met() -> None:
    """Two opposite records: the loss curves as much as it can."""
    X, y, penalty = np.ones((2, 1)), np.array([0, 1]), 0.01
    excess = objective(np.array([0.1]), X, y, penalty) - objective(np.zeros(1), X, y, penalty)
    limit = empirical_excess_risk(penalty, 0.06, 0.04)
    assert 0.99 * limit < excess <= limit


def test_as_published_is_what_theorems_4_3_and_4_4_print() -> None:
    sizes, penalty, epsilon, failure, d = [300, 400, 500], 0.2, 0.7, 0.05, 10
    n, K = min(sizes), len(sizes)
    mechanism = Laplace.calibrated(Bound(Norm.L1, 2 / (n * penalty)), Promise(epsilon), d)  # type: ignore[arg-type]
    apart = distance_bound(sizes, penalty, as_published=True)
    noise = noise_norm(mechanism, failure, as_published=True)
    log, square = math.log(d / failure), (n * penalty) ** 2
    printed = (K - 1) ** 2 * (penalty + 1) / (2 * square)
    printed += 2 * d**2 * (penalty + 1) / (square * epsilon**2) * log**2
    printed += 2 * d * (K - 1) * (penalty + 1) / (square * epsilon) * log
    empirical = empirical_excess_risk(penalty, apart, noise, as_published=True)
    assert empirical == pytest.approx(printed, rel=1e-3)  # the grid widens the bound by 2⁻¹²
    true = true_excess_risk(penalty, empirical, 1200, failure, as_published=True)
    sample = 16 / (penalty * 1200) * (32 + math.log(1 / failure))
    assert true == pytest.approx(2 * empirical + sample)
    assert true_excess_risk(penalty, empirical, 1200, failure) < true
    assert true_excess_risk(penalty, 0.0, 1200, failure) == pytest.approx(sample / 2)


# -- Adult ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def adult() -> Part:
    """The first 8,000 records: more would only take longer."""
    try:
        X, y = load_dataset("a9a").arrays("train")
    except DatasetError as problem:
        pytest.skip(str(problem))
    return np.asarray(X[:8000], dtype=np.float64) / math.sqrt(14), np.asarray(y[:8000])


@pytest.mark.parametrize("sizes", [[8000], [1600] * 5, [800, 1600, 1600, 1600, 2400], [400] * 20])
def test_adult_stays_below_the_bounds(adult: Part, sizes: list[int]) -> None:
    records, penalty = adult, 0.1
    average, pooled = models(partition(records, how=sizes), penalty)
    apart = dealt_distance_bound(sizes, penalty, FAILURE)
    assert float(np.linalg.norm(average - pooled)) <= apart
    least = objective(pooled, *records, penalty)
    for mechanism in mechanisms(2 / (len(sizes) * min(sizes) * penalty), len(pooled)):
        noisy = mechanism.release(average, SeededRandomness(4))
        limit = empirical_excess_risk(penalty, apart, noise_norm(mechanism, FAILURE))
        assert least < objective(noisy, *records, penalty) <= least + limit


def test_two_unequal_holders_of_adult_exceed_what_is_published(adult: Part) -> None:
    sizes, penalty = [800, 7200], 1.0
    found = distance(partition(adult, how=sizes), penalty)
    assert found > 3 * distance_bound(sizes, penalty, as_published=True)
    assert found <= dealt_distance_bound(sizes, penalty, FAILURE)


# -- questions without an answer ------------------------------------------------------------------


def test_senseless_questions_are_refused() -> None:
    mechanism = mechanisms(0.01, 3)[0]
    for wrong in (
        lambda: distance_bound([], 1.0),
        lambda: distance_bound([5, 0], 1.0),
        lambda: distance_bound([5, 5], 0.0),
        lambda: dealt_distance_bound([5, 5], 1.0, 0.0),
        lambda: noise_norm(mechanism, 1.0),
        lambda: empirical_excess_risk(-1.0, 0.1, 0.1),
        lambda: true_excess_risk(1.0, 0.1, 0, 0.1),
    ):
        with pytest.raises(UsageError):
            wrong()
