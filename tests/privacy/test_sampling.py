"""Sampling through the central channel: what is certified is what the joint release costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from tacit import Promise
from tacit.channels.central import Central
from tacit.channels.selection import Selection
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import PromiseError, UsageError
from tacit.privacy import Certificate, Norm, Release
from tacit.privacy.accounting import cost
from tacit.privacy.recompute import recomputed_epsilon
from tacit.programs.histogram import Histogram
from tacit.programs.kmeans import KMeans
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Program, Query, Stage

KEY = SigningKey.generate()
RATE = Fraction(1, 10)
BOOLEANS = Schema(columns=tuple(Column(name=f"b{i}", type="boolean") for i in range(20)))
NUMBERS = Schema(
    columns=tuple(Column(name=f"x{i}", type="number", bounds=(-1.0, 1.0)) for i in range(2))
)
ZEROS = ArrayRecords(np.zeros((50, 20)))
POINTS = ArrayRecords(np.zeros((50, 2)))
PURE, NORMAL = Promise(1.0), Promise(1.0, 1e-6)


def certified(program: Program[Any, Any], promise: Promise) -> Certificate:
    records, schema = (ZEROS, BOOLEANS) if isinstance(program, Histogram) else (POINTS, NUMBERS)
    channel = Central(randomness=SeededRandomness(1), sampling=RATE)
    return channel.run(program, records, schema, promise).certificate.signed(KEY)


def one_round(releases: Sequence[Release]) -> list[float]:
    """Distance over noise of every block of one round. Nothing of `tacit` is used to join them."""
    found = []
    for release in releases:
        assert release.bound is not None
        assert release.scale is not None
        found.append(float(release.bound.value / release.scale))
    return found


def sampled_stick(mu: float, rate: float, epsilon: float) -> float:
    """(1−q)N(0,1) + qN(μ,1) over N(0,1)."""
    lifted = math.log1p(math.expm1(epsilon) / rate)
    right = norm.cdf(mu / 2 - lifted / mu) - math.exp(lifted) * norm.cdf(-mu / 2 - lifted / mu)
    return rate * float(right)


def test_twenty_pure_columns_of_one_sample() -> None:
    certificate = certified(Histogram(), PURE)
    joint = sum(one_round(certificate.releases))
    truth = math.log1p(float(RATE) * math.expm1(joint))
    assert 0.99 < truth <= 1
    assert certificate.verify().epsilon == pytest.approx(truth, rel=1e-6)
    # Without the sample's name it would have passed for far less: this is what the name is for.
    apart = [replace(release, sample=None) for release in certificate.releases]
    assert recomputed_epsilon(apart, 0.0) < 0.5


def test_twenty_gaussian_columns_of_one_sample() -> None:
    certificate = certified(Histogram(), NORMAL)
    joint = math.hypot(*one_round(certificate.releases))
    assert 0.9e-6 < sampled_stick(joint, float(RATE), 1.0) <= 1e-6
    assert certificate.verify().epsilon <= 1.001


@pytest.mark.parametrize("promise", [PURE, NORMAL])
def test_k_means_asks_two_blocks_in_every_round(promise: Promise) -> None:
    """Bounds may change from round to round: each kind of round has a sample's name of its own."""
    certificate = certified(KMeans(2, 3), promise)
    samples: dict[str | None, list[Release]] = {}
    for release in certificate.releases:
        samples.setdefault(release.sample, []).append(release)
    assert None not in samples
    assert all(len(blocks) == 2 for blocks in samples.values())
    assert all(len({b.count for b in blocks}) == 1 for blocks in samples.values())
    rounds = [blocks for blocks in samples.values() for _ in range(blocks[0].count)]
    assert len(rounds) == 3
    if promise.delta == 0:
        each = [math.log1p(0.1 * math.expm1(sum(one_round(blocks)))) for blocks in rounds]
        assert 0.99 < sum(each) <= 1
    assert 0.99 < certificate.verify().epsilon <= 1.001


def blocks_of(names: str, length: int = 1, norm: Norm = Norm.L1) -> Query:
    return Query(tuple(Block(name, length, norm, Fraction(1)) for name in names))


def test_equal_blocks_of_one_round_are_not_several_rounds() -> None:
    """Alike as they are, two blocks of four rounds are no eight rounds."""
    levels = Levels.planned(PURE, Plan((Stage(blocks_of("ab"), 4, RATE),)))
    for number in range(1, 5):
        levels.charge(number, blocks_of("ab"))
    assert [(r.sample, r.count) for r in levels.releases] == [("a + b", 4)] * 2
    spent = cost(levels.releases, 0.0, "add-remove").epsilon
    assert 0.99 < spent <= 1
    assert recomputed_epsilon(levels.releases, 0.0) == pytest.approx(spent, rel=1e-9)


def test_rounds_that_differ_in_length_cost_no_less() -> None:
    levels = Levels.planned(PURE, Plan((Stage(blocks_of("a", 3), 2, RATE),)))
    levels.charge(1, blocks_of("a", 3))
    levels.charge(2, blocks_of("a", 2))
    assert cost(levels.releases, 0.0, "add-remove").epsilon >= 0.99


# ── what is refused, before anything leaves ──


@pytest.mark.parametrize("promise", [PURE, NORMAL, Promise(math.inf)])
def test_a_sample_of_one_holder(promise: Promise) -> None:
    holder = replace(promise, unit="holder")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no sample of one holder"):
        Central(sampling=RATE).run(Histogram(), ZEROS, BOOLEANS, holder)


def test_a_selection_on_a_sample() -> None:
    channel = Central(sampling=RATE, selection=Selection(1.0, 1))
    with pytest.raises(UsageError, match="selection"):
        channel.run(Histogram(), ZEROS, BOOLEANS, PURE)


def test_sampling_under_replace() -> None:
    promise = Promise(1.0, adjacency="replace")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="add-remove only"):
        Central(sampling=RATE).run(Histogram(), ZEROS, BOOLEANS, promise)


@pytest.mark.parametrize(
    ("unit", "adjacency"),
    [("record", "replace"), ("person", "add-remove"), ("holder", "add-remove")],
)
def test_windows_that_one_unit_can_touch_twice(unit: str, adjacency: str) -> None:
    promise = Promise(1.0, 1e-6, unit, adjacency)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="window"):
        next(Central().follow(KMeans(2, 3), [POINTS], NUMBERS, promise))


def test_sampled_windows_keep_their_promise() -> None:
    channel = Central(randomness=SeededRandomness(2), sampling=RATE)
    outcomes = list(channel.follow(KMeans(2, 3), [POINTS] * 3, NUMBERS, NORMAL))
    last = outcomes[-1].certificate.signed(KEY)
    for number in (1, 2, 3):
        window = [r for r in last.releases if r.part == f"window {number}"]
        assert len({r.sample for r in window}) == 1
        joint = math.hypot(*one_round(window))
        assert sampled_stick(joint, float(RATE), 1.0) <= 1e-6
    assert last.verify().epsilon <= 1.001


def test_a_sample_is_of_one_kind_of_noise() -> None:
    laplace, gaussian = blocks_of("a").blocks[0], blocks_of("b", norm=Norm.L2).blocks[0]
    with pytest.raises(PromiseError, match="Gaussian and other"):
        Levels.planned(NORMAL, Plan((Stage(Query((laplace, gaussian)), 1, RATE),)))


def test_a_round_asks_for_what_was_planned_and_once() -> None:
    levels = Levels.planned(PURE, Plan((Stage(blocks_of("ab"), 1, RATE),)))
    for other in (blocks_of("a"), blocks_of("ba"), blocks_of("ab", 2), blocks_of("abc")):
        with pytest.raises(UsageError, match="plan"):
            levels.charge(1, other)
    assert levels.releases == ()
    levels.charge(1, blocks_of("ab"))
    with pytest.raises(UsageError, match="no second time"):
        levels.charge(1, blocks_of("ab"))
    with pytest.raises(UsageError, match="there is no round 2"):
        levels.charge(2, blocks_of("ab"))


@dataclass(frozen=True)
class _State:
    done: int = 0


class Stages(Program[_State, int]):
    """Asks for what `rounds` says, one entry after another."""

    name = "stages"

    def __init__(self, *rounds: str) -> None:
        self.rounds = rounds

    def init(self, schema: Schema, promise: Promise) -> _State:
        return _State()

    def plan(self, first: _State) -> list[Stage]:
        return [Stage(blocks_of(names)) for names in self.rounds]

    def map(self, batch: Any, state: _State, query: Query) -> Any:
        return np.zeros((len(batch.X), query.length))

    def reduce(self, total: Any, state: _State) -> _State:
        return _State(state.done + 1)

    def result(self, state: _State) -> int:
        return state.done


@pytest.mark.parametrize("rounds", [("abc",), ("a", "b", "c"), ("ab", "c"), ("a", "bc")])
def test_programs_by_the_shape_of_their_rounds(rounds: tuple[str, ...]) -> None:
    """What is asked in one round shares one sample; other rounds have others."""
    channel = Central(randomness=SeededRandomness(3), sampling=RATE)
    certificate = channel.run(Stages(*rounds), POINTS, NUMBERS, PURE).certificate.signed(KEY)
    assert 0.99 < certificate.verify().epsilon <= 1
    samples = [
        [r for r in certificate.releases if r.sample == " + ".join(names)] for names in rounds
    ]
    costs = [math.log1p(0.1 * math.expm1(sum(one_round(releases)))) for releases in samples]
    assert 0.99 < sum(costs) <= 1
