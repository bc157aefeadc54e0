"""Linear regression and PCA under differential privacy: beside no privacy, and beside version 1.

R² on a tenth of the records, which was held out, mean of five splits, and the share of the variance
that five components hold, mean of five runs; δ = 1e-6, defaults only. Version 1 saw records as they
are in their public bounds, in one round. Wide tables are to gain, narrow ones to lose no more than
0.002. diffprivlib's regression, the private peer, has pure ε, the only promise it knows, and the
same bounds; its labels are cut to theirs. Its PCA is left out: it may not end on 123 columns.
The runs are seeded, so that they repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest.mock import patch

import numpy as np

from shared_parts.private_peers import DIFFPRIVLIB, answers, environment
from tacit.channels.central import Central
from tacit.cli.bench import Row
from tacit.crypto.prg import SeededRandomness
from tacit.data import Column, Schema, load_dataset
from tacit.data.records import ArrayRecords
from tacit.errors import DatasetError
from tacit.privacy import Promise
from tacit.programs.linear import LinearRegression
from tacit.programs.moments import Moments
from tacit.programs.pca import PCA

DELTA = 1e-6
RUNS = 5
COMPONENTS = 5
LABEL = Column(name="y", type="number", bounds=(-1, 1), role="label")
NONE, BEFORE = "scikit-learn, no privacy", "version 1"
# By how much R² is to be above version 1's; narrow tables may lose 0.002 of 1.
NARROW = -0.002
GAINS = {
    "a9a": {0.1: 0.15, 0.5: 0.05, 1.0: 0.03},
    "spambase": {0.5: 0.2, 1.0: 0.1},
    "friedman": {0.1: NARROW, 1.0: NARROW, 4.0: NARROW},
    "diabetes": {1.0: NARROW, 4.0: NARROW},
}

Table = tuple[Any, Any, tuple[Column, ...]]


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    python = environment(DIFFPRIVLIB, say)
    for name, gains in GAINS.items():
        try:
            X, y, features = _table(name)
        except DatasetError as problem:
            say(f"{name} is left out: {problem}")
            continue
        say(f"{name}, {RUNS} splits …")
        yield from _regression(
            f"{name}, n = {len(X):,}, {X.shape[1]} columns", (X, y, features), gains, python
        )
        if name == "a9a":
            yield from _components(name, X, features)


def _regression(
    head: str, table: Table, gains: dict[float, float], python: Path | None
) -> Iterator[Row]:
    exact = _mean(_exact, table, 0.0)
    for epsilon, gain in gains.items():
        ours = _mean(_fitted, table, epsilon)
        with _version_1():
            before = _mean(_fitted, table, epsilon)
        yield Row(f"{head}, ε = {epsilon:g}: R² (shown only)", ours, exact, NONE, 0.0)
        # A ratio of what is left unexplained: R² itself may be 0.
        bar = (1 - before - gain) / (1 - before)
        what = f"{head}, ε = {epsilon:g}: 1 − R²"
        yield Row(what, 1 - ours, 1 - before, BEFORE, round(bar, 4), at_most=True)
        theirs = 0.0 if python is None else _diffprivlib(python, table, epsilon)
        what = f"{what}, private peer"
        yield Row(what, 1 - ours, 1 - theirs, _named(python, "the mean"), 1.0, at_most=True)


def _mean(score: Callable[..., float], table: Table, epsilon: float) -> float:
    return fmean(score(table, epsilon, seed) for seed in range(RUNS))


def _fitted(table: Table, epsilon: float, seed: int) -> float:
    X, y, features = table
    kept, held = _split(len(X), seed)
    schema, channel = Schema(columns=(*features, LABEL)), Central(randomness=SeededRandomness(seed))
    records = ArrayRecords(X[kept], y[kept])
    model = channel.run(LinearRegression(), records, schema, Promise(epsilon, DELTA)).model
    return _r2(y[held], model.predict(X[held]))


def _exact(table: Table, _: float, seed: int) -> float:
    from sklearn.linear_model import LinearRegression as Peer

    X, y, _features = table
    kept, held = _split(len(X), seed)
    return _r2(y[held], Peer().fit(X[kept], y[kept]).predict(X[held]))


def _diffprivlib(python: Path, table: Table, epsilon: float) -> float:
    X, y, features = table
    low, high = _box(features)
    cuts = [_split(len(X), seed) for seed in range(RUNS)]
    parts = [
        {"train": X[kept], "y": y[kept], "test": X[held], "low": low, "high": high}
        for kept, held in cuts
    ]
    settings = {"epsilon": epsilon, "bounds_y": LABEL.bounds}
    found = answers(DIFFPRIVLIB, python, "linear", parts, settings)
    pairs = zip(cuts, found, strict=True)
    return fmean(_r2(y[held], np.array(said)) for (_, held), said in pairs)


def _box(features: tuple[Column, ...]) -> tuple[Any, Any]:
    """Public bounds; truth values are 0 and 1."""
    pairs = [c.bounds if isinstance(c.bounds, tuple) else (0.0, 1.0) for c in features]
    low, high = np.array(pairs, dtype=np.float64).T
    return low, high


def _named(python: Path | None, instead: str) -> str:
    if python is None:
        return f"{instead}: {DIFFPRIVLIB.name} cannot be installed"
    return f"{DIFFPRIVLIB.name}, pure ε"


def _components(name: str, X: Any, features: tuple[Column, ...]) -> Iterator[Row]:
    covariance = np.cov(X.T)
    best = np.linalg.eigvalsh(covariance)[-COMPONENTS:].sum()

    def held(epsilon: float, seed: int) -> float:
        channel, schema = Central(randomness=SeededRandomness(seed)), Schema(columns=features)
        promise = Promise(epsilon, DELTA if math.isfinite(epsilon) else 0.0)
        found = channel.run(PCA(COMPONENTS), ArrayRecords(X), schema, promise).model.components
        return float(np.trace(found @ covariance @ found.T) / best)

    for epsilon, bar in ((0.1, 1.18), (1.0, 1.0)):
        ours = fmean(held(epsilon, seed) for seed in range(RUNS))
        with _version_1():
            before = fmean(held(epsilon, seed) for seed in range(RUNS))
        head = f"{name}, ε = {epsilon:g}: share of the variance of {COMPONENTS} components"
        yield Row(f"{head} (shown only)", ours, 1.0, NONE, 0.0)
        yield Row(head, ours, before, BEFORE, bar)


def _version_1() -> AbstractContextManager[Any]:
    """One round over records in their public bounds."""
    return patch.object(Moments, "boxed", True)


def _table(name: str) -> Table:
    """With labels in [−1, 1]."""
    if name in ("a9a", "spambase"):
        found = load_dataset(name)
        X, y = found.arrays("train") if name == "a9a" else found.arrays(interval="symmetric")
        return np.ascontiguousarray(X), 2.0 * np.asarray(y) - 1.0, found.schema.features
    X, y = _friedman() if name == "friedman" else _diabetes()
    columns = (Column(name=f"x{i}", type="number", bounds=(-1, 1)) for i in range(X.shape[1]))
    return X, y, tuple(columns)


def _friedman() -> tuple[Any, Any]:
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(20_000, n_features=10, noise=1.0, random_state=0)
    return 2 * X - 1, np.clip(y / 15 - 1, -1, 1)


def _diabetes() -> tuple[Any, Any]:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return X / 0.2, y / 175 - 1  # as someone might write bounds down


def _split(count: int, seed: int) -> tuple[Any, Any]:
    order = np.random.default_rng(seed).permutation(count)
    return order[count // 10 :], order[: count // 10]


def _r2(y: Any, found: Any) -> float:
    return float(1 - ((y - found) ** 2).sum() / ((y - y.mean()) ** 2).sum())
