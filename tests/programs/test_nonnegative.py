"""Contributions that the framework keeps at 0 or above: √2·B under replace in L2, and no program or
state can change that."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.audits.claims import gaussian_mu
from tacit.channels.central import Central
from tacit.channels.federation.server_store import _query, _query_text
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data import Column, Encoded, Schema
from tacit.data.records import ArrayRecords
from tacit.privacy import Norm, Promise
from tacit.privacy.bound import Bound
from tacit.privacy.promise import Unit
from tacit.programs.contribute import holder_sum, person_sum, prepared, record_rows, record_sum
from tacit.programs.histogram import Histogram
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Program, Query, Stage

Reals = NDArray[np.float64]
WIDTH = 3
SCHEMA = Schema(
    columns=tuple(Column(name=f"x{i}", type="number", bounds=(-1, 1)) for i in range(WIDTH))
)
REPLACE = Promise(1.0, 1e-6, adjacency="replace")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Scale:
    varies: ClassVar[tuple[str, ...]] = ("scale",)

    scale: float = 1.0


class Lying(Program[Scale, Scale]):
    """Says of its block that nothing in it is below 0, and gives what a state wants."""

    name = "lying"
    states = (Scale,)
    models = (Scale,)

    def __init__(self, norm: str = "L2") -> None:
        self.norm = norm

    def init(self, schema: Schema, promise: Promise) -> Scale:
        return Scale()

    def plan(self, first: Scale) -> list[Stage]:
        block = Block("b", WIDTH, Norm(self.norm), Fraction(1), Fraction(1, 64), nonnegative=True)
        return [Stage(Query((block,)))]

    def map(self, batch: Encoded, state: Scale, query: Query) -> Reals:
        if batch.X.size and batch.X[0, 0] == 0.125:
            raise ValueError("a record that cannot be mapped")
        return np.asarray(batch.X * state.scale)

    def reduce(self, total: Reals, state: Scale) -> Scale:
        return state

    def result(self, state: Scale) -> Scale:
        return state


number = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-2, 2) | st.just(0.125)
rows_of = st.lists(st.lists(number, min_size=WIDTH, max_size=WIDTH), min_size=2, max_size=6)


@given(rows=rows_of, scale=number, norm=st.sampled_from(["L1", "L2"]))
def test_no_pair_of_units_is_further_apart_than_the_bound(
    rows: list[list[float]], scale: float, norm: str
) -> None:
    """Whatever records and state: in Python's whole numbers, of records, persons and holders."""
    program, state = Lying(norm), Scale(scale)
    (query,) = (stage.query for stage in program.plan(Scale()))
    (block,) = query.blocks
    X = np.array(rows)
    people = np.arange(len(X)) % 2
    ready = prepared(program, Encoded(X, None, people), Scale())
    units = record_rows(program, ready, state, query).tolist()
    ones = [
        prepared(program, Encoded(X[people == k], None, people[people == k]), Scale())
        for k in (0, 1)
    ]
    units += [person_sum(program, [one], state, query).tolist() for one in ones]
    units += [holder_sum(program, [one], state, query).tolist() for one in ones]
    assert min(itertools.chain(*units)) >= 0
    sums = record_sum(program, ready, state, query)
    assert sums.tolist() == [sum(c) for c in zip(*units[: len(X)], strict=True)]
    for one, other in itertools.combinations(units, 2):
        moved = [a - b for a, b in zip(one, other, strict=True)]
        if norm == "L2":
            assert sum(m * m for m in moved) <= 2 * block.limit**2
        assert sum(map(abs, moved)) <= (2 if norm == "L1" else 2 * WIDTH) * block.limit


def test_the_bound_under_replace() -> None:
    for norm, nonnegative, square in (
        ("L2", True, 2), ("L2", False, 4), ("L1", True, 4), ("L1", False, 4),
    ):  # fmt: skip
        value = Bound.of_contribution(norm, Fraction(3), "replace", nonnegative).value
        assert square * 9 <= value**2 < square * 9 * (1 + 2.0**-38)
        alone = Bound.of_contribution(norm, Fraction(3), "add-remove", nonnegative).value
        assert alone == 3


def test_a_histogram_under_replace_has_the_noise_that_two_cells_need() -> None:
    """Someone moves from one cell to another: by √2. The noise is that for μ of the promise, which
    is found here from its definition, and no more."""
    schema = Schema(columns=(Column(name="g", type="category", categories=("a", "b")),))
    program = Histogram()
    first = program.init(schema, REPLACE)
    query = program.plan(first)[0].query
    levels = Levels.planned(REPLACE, Plan(tuple(program.plan(first))))
    (mechanism,) = (levels.mechanism(block) for block in query.blocks)
    sums = [
        record_sum(program, prepared(program, Encoded(X, None, None), first), first, query)
        for X in np.eye(2)[:, None, :]
    ]
    moved = np.linalg.norm(np.subtract(*sums)) * float(mechanism.grid.step)
    assert moved == pytest.approx(math.sqrt(2))
    assert moved / float(mechanism.scale) == pytest.approx(gaussian_mu(REPLACE), rel=1e-3)
    assert moved / float(mechanism.scale) <= gaussian_mu(REPLACE)


@pytest.mark.parametrize("unit", list(Unit))
def test_certificates_hold_in_the_second_computation(unit: Unit) -> None:
    schema = Schema(columns=(Column(name="g", type="category", categories=("a", "b")),))
    X, person = np.eye(2)[np.arange(40) % 2], np.arange(40) // 2
    promise = replace(REPLACE, unit=unit)
    channel = Central(randomness=SeededRandomness(1))
    certificate = channel.run(
        Histogram(), ArrayRecords(X, None, person), schema, promise
    ).certificate
    (release,) = certificate.releases
    assert float(release.bound.value) == pytest.approx(math.sqrt(2))
    signed = certificate.signed(SigningKey.generate())
    assert signed.verify().epsilon <= promise.epsilon * (1 + 1e-6)


def test_a_server_keeps_what_a_block_is() -> None:
    block = Block("b", 3, Norm.L2, Fraction(1), nonnegative=True)
    for shift, nonnegative in itertools.product((0, 4), (False, True)):
        query = Query((replace(block, shift=shift, nonnegative=nonnegative),))
        assert _query(_query_text(query)) == query
    old: Any = '[["b", 3, "L2", "1", "1/16777216", "1"]]'
    assert _query(old) == Query((replace(block, nonnegative=False),))
