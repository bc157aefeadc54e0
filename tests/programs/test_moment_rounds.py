"""Mean, spread, moments: what three rounds gain, and what no state can change."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from rounds import check_sums, planned, ready

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Column, Schema
from tacit.data.records import ArrayRecords
from tacit.privacy import Norm, Promise
from tacit.programs.linear import LinearRegression
from tacit.programs.moments import Moments, View, known_products
from tacit.programs.pca import PCA

Reals = NDArray[np.float64]
LABEL = Column(name="y", type="number", bounds=(-1, 1), role="label")
PROMISE = Promise(1.0, 1e-6)


def binary(width: int) -> Schema:
    return Schema(columns=(*(Column(name=f"x{i}", type="boolean") for i in range(width)), LABEL))


def numbers(width: int) -> Schema:
    columns = (Column(name=f"x{i}", type="number", bounds=(-1, 1)) for i in range(width))
    return Schema(columns=(*columns, LABEL))


def wide(rows: int = 6000, width: int = 60) -> tuple[Reals, Reals]:
    """Binary columns, most of them rare, and some that go together."""
    generator = np.random.default_rng(1)
    kinds = generator.normal(size=(rows, 3))
    shares = generator.uniform(-2.5, 0, width)
    X = (kinds @ generator.normal(size=(3, width)) + generator.normal(size=(rows, width))) < shares
    weights = generator.normal(size=width)
    y = np.tanh((X - X.mean(axis=0)) @ weights / 4 + generator.normal(0, 0.3, rows))
    return X.astype(float), y


def narrow(rows: int = 8000) -> tuple[Reals, Reals]:
    """Friedman's first function of ten uniform columns."""
    generator = np.random.default_rng(2)
    X = generator.uniform(size=(rows, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y += 10 * X[:, 3] + 5 * X[:, 4] + generator.normal(size=rows)
    return 2 * X - 1, np.clip(y / 15 - 1, -1, 1)


def fit(X: Reals, y: Reals, schema: Schema, promise: Promise) -> float:
    """R², the mean of four runs."""
    found = []
    for seed in range(4):
        channel = Central(randomness=SeededRandomness(seed))
        model = channel.run(LinearRegression(), ArrayRecords(X, y), schema, promise).model
        found.append(1 - ((model.predict(X) - y) ** 2).mean() / y.var())
    return float(np.mean(found))


def both_versions(monkeypatch: pytest.MonkeyPatch, *table: Any) -> tuple[float, float]:
    """With three rounds, and with records in their box, as version 1 had it."""
    ours = fit(*table)
    with monkeypatch.context() as patched:
        patched.setattr(Moments, "boxed", True)
        return ours, fit(*table)


def test_wide_tables_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide()
    ours, before = both_versions(monkeypatch, X, y, binary(60), PROMISE)
    exact = fit(X, y, binary(60), Promise(math.inf))
    assert ours > before + 0.1
    assert ours > exact - 0.1


@pytest.mark.parametrize("promise", [Promise(0.3, 1e-6), PROMISE, Promise(4.0, 1e-6), Promise(1.0)])
def test_narrow_tables_lose_nothing(promise: Promise, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, before = both_versions(monkeypatch, *narrow(), numbers(10), promise)
    assert ours > before - 0.002


def test_components_of_wide_tables_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = wide()
    covariance = np.cov(X.T)
    best = np.linalg.eigvalsh(covariance)[-3:].sum()

    def captured() -> float:
        channel = Central(randomness=SeededRandomness(3))
        schema = Schema(columns=binary(60).features)
        model = channel.run(PCA(3), ArrayRecords(X), schema, Promise(0.3, 1e-6)).model
        return float(np.trace(model.components @ covariance @ model.components.T) / best)

    ours = captured()
    monkeypatch.setattr(Moments, "boxed", True)
    assert ours > captured() + 0.2


def test_which_promises_leave_records_in_their_box() -> None:
    groups = (Column(name=f"g{i}", type="category", categories=("a", "b", "c")) for i in range(3))
    grouped = Schema(columns=(*groups, LABEL))
    program = LinearRegression()
    asked = {
        (schema is grouped, promise.delta > 0): [
            block.name
            for stage in program.plan(program.init(schema, promise))
            for block in stage.query.blocks
        ]
        for schema in (grouped, numbers(3))
        for promise in (Promise(1.0), PROMISE)
    }
    every = ["mean", "spread", "moments"]
    assert asked == {
        (True, False): ["moments"], (True, True): every,
        (False, False): every, (False, True): every,
    }  # fmt: skip
    free = program.init(numbers(3), Promise(math.inf))
    assert planned(program, free).rounds == 1


def test_triangles_grow_with_records_and_shrink_to_typical_ones() -> None:
    moments = Moments(20, 20, True, Norm.L2, True)
    longest = [moments.longest(40.0, n) for n in (1, 10**3, 10**6, 10**9)]
    assert longest[0] == longest[1] == moments.typical
    assert longest[1] < longest[2] < longest[3]


def test_products_of_one_column_are_known() -> None:
    generator = np.random.default_rng(4)
    X = np.eye(3)[generator.integers(0, 3, 500)]
    X[:50] = 0.0  # nothing of this column: missing
    view = View(generator.uniform(-1, 1, 3), generator.uniform(0.2, 1, 3), 1.0)
    U = (X - view.centre) / view.scale
    found = known_products(
        np.full((3, 3), math.nan), np.zeros(3, dtype=np.int64), 500.0, U.mean(axis=0), view
    )
    off = ~np.eye(3, dtype=bool)
    assert np.allclose(found[off], (U.T @ U)[off])
    assert np.isnan(np.diag(found)).all()


@pytest.mark.parametrize("promise", [Promise(1.0), PROMISE], ids=["pure", "gaussian"])
def test_no_state_makes_a_record_count_for_more(promise: Promise) -> None:
    program = LinearRegression()
    first = program.init(numbers(3), promise)
    generator = np.random.default_rng(5)
    X = np.vstack([generator.uniform(-1, 1, (20, 3)), np.ones(3), -np.ones(3), np.zeros(3)])
    batch = ready(program, X, generator.uniform(-1, 1, 23), first)
    for scale, unit in ((0.0, 1.0), (1e-300, 1.0), (1.0, 0.0), (1e300, 1e300), (1.0, 1e-9)):
        for centre in (0.0, 1e300, -1.0):
            state = replace(
                first, scale=np.full(4, scale), centre=np.full(4, centre), unit=unit, stage="mean"
            )
            for number in (1, 2, 3):
                check_sums(program, batch, state, planned(program, first).stage(number).query)


def test_windows_after_the_first_ask_for_moments_alone() -> None:
    program = LinearRegression().windowed(4)
    first = program.init(numbers(3), PROMISE)
    plan = planned(program, first)
    assert [plan.part(window).rounds for window in (1, 2, 3, 4)] == [3, 1, 1, 1]
    alone, later = first.noise[2:]
    assert later < alone < 1.05 * later  # the whole promise of a window, and 94 % of it
    done = replace(first, done=4)
    assert done.entry_noise == pytest.approx(
        first.unit**2 * math.hypot(alone, math.sqrt(3) * later)
    )


def test_the_count_of_windows_is_that_of_all_records() -> None:
    X, y = narrow(4000)
    program = LinearRegression().windowed(4)
    promise = Promise(20.0, 1e-6)
    state = program.init(numbers(10), promise)
    plan = planned(program, state)
    for number in range(1, plan.rounds + 1):
        window, _ = plan.place(number)
        part = slice(1000 * (window - 1), 1000 * window)
        batch = ready(program, X[part], y[part], state)
        query = plan.stage(number).query
        (block,) = query.blocks
        total = check_sums(program, batch, state, query).sum(axis=0) * float(block.grid.step)
        state = program.reduce(total, state)
    assert state.done == 4
    assert program.result(state).count == pytest.approx(4000, rel=0.02)


@pytest.mark.parametrize("first", [-3.0, 0.0, 1e-12, 2.0])
def test_a_count_that_noise_hides_grows_no_further_than_can_be_told(first: float) -> None:
    """With next to no records the first window's sum may be below zero, or just above it."""
    program = PCA().windowed(2)
    state = program.init(numbers(2), PROMISE)
    lengths = [stage.query.length for stage in program.plan(state)]
    for length in lengths[:2]:
        state = program.reduce(np.zeros(length), state)
    state = program.reduce(np.full(lengths[2], first), state)
    after = program.reduce(np.full(lengths[3], 5.0), state)
    assert after.count <= 10 * max(1.0, state.count)
    assert np.isfinite(program.result(after).explained_variance).all()
