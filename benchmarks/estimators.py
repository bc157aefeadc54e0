"""Estimators without noise against scikit-learn's own, on the same data.

Processor time of a fit, the two taking turns. Adult in LIBSVM's encoding (a9a) for the supervised
ones and PCA; a round of the mixture on Gowalla's coordinates.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

from tacit import estimators
from tacit.cli.bench import Row
from tacit.data import load_dataset

TURNS = 5


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    from sklearn import cluster, decomposition, linear_model, mixture, naive_bayes

    say("reading a9a …")
    X, y = load_dataset("a9a").arrays("train")
    box = {"epsilon": math.inf, "bounds": (0, 1)}
    numbers = {**box, "label_bounds": (0, 1)}
    pairs: list[tuple[str, Any, Any]] = [
        (
            "LogisticRegression",
            estimators.LogisticRegression(**box),
            linear_model.LogisticRegression(),
        ),
        (
            "LinearRegression",
            estimators.LinearRegression(**numbers),
            linear_model.LinearRegression(),
        ),
        ("NaiveBayes", estimators.NaiveBayes(**box), naive_bayes.GaussianNB()),
        ("PCA", estimators.PCA(**box), decomposition.PCA(svd_solver="covariance_eigh")),
    ]
    for name, ours, theirs in pairs:
        say(f"{name} …")
        yield _row(f"{name} on a9a: seconds", lambda m: m.fit(X, y), ours, theirs, 2.0)
    yield _row(
        "KMeans(8), 10 rounds, on a9a: seconds",
        lambda m: m.fit(X),
        estimators.KMeans(n_clusters=8, max_iter=10, **box),
        cluster.KMeans(8, n_init=1, init="random", max_iter=10, tol=0, algorithm="lloyd"),
        2.0,
    )
    say("reading gowalla …")
    table = load_dataset("gowalla").train
    places = np.column_stack([np.asarray(table[c]) for c in ("latitude", "longitude")])
    yield _row(
        "GaussianMixture(5), 10 rounds, on gowalla: seconds",
        lambda m: m.fit(places),
        estimators.GaussianMixture(
            n_components=5, max_iter=10, epsilon=math.inf, bounds=([-90, -180], [90, 180])
        ),
        mixture.GaussianMixture(5, max_iter=10, tol=0, init_params="random_from_data"),
        1.5,
    )


def _row(what: str, fit: Callable[[Any], Any], ours: Any, theirs: Any, bar: float) -> Row:
    turns = [(_seconds(fit, ours), _seconds(fit, theirs)) for _ in range(TURNS)]
    mine, peer = (median(side) for side in zip(*turns, strict=True))
    return Row(what, mine, peer, "scikit-learn", bar, at_most=True)


def _seconds(fit: Callable[[Any], Any], model: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn says that it has not converged yet
        start = time.process_time()
        fit(model)
        return time.process_time() - start
