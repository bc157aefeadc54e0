"""Frequent item sets: a categorical table, and baskets of which only the first items count."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from tacit.data.schema import Column, Schema
from tacit.programs.itemsets import FrequentItemsets, Itemsets, transactions

generator = np.random.default_rng(41)

WIDTHS = (2, 3, 4, 2, 3)
TABLE = Schema(
    columns=tuple(
        Column(name=f"c{i}", type="category", categories=tuple(f"v{j}" for j in range(width)))
        for i, width in enumerate(WIDTHS)
    )
)


def one_hot(rows: int) -> np.ndarray:
    kind = generator.integers(0, 3, rows)
    blocks = [
        np.eye(width)[np.where(generator.random(rows) < 0.7, kind % width, 0)] for width in WIDTHS
    ]
    return np.concatenate(blocks, axis=1)


BASKETS = (generator.random((300, 9)) < np.linspace(0.7, 0.2, 9)).astype(np.float64)
LONGEST = 4
CUT = BASKETS * (np.cumsum(BASKETS, axis=1) <= LONGEST)  # the public rule


def textbook(X: np.ndarray, minsup: float, most: int) -> Callable[[Itemsets], None]:
    wanted = {
        items: int(count)
        for length in range(1, most + 1)
        for items in combinations(range(X.shape[1]), length)
        if (count := X[:, items].all(axis=1).sum()) / len(X) >= minsup
    }

    def check(model: Itemsets) -> None:
        found = {
            tuple(i for i in row if i >= 0): int(count)
            for row, count in zip(model.sets.tolist(), model.counts, strict=True)
        }
        assert found == wanted
        assert model.records == len(X)

    return check


X = one_hot(400)

CASES = [
    {
        "name": "itemsets of a table",
        "program": FrequentItemsets(minsup=0.1, max_length=4),
        "schema": TABLE,
        "X": X,
        "y": None,
        "textbook": textbook(X, 0.1, 4),
    },
    {
        "name": "itemsets of baskets",
        "program": FrequentItemsets(minsup=0.05, max_length=3, longest=LONGEST),
        "schema": transactions([f"item {i}" for i in range(9)]),
        "X": BASKETS,
        "y": None,
        "textbook": textbook(CUT, 0.05, 3),
    },
]
