"""Every estimator with data that suits it, for tests of what all of them must keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.estimators as room

NAMES = list(room.__all__)
ROWS = 211  # a length that nothing else has

Table = tuple[NDArray[Any], NDArray[Any] | None]


def table(name: str, rows: int = ROWS, seed: int = 1) -> Table:
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (rows, 3))
    if name == "FrequentItemsets":
        return (X > 0).astype(float), None
    if name in ("LogisticRegression", "NaiveBayes"):
        return X, np.where(X.sum(axis=1) > 0, "yes", "no")
    return X, X @ [1.0, -2.0, 3.0] if name == "LinearRegression" else None


def made(name: str, **parameters: Any) -> Any:
    stated: dict[str, Any] = {} if name == "FrequentItemsets" else {"bounds": (-1, 1)}
    if name == "LinearRegression":
        stated["label_bounds"] = (-6, 6)
    if name == "KMeans":
        stated["n_clusters"] = 2
    return getattr(room, name)(**{**stated, **parameters})


def fit(name: str, **parameters: Any) -> Any:
    return made(name, **parameters).fit(*table(name))


def learned(estimator: Any) -> dict[str, Any]:
    """The fitted attributes, by name."""
    kind = type(estimator)
    names = [n for n in dir(kind) if n.endswith("_") and not n.startswith("_")]
    return {n: getattr(estimator, n) for n in names if isinstance(getattr(kind, n), property)}
