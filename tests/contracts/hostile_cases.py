"""States that an aggregator would have to think of: what changing single fields does not find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from tacit.programs.itemsets import ItemsetsState
from tacit.programs.logistic import Learning
from tacit.programs.mixture import MixtureState, TreeState

EXTREME = (1e-320, 1e-300, 1e-160, 1e-12, 1.0, 1e12, 1e150, 1e300)


def candidate_lists(first: ItemsetsState, generator: Generator) -> Iterator[ItemsetsState]:
    """Different sets in order, but of any items: also of two values of one column."""
    items = len(first.names)
    while True:
        length = int(generator.integers(1, min(5, items) + 1))
        count = int(generator.integers(1, 200))
        few = generator.choice(items, int(generator.integers(length, items + 1)), replace=False)
        drawn = {tuple(sorted(generator.choice(few, length, replace=False))) for _ in range(count)}
        yield replace(first, candidates=np.array(sorted(drawn), dtype=np.int32))


def mixtures(first: MixtureState, generator: Generator) -> Iterator[MixtureState]:
    """Cells in no order; covariances that are singular, indefinite, lopsided, or of numbers at the
    ends of floats."""
    components, width = first.means.shape
    while True:
        spread = 10.0 ** generator.integers(-320, 300, first.covariances.shape).astype(np.float64)
        if first.covariances.ndim == 3:
            scales = generator.choice(EXTREME, (components, width))
            mixing = np.linalg.qr(generator.normal(size=(components, width, width)))[0]
            scales[:, 0] *= generator.choice((0.0, -1.0, 1.0), p=(0.05, 0.05, 0.9))
            spread = mixing * scales[:, None] @ mixing.transpose(0, 2, 1)
            if generator.integers(2):
                spread = scales[:, :, None] * np.eye(width)
        cells = generator.integers(-3, 20, int(generator.integers(1, 65))) * 10 ** (
            generator.integers(0, 17)
        )
        tree = {"cells": cells} if isinstance(first, TreeState) else {}
        yield replace(
            first,
            **tree,
            weights=generator.choice(EXTREME, components),
            means=generator.normal(size=first.means.shape) * generator.choice(EXTREME),
            covariances=np.where(np.isfinite(spread), spread, 1.0),
        )


def ties(first: Learning, generator: Generator) -> Iterator[Learning]:
    """Weights that add up to nothing, so that rounding alone decides on which side records are."""
    shape = first.weights.shape
    while True:
        weights = generator.normal(size=shape)
        weights -= weights.mean(axis=0)
        for column in range(1, shape[1]):  # classes that differ in the order of their weights
            weights[:-1, column] = generator.permutation(weights[:-1, 0])
            weights[-1, column] = weights[-1, 0]
        scale = float(generator.choice((1e-300, 1.0, 1e300)))
        weights *= generator.choice((1e-300, 1.0, 1e150, 1e300, 3e307)) * min(1.0, scale)
        bound = float(generator.choice(EXTREME))
        yield replace(first, weights=weights, scale=scale, bound=bound)


def invented(first: Any, generator: Generator) -> Iterator[Any]:
    if isinstance(first, ItemsetsState):
        return candidate_lists(first, generator)
    if isinstance(first, MixtureState):
        return mixtures(first, generator)
    if isinstance(first, Learning):
        return ties(first, generator)
    return iter(())
