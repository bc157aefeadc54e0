"""Windows without public bounds: ranges are found in the first window, and stay for all others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.channels.federation.local import Federation, local_study
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data import Schema
from tacit.data.batch import Batch
from tacit.data.records import ArrayRecords
from tacit.privacy import Promise
from tacit.privacy.accounting import cost
from tacit.programs.program import Program
from tacit.programs.ranged import ranged
from tacit.programs.ranges import BLOCKS
from tacit.programs.registry import program_named

ROWS, WINDOWS = 30_000, 6
PROMISE, EXACT = Promise(1.0, 1e-6), Promise(math.inf)
PRIVATE = {"type": "number", "bounds": "private"}
LABELS: dict[str, Any] = {
    "linear-regression": {**PRIVATE, "role": "label"},
    "logistic": {"type": "boolean", "role": "label"},
    "naive-bayes": {"type": "boolean", "role": "label"},
}
NAMES = [*LABELS, "k-means", "pca", "gaussian-mixture", "quantiles", "histogram"]

generator = np.random.default_rng(3)
SIDE = generator.integers(0, 2, ROWS)
KELVIN = generator.normal(290, 3, ROWS) + 12 * SIDE
WAIT = generator.exponential(30, ROWS)
HEIGHT = 3.0 * (KELVIN - 290) - WAIT + generator.normal(0, 5, ROWS)


def schema_of(name: str) -> Schema:
    label = {"label": LABELS[name]} if name in LABELS else {}
    features = {"kelvin": PRIVATE, "wait": PRIVATE}
    return Schema.from_dict({"columns": {**features, **label}})


def columns_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"kelvin": KELVIN, "wait": WAIT}
    if name in LABELS:
        found["label"] = HEIGHT if name == "linear-regression" else SIDE.astype(np.int32)
    return found


def parts(program: Program[Any, Any], schema: Schema, name: str, count: int) -> list[ArrayRecords]:
    columns = columns_of(name)
    if name == "linear-regression" and not schema.private:  # as a table is read
        columns["label"] = np.clip(HEIGHT, *schema.column("label").bounds)
    whole = program.encoder(schema).encode(Batch(schema, columns, ROWS))
    places = np.array_split(np.arange(ROWS), count)
    return [ArrayRecords(whole.X[p], None if whole.y is None else whole.y[p]) for p in places]


def central(name: str, promise: Promise, windows: int = WINDOWS) -> list[Any]:
    schema = schema_of(name)
    program = ranged(program_named(name), schema)
    channel = Central(randomness=SeededRandomness(1))
    records = parts(program, schema, name, windows)
    return list(channel.follow(program, records, schema, promise))


def joint(name: str, promise: Promise, windows: int = WINDOWS) -> list[Any]:
    schema = schema_of(name)
    records = parts(ranged(program_named(name), schema), schema, name, 2 * windows)
    pairs = [records[2 * i : 2 * i + 2] for i in range(windows)]
    federation = Federation(randomness=lambda server, n: SeededRandomness(f"{server} {n}"))
    return list(federation.follow(program_named(name), pairs, schema, promise))


def check_ranges(outcomes: Sequence[Any]) -> None:
    """Found once, and good for all."""
    assert len(outcomes) == WINDOWS
    for outcome in outcomes:
        assert outcome.schema == outcomes[0].schema
        assert not outcome.schema.private
        for column, values in (("kelvin", KELVIN), ("wait", WAIT)):
            low, high = outcome.schema.column(column).bounds
            assert np.mean((values >= low) & (values <= high)) > 0.95
            assert outcome.schema.column(column).range_found is True


@pytest.mark.parametrize("channel", [central, joint])
@pytest.mark.parametrize("promise", [PROMISE, Promise(2.0)], ids=["gaussian", "pure"])
@pytest.mark.parametrize("name", NAMES)
def test_every_program_finds_its_ranges_in_the_first_window(
    name: str, promise: Promise, channel: Any
) -> None:
    outcomes = channel(name, promise)
    check_ranges(outcomes)
    for number, outcome in enumerate(outcomes, start=1):
        certificate = outcome.certificate
        assert certificate.schema_digest == schema_of(name).digest
        assert {r.part for r in certificate.releases} == {
            f"window {n}" for n in range(1, number + 1)
        }
        for part in {r.part for r in certificate.releases}:
            # Each window costs the promise by itself: none pays for another's records.
            own = [release for release in certificate.releases if release.part == part]
            assert cost(own, promise.delta, promise.adjacency).epsilon <= promise.epsilon
        for field in fields(outcome.model):
            value = getattr(outcome.model, field.name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                assert np.isfinite(value).all()


@pytest.mark.parametrize("name", NAMES)
def test_without_noise_it_is_the_program_with_these_bounds(name: str) -> None:
    """After every window the model is what stated bounds would have given."""
    outcomes = central(name, EXACT)
    check_ranges(outcomes)
    plain, schema = program_named(name), outcomes[0].schema
    stated = list(Central().follow(plain, parts(plain, schema, name, WINDOWS), schema, EXACT))
    for ours, theirs in zip(outcomes, stated, strict=True):
        for field in fields(theirs.model):
            a, b = getattr(ours.model, field.name), getattr(theirs.model, field.name)
            if isinstance(a, np.ndarray):
                assert np.allclose(a, b, rtol=1e-5, atol=1e-5), field.name
            else:
                assert a == pytest.approx(b) if isinstance(a, float) else a == b


@pytest.mark.parametrize("channel", [central, joint])
def test_the_models_predict(channel: Any) -> None:
    for name in ("logistic", "naive-bayes", "linear-regression"):
        outcome, plain = channel(name, PROMISE)[-1], program_named(name)
        batch = Batch(outcome.schema, columns_of(name), ROWS)
        vectors = plain.encoder(outcome.schema).encode(batch).X
        if name == "linear-regression":
            residual = outcome.model.predict(vectors) - HEIGHT
            assert np.mean(residual**2) < 0.3 * HEIGHT.var()
        else:
            assert np.mean(outcome.model.predict(vectors) == SIDE) > 0.93


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("windows", [1, 2, 12, 52])
def test_the_search_is_of_the_first_window_alone(name: str, windows: int) -> None:
    keys = [SigningKey.generate() for _ in range(3)]
    schema = schema_of(name)
    study = local_study(program_named(name), 2, schema, PROMISE, keys, windows=windows)
    plan = study.plan()
    assert plan.windows == windows
    for stage in plan.stages:
        searches = any(block.name in BLOCKS for block in stage.query.blocks)
        assert searches == (stage.window == 1 and stage in plan.stages[: len(BLOCKS)])
    for window in range(1, windows + 1):
        levels = study.levels(window)
        whole = cost(levels.planned_releases(), PROMISE.delta, PROMISE.adjacency).epsilon
        assert 0.99 < whole <= 1.0
    large = msgspec.structs.replace(study.take_part, records=10**10, maximum=1)
    msgspec.structs.replace(study, take_part=large).check_capacity()


@pytest.mark.parametrize("channel", ["one place", "federation"])
def test_a_first_window_with_next_to_no_records_is_remarked_ever_after(channel: str) -> None:
    """Nothing is known then, all later records are seen under a guess, and every model says so."""
    name, schema = "logistic", schema_of("logistic")
    program = ranged(program_named(name), schema)
    none = ArrayRecords(np.array([[290.0, 3.0]]), np.zeros(1, dtype=np.int64))
    full = parts(program, schema, name, 2)
    if channel == "one place":
        seeded = Central(randomness=SeededRandomness(1))
        outcomes: list[Any] = list(seeded.follow(program, [none, *full], schema, PROMISE))
    else:
        windows = [[none, none], full, full]
        outcomes = list(Federation().follow(program_named(name), windows, schema, PROMISE))
    assert len(outcomes) == 3
    for outcome in outcomes:
        assert outcome.schema.column("kelvin").range_found is False
        assert any("'kelvin'" in remark for remark in outcome.certificate.remarks)
