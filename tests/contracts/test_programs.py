"""The contract of every program. Cases stand in `cases_*.py` beside this file: a list CASES of

    {"name", "program", "schema", "X", "y" (or None), "textbook": model → None, raises if wrong}

where X, y are encoded by program.encoder(schema) already, and `textbook` compares the model of a
run without privacy (ε = ∞) with the textbook algorithm.
"""

from __future__ import annotations

import math
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data import Schema
from tacit.data.records import ArrayRecords
from tacit.engines import Threads
from tacit.privacy import Promise
from tacit.programs.contract import ProgramContract
from tacit.programs.files import from_bytes, to_bytes
from tacit.programs.mixture_published import PublishedMixture
from tacit.programs.program import Program
from tacit.programs.ranges import Ranges
from tacit.programs.registry import OWN, installed, program_named
from tacit.programs.settings import plain_settings
from tacit.programs.states import state_bytes, state_from

Case = dict[str, Any]
FILES = sorted(Path(__file__).parent.glob("cases_*.py"))
CASES: list[Case] = [case for file in FILES for case in runpy.run_path(str(file))["CASES"]]
PROMISES = {"pure": Promise(1.0), "gaussian": Promise(1.0, 1e-6)}
invented = runpy.run_path(str(Path(__file__).parent / "hostile_cases.py"))["invented"]


def published(case: Case) -> Case:
    """The mixture as published keeps the contract too; it asks for delta > 0."""
    program = PublishedMixture(2, "diag", rounds=3)
    promises = (PROMISES["gaussian"],)
    return {**case, "name": program.name, "program": program, "promises": promises}


LABEL = {"type": "category", "role": "label"}


def wide(case: Case, columns: int = 24) -> Case:
    """So many columns that a product's order of adding is not that of the coordinates."""
    named = {f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(columns)}
    label = case["schema"].label
    labels = {} if label is None else {"y": {**LABEL, "categories": list(label.categories)}}
    schema = Schema.from_dict({"columns": {**named, **labels}})
    X = np.random.default_rng(5).uniform(-1, 1, (len(case["X"]), columns))
    return {**case, "name": f"wide {case['name']}", "schema": schema, "X": X}


def in_windows(case: Case) -> Case:
    """The same contract where records arrive in windows."""
    program = case["program"].windowed(2)
    return {**case, "name": f"{case['name']} in windows", "program": program}


CONTRACT_CASES = [
    *CASES,
    # Ranges are found in the first window, before what they serve (`Ranged`); not by themselves.
    *(in_windows(case) for case in CASES if not isinstance(case["program"], Ranges)),
    *(wide(case) for case in CASES if case["name"] in {"k-means", "logistic multinomial"}),
    *(published(case) for case in CASES if case["name"] == "k-means"),
]


def named(case: Case) -> str:
    return str(case["name"])


def contract_of(case: Case, **changes: Any) -> ProgramContract:
    """The published contract (tacit.programs.contract), for one case."""
    made = {name: case[name] for name in ("program", "schema", "X", "y")}
    made["plain"] = case.get("plain", False)
    tried = lambda self, first, generator: invented(first, generator)  # noqa: E731
    kind = type("Contract", (ProgramContract,), {**made, "invented": tried, **changes})
    return cast("ProgramContract", kind())


CHECKS = [name for name in dir(ProgramContract) if name.startswith("test_")]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", CONTRACT_CASES, ids=named)
def test_the_contract_of_every_program(case: Case, check: str) -> None:
    promises = case.get("promises", PROMISES.values())
    # What more columns add is the order of adding; the same states are tried on few of them.
    states = 30 if named(case).startswith("wide") or named(case).endswith("windows") else 120
    getattr(contract_of(case, promises=tuple(promises), states=states), check)()


@pytest.mark.parametrize("case", CONTRACT_CASES, ids=named)
def test_replacing_a_record_changes_the_noise_alone(case: Case) -> None:
    """The same states, records and layouts where adjacency is replace."""
    replaced = [replace(p, adjacency="replace") for p in case.get("promises", PROMISES.values())]
    contract_of(case, promises=replaced, states=20).test_hostile_states_are_harmless()


@pytest.mark.long
@pytest.mark.parametrize("case", CONTRACT_CASES, ids=named)
def test_many_more_hostile_states(case: Case) -> None:
    promises = tuple(case.get("promises", PROMISES.values()))
    contract = contract_of(case, promises=promises, states=1_000, seed=2)
    contract.test_hostile_states_are_harmless()
    contract.test_persons_and_holders_are_within_the_bound()
    contract.test_nothing_is_remembered_between_states()


def run(case: Case, promise: Promise, seed: int, **options: Any) -> Any:
    channel = Central(randomness=SeededRandomness(seed), **options)
    records = ArrayRecords(case["X"], case["y"], rows=97)
    return channel.run(case["program"], records, case["schema"], promise)


@pytest.mark.parametrize("case", CASES, ids=named)
@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_a_run_keeps_its_plan_and_its_certificate(case: Case, promise: Promise) -> None:
    outcome = run(case, promise, 5)
    signed = outcome.certificate.signed(SigningKey.generate())
    verdict = signed.verify()
    assert verdict.epsilon <= promise.epsilon * (1 + 1e-6)
    assert any("seed" in text for text in verdict.warnings)
    again = run(case, promise, 5, engine=Threads(2))
    assert to_bytes(outcome.state) == to_bytes(again.state)  # same seed, any engine, same result
    assert to_bytes(outcome.state) != to_bytes(run(case, promise, 6).state)
    copy = from_bytes(type(outcome.state), to_bytes(outcome.state))
    assert to_bytes(copy) == to_bytes(outcome.state)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_without_privacy_it_is_the_textbook_algorithm(case: Case) -> None:
    outcome = run(case, Promise(math.inf), 7)
    assert outcome.certificate.releases == ()
    case["textbook"](outcome.model)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_states_and_models_survive_as_bytes(case: Case) -> None:
    """What the federation sends and what model files hold, byte for byte."""
    program = case["program"]
    for promise in (*PROMISES.values(), Promise(math.inf)):
        outcome = run(case, promise, 9)
        first = program.init(case["schema"], promise)
        for state in (first, outcome.state):
            assert type(state) in program.states
            copy = from_bytes(program.states, to_bytes(state))
            assert type(copy) is type(state)
            assert to_bytes(copy) == to_bytes(state)
            # What does not travel is the same for everyone.
            assert to_bytes(state_from(state_bytes(state), first)) == to_bytes(state)
        assert type(outcome.model) in program.models
        written = to_bytes(outcome.model)
        assert to_bytes(from_bytes(program.models, written)) == written
        again = program.result(state_from(state_bytes(outcome.state), first))
        assert to_bytes(again) == written


@pytest.mark.parametrize("case", CASES, ids=named)
def test_settings_and_version_name_the_program(case: Case) -> None:
    program = getattr(case["program"], "program", case["program"])  # a Ranged is named by its own
    if program.name not in OWN:
        assert program.name == "ranges"  # reads plain numbers: no study can ask for it
        return
    copy = program_named(program.name, program.version, plain_settings(program))
    assert type(copy) is type(program)
    assert copy.settings() == program.settings()


@pytest.mark.parametrize("case", CASES, ids=named)
def test_what_is_said_of_records_has_one_row_each(case: Case) -> None:
    program = case["program"]
    model = run(case, PROMISES["gaussian"], 11).model
    said = program.predict(model, case["X"][:7])
    if said is None:
        assert program.name in {"histogram", "quantiles", "frequent-itemsets", "ranges"}
        return
    assert len(said.values) == 7
    assert said.values.ndim == (2 if said.kind == "components" else 1)
    if said.scores is not None:
        assert len(said.scores) == 7
        best = said.scores.argmin if program.name == "k-means" else said.scores.argmax
        assert np.array_equal(best(axis=1), said.values)


def test_there_are_cases() -> None:
    assert CASES
    summed = {name for name, kind in installed().items() if issubclass(kind, Program)} & OWN.keys()
    assert {case["program"].name for case in CONTRACT_CASES} >= summed
