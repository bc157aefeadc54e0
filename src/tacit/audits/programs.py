"""A game for every program: tables on which one record moves every sum as far as it may.

Where a program's own rounds decide how far that is, the other records see to it: many of them, all
alike, so that states settle where the record stands out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.audits.central import Table, central_game, joined
from tacit.audits.claims import Claim, Shifts
from tacit.audits.game import WhiteBox
from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.privacy.promise import Promise
from tacit.programs.histogram import Histogram
from tacit.programs.itemsets import FrequentItemsets
from tacit.programs.kmeans import KMeans
from tacit.programs.linear import LinearRegression
from tacit.programs.logistic import Logistic
from tacit.programs.mixture import Mixture
from tacit.programs.mixture_published import PublishedMixture
from tacit.programs.naive_bayes import NaiveBayes
from tacit.programs.pca import PCA
from tacit.programs.program import Program
from tacit.programs.quantiles import Quantiles
from tacit.programs.ranges import Ranges

__all__ = ["PROGRAM_GAMES", "numbers", "records", "table_of", "trials_of"]

# μ ≈ 2: where a guess is right in 84 % of the runs, and in 98 % with half the noise. Of all claims
# this one needs the fewest trials.
GAUSSIAN = Promise(11.0, 1e-6)
TRIALS, FEWER_TRIALS, PURE_TRIALS = 250, 210, 450
CLASSES = {"type": "category", "categories": ["0", "1"], "role": "label"}
TARGET = {"type": "number", "bounds": [-1, 1], "role": "label"}


def numbers(width: int, label: dict[str, Any] | None = None) -> Schema:
    columns: dict[str, Any] = {f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(width)}
    return Schema.from_dict({"columns": columns if label is None else {**columns, "y": label}})


def booleans(width: int) -> Schema:
    return Schema.from_dict({"columns": {f"x{i}": {"type": "boolean"} for i in range(width)}})


def records(count: int, row: list[float], label: float | None = None) -> Encoded:
    """So many records, all alike."""
    y = None if label is None else np.full(count, label)
    if label in (0, 1) and y is not None:
        y = y.astype(np.int64)
    return Encoded(np.tile(np.array(row, dtype=np.float64), (count, 1)), y, None)


def table_of(name: str, promise: Promise) -> Table:
    """The table of a program: others, and the record that stands out among them."""
    program, schema, others, unit = TABLES[name]()
    return Table(program, schema, promise, others, unit, steady=name in STEADY)


Tabled = tuple[Callable[[], Program[Any, Any]], Schema, Encoded, Encoded]


def _logistic() -> Tabled:
    # What is learned from the others is wrong for this one, which is ten times as far out.
    others = joined(records(200, [-0.1], 1), records(200, [0.1], 0))
    return Logistic, numbers(1, CLASSES), others, records(1, [1.0], 1)


def _linear() -> Tabled:
    # Seen from the others, in their own small scale, the record is out of reach.
    others, unit = records(20_000, [-1.0]), records(1, [1.0])
    labels = np.ones(20_000), np.ones(1)
    return (
        LinearRegression,
        numbers(1, TARGET),
        others._replace(y=labels[0]),
        unit._replace(y=labels[1]),
    )


def _pca() -> Tabled:
    return PCA, numbers(2), records(20_000, [-1.0, -1.0]), records(1, [1.0, -1.0])


def _naive_bayes() -> Tabled:
    others = records(4, [0.0, 0.0], 0)
    return NaiveBayes, numbers(2, CLASSES), others, records(1, [1.0, 1.0], 1)


def _histogram() -> Tabled:
    return Histogram, numbers(3), records(4, [0.0] * 3), records(1, [1.0] * 3)


def _quantiles() -> Tabled:
    return Quantiles, numbers(2), records(4, [0.0] * 2), records(1, [1.0] * 2)


def _ranges() -> Tabled:
    return lambda: Ranges(2), numbers(2), records(4, [0.0] * 2), records(1, [1.0] * 2)


def _kmeans() -> Tabled:
    return KMeans, numbers(2), records(40, [-1.0, -1.0]), records(1, [1.0, 1.0])


def _mixture() -> Tabled:
    # One component, drawn together around most others: from there the record is out of reach. A few
    # are where it is, so that its cells are surely counted.
    far, own = [-math.sqrt(0.5)] * 2, [math.sqrt(0.5)] * 2
    others = joined(records(1500, far), records(30, own))
    return lambda: Mixture(1), numbers(2), others, records(1, own)


def _shared_mixture() -> Tabled:
    own = [math.sqrt(0.5)] * 2
    others, unit = joined(records(400, [0.0, 0.0]), records(60, own)), records(1, own)
    return lambda: Mixture(1, coordinates="shared"), numbers(2), others, unit


def _published() -> Tabled:
    own = [1 / math.sqrt(2)] * 2
    program = lambda: PublishedMixture(1, weights_noise="gaussian")  # noqa: E731
    return program, numbers(2), records(40, [0.0, 0.0]), records(1, own)


def _itemsets() -> Tabled:
    basket = [1.0] * 4
    return FrequentItemsets, booleans(4), records(400, basket), records(1, basket)


TABLES: dict[str, Callable[[], Tabled]] = {
    "logistic": _logistic,
    "linear-regression": _linear,
    "pca": _pca,
    "naive-bayes": _naive_bayes,
    "histogram": _histogram,
    "quantiles": _quantiles,
    "ranges": _ranges,
    "k-means": _kmeans,
    "gaussian-mixture": _mixture,
    "gaussian-mixture-in-shared-coordinates": _shared_mixture,
    "gaussian-mixture-as-published": _published,
    "frequent-itemsets": _itemsets,
}
# Programs whose record moves all sums alike whatever the state, and so much ε that Laplace noise of
# all rounds is guessed about as often as Gaussian noise at μ = 2.
STEADY = {*TABLES} - {"logistic", "linear-regression", "pca", "gaussian-mixture"}
PURE = {
    "logistic": 9.0,
    "linear-regression": 2.75,
    "pca": 2.75,
    "naive-bayes": 4.0,
    "histogram": 4.0,
    "quantiles": 6.0,
    "ranges": 4.0,
    "k-means": 9.0,
    "gaussian-mixture-in-shared-coordinates": 10.0,
    "frequent-itemsets": 7.0,
}


def _published_claim(promise: Promise) -> Claim:
    """The report's own noise: ε and δ divided evenly among 10 · 3 releases, each with deviation
    √(2 ln(1.25/δ))/ε (its equations 16 and 17)."""
    releases = 30
    epsilon, delta = promise.epsilon / releases, promise.delta / releases
    deviation = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return Claim(promise, Shifts(math.sqrt(releases) / deviation).success())


def _game(name: str) -> Callable[[], WhiteBox]:
    return lambda: central_game(table_of(name, GAUSSIAN), trials_of(name))


def trials_of(name: str) -> int:
    """A hundred rounds take time: as many trials as a power of 0.99 needs."""
    return FEWER_TRIALS if name == "logistic" else TRIALS


def _pure_game(name: str) -> Callable[[], WhiteBox]:
    return lambda: central_game(table_of(name, Promise(PURE[name])), PURE_TRIALS)


def published_game() -> WhiteBox:
    promise = Promise(64.0, 1e-6)
    table = table_of("gaussian-mixture-as-published", promise)
    return central_game(table, TRIALS, _published_claim(promise))


PROGRAM_GAMES: dict[str, Callable[[], WhiteBox]] = {
    **{name: _game(name) for name in TABLES},
    "gaussian-mixture-as-published": published_game,
    **{f"{name} (pure)": _pure_game(name) for name in PURE},
}
