"""A new user's first call: estimators with nothing but their defaults, on tables that nobody tuned
them to, beside what needs no records at all: the commonest class, the mean, one centre, any
direction, a uniform density.

Bars: of the models that are no better than that, at most 5 % leave without a word of warning; of
those that are clearly better (half of what is possible without privacy), few are called useless.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.model_selection import train_test_split

import tacit.estimators as room
from tacit.cli.bench import Row
from tacit.errors import TacitWarning, UtilityWarning

RUNS = 5
CLEARLY = 0.5  # of what is possible without privacy, above the trivial result
SILENT = 0.05  # of the models that are no better than trivial
CALLED_USELESS = 0.2  # of the models that are clearly better
CLASSES, VALUES = ("LogisticRegression", "NaiveBayes"), ("LinearRegression",)
ALONE = ("KMeans", "PCA", "GaussianMixture")

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Call:
    """One fit: its result, the trivial one and that without privacy, the larger the better."""

    name: str
    table: str
    ours: float
    trivial: float
    exact: float
    warned: bool
    useless: bool

    @property
    def no_better(self) -> bool:
        """Though there is something to find: a mixture of uniform records has nothing."""
        return not self.ours > self.trivial and self.exact > self.trivial

    @property
    def clearly_better(self) -> bool:
        return self.ours - self.trivial > CLEARLY * (self.exact - self.trivial) > 0


def rows(say: Callable[[str], None], quick: bool = False) -> Iterator[Row]:
    calls, runs = [], 2 if quick else RUNS
    for table, (X, y, names) in tables().items():
        for name in (*names, *ALONE):
            made = [_call(name, table, X, y, seed) for seed in range(runs)]
            calls += made
            say(_line(name, table, made))
    bad = [call for call in calls if call.no_better]
    good = [call for call in calls if call.clearly_better]
    silent = [call for call in bad if not call.warned]
    aside = [c for c in calls if not c.ours > c.trivial and not c.no_better]
    say(
        f"set aside: {len(aside)} models no better than trivial where none without privacy is "
        f"either, {sum(not c.warned for c in aside)} of them without a warning"
    )
    blamed = [call for call in good if call.useless]
    yield Row(
        f"first call: of {len(bad)} models no better than trivial, without a warning",
        len(silent), max(len(bad), 1), "all of them", SILENT, at_most=True,
    )  # fmt: skip
    yield Row(
        f"first call: of {len(good)} models clearly better than trivial, called useless",
        len(blamed), max(len(good), 1), "all of them", CALLED_USELESS, at_most=True,
    )  # fmt: skip


def tables() -> dict[str, tuple[Reals, NDArray[Any], tuple[str, ...]]]:
    """scikit-learn's toy sets, and simulated ones that are large enough to learn from."""
    generator = np.random.default_rng(1)
    kinds = generator.integers(0, 2, 7400)
    normal = generator.normal(size=(7400, 20))
    shift = 2 / math.sqrt(20)
    two = normal + np.where(kinds == 1, shift, -shift)[:, None]
    ring = np.where(kinds[:, None] == 1, normal * 2, normal + shift)
    friedman = datasets.make_friedman1(10_000, random_state=1)
    found: dict[str, tuple[Reals, NDArray[Any], tuple[str, ...]]] = {
        name: (*getattr(datasets, f"load_{name}")(return_X_y=True), CLASSES)
        for name in ("iris", "wine", "breast_cancer", "digits")
    }
    found["diabetes"] = (*datasets.load_diabetes(return_X_y=True), VALUES)
    found["twonorm"] = two, kinds, CLASSES
    found["ringnorm"] = ring, kinds, CLASSES
    found["friedman1"] = (*friedman, VALUES)
    return found


def _call(name: str, table: str, X: Reals, y: NDArray[Any], seed: int) -> Call:
    parts = train_test_split(X, y, test_size=0.3, random_state=seed)
    train, test = (parts[0], parts[2]), (parts[1], parts[3])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ours = getattr(room, name)().fit(*train)
    exact = getattr(room, name)(math.inf).fit(*train)
    kinds = [w.category for w in told if issubclass(w.category, TacitWarning)]
    trivial = _trivial(name, *train, *test)
    scores = (_score(name, ours, *test), trivial, _score(name, exact, *test))
    return Call(name, table, *scores, bool(kinds), UtilityWarning in kinds)


def _score(name: str, model: Any, X: Reals, y: NDArray[Any]) -> float:
    if name == "PCA":  # of the variance: what the first component has
        return float((X @ model.components_[0]).var() / X.var(axis=0).sum())
    if name == "KMeans":  # by the records as they are, not as they were clipped
        squares = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
        return -float(squares.min(axis=1).sum())
    return float(model.score(X, y))


def _trivial(name: str, X: Reals, y: NDArray[Any], X_test: Reals, y_test: NDArray[Any]) -> float:
    if name in CLASSES:
        values, counts = np.unique(y, return_counts=True)
        return float((y_test == values[counts.argmax()]).mean())
    if name in VALUES:
        return 0.0
    if name == "PCA":
        return 1 / X.shape[1]
    if name == "KMeans":
        return -float(((X_test - X.mean(axis=0)) ** 2).sum())
    widths = X.max(axis=0) - X.min(axis=0)
    return -float(np.log(np.where(widths > 0, widths, 1.0)).sum())  # a uniform density


def _line(name: str, table: str, calls: list[Call]) -> str:
    ours, trivial, exact = (
        float(np.mean([getattr(call, what) for call in calls]))
        for what in ("ours", "trivial", "exact")
    )
    warned, useless = (sum(getattr(c, what) for c in calls) for what in ("warned", "useless"))
    return (
        f"{table}, {name}: {ours:.4g} (trivial {trivial:.4g}, without privacy {exact:.4g}); "
        f"warned in {warned} of {len(calls)} runs, called useless in {useless}"
    )
