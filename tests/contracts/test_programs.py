"""The contract of every program. Cases stand in `cases_*.py` beside this file: a list CASES of

    {"name", "program", "schema", "X", "y" (or None), "textbook": model → None, raises if wrong}

where X, y are encoded by program.encoder(schema) already, and `textbook` compares the model of a
run without privacy (ε = ∞) with the textbook algorithm.
"""

from __future__ import annotations

import math
import runpy
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.engines import Threads
from tacit.privacy import Norm, Promise
from tacit.programs.contribute import clipped_sum, record_sum
from tacit.programs.files import from_bytes, to_bytes
from tacit.programs.levels import Levels, block_grid
from tacit.programs.program import Program, Query
from tacit.programs.registry import OWN, installed, program_named
from tacit.programs.settings import plain_settings

Case = dict[str, Any]
FILES = sorted(Path(__file__).parent.glob("cases_*.py"))
CASES: list[Case] = [case for file in FILES for case in runpy.run_path(str(file))["CASES"]]
PROMISES = {"pure": Promise(1.0), "gaussian": Promise(1.0, 1e-6)}


def named(case: Case) -> str:
    return str(case["name"])


def visited(case: Case, promise: Promise, most: int = 6) -> Iterator[tuple[Any, Query]]:
    """States of a noisy run and what is asked in them: the first few rounds."""
    program, source = case["program"], SeededRandomness(1)
    state = program.init(case["schema"], promise)
    levels = Levels.planned(promise, program.plan(state))
    for _ in range(most):
        query = program.query(state)
        if query is None:
            return
        yield state, query
        total = record_sum(program, Encoded(case["X"], case["y"], None), state, query)
        for (_, place), mechanism in zip(query.slices(), levels.charge(query), strict=True):
            total[place] = mechanism.perturb(total[place], source)
        real = np.concatenate(
            [block_grid(block).decode(total[place]) for block, place in query.slices()]
        )
        state = program.reduce(real, state)


def adversarial(case: Case) -> Encoded:
    """Records at and far beyond the ends of what an encoder can give."""
    generator = np.random.default_rng(2)
    width = case["X"].shape[1]
    rows = [
        np.zeros(width),
        np.ones(width),
        -np.ones(width),
        np.where(np.arange(width) % 2, 1e6, -1e6),
        np.full(width, 1e9),
        *generator.normal(0, 100, (20, width)),
        *case["X"][:20],
    ]
    labels = None if case["y"] is None else generator.choice(case["y"], len(rows))
    return Encoded(np.array(rows), labels, None)


@pytest.mark.parametrize("case", CASES, ids=named)
@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_no_record_contributes_more_than_its_bound(case: Case, promise: Promise) -> None:
    batch = adversarial(case)
    for state, query in visited(case, promise):
        for row in range(len(batch.X)):
            label = None if batch.y is None else batch.y[row : row + 1]
            one = Encoded(batch.X[row : row + 1], label, None)
            alone = record_sum(case["program"], one, state, query)
            for block, place in query.slices():
                grid = block_grid(block)
                size = [abs(int(v)) for v in alone[place]]
                limit = block.bound / grid.step
                if block.norm is Norm.L1:
                    assert sum(size) <= limit + Fraction(block.length, 2)
                else:
                    rounding = Fraction(math.isqrt(block.length - 1) + 1, 2)
                    assert sum(v * v for v in size) <= (limit + rounding) ** 2


@pytest.mark.parametrize("case", CASES, ids=named)
def test_sums_are_additive_and_the_fast_path_is_the_slow_one(case: Case) -> None:
    program = case["program"]
    for promise in PROMISES.values():
        for state, query in visited(case, promise):
            whole = Encoded(case["X"], case["y"], None)
            total = record_sum(program, whole, state, query)
            cut = len(case["X"]) // 3
            parts = [
                record_sum(
                    program,
                    Encoded(case["X"][p], None if case["y"] is None else case["y"][p], None),
                    state,
                    query,
                )
                for p in (slice(0, cut), slice(cut, None))
            ]
            assert np.array_equal(parts[0] + parts[1], total)
            slow = clipped_sum(program.map(program.prepare(whole, state), state), query)
            assert np.array_equal(slow, total)
            order = np.random.default_rng(3).permutation(len(case["X"]))
            mixed = Encoded(case["X"][order], None if case["y"] is None else case["y"][order], None)
            assert np.array_equal(record_sum(program, mixed, state, query), total)


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
    """After every round: what the federation sends and what model files hold, byte for byte."""
    program = case["program"]
    for promise in (*PROMISES.values(), Promise(math.inf)):
        outcome = run(case, promise, 9)
        states = [state for state, _ in visited(case, promise)] if promise.is_private else []
        start = program.init(case["schema"], promise)
        for state in (start, *states, outcome.state):
            assert type(state) in program.states
            copy = from_bytes(program.states, to_bytes(state))
            assert type(copy) is type(state)
            assert to_bytes(copy) == to_bytes(state)
            query = program.query(state)
            assert program.query(copy) == query  # also of what the bytes do not show
        assert type(outcome.model) in program.models
        written = to_bytes(outcome.model)
        assert to_bytes(from_bytes(program.models, written)) == written
        again = program.result(from_bytes(program.states, to_bytes(outcome.state)))
        assert to_bytes(again) == written


@pytest.mark.parametrize("case", CASES, ids=named)
def test_settings_and_version_name_the_program(case: Case) -> None:
    program = case["program"]
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
        assert program.name in {"histogram", "quantiles", "itemsets", "ranges"}
        return
    assert len(said.values) == 7
    assert said.values.ndim == (2 if said.kind == "components" else 1)
    if said.scores is not None:
        assert len(said.scores) == 7
        best = said.scores.argmin if program.name == "k-means" else said.scores.argmax
        assert np.array_equal(best(axis=1), said.values)


def test_there_are_cases() -> None:
    assert CASES
    published = "gaussian mixture as published"  # asks for delta > 0: tests/programs/test_files.py
    summed = {name for name, kind in installed().items() if issubclass(kind, Program)} & OWN.keys()
    assert {case["program"].name for case in CASES} >= summed - {published}
