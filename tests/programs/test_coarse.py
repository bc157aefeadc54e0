"""Sums that are rounded once, at their holder: exact until then, never moved by more than said."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tacit.channels.federation.server_store import _query, _query_text
from tacit.crypto.prg import SeededRandomness
from tacit.errors import UsageError
from tacit.privacy import Promise
from tacit.privacy.bound import Norm
from tacit.programs.coarse import carried_length, carry, combined
from tacit.programs.contribute import decoded
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Query, Stage


def coarse_query(norm: Norm = Norm.L2) -> Query:
    return Query(
        (
            Block("fine", 3, norm, Fraction(1), Fraction(1, 2**20)),
            Block("coarse", 5, norm, Fraction(7), Fraction(1, 2**30), shift=11),
        )
    )


def left(parts: np.ndarray, query: Query) -> np.ndarray:
    """What leaves a holder with these parts of its sum."""
    return combined(np.add.reduce([carry(part, query) for part in parts]), query)


@pytest.mark.parametrize("seed", range(20))
def test_any_parts_give_the_rounded_exact_sum(seed: int) -> None:
    query, chance = coarse_query(), np.random.default_rng(seed)
    rows = chance.integers(-(2**55), 2**55, (2000, query.length))  # adds up beyond 2^63
    rows[:, :3] >>= 20
    exact = [sum(int(v) for v in column) for column in rows.T]
    wanted = exact[:3] + [(v + 2**10) // 2**11 for v in exact[3:]]
    pieces = np.array_split(rows, 17)
    assert left(rows, query).tolist() == wanted
    carried = [carry(piece, query).sum(axis=0) for piece in pieces]
    assert combined(np.add.reduce(carried), query).tolist() == wanted
    assert carried[0].shape == (carried_length(query),)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("seed", range(10))
def test_one_unit_moves_a_sum_by_no_more_than_said(seed: int, norm: Norm) -> None:
    """Ten thousand pairs of neighbours; the longest comes near, so the bound is no idle one."""
    block = Block("few", 9, norm, Fraction(1), Fraction(1, 2**8), shift=4)
    query, chance, order = Query((block,)), np.random.default_rng(seed), 1 if norm == "L1" else 2
    longest = 0.0
    for _ in range(1000):
        others = chance.integers(-(2**20), 2**20, 9)
        unit = chance.normal(size=9) * chance.choice([0.01, 1, 100])
        unit = np.trunc(unit * min(1, block.limit / np.linalg.norm(unit, ord=order))).astype(int)
        moved = left(np.array([others, unit]), query) - left(np.array([others]), query)
        longest = max(longest, float(np.linalg.norm(moved, ord=order)))
    assert longest <= block.sum_limit
    assert longest > block.limit / 2**block.shift  # without `rounding` it would be broken


def test_noise_and_decoding_follow_the_coarse_grid() -> None:
    fine = Block("b", 4, Norm.L2, Fraction(2), Fraction(1, 2**34))
    coarse = replace(fine, shift=10)
    levels = Levels.planned(Promise(1.0, 1e-6), Plan((Stage(Query((coarse,))),)))
    same = Levels.planned(Promise(1.0, 1e-6), Plan((Stage(Query((fine,))),)))
    mechanism, before = levels.mechanism(coarse), same.mechanism(fine)
    assert mechanism.grid.step == Fraction(1, 2**24) == coarse.sum_grid.step
    assert mechanism.bound.value == coarse.sum_limit * mechanism.grid.step
    assert 1 <= float(mechanism.scale / before.scale) < 1 + 1e-5
    noisy = mechanism.perturb(np.zeros(4, dtype=np.int64), SeededRandomness(1))
    assert np.allclose(decoded(noisy, Query((coarse,))), noisy * 2.0**-24)


def test_a_plain_block_is_what_it_was() -> None:
    block = Block("b", 4, Norm.L2, Fraction(2))
    assert (block.sum_limit, block.sum_grid, block.rounding) == (block.limit, block.grid, 0)
    total = np.arange(4)
    assert carry(total, Query((block,))) is total
    with pytest.raises(UsageError, match="shift"):
        replace(block, shift=-1)


def test_a_stored_query_keeps_its_shift() -> None:
    assert _query(_query_text(coarse_query())) == coarse_query()
    assert "[0]" not in _query_text(coarse_query())
