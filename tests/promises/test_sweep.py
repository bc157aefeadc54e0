"""Cells that were accepted are run for real: data, channel, noise, certificate.

The certificate must verify within the promise and be of the rules that the map says; and no
neighbour of the data may move a sum, in any round of the run, further than the certificate says.
A few cells of every program by default; all of them with `-m long`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tacit.channels.central import Central
from tacit.channels.consortium.local import averaged
from tacit.channels.federation.local import Federation
from tacit.channels.selection import Selection
from tacit.crypto.signing import SigningKey
from tacit.data.batch import Batch
from tacit.data.encode import Encoded, Encoder
from tacit.data.records import ArrayRecords
from tacit.data.schema import Schema
from tacit.data.tables import read_batches
from tacit.engines import Serial
from tacit.privacy.bound import Norm
from tacit.privacy.certificate import Certificate
from tacit.privacy.promise import Adjacency, Unit
from tacit.programs.averaging import Averaged
from tacit.programs.holding import Holding
from tacit.programs.program import Block, Plan, Program, Query
from tacit.programs.reckoned import reckoned
from tacit.programs.sampled import noise_of_samples
from tacit.promises.asking import Accepted, promise_of
from tacit.promises.cells import Cell
from tacit.promises.examples import example_of
from tacit.promises.page import read
from tacit.promises.rules import rules_of

PAGE = read((Path(__file__).parents[2] / "docs" / "promises.md").read_text(encoding="utf-8"))
PERSONS, ROWS = 6, 24


def drawn(encoder: Encoder, schema: Schema, seed: int, rows: int = ROWS) -> Encoded:
    """Records within the schema's bounds, some at their corners; persons have several each."""
    generator = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for column in schema.columns:
        if column.role == "person":
            continue
        if column.type == "category":
            columns[column.name] = generator.choice(column.categories, rows)
        elif column.type == "boolean":
            columns[column.name] = generator.random(rows) < 0.5
        else:
            columns[column.name] = np.clip(generator.normal(0.5, 0.6, rows), 0, 1)
    if schema.person is not None:
        columns["person"] = np.arange(rows) % PERSONS
    return encoder.encode(Batch.concat(list(read_batches(pa.table(columns), schema))))


def without(data: Encoded, keep: Any) -> Encoded:
    return Encoded(*(None if part is None else part[keep] for part in data))  # type: ignore[arg-type]


def neighbour(data: Encoded, other: Encoded, unit: Unit, adjacency: Adjacency) -> Encoded:
    """One unit less, or the same unit with other records."""
    rows = np.arange(len(data.X))
    assert data.person is not None
    mine = {
        Unit.RECORD: rows == 0,
        Unit.PERSON: np.asarray(data.person) == data.person[0],
        Unit.HOLDER: rows >= 0,
    }[unit]
    if adjacency is Adjacency.REPLACE:
        return Encoded(
            *(
                None if a is None else np.where(mine if a.ndim == 1 else mine[:, None], b, a)
                for a, b in zip(data, other, strict=True)
            )  # type: ignore[arg-type]
        )
    return without(data, ~mine)


def as_records(data: Encoded) -> ArrayRecords:
    return ArrayRecords(data.X, data.y, data.person, rows=7)


def recording(program: Program[Any, Any]) -> tuple[Program[Any, Any], list[Any]]:
    """The same program, noting the state of every round."""
    states: list[Any] = []
    kind = type(program)
    reduce: Callable[..., Any] = kind.reduce

    def noted(self: Any, total: Any, state: Any) -> Any:
        states.append(state)
        return reduce(self, total, state)

    noting = type(kind.__name__, (kind,), {"reduce": noted})
    found: Program[Any, Any] = object.__new__(noting)
    found.__dict__.update(program.__dict__)
    return found, states


def check_moves(
    program: Program[Any, Any],
    states: list[Any],
    first: Any,
    certificate: Certificate,
    cell: Cell,
    data: tuple[Encoded, Encoded],
) -> None:
    promise = promise_of(cell)
    plan, many = Plan(tuple(program.plan(first))), certificate.holders_per_person
    bounds = [r for r in certificate.releases if r.mechanism in ("laplace", "gaussian")]
    known = {(r.bound.norm, r.length, r.step): r.bound.value for r in bounds if r.bound}
    for number, state in enumerate(states, start=1):
        query = program.asked(state, plan.stage(number).query)
        assert query is not None
        query = rounded(query, known)
        sums = [
            Holding(program, first, as_records(each), promise, Serial().map_sum).sum(state, query)
            if len(each.X)
            else np.zeros(query.length, dtype=np.int64)
            for each in data
        ]
        for block, place in query.slices():
            moved = many * np.abs(sums[0][place] - sums[1][place]).astype(object)
            size: Any = sum(moved) if block.norm is Norm.L1 else math.sqrt(sum(moved * moved))
            allowed = known[block.norm, block.length, block.sum_grid.step]
            assert size * float(block.sum_grid.step) <= float(allowed) * (1 + 1e-12)


def rounded(query: Query, known: Mapping[tuple[Norm, int, Fraction | None], Any]) -> Query:
    """The same, with each sum rounded at its holder as the certificate says (coarse.md)."""

    def shift(block: Block) -> int:
        return next(
            by for by in range(64) if (block.norm, block.length, block.grid.step * 2**by) in known
        )

    return Query(tuple(replace(block, shift=shift(block)) for block in query.blocks))


def check_certificate(certificate: Certificate, cell: Cell) -> None:
    promise = promise_of(cell)
    assert certificate.promise == promise
    if not certificate.signature:
        certificate = certificate.signed(SigningKey.generate())
    assert certificate.verify().epsilon <= promise.epsilon * (1 + 1e-3)
    answer = Accepted(certificate.releases, certificate.promise_holds)
    assert rules_of(cell, answer) == PAGE[cell]


def run_central(cell: Cell, seed: int) -> None:
    example = example_of(cell.program)
    learner = example.learner
    assert isinstance(learner, Program)
    program, states = recording(learner.windowed(2) if cell.windows else learner)
    schema, promise = example.schema, promise_of(cell)
    encoder = program.encoder(schema)
    data, other = (drawn(encoder, schema, seed + i) for i in (0, 1000))
    options: dict[str, Any] = {}
    if cell.sampling:
        options["sampling"] = Fraction(1, 4)
    if cell.selection:
        options["selection"] = Selection(threshold=1.0, positives=1)
    channel = Central(**options)
    if cell.windows:
        parts = [without(data, slice(i, None, 2)) for i in (0, 1)]
        program.windowed = lambda windows: program  # type: ignore[method-assign]
        *_, last = channel.follow(program, [*map(as_records, parts)], schema, promise)
    else:
        last = channel.run(program, as_records(data), schema, promise)
    check_certificate(last.certificate, cell)
    first = program.init(schema, promise)
    pair = data, neighbour(data, other, cell.unit, cell.adjacency)
    check_moves(program, states, first, last.certificate, cell, pair)


def run_federation(cell: Cell, seed: int) -> None:
    """Of a person with several holders, all of them have the same records of hers."""
    example = example_of(cell.program)
    learner = example.learner
    assert isinstance(learner, Program)
    program, states = recording(learner)
    schema, promise = example.schema, promise_of(cell)
    encoder = program.encoder(schema)
    data, other = (drawn(encoder, schema, seed + i) for i in (0, 1000))
    holders = [as_records(data)] * max(1, cell.holders) + [as_records(other)]
    honest = 3 if cell.channel == "federation, honest" else None
    persons = cell.holders if cell.unit is Unit.PERSON else None
    rate = Fraction(1, 4) if cell.sampling else Fraction(1)
    federation = Federation(
        3, honest, holders_per_person=persons, sampling=float(rate) if rate < 1 else None
    )
    outcome = federation.run(program, holders, schema, promise)
    check_certificate(outcome.certificate, cell)
    factor = math.sqrt(3 / (honest - 1 if honest else 1)) * cell.holders
    plan = Plan(tuple(program.plan(program.init(schema, promise))))
    first = program.init(schema, reckoned(promise, factor * noise_of_samples(promise, plan, rate)))
    pair = data, neighbour(data, other, cell.unit, cell.adjacency)
    check_moves(program, states, first, outcome.certificate, cell, pair)


def run_consortium(cell: Cell, seed: int) -> None:
    example = example_of(cell.program)
    program = example.learner
    assert isinstance(program, Averaged)
    encoder = program.encoder(example.bare)
    parties = [drawn(encoder, example.bare, seed + i) for i in range(3)]
    promise = promise_of(cell)
    outcome = averaged(
        program, [as_records(p) for p in parties], example.bare, promise, 10, colluding=1
    )
    check_certificate(outcome.certificate, cell)
    (release,) = outcome.certificate.releases
    other = drawn(encoder, example.bare, seed + 1000)
    moved = program.train(parties[0], example.bare) - program.train(
        neighbour(replace_person(parties[0]), replace_person(other), cell.unit, Adjacency.REPLACE),
        example.bare,
    )
    assert release.bound is not None
    norm = np.abs(moved).sum() if release.mechanism == "laplace" else np.linalg.norm(moved)
    assert norm <= float(release.bound.value)


def replace_person(data: Encoded) -> Encoded:
    return data._replace(person=np.arange(len(data.X)))


RUNS = {
    "central": run_central,
    "federation": run_federation,
    "federation, honest": run_federation,
    "consortium": run_consortium,
}


def accepted() -> list[Cell]:
    return [
        cell
        for cell, answer in PAGE.items()
        if isinstance(answer, tuple)
        and cell.kind != "none"
        and cell.channel in RUNS
        and not (cell.windows and cell.channel != "central")  # servers: tests/faults, brute force
    ]


def few() -> list[Cell]:
    """For each program and channel two cells, others for each."""
    chosen: list[Cell] = []
    for key in sorted({(c.channel, c.program) for c in accepted()}):
        own = [c for c in accepted() if (c.channel, c.program) == key]
        chosen += random.Random(repr(key)).sample(own, min(2, len(own)))
    return chosen


def named(cell: Cell) -> str:
    return " ".join(
        str(v) for v in (cell.channel, cell.program, cell.unit, cell.adjacency, cell.kind)
    )


@pytest.mark.parametrize("cell", few(), ids=named)
def test_a_real_run_keeps_its_promise(cell: Cell) -> None:
    RUNS[cell.channel](cell, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("cell", accepted(), ids=named)
def test_every_real_run_keeps_its_promise(cell: Cell) -> None:
    for seed in (1, 2):
        RUNS[cell.channel](cell, seed)
