"""The rule: least where it says, smaller where noise is, and near the best on made-up records."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple

import numpy as np
import pytest

from tacit.channels.peers.advice import suggested
from tacit.errors import UsageError
from tacit.privacy.accounting import gaussian_scale
from tacit.privacy.promise import Promise, Unit
from tacit.programs.averaging import UNBOUNDED
from tacit.programs.logistic_output import LogisticOutput

PROMISE = Promise(1.0, 1e-5)


def excess(peers: int, records: int, promise: Promise, colluding: int) -> Callable[[float], float]:
    """The bound of advice.md, written out: over λ."""
    scale = float(gaussian_scale(promise.epsilon, promise.delta))
    noise = (2 * scale / (peers * records)) ** 2 * peers / (peers - colluding)
    return lambda penalty: (noise + 1 / (2 * peers * records)) / 8 / penalty**2 + penalty / 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("peers", "records"), [(50, 66), (5, 1000), (1000, 5)])
def test_the_penalty_is_where_the_bound_is_least(peers: int, records: int, epsilon: float) -> None:
    promise = Promise(epsilon, 1e-5)
    found = suggested(peers, records, 58, promise)
    cost = excess(peers, records, promise, 1)
    assert cost(found.penalty) < min(cost(found.penalty * 0.97), cost(found.penalty * 1.03))
    assert (found.group_size, found.radius) == (peers, UNBOUNDED)


def test_the_noise_is_what_a_group_adds() -> None:
    found = suggested(50, 66, 58, PROMISE)
    bound = float(LogisticOutput(found.penalty).bound(66, 50).value)
    wanted = float(gaussian_scale(1.0, 1e-5)) * bound * math.sqrt(50 / 49)
    assert found.deviation == pytest.approx(wanted, rel=1e-6)


def test_more_is_better() -> None:
    base = suggested(50, 66, 58, PROMISE)
    for better in (
        suggested(100, 66, 58, PROMISE),
        suggested(50, 132, 58, PROMISE),
        suggested(50, 66, 58, Promise(2.0, 1e-5)),
        suggested(50, 66, 58, PROMISE, colluding=0),
    ):
        assert better.penalty < base.penalty
        assert better.deviation < base.deviation


def test_only_pure_promises_mind_the_length() -> None:
    assert suggested(50, 66, 58, PROMISE) == suggested(50, 66, 5800, PROMISE)
    pure = Promise(1.0)
    assert suggested(50, 66, 58, pure).deviation < suggested(50, 66, 5800, pure).deviation


def test_groups_are_as_large_as_they_may_be() -> None:
    assert suggested(50, 66, 58, PROMISE, largest_group=10).group_size == 10
    assert suggested(2, 66, 58, PROMISE).group_size == 1  # two of whom one is curious hide nobody
    assert suggested(3, 66, 58, PROMISE).group_size == 3
    assert suggested(50, 66, 58, PROMISE, colluding=20, largest_group=21).group_size == 1


def test_a_whole_holder() -> None:
    found = suggested(50, 66, 58, Promise(1.0, 1e-5, Unit.HOLDER))
    scale = float(gaussian_scale(1.0, 1e-5))
    assert found.radius == 1.0
    assert found.deviation == pytest.approx(scale * 2 * math.sqrt(50 / 49) / 50)
    less = suggested(50, 66, 58, Promise(0.1, 1e-5, Unit.HOLDER))
    assert less.penalty == found.penalty  # its noise does not depend on the penalty


def test_without_privacy_few_records_remain() -> None:
    found = suggested(50, 66, 58, Promise(math.inf))
    assert found.deviation == 0
    assert 0 < found.penalty < suggested(50, 66, 58, PROMISE).penalty
    assert all(math.isfinite(value) for value in astuple(found))


@pytest.mark.parametrize("numbers", [(0, 66, 58), (50, 0, 58), (50, 66, 0)])
def test_impossible_numbers(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError):
        suggested(*numbers, PROMISE)


def test_beside_a_grid_on_made_up_records() -> None:
    """Accuracy within two points of the best λ of a grid, picked in hindsight."""
    rng = np.random.default_rng(5)
    truth = rng.normal(size=20)
    peers, records, length = 40, 50, 20

    def drawn(count: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(count, length))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return X, (X @ truth + rng.normal(0, 0.5, count) > 0).astype(np.int64)

    parts, (unseen, y) = [drawn(records) for _ in range(peers)], drawn(2_000)

    def accuracy(penalty: float) -> float:
        mean = np.mean([LogisticOutput(penalty).train(*part) for part in parts], axis=0)
        bound = float(LogisticOutput(penalty).bound(records, peers).value)
        scale = float(gaussian_scale(1.0, 1e-5)) * bound
        noise = np.random.default_rng(6).normal(0, scale, (200, length))
        return float((((mean + noise) @ unseen.T > 0) == y).mean())

    found = suggested(peers, records, length, PROMISE).penalty
    best = max(accuracy(penalty) for penalty in (0.001, 0.01, 0.1, 1.0))
    assert best > 0.75
    assert accuracy(found) > best - 0.02
