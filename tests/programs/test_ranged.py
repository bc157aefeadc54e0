"""A program that finds its ranges first: one plan, one promise, the same model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data import Schema
from tacit.data.batch import Batch
from tacit.data.encode import Encoder
from tacit.data.records import ArrayRecords, TableRecords
from tacit.errors import SchemaError
from tacit.privacy import Promise
from tacit.privacy.accounting import cost
from tacit.programs.levels import Levels
from tacit.programs.model_file import load_model, save_model
from tacit.programs.program import Plan, Program
from tacit.programs.ranged import PART, Ranged, ranged
from tacit.programs.registry import program_named
from tacit.programs.states import state_bytes, state_from

ROWS = 5_000
PROMISE = Promise(1.0, 1e-6)
generator = np.random.default_rng(2)
KELVIN = generator.normal(290, 8, ROWS)
WAIT = np.rint(generator.exponential(30, ROWS))
PLACE = generator.integers(0, 2, ROWS).astype(np.int32)
HEIGHT = 3.0 * (KELVIN - 290) - WAIT + 20 * PLACE + generator.normal(0, 5, ROWS)

PRIVATE = {"type": "number", "bounds": "private"}
FEATURES: dict[str, Any] = {
    "kelvin": PRIVATE,
    "wait": {"type": "integer", "bounds": "private"},
    "place": {"type": "category", "categories": ["north", "south"]},
}
LABELS: dict[str, Any] = {
    "linear-regression": {**PRIVATE, "role": "label"},
    "logistic": {"type": "boolean", "role": "label"},
    "naive-bayes": {"type": "boolean", "role": "label"},
}
NAMES = [
    *LABELS,
    "k-means",
    "pca",
    "gaussian-mixture",
    "quantiles",
    "histogram",
]


def schema_of(name: str) -> Schema:
    label = {"height": LABELS[name]} if name in LABELS else {}
    return Schema.from_dict({"columns": {**FEATURES, **label}})


def columns_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"kelvin": KELVIN, "wait": WAIT, "place": PLACE}
    if name in LABELS:
        high = (HEIGHT > 0).astype(np.int32)
        found["height"] = HEIGHT if name == "linear-regression" else high
    return found


def records(program: Program[Any, Any], schema: Schema, columns: dict[str, Any]) -> ArrayRecords:
    return ArrayRecords(*program.encoder(schema).encode(Batch(schema, columns, ROWS)))


def run(name: str, promise: Promise = PROMISE) -> Any:
    schema = schema_of(name)
    program = ranged(program_named(name), schema)
    channel = Central(randomness=SeededRandomness(1))
    return channel.run(program, records(program, schema, columns_of(name)), schema, promise)


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_that_was_learned_is_complete_and_covers_the_records(name: str) -> None:
    outcome = run(name)
    assert not outcome.schema.private
    for column, values in (("kelvin", KELVIN), ("wait", WAIT)):
        low, high = outcome.schema.column(column).bounds
        assert np.mean((values >= low) & (values <= high)) > 0.95
        assert high - low < 6 * np.ptp(np.quantile(values, (0.005, 0.995)))
        assert outcome.schema.column(column).range_found is True
    assert float(outcome.schema.column("wait").bounds[1]).is_integer()


@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_that_of_the_program_under_the_learned_schema(name: str) -> None:
    """Without noise: the same model as if these bounds had been stated."""
    outcome = run(name, Promise(math.inf))
    plain = program_named(name)
    encoded = records(plain, outcome.schema, columns_of(name))
    stated = Central().run(plain, encoded, outcome.schema, Promise(math.inf))
    for field in type(stated.model).__dataclass_fields__:
        ours, theirs = getattr(outcome.model, field), getattr(stated.model, field)
        if isinstance(ours, np.ndarray):
            assert np.allclose(ours, theirs, rtol=1e-6, atol=1e-6), field
        else:
            assert ours == pytest.approx(theirs) if isinstance(ours, float) else ours == theirs


@pytest.mark.parametrize("delta", [1e-6, 0.0], ids=["gaussian", "pure"])
@pytest.mark.parametrize("name", ["logistic", "linear-regression", "k-means"])
def test_one_plan_costs_the_promise_and_nothing_is_added(name: str, delta: float) -> None:
    promise, schema = Promise(1.0, delta), schema_of(name)
    inner, program = program_named(name), ranged(program_named(name), schema)
    plan = Plan(tuple(program.plan(program.init(schema, promise))))
    levels = Levels.planned(promise, plan)
    whole = cost(levels.planned_releases(), promise.delta, promise.adjacency).epsilon
    assert 0.999 <= whole <= 1.0
    blank = schema.with_ranges({c.name: (-1.0, 1.0, False) for c in schema.private})
    alone = Levels.planned(promise, Plan(tuple(inner.plan(inner.init(blank, promise)))))
    more = {
        levels.mechanism(block).scale / alone.mechanism(block).scale
        for stage in plan.stages[2:]
        for block in stage.query.blocks
        if block.name in alone.multipliers
    }
    left = 1 - float(PART)
    for ratio in more:  # not 9 % of ε and δ apart from them, and added
        assert float(ratio) == pytest.approx(1 / (math.sqrt(left) if delta else left), rel=0.02)


def test_public_bounds_need_no_search() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "number", "bounds": [0, 1]}}})
    program = program_named("pca")
    assert ranged(program, schema) is program


def test_a_state_travels_flat_and_comes_back() -> None:
    schema = schema_of("logistic")
    program = Ranged(program_named("logistic"))
    outcome = run("logistic")
    first = program.init(schema, PROMISE)
    copy = state_from(state_bytes(outcome.state), first)
    assert state_bytes(copy) == state_bytes(outcome.state)
    assert program.learned_schema(schema, copy) == outcome.schema
    again = program_named("logistic")
    assert type(Ranged(again).init(schema, PROMISE)) is type(first)


def test_the_certificate_names_the_agreed_schema_and_the_model_file_the_learned_one(
    tmp_path: Any,
) -> None:
    outcome = run("linear-regression")
    assert outcome.certificate.schema_digest == schema_of("linear-regression").digest
    assert outcome.certificate.signed(SigningKey.generate()).verify().epsilon <= 1.0
    program = program_named("linear-regression")
    save_model(tmp_path / "model", outcome.model, program, outcome.schema)
    saved = load_model(tmp_path / "model")
    batch = Batch(saved.schema, columns_of("linear-regression"), ROWS)
    said = saved.predict(saved.encoder.encode(batch).X)
    assert said is not None
    assert np.mean((said.values - HEIGHT) ** 2) < 0.2 * HEIGHT.var()


def test_a_table_is_read_with_private_bounds(tmp_path: Any) -> None:
    """Nothing is clipped on the way: there is nothing to clip to yet."""
    path = tmp_path / "table.csv"
    path.write_text("x\n" + "\n".join(f"{v:.3f}" for v in KELVIN) + "\n")
    schema = Schema.from_dict({"columns": {"x": PRIVATE}})
    program = ranged(program_named("quantiles"), schema)
    rows = TableRecords(str(path), program.encoder(schema))
    outcome = Central(randomness=SeededRandomness(1)).run(program, rows, schema, PROMISE)
    assert outcome.model.values[0, 1] == pytest.approx(290, abs=1.0)


def test_what_lies_outside_a_range_counts_as_its_end_in_every_round() -> None:
    """As the learned schema's encoder has it when the model speaks of it."""
    outcome, schema = run("naive-bayes"), schema_of("naive-bayes")
    program = Ranged(program_named("naive-bayes"))
    low, high = outcome.schema.column("kelvin").bounds
    far, near = (
        {**columns_of("naive-bayes"), "kelvin": np.where(PLACE, up, down)}
        for up, down in ((high + 1e6, low - 1e6), (high, low))
    )
    plain = [program.encoder(schema).encode(Batch(schema, c, ROWS)) for c in (far, near)]
    seen = [program.seen(batch, outcome.state).X for batch in plain]
    assert np.array_equal(seen[0], seen[1])
    encoder = program_named("naive-bayes").encoder(outcome.schema)
    told = encoder.encode(Batch(outcome.schema, near, ROWS)).X
    assert np.allclose(seen[0], told, atol=1e-12)


def test_missing_values_are_no_part_of_a_range() -> None:
    schema = Schema.from_dict({"columns": {"x": {**PRIVATE, "when_missing": "category"}}})
    program = ranged(program_named("pca"), schema)
    values = np.where(np.arange(ROWS) % 3, KELVIN, np.nan)
    data = ArrayRecords(*program.encoder(schema).encode(Batch(schema, {"x": values}, ROWS)))
    outcome = Central(randomness=SeededRandomness(1)).run(program, data, schema, PROMISE)
    low, _ = outcome.schema.column("x").bounds
    assert low > 200  # zeros would have drawn it down


def test_where_bounds_must_be_public_this_is_said() -> None:
    schema = Schema.from_dict({"columns": {"x": PRIVATE}})
    with pytest.raises(SchemaError, match="public knowledge"):
        Encoder(schema)
    with pytest.raises(SchemaError, match="edges"):
        Ranged(program_named("frequent-itemsets"))
    with pytest.raises(SchemaError, match="edges"):
        Schema.from_dict({"columns": {"x": {**PRIVATE, "edges": [1, 2]}}})
