"""One contract for every mechanism: it keeps its promise, spends what it says, and repeats."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit.privacy.mechanisms as room
from tacit.crypto.prg import SeededRandomness
from tacit.errors import PromiseError, UsageError
from tacit.privacy import Bound, Norm, Promise
from tacit.privacy.accounting import cost
from tacit.privacy.mechanisms import (
    Exponential,
    Gaussian,
    HadamardResponse,
    L2Laplace,
    Laplace,
    PermuteAndFlip,
    PQPerturbation,
    Quantile,
    RandomisedResponse,
    SparseVector,
    SubsetSelection,
)
from tacit.privacy.recompute import recomputed_epsilon

ONE = Fraction(1)

# name → how it is made for a promise, and an input for its release
MADE: dict[str, tuple[Callable[[Promise], Any], Any]] = {
    "laplace": (lambda p: Laplace.calibrated(Bound(Norm.L1, ONE), p, length=3), [1.0, 2.5, -3.0]),
    "laplace-counts": (
        lambda p: Laplace.calibrated(Bound(Norm.L1, ONE), p, length=3, integral=True),
        [1, 2, 3],
    ),
    "gaussian": (lambda p: Gaussian.calibrated(Bound(Norm.L2, ONE), p, length=3), [1.0, 2.5, -3.0]),
    "l2-laplace": (lambda p: L2Laplace.calibrated(Bound(Norm.L2, ONE), p, length=2), [0.5, 1.0]),
    "exponential": (lambda p: Exponential.calibrated(Bound(Norm.LINF, ONE), p), [1.0, 5.0, 2.0]),
    "permute-and-flip": (
        lambda p: PermuteAndFlip.calibrated(Bound(Norm.LINF, ONE), p),
        [1.0, 5.0, 2.0],
    ),
    "quantile": (lambda p: Quantile.calibrated(0.25, 0.0, 10.0, p), [1.0, 2.0, 7.0]),
    "randomised-response": (lambda p: RandomisedResponse.calibrated(5, p), [0, 4, 2]),
    "pq-perturbation": (lambda p: PQPerturbation.calibrated(5, p), [0, 4, 2]),
    "rappor": (lambda p: PQPerturbation.rappor(5, p), [0, 4, 2]),
    "subset-selection": (lambda p: SubsetSelection.calibrated(5, p), [0, 4, 2]),
    "hadamard-response": (lambda p: HadamardResponse.calibrated(5, p), [0, 4, 2]),
}
DELTA = {"gaussian": 1e-6}


def promise(name: str, epsilon: float) -> Promise:
    return Promise(epsilon, DELTA.get(name, 0.0))


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0])
def test_the_spend_is_the_promise(name: str, epsilon: float) -> None:
    """Never above the promise, and not wastefully below, by two independent computations."""
    asked = promise(name, epsilon)
    mechanism = MADE[name][0](asked)
    spent = cost(mechanism.spend, asked.delta, asked.adjacency)
    assert epsilon * 0.999 < spent.epsilon <= epsilon * (1 + 1e-12)
    again = recomputed_epsilon(mechanism.spend, asked.delta, asked.adjacency)
    assert again == pytest.approx(spent.epsilon, rel=1e-6)


@pytest.mark.parametrize("name", MADE)
def test_less_epsilon_is_more_noise(name: str) -> None:
    make = MADE[name][0]
    tight, loose = make(promise(name, 0.1)), make(promise(name, 1.0))
    if hasattr(tight, "scale"):
        assert tight.scale > loose.scale
    else:
        assert tight.expected_error(100) > 5 * loose.expected_error(100)


@pytest.mark.parametrize("name", MADE)
def test_a_seed_repeats_a_release(name: str) -> None:
    make, value = MADE[name]
    mechanism = make(promise(name, 1.0))
    first, second, other = (
        np.asarray(mechanism.release(value, SeededRandomness(seed)), dtype=np.float64)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    if name not in {"exponential", "permute-and-flip", "randomised-response"}:
        assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", MADE)
def test_no_noise_is_not_calibrated(name: str) -> None:
    with pytest.raises(UsageError, match="infinite"):
        MADE[name][0](Promise(float("inf"), DELTA.get(name, 0.0)))


def test_every_mechanism_is_in_the_contract_and_has_a_proof_note() -> None:
    classes = {type(make(promise(name, 1.0))).__name__ for name, (make, _) in MADE.items()}
    assert classes | {"SparseVector", "Mechanism", "Answer"} == set(room.__all__)
    folder = Path(room.__file__).parent
    for source in folder.glob("*.py"):
        if source.stem not in {"__init__", "mechanism", "additive", "bits"}:
            note = source.with_suffix(".md").read_text()
            assert all(word in note for word in ("**Assumes.**", "**Claims.**", "**Why.**"))


def test_wrong_norms_and_shapes_are_refused() -> None:
    with pytest.raises(UsageError, match="L1"):
        Laplace.calibrated(Bound(Norm.L2, ONE), Promise(1))
    with pytest.raises(UsageError, match="L2"):
        Gaussian.calibrated(Bound(Norm.L1, ONE), Promise(1, 1e-6))
    with pytest.raises(PromiseError, match="delta"):
        Gaussian.calibrated(Bound(Norm.L2, ONE), Promise(1))
    with pytest.raises(UsageError, match="3 values"):
        Laplace.calibrated(Bound(Norm.L1, ONE), Promise(1), length=3).release([1.0])
    with pytest.raises(UsageError, match="whole numbers"):
        Laplace.calibrated(Bound(Norm.L1, ONE), Promise(1), integral=True).release([1.5])


def test_counts_stay_on_the_grid_and_pay_no_rounding() -> None:
    counts = Laplace.calibrated(Bound(Norm.L1, ONE), Promise(1.0), length=100, integral=True)
    assert counts.bound.value == 1
    reals = Laplace.calibrated(Bound(Norm.L1, ONE), Promise(1.0), length=100)
    assert 1 < reals.bound.value < Fraction(1001, 1000)


def test_long_vectors_are_hardly_widened() -> None:
    for length in (1, 1000, 1_000_000):
        laplace = Laplace.calibrated(Bound(Norm.L1, ONE), Promise(1.0), length)
        gaussian = Gaussian.calibrated(Bound(Norm.L2, ONE), Promise(1.0, 1e-6), length)
        assert laplace.bound.value < Fraction(1001, 1000)
        assert gaussian.bound.value < Fraction(1001, 1000)


def test_sparse_vector_spends_what_it_was_given() -> None:
    run = SparseVector(
        Bound(Norm.LINF, ONE), Promise(1.0), 10.0, positives=4, numeric_share=Fraction(1, 3)
    )
    spent = cost(run.spend, 0.0, Promise(1.0).adjacency)
    assert 0.999 < spent.epsilon <= 1
    assert [release.mechanism for release in run.spend] == ["above-threshold", "laplace"]
