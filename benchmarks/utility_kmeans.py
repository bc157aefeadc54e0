"""k-means on Nursery: the objective with privacy against that without, five clusters.

Relative loss as PEM's figure 2(b): objective over that of the same program without noise, replace
one record. The bar: at ε = 1, δ = 1e-5 at most 3 % above. PEM's own way (50 rounds at ε/50 each,
Laplace, half of ε for the counts) is measured beside it. Mean of ten seeded runs, defaults only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from tacit.channels.central import Central
from tacit.cli.bench import Row
from tacit.crypto.prg import SeededRandomness
from tacit.data import load_dataset
from tacit.data.records import ArrayRecords
from tacit.privacy import Promise
from tacit.programs.kmeans import KMeans

RUNS = 10
CLUSTERS = 5
OURS = KMeans(CLUSTERS)
PEM = KMeans(CLUSTERS, rounds=50, split=Fraction(1, 2))
# ε, δ, largest objective over that without privacy. For pure promises
# the bar is PEM's own way.
LEVELS = ((1.0, 1e-5, 1.03), (0.5, 1e-5, 1.05))
PURE = (0.5, 1.0, 2.0, 4.0)


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    data = load_dataset("nursery")
    X, _ = data.arrays(interval="symmetric")

    def objective(program: KMeans, promise: Promise, runs: int = RUNS) -> float:
        found = []
        for seed in range(runs):
            channel = Central(randomness=SeededRandomness(seed))
            outcome = channel.run(program, ArrayRecords(X), data.schema, promise)
            found.append(_objective(X, outcome.model.centres))
        return fmean(found)

    exact = objective(OURS, Promise(math.inf), runs=1)
    say(f"without privacy: {exact:,.0f}")
    for epsilon, delta, bar in LEVELS:
        ours = objective(OURS, _promise(epsilon, delta))
        what = f"ε = {epsilon:g}, δ = {delta:g}: objective, relative loss {ours / exact - 1:.1%}"
        yield Row(what, ours, exact, "no privacy", bar, at_most=True)
    for epsilon in PURE:
        ours, peer = (objective(p, _promise(epsilon, 0.0)) for p in (OURS, PEM))
        what = (
            f"ε = {epsilon:g}, pure: objective, relative loss {ours / exact - 1:.1%} "
            f"(PEM {peer / exact - 1:.1%})"
        )
        yield Row(what, ours, peer, "PEM's 50 rounds", 1.0, at_most=True)


def _promise(epsilon: float, delta: float) -> Promise:
    return Promise(epsilon, delta, adjacency="replace")  # type: ignore[arg-type]


def _objective(X: NDArray[np.float64], centres: NDArray[np.float64]) -> float:
    distances = (X**2).sum(axis=1)[:, None] - 2 * X @ centres.T + (centres**2).sum(axis=1)
    return float(distances.min(axis=1).sum())
