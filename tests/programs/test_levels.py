"""Noise planned for servers that draw it in parts; the plan itself is tested in test_framework."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.crypto.prg import SeededRandomness
from tacit.errors import UsageError
from tacit.privacy import Adjacency, Norm, Promise
from tacit.privacy.accounting import cost
from tacit.privacy.recompute import recomputed_epsilon
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Query, Stage, norm_for


def plan_of(*blocks: Block) -> Plan:
    """One round for each."""
    return Plan(tuple(Stage(Query((block,))) for block in blocks))


@pytest.mark.parametrize("promise", [Promise(1.0), Promise(1.0, 1e-6)])
@pytest.mark.parametrize("parts", [2, 5])
def test_a_run_in_parts_costs_the_promise(promise: Promise, parts: int) -> None:
    norm = norm_for(promise)
    a = Stage(Query((Block("a", 5, norm, Fraction(2)),)))
    b = Stage(Query((Block("b", 30, norm, Fraction(7), weight=Fraction(3)),)), 10)
    plan = Plan((a, b))
    levels = Levels.planned(promise, plan, parts)
    for number in range(1, 12):
        levels.charge(number, plan.stage(number).query)
    assert all(release.parameters == {"parts": parts} for release in levels.releases)
    spent = cost(levels.releases, promise.delta, Adjacency.ADD_REMOVE).epsilon
    assert 0.999 < spent <= 1.0
    assert recomputed_epsilon(levels.releases, promise.delta) <= 1 + 1e-6


@pytest.mark.parametrize("promise", [Promise(1.0), Promise(1.0, 1e-6)])
def test_the_parts_of_all_servers_have_the_variance_of_the_whole(promise: Promise) -> None:
    block = Block("a", 100_000, norm_for(promise), Fraction(1))
    zeros = np.zeros(block.length, dtype=np.int64)
    source = SeededRandomness(1)
    variances = []
    for parts in (1, 4):
        mechanism = Levels.planned(promise, plan_of(block), parts).mechanism(block)
        assert mechanism.parts == parts
        total = sum(mechanism.perturb(zeros, source) for _ in range(parts))
        variances.append(float(np.var(total)))
    assert variances[1] == pytest.approx(variances[0], rel=0.05)


@pytest.mark.parametrize("length", [1, 1000, 10**6])
def test_default_grids_are_fine_enough_for_a_thousand_servers(length: int) -> None:
    """Even with hardly any noise, one part is far wider than 8 steps."""
    block = Block("a", length, Norm.L2, Fraction(1))
    levels = Levels.planned(Promise(20.0, 1e-3), plan_of(block), parts=1000)
    mechanism = levels.mechanism(block)
    assert mechanism.scale > 8 * 100 * mechanism.grid.step * Fraction(32)


def test_a_coarse_step_cannot_be_split_among_many() -> None:
    """Counts in whole steps, with σ ≈ 12 steps: enough for two parts, too few for three."""
    promise = Promise(0.33, 1e-6)
    block = Block("a", 1, Norm.L2, Fraction(1), Fraction(1))
    whole = Levels.planned(promise, plan_of(block), parts=2).mechanism(block)
    assert 2 * 8**2 < whole.scale**2 < 3 * 8**2
    with pytest.raises(UsageError, match="finer step"):
        Levels.planned(promise, plan_of(block), parts=3).mechanism(block)
    fine = Block("a", 1, Norm.L2, Fraction(1), Fraction(1, 8))
    assert Levels.planned(promise, plan_of(fine), parts=3).mechanism(fine).parts == 3
    # Laplace parts are exact on every grid.
    counts = Block("a", 1, Norm.L1, Fraction(1), Fraction(1))
    assert Levels.planned(Promise(1.0), plan_of(counts), parts=3).mechanism(counts).parts == 3
