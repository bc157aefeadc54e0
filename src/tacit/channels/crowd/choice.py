"""Which tables a crowd is asked for when its author has not said: a public rule.

A table over two features shows how they go together, and speaks of each of them as well: every
feature gets twice as many people's answers. But it has more cells, and each cell has its noise. So
two features are asked for together where the noise of their table is no more than what drawing
people by lot adds anyway; else alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from tacit.errors import UsageError
from tacit.privacy.mechanisms.randomisers import best_randomiser
from tacit.privacy.promise import Adjacency, Promise, Unit

__all__ = ["MOST_CELLS", "default_tables"]

MOST_CELLS = 1024  # of a table: beyond, what a crowd says about one cell is noise
FEWEST = 100  # people to a table of two features: with fewer, correlations are lost in chance


def default_tables(
    sizes: Sequence[int], epsilon: float, people: int, together: bool = True
) -> list[tuple[tuple[int, ...], float]]:
    """Places of the features of each table, and its weight: the relative number of people to ask.

    sizes     how many codes each feature has; the label's two are not among them
    epsilon   what an answer costs
    people    how many answer one question each
    together  whether two features may be asked for together. Not where halves of a table are: a bit
              adds ¼/(p − ½)² > 1 of variance to every cell, more than 1/m at any epsilon
    """
    if not sizes or min(sizes) < 1:
        raise UsageError("tables need at least one feature, and each feature at least one code.")
    pairs = [
        pair
        for pair in combinations(range(len(sizes)), 2)
        if together and _is_clear(2 * sizes[pair[0]] * sizes[pair[1]], epsilon)
    ]
    found = _weighted(sizes, pairs)
    total = sum(weight for _, weight in found)
    if pairs and people * min(w for t, w in found if len(t) == 2) / total < FEWEST:
        return _weighted(sizes, [])
    return found


def _is_clear(cells: int, epsilon: float) -> bool:
    """Whether the randomiser adds no more variance to a cell than drawing people by lot does: 1/m
    for each person, where all m cells are alike. In fractions: everyone must come to the same."""
    if cells > MOST_CELLS:
        return False
    randomiser = best_randomiser(cells, Promise(epsilon, 0.0, Unit.PERSON, Adjacency.REPLACE))
    hit, miss = randomiser.hit, randomiser.miss
    return miss * (1 - miss) * cells <= (hit - miss) ** 2


def _weighted(
    sizes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, ...], float]]:
    """Every pair; and alone every feature that is in fewer pairs than there are others, the more
    the fewer. Tables get people by the root of their cells: Σ mᵢ/nᵢ is least for nᵢ ∝ √mᵢ."""
    others = len(sizes) - 1
    singles = []
    for place, size in enumerate(sizes):
        lacking = others - sum(place in pair for pair in pairs)
        if lacking or not others:
            singles.append(((place,), max(lacking, 1) * math.sqrt(2 * size)))
    return [*singles, *((p, math.sqrt(2 * sizes[p[0]] * sizes[p[1]])) for p in pairs)]
