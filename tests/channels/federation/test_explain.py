"""What a study says of itself: its noise is the noise that is drawn, its estimate repeatable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.channels.federation import rehearsal
from tacit.channels.federation.explain import explain
from tacit.channels.federation.rehearsal import rehearsed
from tacit.channels.studies.study import (
    Chosen,
    Deadlines,
    Noise,
    Online,
    Party,
    Service,
    Study,
    TakePart,
    planned_rounds,
)
from tacit.crypto.prg import SeededRandomness
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError
from tacit.privacy.promise import Promise
from tacit.programs.program import Program
from tacit.programs.registry import installed, program_named

AGE = Column(name="age", type="integer", bounds=(0, 120))
SEX = Column(name="sex", type="category", categories=("f", "m"))
OLD = Column(name="old", type="boolean")
ILL = Column(name="ill", type="category", role="label", categories=("no", "yes"))
COST = Column(name="cost", type="number", role="label", bounds=(0, 1000))
GROUP = Column(name="group", type="integer", edges=(1, 2, 4))
PERSON = Column(name="id", type="text", role="person")

PROMISE = Promise(1.0, 1e-6)
PLAIN = Schema(columns=(AGE, SEX, OLD, ILL, PERSON))
SCHEMAS = {
    "linear-regression": Schema(columns=(AGE, SEX, COST)),
    "frequent-itemsets": Schema(columns=(SEX, OLD, GROUP)),
}


def study(
    program: str = "logistic",
    promise: Promise = PROMISE,
    servers: int = 3,
    honest: int | None = None,
    windows: int | None = None,
    records: int = 1000,
    holders_per_person: int | None = None,
) -> Study:
    schema, chosen = SCHEMAS.get(program, PLAIN), program_named(program)
    return Study(
        name="made-up",
        question="Who is ill?",
        rounds=planned_rounds(chosen, schema, promise, windows),
        chosen=Chosen(name=program, version=chosen.version),
        promise=promise,
        take_part=TakePart(minimum=2, maximum=3, records=records),
        deadlines=Deadlines(gather=60, round=60),
        servers=tuple(
            Service(name=f"s{i}", address="http://localhost:1", key=f"{i + 1:064x}")
            for i in range(servers)
        ),
        aggregator=Service(name="sum", address="http://localhost:1", key=f"{100:064x}"),
        holders=tuple(Party(name=f"h{i}", key=f"{200 + i:064x}") for i in range(3)),
        schema=schema,
        noise=Noise() if honest is None else Noise(policy="honest", honest=honest),
        online=None if windows is None else Online(windows=windows),
        holders_per_person=holders_per_person,
    )


@pytest.mark.parametrize(
    ("honest", "factor"), [(None, math.sqrt(4)), (2, math.sqrt(4)), (4, math.sqrt(4 / 3))]
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_is_as_large_as_said(honest: int | None, factor: float, delta: float) -> None:
    made = study(servers=4, honest=honest, promise=Promise(1.0, delta))
    said = explain(made, quick=True)
    assert said.factor == pytest.approx(factor)
    (noise,) = said.noise
    assert noise.result == pytest.approx(factor * noise.central)
    mechanism = made.levels().mechanism(made.plan().stage(1).query.blocks[0])
    total = np.zeros(20_000, dtype=np.int64)
    for server in range(4):
        total = mechanism.perturb(total, SeededRandomness(server))
        if server == 0:
            one = mechanism.grid.decode(total).std()
    # The standard deviation of 20,000 draws is wrong by 2 % at most here, from these seeds.
    assert one == pytest.approx(noise.one_part, rel=0.03)
    assert mechanism.grid.decode(total).std() == pytest.approx(noise.result, rel=0.03)


def test_everyone_is_told_what_they_see() -> None:
    said = explain(study(honest=3), quick=True)
    text = "\n".join(said.lines)
    assert list(said.sees) == [
        "each holder",
        "server s0",
        "server s1",
        "server s2",
        "aggregator sum",
        "everyone",
    ]
    assert "3 of the 3 servers" in said.trust
    assert "1/2 of its variance" in text
    assert "ε = 1, δ = 1e-06 per record" in said.cost
    assert "60 seconds" in text
    assert said.loss is None
    assert "one of the 3 servers" in explain(study(), quick=True).trust


def test_what_can_be_found_is_said_with_the_noise_of_all_servers() -> None:
    few, many = (explain(study(), records, quick=True).expected for records in (1, 1000))
    assert few is not None
    assert many is not None
    assert few.useless
    assert not many.useless
    trusting = explain(study(honest=3), 1, quick=True)
    assert trusting.expected is not None
    assert trusting.expected.kept > few.kept
    assert str(few) in explain(study(), 1, quick=True).lines
    assert explain(study(promise=Promise(math.inf)), quick=True).expected is None


def test_no_promise_is_called_so() -> None:
    said = explain(study(promise=Promise(math.inf)), quick=True)
    assert said.promise.startswith("NO PROMISE")
    assert said.noise == []


def test_windows_have_the_noise_of_a_window() -> None:
    # One round in each of many windows, not ten.
    online = explain(study("k-means", windows=52), quick=True)
    whole = explain(study("k-means"), quick=True)
    assert online.noise[0].result < whole.noise[0].result
    assert "in each of 52 windows" in online.cost
    assert "52 windows of new records: 1 rounds each, 52 in all." in online.schedule[0]
    assert "At most 10 rounds" in whole.schedule[0]
    assert rehearsed(study(windows=5), 40).records == 40


SUMMED = sorted(name for name, kind in installed().items() if issubclass(kind, Program))


@pytest.mark.parametrize("name", SUMMED)
def test_every_program_can_be_rehearsed(name: str) -> None:
    loss = rehearsed(study(name), 60)
    assert (loss.holders, loss.records) == (3, 60)
    assert math.isfinite(loss.without_noise)


@pytest.mark.parametrize(("unit", "many"), [("person", 1), ("person", 3), ("holder", None)])
def test_every_unit_can_be_rehearsed(unit: Any, many: int | None) -> None:
    made = study("naive-bayes", Promise(1.0, 1e-6, unit), holders_per_person=many)
    assert rehearsed(made, 60).measure == "accuracy"


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_person_with_several_holders_is_said_and_covered(delta: float) -> None:
    promise = Promise(1.0, delta, "person")  # type: ignore[arg-type]
    one, three = (
        explain(study("histogram", promise, holders_per_person=k), quick=True) for k in (1, 3)
    )
    assert "who is with at most one holder, were not there" in one.promise
    assert "who is with at most 3 holders, were not there" in three.promise
    assert "√3 · 3, for the 3 holders that a person may be with" in three.noise_words
    assert three.factor == pytest.approx(3 * one.factor)
    for few, many in zip(one.noise, three.noise, strict=True):
        assert many.bound == 3 * few.bound
        assert many.result == pytest.approx(3 * few.result, rel=1e-3)
        assert many.central == pytest.approx(few.central, rel=1e-3)
        assert many.result == pytest.approx(three.factor * many.central)


def test_the_estimate_is_repeatable_and_falls_with_more_records() -> None:
    seen: list[tuple[int, int]] = []
    few = rehearsed(study(), 100, lambda done, planned: seen.append((done, planned)))
    assert few == rehearsed(study(), 100)
    assert seen[-1] == (110, 110)
    many = rehearsed(study(records=20_000))
    assert many.records == 2_000  # a tenth of what is allowed
    assert many.without_noise - many.with_noise < 0.02 < few.without_noise - few.with_noise
    assert "Estimate, on made-up data" in str(many)


def test_what_takes_too_long_is_made_smaller_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "MOST_WORK", 10**5)
    loss = rehearsed(study("naive-bayes", records=10**9), 10**8)
    assert 100 < loss.records < loss.asked
    assert "not 100,000,000" in str(loss)


@pytest.mark.parametrize("records", [0, 1001])
def test_more_records_than_allowed_are_not_rehearsed(records: int) -> None:
    with pytest.raises(UsageError, match="1 to 1000"):
        rehearsed(study(), records)
