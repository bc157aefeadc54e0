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
from tacit.programs.program import Block, Program, Query, Share

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


def test_rounds_that_differ_are_counted_apart() -> None:
    shares = [Share(name, Fraction(1), 4, RATE) for name in ("a", "b")]
    levels = Levels.planned(PURE, shares, together=[["a", "b"]])
    for bound in (1, 2, 1, 3):
        blocks = [Block("a", 2, Norm.L1, Fraction(bound)), Block("b", 1, Norm.L1, Fraction(1))]
        levels.charge(Query(tuple(blocks)))
    assert sorted((r.sample or "", r.count) for r in levels.releases) == [
        ("a, b", 2), ("a, b", 2), ("a, b′", 1), ("a, b′", 1), ("a, b′′", 1), ("a, b′′", 1),
    ]  # fmt: skip
    spent = cost(levels.releases, 0.0, "add-remove").epsilon
    assert 0.99 < spent <= 1
    assert recomputed_epsilon(levels.releases, 0.0) == pytest.approx(spent, rel=1e-9)


# ── what is refused, before anything leaves ──


@pytest.mark.parametrize("promise", [PURE, NORMAL, Promise(math.inf)])
def test_a_sample_of_one_holder(promise: Promise) -> None:
    holder = replace(promise, unit="holder")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="one holder hides nobody"):
        Central(sampling=RATE).run(Histogram(), ZEROS, BOOLEANS, holder)
    if not promise.is_private:
        with pytest.raises(UsageError, match="one holder hides nobody"):
            next(Central(sampling=RATE).follow(KMeans(2, 3), [POINTS], NUMBERS, holder))


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
    with pytest.raises(UsageError, match="several windows"):
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


def test_who_draws_no_sample_gets_no_amplification() -> None:
    """A plan that claims sampling, in a channel that does not say what it asks a sample for."""
    plan = [Share("a", Fraction(1), sampling=RATE), Share("b", Fraction(1), sampling=RATE)]
    for together in ([], [["a"]], [["a", "b"], ["b"]], [["a", "b", "c"]]):
        with pytest.raises(UsageError, match="no sample is drawn"):
            Levels.planned(PURE, plan, together=together)
    with pytest.raises(PromiseError, match="one count"):
        Levels.planned(PURE, [plan[0], replace(plan[1], count=2)], together=[["a", "b"]])
    mixed = [plan[0], replace(plan[1], norm=Norm.L1)]
    with pytest.raises(PromiseError, match="Gaussian and other"):
        Levels.planned(NORMAL, mixed, together=[["a", "b"]])


def test_a_query_asks_one_sample_for_what_was_planned() -> None:
    plan = [Share(name, Fraction(1), sampling=RATE) for name in ("a", "b")]
    a, b = (Block(name, 1, Norm.L1, Fraction(1)) for name in ("a", "b"))
    alone = Levels.planned(PURE, plan, together=[["a"], ["b"]])
    with pytest.raises(UsageError, match="does not ask for together"):
        alone.charge(Query((a, b)))
    joint = Levels.planned(PURE, plan, together=[["a", "b"]])
    with pytest.raises(UsageError, match="does not ask for together"):
        joint.charge(Query((a,)))
    assert alone.releases == joint.releases == ()
    assert joint.multipliers["a"] > alone.multipliers["a"]


@dataclass(frozen=True)
class _Stage:
    done: int = 0


class Stages(Program[_Stage, int]):
    """Asks for what `rounds` says, one entry after another; plans one share for each name."""

    name = "stages"

    def __init__(self, *rounds: str) -> None:
        self.rounds = rounds

    def init(self, schema: Schema, promise: Promise) -> _Stage:
        return _Stage()

    def plan(self, state: _Stage) -> list[Share]:
        return [Share(name, Fraction(1)) for name in sorted(set("".join(self.rounds)))]

    def query(self, state: _Stage) -> Query | None:
        if state.done == len(self.rounds):
            return None
        asked = self.rounds[state.done]
        return Query(tuple(Block(name, 1, Norm.L1, Fraction(1)) for name in asked))

    def map(self, batch: Any, state: _Stage) -> Any:
        return np.zeros((len(batch.X), len(self.rounds[state.done])))

    def reduce(self, total: Any, state: _Stage) -> _Stage:
        return _Stage(state.done + 1)

    def result(self, state: _Stage) -> int:
        return state.done


def test_programs_by_the_shape_of_their_rounds() -> None:
    channel = Central(randomness=SeededRandomness(3), sampling=RATE)

    def run(*rounds: str) -> float:
        outcome = channel.run(Stages(*rounds), POINTS, NUMBERS, PURE)
        return outcome.certificate.signed(KEY).verify().epsilon

    assert 0.99 < run("abc") <= 1  # all in one
    assert 0.99 < run("a", "b", "c") <= 1  # one after another
    with pytest.raises(UsageError, match="every round asks for all"):
        run("ab", "c")
    with pytest.raises(UsageError, match="does not ask for together"):
        run("a", "bc")
