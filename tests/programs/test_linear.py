"""Linear regression: equal to scikit-learn's without noise, close to it with some."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression as SklearnLinear
from sklearn.metrics import r2_score

sys.path.insert(0, str(Path(__file__).parent))

from rounds import asked, check_sums, ready, unshortened

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Column, Schema
from tacit.data.records import ArrayRecords
from tacit.errors import InputError, SchemaError
from tacit.privacy import Norm, Promise
from tacit.programs.files import from_bytes, to_bytes
from tacit.programs.linear import LinearModel, LinearRegression, noise_norm, solve
from tacit.programs.moments import Moments, View

Reals = NDArray[np.float64]
FREE = Promise(math.inf)


def numbers(width: int, label: tuple[float, float]) -> Schema:
    features = (Column(name=f"x{i}", type="number", bounds=(-1, 1)) for i in range(width))
    return Schema(columns=(*features, Column(name="y", type="number", bounds=label, role="label")))


def fitted(X: Reals, y: Reals, promise: Promise, label: tuple[float, float], **options: Any) -> Any:
    channel = Central(randomness=SeededRandomness(4))
    program = LinearRegression(**options)
    outcome = channel.run(program, ArrayRecords(X, y), numbers(X.shape[1], label), promise)
    assert isinstance(outcome.model, LinearModel)
    return outcome.model


def plane(rows: int, width: int) -> tuple[Reals, Reals]:
    generator = np.random.default_rng(8)
    X = generator.uniform(-1, 1, (rows, width))
    y = X @ np.linspace(-1, 1, width) + 0.3 + generator.normal(0, 0.2, rows)
    return X, np.clip(y, -3, 3)


def test_diabetes_without_noise() -> None:
    X, y = load_diabetes(return_X_y=True)
    X = X / np.abs(X).max(axis=0)
    own, sklearn = fitted(X, y, FREE, (0, 400)), SklearnLinear().fit(X, y)
    assert np.allclose(own.predict(X), sklearn.predict(X), atol=0.02)
    assert own.count == len(X)
    assert own.floor == 0


def test_through_the_origin() -> None:
    X, y = plane(300, 4)
    own = fitted(X, y, FREE, (-3, 3), fit_intercept=False)
    sklearn = SklearnLinear(fit_intercept=False).fit(X, y / 3)
    assert own.intercept == 0
    assert np.allclose(own.coef, sklearn.coef_, atol=1e-4)


def test_a_constant_feature_gets_no_weight() -> None:
    X, y = plane(300, 4)
    X[:, 1] = 0.5
    own = fitted(X, y, FREE, (-3, 3))
    assert own.coef[1] == pytest.approx(0, abs=1e-9)
    assert np.allclose(own.coef * 3, SklearnLinear().fit(X, y).coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("promise", "least"), [(Promise(1.0, 1e-6), 0.9), (Promise(1.0), 0.85), (Promise(0.3), 0.6)]
)
def test_noisy_fits_predict(promise: Promise, least: float) -> None:
    X, y = plane(20_000, 6)  # without noise: 0.94
    assert r2_score(y, fitted(X, y, promise, (-3, 3)).predict(X)) > least


def test_where_noise_drowns_everything_the_model_stays_tame() -> None:
    X, y = plane(30, 8)
    model = fitted(X, y, Promise(0.01), (-3, 3))
    assert np.abs(model.coef).max() < 3
    assert np.isfinite(model.intercept)


def test_the_ridge_follows_each_direction() -> None:
    second = np.diag([100.0, 1.0, -5.0])
    assert np.allclose(solve(second, np.ones(3), 10.0), [0.01, 0.1, 0.1])
    assert np.allclose(solve(np.diag([4.0, 0.0]), np.array([4.0, 1.0]), 0.0), [1, 0])


def test_noise_norm_is_the_size_of_symmetric_noise() -> None:
    generator = np.random.default_rng(9)
    for width in (3, 30, 100):
        upper = np.triu(generator.normal(0, 2.0, (40, width, width)))
        both = upper + np.transpose(np.triu(upper, 1), (0, 2, 1))
        sizes = np.abs(np.linalg.eigvalsh(both)).max(axis=1)
        assert 0.4 < np.mean(sizes) / noise_norm(2.0, width) < 1


def test_boolean_labels_are_zero_and_one() -> None:
    X, y = plane(200, 2)
    schema = Schema(
        columns=(*numbers(2, (0, 1)).features, Column(name="y", type="boolean", role="label"))
    )
    model = Central().run(LinearRegression(), ArrayRecords(X, y > 0), schema, FREE).model
    assert np.allclose(model.predict(X), SklearnLinear().fit(X, y > 0).predict(X), atol=1e-4)


@pytest.mark.parametrize(
    "label", [None, Column(name="y", type="category", categories=("a",), role="label")]
)
def test_other_labels_are_refused(label: Column | None) -> None:
    columns = (Column(name="x", type="number", bounds=(0, 1)), *([label] if label else []))
    with pytest.raises(SchemaError, match="number with public bounds"):
        LinearRegression().init(Schema(columns=columns), Promise(1.0))


def test_products_of_matrices_are_exact() -> None:
    generator = np.random.default_rng(10)
    moments = Moments(12, 12, True, Norm.L2, True)
    view = View(generator.uniform(-1, 1, 13), generator.uniform(0.2, 1, 13), 16.0)
    given = moments.contribution(
        generator.uniform(-1, 1, (8192, 12)), generator.uniform(-1, 1, 8192), view
    )
    whole = given.vectors.astype(np.int64)
    exact = (whole.T @ whole)[np.triu_indices(14)]
    limit = moments.block("moments").limit
    assert np.array_equal(given.within(limit, Norm.L2).total(limit), exact)


@pytest.mark.parametrize("promise", [Promise(1.0), Promise(1.0, 1e-6)], ids=["pure", "gaussian"])
def test_what_no_encoder_gives_is_shortened(promise: Promise) -> None:
    schema = Schema(
        columns=(
            Column(name="x", type="category", categories=("a", "b", "c")),
            Column(name="y", type="number", bounds=(0, 1), role="label"),
        )
    )
    program = LinearRegression()
    state = program.init(schema, promise)
    query = asked(program, state, state)
    (block,) = query.blocks
    for X, longer in ((np.eye(3), False), (np.ones((3, 3)), True)):
        batch = ready(program, X, np.ones(3), state)
        rows = check_sums(program, batch, state, query)
        (free,) = unshortened(program, batch, state, query)
        sizes = np.linalg.norm(free.astype(float), ord=1 if promise.delta == 0 else 2, axis=1)
        assert ((sizes > block.limit) == longer).all()
        assert np.array_equal(rows, free) is not longer


@pytest.mark.parametrize("intercept", [True, False])
def test_errors_are_as_large_as_noise_moves_coefficients(intercept: bool) -> None:
    """The same records under other noise, 30 times; seeded, so that it repeats."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, (5000, 3))
    X[:, 1] = 0.6 * X[:, 0] + 0.3 * X[:, 1]
    kinds = np.eye(3)[generator.integers(0, 3, 5000)]
    y = X @ (0.4, -0.2, 0.1) + 0.3 * kinds[:, 1] + generator.normal(0.2, 0.1, 5000)
    number = {"type": "number", "bounds": [-1, 1]}
    columns = dict.fromkeys("abc", number)
    kind = {"kind": {"type": "category", "categories": ["k", "l", "m"]}}
    schema = Schema.from_dict({"columns": {**columns, **kind, "y": {**number, "role": "label"}}})
    records = ArrayRecords(np.column_stack([X, kinds]), np.clip(y, -1, 1))
    found, told = [], []
    for seed in range(30):
        channel = Central(randomness=SeededRandomness(seed))
        program = LinearRegression(intercept)
        model = channel.run(program, records, schema, Promise(1, 1e-6)).model
        found.append([*model.coef, model.intercept][: 6 + intercept])
        told.append(model.errors[: 6 + intercept])
    ratio = np.sqrt(np.mean(np.square(told), axis=0)) / np.std(found, axis=0, ddof=1)
    assert ((ratio > 1 / 1.5) & (ratio < 1.5)).all(), ratio


def test_errors_are_kept_in_files_and_absent_where_there_is_no_noise() -> None:
    X, y = plane(500, 2)
    exact, noisy = (fitted(X, y, promise, (-3, 3)) for promise in (FREE, Promise(1, 1e-6)))
    assert exact.errors is None
    assert b"errors" not in to_bytes(exact)
    assert from_bytes(LinearModel, to_bytes(noisy)).errors == noisy.errors
    assert from_bytes(LinearModel, to_bytes(replace(noisy, errors=None))).errors is None
    for wrong in (noisy.errors[1:], ()):
        with pytest.raises(InputError, match="errors"):
            replace(noisy, errors=wrong)
