"""Histograms and quantiles: numpy's without noise; nearest distributions; consistent trees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Batch, Column, Schema
from tacit.data.records import ArrayRecords
from tacit.errors import UsageError
from tacit.privacy import Promise
from tacit.programs import Program
from tacit.programs.histogram import Histogram, nearest_distribution
from tacit.programs.quantiles import FAN_OUT, LEVELS, Quantiles, consistent

FREE = Promise(math.inf)
GENERATOR = np.random.default_rng(13)
ROWS = 2000
SCHEMA = Schema(
    columns=(
        Column(name="age", type="number", bounds=(0, 100), when_missing="category"),
        Column(
            name="dose", type="number", bounds=(0, 10), edges=(1.0, 5.0), when_missing="category"
        ),
        Column(name="smokes", type="boolean", when_missing="category"),
        Column(name="cost", type="number", bounds=(0, 50), role="label"),
    )
)
MISSING = GENERATOR.random(ROWS) < 0.1
AGE = np.where(MISSING, math.nan, np.clip(GENERATOR.gamma(4, 10, ROWS), 0, 100))
DOSE = np.where(MISSING, math.nan, GENERATOR.uniform(0, 10, ROWS))
SMOKES = GENERATOR.choice(3, ROWS, p=[0.6, 0.3, 0.1])
COST = GENERATOR.uniform(0, 50, ROWS)


def learned(program: Program[Any, Any], promise: Promise, seed: int = 2) -> Any:
    values = {"age": AGE, "dose": DOSE, "smokes": SMOKES, "cost": COST}
    data = program.encoder(SCHEMA).encode(Batch(SCHEMA, values, ROWS))
    channel = Central(randomness=SeededRandomness(seed))
    return channel.run(program, ArrayRecords(data.X, data.y), SCHEMA, promise).model


# ── histograms ───────────────────────────────────────────────────────────────────────────────────


def test_counts_without_noise() -> None:
    model = learned(Histogram(bins=25), FREE)
    assert model.columns == ("age", "dose", "smokes", "cost")
    own, edges = np.histogram(AGE[~MISSING], bins=25, range=(0, 100))
    assert np.array_equal(model.of("age"), [*own, MISSING.sum()])
    assert np.allclose(model.edges("age"), edges)
    assert np.array_equal(
        model.of("dose"), [*np.histogram(DOSE[~MISSING], bins=[0, 1, 5, 10])[0], MISSING.sum()]
    )
    assert model.labels[1] == ("[0, 1)", "[1, 5)", "[5, 10)", "missing")
    assert np.array_equal(model.of("smokes"), np.bincount(SMOKES))
    assert model.labels[2] == ("false", "true", "missing")
    assert np.array_equal(model.of("cost"), np.histogram(COST, bins=25, range=(0, 50))[0])


def test_noise_is_what_the_plan_says() -> None:
    """Columns with more cells get more of the promise, by the rule of least total error."""
    program = Histogram(["age", "smokes"], bins=26)  # 27 cells, and 3
    free = learned(program, FREE)
    for promise, ratio in ((Promise(0.1), 9 ** (1 / 3)), (Promise(0.1, 1e-6), 9 ** (1 / 4))):
        noise = {"age": [], "smokes": []}  # type: ignore[var-annotated]
        for seed in range(60):
            model = learned(program, promise, seed)
            for column in noise:
                noise[column].append(model.of(column) - free.of(column))
        spread = {column: np.std(noise[column]) for column in noise}
        assert spread["smokes"] / spread["age"] == pytest.approx(ratio, rel=0.25)


@given(st.lists(st.floats(-50, 1000), min_size=1, max_size=20))
def test_shares_are_the_nearest_distribution(counts: list[float]) -> None:
    found = nearest_distribution(np.array(counts))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    if sum(counts) > 1e-6:
        # The nearest point p of a convex set makes (q − p)·(v − p) ≤ 0 for each of its corners q.
        off = np.array(counts) / sum(counts) - found
        assert (off - off @ found).max() <= 1e-6 * (1 + np.abs(off).max())


def test_shares_of_a_noisy_histogram() -> None:
    model = learned(Histogram(["age"]), Promise(0.05))
    own = learned(Histogram(["age"]), FREE).shares("age")
    assert model.of("age").min() < 0 <= model.shares("age").min()
    assert np.abs(model.shares("age") - own).sum() < 0.5


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(UsageError, match="no feature or label"):
        learned(Histogram(["height"]), FREE)
    model = learned(Histogram(["smokes"]), FREE)
    with pytest.raises(UsageError, match="no histogram of 'age'"):
        model.of("age")
    with pytest.raises(UsageError, match="equal bins"):
        model.edges("smokes")
    with pytest.raises(UsageError, match="bins"):
        Histogram(bins=0)


# ── quantiles ────────────────────────────────────────────────────────────────────────────────────


def test_quantiles_without_noise() -> None:
    model = learned(Quantiles((0.0, 0.1, 0.5, 0.99, 1.0)), FREE)
    assert model.columns == ("age",)
    own = np.quantile(AGE[~MISSING], model.probabilities, method="inverted_cdf")
    assert np.abs(model.values[0][1:] - own[1:]).max() <= 100 / 1024
    assert model.quantile("age", 0.5) == model.values[0][2]
    assert model.cumulative[0][-1] == np.sum(~MISSING)


@pytest.mark.parametrize("promise", [Promise(1.0, 1e-6), Promise(1.0)])
def test_noisy_quantiles_are_near_in_rank(promise: Promise) -> None:
    model = learned(Quantiles((0.1, 0.5, 0.9)), promise)
    ranks = [np.mean(AGE[~MISSING] <= value) for value in model.values[0]]
    assert np.allclose(ranks, [0.1, 0.5, 0.9], atol=0.03)
    assert (np.diff(model.cumulative[0]) >= 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_quantiles_of_nothing_but_noise_stay_in_range_and_in_order(seed: int) -> None:
    values = learned(Quantiles((0.1, 0.5, 0.9)), Promise(0.001), seed).values[0]
    assert 0 <= values[0] <= values[1] <= values[2] <= 100


def test_consistent_counts_are_least_squares() -> None:
    depth, b = 3, FAN_OUT
    sizes = [b**level for level in range(1, depth + 1)]
    noisy = [GENERATOR.normal(5, 2, size) for size in sizes]
    design = np.vstack([np.kron(np.eye(size), np.ones(sizes[-1] // size)) for size in sizes])
    best = np.linalg.lstsq(design, np.concatenate(noisy), rcond=None)[0]
    assert np.allclose(consistent(noisy), best)


def test_the_tree_beats_its_finest_cells() -> None:
    """The figure of quantiles.md: a quarter of the error of cumulated cells, noise per level √L."""
    sizes = [FAN_OUT**level for level in range(1, LEVELS + 1)]
    errors = []
    for _ in range(100):
        noisy = [GENERATOR.normal(0, math.sqrt(LEVELS), size) for size in sizes]
        tree, flat = consistent(noisy), GENERATOR.normal(0, 1, sizes[-1])
        shares = np.arange(1, sizes[-1] + 1) / sizes[-1]
        errors.append([np.std(np.cumsum(v) - shares * v.sum()) for v in (tree, flat)])
    tree_error, flat_error = np.mean(errors, axis=0)
    assert tree_error < 0.35 * flat_error


def test_what_has_no_quantiles_is_refused() -> None:
    with pytest.raises(UsageError, match="numbers without edges"):
        learned(Quantiles(columns=["dose"]), FREE)
    with pytest.raises(UsageError, match="probabilities"):
        Quantiles((0.5, 2.0))
    with pytest.raises(UsageError, match="no quantiles of 'cost'"):
        learned(Quantiles(), FREE).quantile("cost", 0.5)
