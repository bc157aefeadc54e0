"""What holds for programs that ask for sums, in their first round: bounds, units, the game."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from rounds import asked, check_sums, unshortened

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Batch, Column, Encoded, Schema
from tacit.data.records import ArrayRecords
from tacit.privacy import Norm, Promise, audit
from tacit.programs import Program
from tacit.programs.contribute import decoded, prepared, record_sum
from tacit.programs.histogram import Histogram
from tacit.programs.levels import Levels
from tacit.programs.linear import LinearRegression
from tacit.programs.naive_bayes import NaiveBayes
from tacit.programs.pca import PCA
from tacit.programs.quantiles import Quantiles

Reals = NDArray[np.float64]

FEATURES = (
    Column(name="age", type="number", bounds=(0, 100)),
    Column(name="weight", type="number", bounds=(30, 150), when_missing="category"),
    Column(name="group", type="category", categories=("0", "A", "B")),
    Column(name="smokes", type="boolean"),
    Column(name="dose", type="number", edges=(1.0, 5.0)),
)
COST = Column(name="cost", type="number", bounds=(0, 500), role="label")
ILL = Column(name="ill", type="boolean", role="label")
SCHEMAS = {label.name: Schema(columns=(*FEATURES, label)) for label in (COST, ILL)}
PROGRAMS: dict[str, tuple[Program[Any, Any], Schema]] = {
    "linear": (LinearRegression(), SCHEMAS["cost"]),
    "pca": (PCA(), SCHEMAS["cost"]),
    "naive-bayes": (NaiveBayes(), SCHEMAS["ill"]),
    "histogram": (Histogram(), SCHEMAS["ill"]),
    "quantiles": (Quantiles(), SCHEMAS["cost"]),
}
PROMISES = {"pure": Promise(1.0), "gaussian": Promise(1.0, 1e-6)}
EVERY = pytest.mark.parametrize("name", PROGRAMS)
BOTH = pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)

record = st.fixed_dictionaries(
    {
        "age": st.floats(0, 100),
        "weight": st.floats(30, 150) | st.just(math.nan),
        "group": st.integers(0, 2),
        "smokes": st.integers(0, 1),
        "dose": st.floats(0, 10),
        "cost": st.floats(0, 500),
        "ill": st.integers(0, 1),
    }
)
LARGEST = [
    {"age": 100, "weight": 150, "group": 0, "smokes": 1, "dose": 2, "cost": 500, "ill": 1},
    {"age": 75, "weight": 120, "group": 0, "smokes": 1, "dose": 2, "cost": 500, "ill": 1},
]


def encoded(values: dict[str, Any], schema: Schema, program: Program[Any, Any]) -> Encoded:
    columns = {c.name: np.array([values[c.name]]) for c in schema.columns}
    return program.encoder(schema).encode(Batch(schema, columns, 1))


def fullness(name: str, promise: Promise, values: dict[str, Any]) -> list[float]:
    """What part of each block's bound one record uses, before any clipping."""
    program, schema = PROGRAMS[name]
    state = program.init(schema, promise)
    query = asked(program, state, state)
    batch = prepared(program, encoded(values, schema, program), state)
    order = {Norm.L1: 1, Norm.L2: 2}
    return [
        float(np.linalg.norm(rows[0].astype(float), ord=order[block.norm]) / block.limit)
        for block, rows in zip(query.blocks, unshortened(program, batch, state, query), strict=True)
    ]


@EVERY
@BOTH
@given(values=record)
def test_every_record_is_within_the_bound(
    name: str, promise: Promise, values: dict[str, Any]
) -> None:
    assert max(fullness(name, promise, values)) <= 1 + 1e-15


@EVERY
@BOTH
def test_some_record_needs_the_bound(name: str, promise: Promise) -> None:
    needed = np.array([fullness(name, promise, values) for values in LARGEST])
    assert needed.max(axis=0).min() > 0.99


@EVERY
@BOTH
def test_records_in_range_are_not_shortened(name: str, promise: Promise) -> None:
    program, schema = PROGRAMS[name]
    state = program.init(schema, promise)
    query = asked(program, state, state)
    for values in LARGEST:
        batch = prepared(program, encoded(values, schema, program), state)
        rows = check_sums(program, batch, state, query)
        assert np.array_equal(rows, np.hstack(unshortened(program, batch, state, query)))


def released(name: str, promise: Promise, X: Reals, y: Any, person: Any = None) -> Any:
    """The first noisy vector of a run as its state holds it; of programs that ask three times, the
    count."""
    program, schema = PROGRAMS[name]
    records = ArrayRecords(X, y, person, rows=2)
    state = Central(randomness=SeededRandomness(1)).run(program, records, schema, promise).state
    if hasattr(state, "counts"):
        return state.counts
    return np.array([state.count]) if hasattr(state, "centre") else state.total


# ── units ────────────────────────────────────────────────────────────────────────────────────────


@EVERY
@pytest.mark.parametrize("unit", ["person", "holder"])
def test_a_unit_of_many_records_counts_as_one(name: str, unit: Any) -> None:
    """Five equal records in three batches, all of one person: as one record of his."""
    program, schema = PROGRAMS[name]
    one = encoded(LARGEST[0], schema, program)
    assert one.y is not None
    X, y = np.repeat(one.X, 5, axis=0), np.repeat(one.y, 5)
    promise = Promise(1e6, 1e-6, unit=unit)
    many = released(name, promise, X, y, np.zeros(5, dtype=np.int64))
    single = released(name, promise, one.X, one.y, np.zeros(1, dtype=np.int64))
    assert np.allclose(many, single, atol=0.05)
    apart = released(name, Promise(1e6, 1e-6), X, y)
    assert np.allclose(apart, 5 * single, atol=0.1)


# ── the distinguishing game ──────────────────────────────────────────────────────────────────────

# A delta far from any that one would promise, since then few games decide: at the claim no event
# has P > e^ε P′ + δ, and with half the noise there is one that shows in 500 runs.
CLAIM = Promise(0.1, 0.7)
PURE = Promise(1.0)
# Regression and components, whose rounds depend on one another, are played against in tests/audits.
GAMES = [("naive-bayes", CLAIM), ("histogram", CLAIM), ("quantiles", CLAIM)]
GAMES += [("histogram-of-one", PURE)]
SMALL = {
    "naive-bayes": (NaiveBayes(), Schema(columns=(FEATURES[0], FEATURES[2], ILL))),
    "histogram": (Histogram(bins=4), Schema(columns=(FEATURES[0], FEATURES[2]))),
    "quantiles": (Quantiles(), Schema(columns=(FEATURES[0],))),
    "histogram-of-one": (Histogram(), Schema(columns=(FEATURES[2],))),
}


def play(name: str, claim: Promise) -> Callable[[list[dict[str, Any]], int], Reals]:
    """What a run lets out, over and over, as far as it looks like the record in question."""
    program, schema = SMALL[name]
    source = SeededRandomness(12)
    first = program.init(schema, claim)
    batch = prepared(program, encoded(LARGEST[0], schema, program), first)
    query = asked(program, first, first)
    likeness = decoded(record_sum(program, batch, first, query), query)

    def outputs(people: list[dict[str, Any]], runs: int) -> Reals:
        each = [encoded(values, schema, program) for values in people]
        y = None if each[0].y is None else np.concatenate([e.y for e in each])  # type: ignore[misc]
        records = ArrayRecords(np.vstack([e.X for e in each]), y)
        channel = Central(randomness=source)
        states = [channel.run(program, records, schema, claim).state for _ in range(runs)]
        seen = [s.counts if hasattr(s, "counts") else s.total for s in states]
        return np.array([vector.ravel() @ likeness for vector in seen])

    return outputs


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same plan is calibrated once, and not costed again: runs differ in noise alone."""
    plans = cache(Levels.planned)

    def planned(promise: Promise, plan: Any) -> Levels:
        return plans(promise, plan).afresh()

    monkeypatch.setattr(Levels, "planned", planned)
    monkeypatch.setattr(Central, "_certificate", lambda *_: None)


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize(("name", "claim"), GAMES, ids=[name for name, _ in GAMES])
def test_the_game_is_not_won_too_often(
    name: str, claim: Promise, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbours = (LARGEST[1:], LARGEST[1:] + LARGEST[:1])
    trials = 500 if claim.delta else 1800
    audit(play(name, claim), neighbours, claim, trials=trials).check()
    calibrated = Levels.mechanism

    def halved(self: Levels, block: Any) -> Any:
        mechanism = calibrated(self, block)
        return replace(mechanism, scale=mechanism.scale / 2)

    monkeypatch.setattr(Levels, "mechanism", halved)
    assert not audit(play(name, claim), neighbours, claim, trials=trials).passed
