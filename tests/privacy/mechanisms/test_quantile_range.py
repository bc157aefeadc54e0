"""The range of a quantile's score, over all small tables: what its noise rests on, and no less."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tacit.privacy import Promise
from tacit.privacy.mechanisms import Quantile
from tacit.privacy.promise import Adjacency

POINTS = 5  # of the grid: 0 to 4
MOST = 4  # values in a table
SHARES = (Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(3, 4))

Table = tuple[int, ...]


@cache
def penalties(q: Fraction, table: Table) -> tuple[Fraction, ...]:
    """By the definition (quantile.md), point by point."""
    return tuple(
        max(
            Fraction(0),
            (1 - q) * sum(v < x for v in table) - q * sum(v >= x for v in table),
            q * sum(v > x for v in table) - (1 - q) * sum(v <= x for v in table),
        )
        for x in range(POINTS)
    )


def tables() -> Iterator[Table]:
    for count in range(MOST + 1):
        yield from itertools.combinations_with_replacement(range(POINTS), count)


def neighbours(table: Table, adjacency: Adjacency) -> Iterator[Table]:
    if adjacency is Adjacency.ADD_REMOVE:
        yield from (tuple(sorted((*table, v))) for v in range(POINTS))
        return
    for place in range(len(table)):
        rest = table[:place] + table[place + 1 :]
        yield from (tuple(sorted((*rest, v))) for v in range(POINTS))


def largest_range(q: Fraction, adjacency: Adjacency) -> Fraction:
    """Of one neighbour's score less the other's, over all points."""
    found = Fraction(0)
    for table in tables():
        for other in neighbours(table, adjacency):
            pairs = zip(penalties(q, other), penalties(q, table), strict=True)
            moved = [mine - theirs for mine, theirs in pairs]
            found = max(found, max(moved) - min(moved))
    return found


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("q", SHARES)
def test_the_noise_is_for_the_range_and_for_no_more(q: Fraction, adjacency: Adjacency) -> None:
    mechanism = Quantile.calibrated(q, 0, POINTS - 1, Promise(1.0, adjacency=adjacency))
    own = largest_range(q, adjacency)
    assert own == (2 * max(q, 1 - q) if adjacency is Adjacency.ADD_REMOVE else 2)
    assert own <= mechanism.scale < own * (1 + Fraction(1, 2**30))


@pytest.mark.parametrize("q", SHARES)
def test_the_loss_is_within_epsilon_and_comes_near_to_it(q: Fraction) -> None:
    """Probabilities of all points, of all pairs of small tables: no accountant is asked."""
    mechanism = Quantile.calibrated(q, 0, POINTS - 1, Promise(1.0))
    worst = 0.0
    for table in tables():
        for other in neighbours(table, Adjacency.ADD_REMOVE):
            logs = [
                -np.array(penalties(q, t), dtype=float) / float(mechanism.scale)
                for t in (table, other)
            ]
            laws = [log - np.log(np.exp(log).sum()) for log in logs]
            worst = max(worst, float(np.abs(laws[0] - laws[1]).max()))
    assert 0.6 < worst <= 1.0


@pytest.mark.parametrize("q", SHARES)
def test_the_mechanism_scores_as_defined(q: Fraction) -> None:
    mechanism = Quantile.calibrated(q, 0, POINTS - 1, Promise(1.0))
    for table in tables():
        starts, widths, found = mechanism._intervals(np.array(table, dtype=np.int64), 0, POINTS - 1)
        points = np.repeat(found, widths)
        assert starts[0] == 0
        assert [Fraction(int(p), q.denominator) for p in points] == list(penalties(q, table))
