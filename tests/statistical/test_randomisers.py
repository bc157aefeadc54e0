"""Errors of local randomisers as measured, in threes: 6 % less or more is noticed.

The laws of whole reports are in tests/privacy/mechanisms/test_randomisers.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tacit.crypto.prg import SeededRandomness
from tacit.privacy import Promise
from tacit.privacy.mechanisms import (
    HadamardResponse,
    PQPerturbation,
    RandomisedResponse,
    SubsetSelection,
)
from tacit.privacy.mechanisms.local import Randomiser

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("m", [300, 1000])
def test_large_subsets_have_uniform_members(m: int) -> None:
    """Each other value equally often, and pairs of them as often as a uniform set has them."""
    randomiser = SubsetSelection.calibrated(m, Promise(1.0))
    reports = randomiser.release(np.full(20_000, 7), SeededRandomness(m))
    bits = np.unpackbits(reports, axis=1, count=m, bitorder="little")
    others = np.delete(bits, 7, axis=1)
    expected = float(randomiser.miss) * len(bits)
    spread = expected * (1 - float(randomiser.miss))
    counts = others.sum(axis=0, dtype=np.int64)
    assert stats.chi2.sf(((counts - expected) ** 2 / spread).sum(), m - 2) > FALSE_ALARM
    pairs = int((others[:, ::2][:, : m // 2 - 1] & others[:, 1::2][:, : m // 2 - 1]).sum())
    q = randomiser.size / m * (randomiser.size - 1) / (m - 1)
    trials = len(bits) * (m // 2 - 1)
    assert pairs / trials == pytest.approx(q, rel=0.01)


FIGURES: dict[str, Callable[[int, Promise], Randomiser]] = {
    "response": RandomisedResponse.calibrated,
    "perturbation": PQPerturbation.calibrated,
    "rappor": PQPerturbation.rappor,
    "subset": SubsetSelection.calibrated,
    "hadamard": HadamardResponse.calibrated,
}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize(("m", "epsilon"), [(2, 1.0), (16, 2.0), (64, 0.5)])
def test_errors_are_as_expected(name: str, m: int, epsilon: float) -> None:
    """The root of the mean square over many studies, and the error bar of one cell."""
    randomiser = FIGURES[name](m, Promise(epsilon))
    people, studies = 200, 16_000 if m == 2 else 3000
    values = np.arange(people) ** 2 % m
    truth = np.bincount(values, minlength=m)
    reports = randomiser.release(np.tile(values, studies), SeededRandomness(f"{name} {m}"))
    rows = reports.reshape(studies, people, -1)
    errors = np.array([randomiser.estimate(one) for one in rows]) - truth
    squares = (errors**2).sum(axis=1) / people**2
    found, doubt = np.sqrt(squares.mean()), squares.std() / squares.mean() / studies**0.5 / 2
    assert doubt < 0.01
    assert found == pytest.approx(randomiser.expected_error(people), rel=5 * doubt)
    assert found != pytest.approx(1.06 * randomiser.expected_error(people), rel=5 * doubt)
    assert found != pytest.approx(0.94 * randomiser.expected_error(people), rel=5 * doubt)
    cell = (errors**2).mean(axis=0)
    assert cell == pytest.approx(randomiser.variance(people, truth / people), rel=0.15)
