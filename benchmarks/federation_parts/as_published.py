"""PEM's own ways, as published: continuous noise, added in full by everyone who adds any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation_parts.summed import Integers, Mechanisms, Noise
from tacit.privacy import Promise
from tacit.privacy.bound import Norm, round_up
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Query, Stage, norm_for

__all__ = ["added", "by_everyone", "gradient_descent"]

Reals = NDArray[np.float64]
Floats = NDArray[np.float32]

ATTRIBUTES = 14  # of Adult: so many ones in a record, and L = 2 · 14
CHUNK = 2048  # records at a time: their residuals stay in a core's cache


def added(
    norm: Norm, scale: float, adders: int, shape: tuple[int, ...], generator: np.random.Generator
) -> Reals:
    """The sum of what each adds, from no secure source: Laplace for L1, Gaussian for L2.

    The sum of k Laplace variables is the difference of two Gamma(k) variables, since one is that of
    two exponential ones (Kotz, Kozubowski and Podgórski 2001, section 2.2).
    """
    if norm is Norm.L1:
        both = generator.standard_gamma(adders, (2, *shape))
        return np.asarray(scale * (both[0] - both[1]))
    return np.asarray(scale * math.sqrt(adders) * generator.standard_normal(shape))


def by_everyone(adders: int, run: int) -> Noise:
    """The same for a program of tacit's, on its grids."""
    generator = np.random.default_rng(run)

    def noise(mechanisms: Mechanisms, number: int) -> Integers:
        steps = [
            added(m.bound.norm, float(m.scale / m.grid.step), adders, (m.length,), generator)
            for m in mechanisms
        ]
        return np.rint(np.concatenate(steps)).astype(np.int64)

    return noise


def gradient_descent(
    X: Reals,
    y: Any,
    fold: Any,
    settings: Sequence[tuple[Promise, int, float]],
    rounds: int,
    runs: int,
) -> list[Reals]:
    """Algorithm 1, w ← w − η/√t · (Σ gradients + noise)/n, for all (promise, adders, η) and runs.

    One product with the weights of all of them is many times faster than one for each. The weights
    of a setting have one column per run, which leaves out its own fold.
    """
    records, truth = X.astype(np.float32), y.astype(np.float32)[:, None]
    taken = np.tile(fold[:, None] != np.arange(runs), len(settings)).astype(np.float32)
    counts = taken.sum(axis=0)
    scales = [_gradient_scale(X.shape[1], promise, rounds) for promise, _, _ in settings]
    rates = np.repeat([eta for _, _, eta in settings], runs)
    generator = np.random.default_rng(1)
    weights = np.zeros((X.shape[1], len(settings) * runs))
    for t in range(1, rounds + 1):
        noise = [
            added(norm, scale, adders, (X.shape[1], runs), generator)
            for (norm, scale), (_, adders, _) in zip(scales, settings, strict=True)
        ]
        total = np.hstack(noise) + _gradients(records, truth, taken, weights.astype(np.float32))
        weights -= rates / math.sqrt(t) * total / counts
    return np.split(weights, len(settings), axis=1)


def _gradients(records: Floats, truth: Floats, taken: Floats, weights: Floats) -> Reals:
    """Σ x (σ(w·x) − y) over the records that each column of the weights takes."""
    total = np.zeros(weights.shape)
    for start in range(0, len(records), CHUNK):
        part = slice(start, start + CHUNK)
        residual = records[part] @ -weights
        np.exp(np.minimum(residual, 80, out=residual), out=residual)
        residual += 1
        np.reciprocal(residual, out=residual)
        residual -= truth[part]
        residual *= taken[part]
        total += records[part].T @ residual
    return total


def _gradient_scale(width: int, promise: Promise, rounds: int) -> tuple[Norm, float]:
    """The noise of one of all rounds. A residual is below 1, so ‖gradient‖ ≤ ‖record‖."""
    norm = norm_for(promise)
    bound = Fraction(ATTRIBUTES) if norm is Norm.L1 else round_up(math.sqrt(ATTRIBUTES))
    block = Block("gradient", width, norm, bound)
    levels = Levels.planned(promise, Plan((Stage(Query((block,)), rounds),)))
    return norm, float(levels.mechanism(block).scale)
