"""What is expected of a result, against simulations; and what is said of it."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit.estimators as room
from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Schema
from tacit.data.records import ArrayRecords
from tacit.errors import UsageError, UtilityWarning
from tacit.privacy import Promise
from tacit.programs.expected import ExpectedError, expected_error
from tacit.programs.program import Program
from tacit.programs.registry import installed

Reals = NDArray[np.float64]
SPREAD = 0.3
TESTED = 2000


def schema_of(width: int, label: str | None, classes: int = 2) -> Schema:
    columns: dict[str, Any] = {f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(width)}
    if label == "class":
        kinds = [str(i) for i in range(classes)]
        columns["y"] = {"type": "category", "categories": kinds, "role": "label"}
    elif label == "value":
        columns["y"] = {"type": "number", "bounds": [-1, 1], "role": "label"}
    return Schema.from_dict({"columns": columns})


def table(name: str, rows: int, width: int, kinds: int, seed: int) -> tuple[Reals, Any, Reals, Any]:
    """A typical table: what the rules of expected.py are about. Training and test records."""
    generator = np.random.default_rng(seed)
    count = rows + TESTED
    X = generator.normal(size=(count, width))
    y: Any = None
    if name in ("LogisticRegression", "NaiveBayes"):
        y = np.resize(np.arange(kinds), count)
        centres = generator.normal(size=(kinds, width))
        apart = [np.linalg.norm(centres[i] - centres[j]) for i in range(kinds) for j in range(i)]
        X = SPREAD * (X + (centres * 2 / np.mean(apart))[y])
    elif name == "LinearRegression":
        X = SPREAD * X
        scores = X @ generator.normal(size=width)
        y = SPREAD * math.sqrt(0.5) * (scores / scores.std() + generator.normal(size=count))
    else:
        centres = generator.normal(size=(kinds, width))
        X = SPREAD * math.sqrt(0.5) * (X + centres[generator.integers(0, kinds, count)])
    parts = (None, None) if y is None else (y[:rows], y[rows:])
    return X[:rows], parts[0], X[rows:], parts[1]


def made(name: str, epsilon: float, kinds: int) -> Any:
    more: dict[str, Any] = {}
    if name == "LinearRegression":
        more["label_bounds"] = (-1, 1)
    if name == "KMeans":
        more["n_clusters"] = kinds
    return getattr(room, name)(epsilon, 1e-6, bounds=(-1, 1), random_state=1, **more)


def kept(name: str, epsilon: float, rows: int, width: int, kinds: int) -> float:
    """How much of what is possible without privacy a fit has, above the trivial model: the mean of
    three tables."""
    found = []
    for seed in range(3):
        X, y, X_test, y_test = table(name, rows, width, kinds, seed)
        ours, exact = (made(name, e, kinds).fit(X, y) for e in (epsilon, math.inf))
        if name == "KMeans":
            inside = np.clip(X_test, -1, 1)
            trivial = -float(((inside - inside.mean(axis=0)) ** 2).sum())
        else:
            trivial = 0.0 if name == "LinearRegression" else 1 / kinds
        best = exact.score(X_test, y_test) - trivial
        found.append((ours.score(X_test, y_test) - trivial) / best)
    return float(np.mean(found))


# name, ε, records, columns, classes or clusters
GRID = [
    (name, epsilon, rows, width, kinds)
    for name in ("LogisticRegression", "NaiveBayes", "LinearRegression", "KMeans")
    for width, kinds in ((4, 2), (20, 3))
    for rows in (100, 600, 4000)
    for epsilon in (0.2, 2.0)
]


def test_what_is_called_useless_is() -> None:
    """Where a simulated model is no better than the trivial one, it is said; where it is clearly
    better, it is not. In between, either may be."""
    wrong, useless, useful = [], 0, 0
    for name, epsilon, rows, width, kinds in GRID:
        measured = kept(name, epsilon, rows, width, kinds)
        said = made(name, epsilon, kinds).expected_error(rows, width, kinds)
        useless, useful = useless + said.useless, useful + (not said.useless)
        if (measured < 0.05 and not said.useless) or (measured > 0.6 and said.useless):
            wrong.append((name, epsilon, rows, width, kinds, measured, said.kept))
    assert len(wrong) <= len(GRID) // 20, wrong
    assert min(useless, useful) >= len(GRID) // 4


def test_what_is_kept_is_about_right() -> None:
    """Well above the noise, within a sixth of all that can be had."""
    for name in ("LogisticRegression", "NaiveBayes", "LinearRegression", "KMeans"):
        measured = kept(name, 1.0, 5000, 10, 3)
        assert abs(made(name, 1.0, 3).expected_error(5000, 10, 3).kept - measured) < 1 / 6


@pytest.mark.parametrize("name", ["histogram", "quantiles"])
def test_counts_and_ranks_have_the_error_that_is_expected(name: str) -> None:
    program = installed()[name]()
    assert isinstance(program, Program)
    schema, promise, rows = schema_of(3, None), Promise(1.0, 1e-6), 5000
    X = np.random.default_rng(3).uniform(-1, 1, (rows, 3))
    errors = []
    for seed in range(5):
        channel = Central(randomness=SeededRandomness(seed))
        model = channel.run(program, ArrayRecords(X), schema, promise).model
        if name == "histogram":
            exact = np.concatenate([np.histogram(x, 20, (-1, 1))[0] for x in X.T])
            errors.append((model.counts - exact) / (rows / 20))
        else:
            ranks = np.array(
                [
                    np.interp(v, np.sort(x), np.linspace(0, 1, rows))
                    for v, x in zip(model.values, X.T, strict=True)
                ]
            )
            errors.append(ranks - model.probabilities)
    measured = float(np.sqrt(np.mean(np.square(errors))))
    expected = expected_error(program, schema, promise, rows).value
    assert measured / 2.5 < expected < measured * 2.5


def every() -> list[tuple[Program[Any, Any], Schema]]:
    found = []
    for kind in installed().values():
        if not issubclass(kind, Program):
            continue
        label = {"logistic": "class", "naive-bayes": "class", "linear-regression": "value"}
        schema = schema_of(6, label.get(kind.name))
        if kind.name == "frequent-itemsets":
            items = {f"i{i}": {"type": "boolean"} for i in range(6)}
            schema = Schema.from_dict({"columns": items})
        found.append((kind(), schema))
    return found


@pytest.mark.parametrize("promise", [Promise(0.5), Promise(0.5, 1e-6)], ids=["pure", "gaussian"])
def test_more_records_or_a_weaker_promise_never_hurt(promise: Promise) -> None:
    for program, schema in every():
        if promise.delta == 0 and "published" in program.name:
            continue
        before = -math.inf
        for rows in (10, 100, 1000, 10_000, 100_000, 10**7):
            said = expected_error(program, schema, promise, rows)
            assert said.kept >= before, program.name
            assert said.needed_n is not None
            assert said.useless == (rows < said.needed_n), program.name
            before = said.kept
        assert not said.useless, program.name
        noisier = expected_error(program, schema, promise, 2000, factor=3.0)
        assert noisier.kept <= expected_error(program, schema, promise, 2000).kept
        assert noisier.kept == pytest.approx(
            expected_error(program, schema, promise, 2000, factor=3.0).kept
        )
        open_ = expected_error(program, schema, Promise(math.inf), 10)
        assert (open_.useless, open_.kept) == (False, 1.0)


def test_it_is_said_in_words() -> None:
    few = room.LinearRegression(0.1).expected_error(442, 10)
    assert few.useless
    assert "hardly better than saying always the mean" in str(few)
    assert "records on" in str(few)
    many = room.LinearRegression().expected_error(100_000, 10)
    assert "of what is possible without privacy" in str(many)
    assert isinstance(many.to_dict()["value"], float)
    assert isinstance(many, ExpectedError)


def test_the_width_must_be_known() -> None:
    with pytest.raises(UsageError, match="features"):
        room.NaiveBayes().expected_error(100)
    with pytest.raises(UsageError, match="features"):
        room.FrequentItemsets().expected_error(100)
    with pytest.raises(UsageError, match="whole number"):
        room.NaiveBayes().expected_error(0, 3)
    stated = room.NaiveBayes(bounds=([0.0] * 4, [1.0] * 4)).expected_error(500)
    assert stated == room.NaiveBayes(bounds=(0, 1)).expected_error(500, 4)


def fitted(rows: int, epsilon: float) -> list[str]:
    """What a fit warns of."""
    X, y, _, _ = table("NaiveBayes", rows, 20, 2, 1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UtilityWarning)
        room.NaiveBayes(epsilon, bounds=(-1, 1), random_state=1).fit(X, y)
    assert all(w.filename == __file__ for w in told)  # it names the line that called fit
    return [str(w.message) for w in told if w.category is UtilityWarning]


def test_a_fit_that_can_find_nothing_says_so() -> None:
    (said,) = fitted(100, 1.0)
    assert "hardly better" in said
    assert "epsilon" in said
    assert fitted(5000, 1.0) == []
    assert fitted(100, math.inf) == []


def test_no_certificate_tells_how_many_records_there_were() -> None:
    X, y, _, _ = table("NaiveBayes", 137, 20, 2, 1)
    model = room.NaiveBayes(bounds=(-1, 1), random_state=1).fit(X, y)
    assert "137" not in " ".join([*model.certificate_.remarks, *model.certificate_.conditions])
