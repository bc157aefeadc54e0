"""The published contract catches programs that break it, and the framework what it can mend."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.data import Schema
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.engines import Serial
from tacit.errors import UsageError
from tacit.privacy import Norm, Promise
from tacit.programs.contract import ProgramContract
from tacit.programs.contribute import person_sum, prepared, record_rows
from tacit.programs.contributions import Contribution, Products
from tacit.programs.features import Whole
from tacit.programs.groups import Groups
from tacit.programs.holding import Holding
from tacit.programs.program import Block, Plan, Program, Query, Stage, norm_for

SCHEMA = Schema.from_dict(
    {"columns": {name: {"type": "number", "bounds": [-1, 1]} for name in "abcd"}}
)
X = np.random.default_rng(1).uniform(-1, 1, (40, 4))
Map = Callable[[Encoded, "Sums", Query], Any]


@dataclass(frozen=True)
class Sums:
    varies: ClassVar[tuple[str, ...]] = ("total", "scale")

    norm: str
    total: NDArray[np.float64]
    scale: float = 1.0


class Summed(Program[Sums, NDArray[np.float64]]):
    """The sum of all vectors, three times; `mapped` is what is wrong with it, if anything is."""

    name = "summed"
    states = (Sums,)

    def __init__(self, mapped: Map | None = None) -> None:
        self._mapped = mapped

    def init(self, schema: Schema, promise: Promise) -> Sums:
        return Sums(norm_for(promise).value, np.zeros(4))

    def plan(self, first: Sums) -> Sequence[Stage]:
        block = Block("sum", 4, Norm(first.norm), Fraction(1))
        return [Stage(Query((block,)), 3)]

    def map(self, batch: Encoded, state: Sums, query: Query) -> Any:
        if self._mapped is not None:
            return self._mapped(batch, state, query)
        return batch.X * state.scale

    def reduce(self, total: NDArray[np.float64], state: Sums) -> Sums:
        return replace(state, total=total)

    def result(self, state: Sums) -> NDArray[np.float64]:
        return state.total


class TestSummed(ProgramContract):
    program = Summed()
    schema, X = SCHEMA, X


def contract(program: Program[Any, Any]) -> ProgramContract:
    kind = type("Other", (ProgramContract,), {"program": program, "schema": SCHEMA, "X": X})
    return kind()  # type: ignore[no-any-return]


def centred(batch: Encoded, state: Sums, query: Query) -> Any:
    return batch.X - np.nan_to_num(batch.X).mean(axis=0)


def unrounded(batch: Encoded, state: Sums, query: Query) -> Sequence[Contribution]:
    weights = np.full((len(batch.X), 1), 2.0**20)
    return [Products(weights, Whole(np.nan_to_num(np.clip(batch.X, -1, 1)) + 0.3))]


def understated(batch: Encoded, state: Sums, query: Query) -> Sequence[Contribution]:
    values = Whole.of(batch.X, 2.0**-20, 1.0).values * 2.0**8
    return [Groups(np.zeros(len(values), dtype=np.int64), 1, values, np.zeros(len(values)))]


def telling(batch: Encoded, state: Sums, query: Query) -> Any:
    import warnings

    if (batch.X > 0.9).any():
        warnings.warn("a record is large", stacklevel=1)
    return batch.X


class Remembering(Summed):
    """It keeps what it has seen under the first state that came."""

    name = "remembering"

    def map(self, batch: Encoded, state: Sums, query: Query) -> Any:
        kept = self.__dict__.setdefault("_kept", {})
        key = batch.X.tobytes()
        return kept.setdefault(key, batch.X * state.scale)


FAULTS = {
    "centred by the batch": Summed(centred),
    "features that are not whole": Summed(unrounded),
    "lengths understated": Summed(understated),
    "a warning that tells": Summed(telling),
    "remembering": Remembering(),
}


@pytest.mark.parametrize("program", FAULTS.values(), ids=FAULTS)
def test_faults_are_caught(program: Program[Any, Any]) -> None:
    found = contract(program)
    caught = 0
    for name in dir(found):
        try:
            if name.startswith("test_"):
                getattr(found, name)()
        except AssertionError:
            caught += 1
    assert caught


def failing(batch: Encoded, state: Sums, query: Query) -> Any:
    if (batch.X > 0.9).any():
        raise UsageError("a record is too large")
    return batch.X


def changing(batch: Encoded, state: Sums, query: Query) -> Any:
    batch.X[:] = 0.0
    return batch.X


def exponential(batch: Encoded, state: Sums, query: Query) -> Any:
    return np.exp(batch.X.ravel()).reshape(batch.X.shape) / 30


@pytest.mark.parametrize("mapped", [failing, changing, exponential])
def test_faults_that_the_framework_mends(mapped: Map) -> None:
    """A record that cannot be mapped counts for nothing; batches cannot be changed, and lie in
    memory in one way."""
    found = contract(Summed(mapped))
    found.states = 25  # a batch that fails is mapped record by record, which takes its time
    for name in dir(found):
        if name.startswith("test_"):
            getattr(found, name)()


PURE = Promise(1.0)


def asked(program: Program[Any, Any], promise: Promise = PURE) -> tuple[Any, Query]:
    first = program.init(SCHEMA, promise)
    return first, Plan(tuple(program.plan(first))).stage(1).query


def test_a_record_that_fails_leaves_the_others_alone() -> None:
    program = Summed(failing)
    first, query = asked(program)
    records = np.array([[0.5, 0.0, 0.0, 0.0], [0.95, 0.0, 0.0, 0.0], [0.25, 0.0, 0.0, 0.0]])
    rows = record_rows(
        program, prepared(program, Encoded(records, None, None), first), first, query
    )
    assert (rows[:, 0] / 2**24).tolist() == [0.5, 0.0, 0.25]


def test_a_program_that_is_used_wrongly_says_so() -> None:
    def unlabelled(batch: Encoded, state: Sums, query: Query) -> Any:
        raise UsageError("it needs labels")

    program = Summed(unlabelled)
    first, query = asked(program)
    with pytest.raises(UsageError, match="labels"):
        record_rows(program, prepared(program, Encoded(X, None, None), first), first, query)


@pytest.mark.parametrize(
    "ids",
    [
        [1.0, math.nan, 2.0, math.nan, 1.0, math.nan],
        np.array([1, "a", None, "a", 1, None], dtype=object),
    ],
    ids=["no number", "mixed"],
)
def test_a_person_is_one_unit_in_all_batches(ids: Any) -> None:
    program, people = Summed(), np.asarray(ids)
    first, query = asked(program)
    rows = np.tile([1.0, 0.0, 0.0, 0.0], (6, 1))
    sums = []
    for size in (6, 1, 2):
        batches = ArrayRecords(rows, None, people, size).batches()
        ready = [prepared(program, batch, first) for batch in batches]
        sums.append(person_sum(program, ready, first, query).tolist())
    assert sums[0] == sums[1] == sums[2]
    assert 3 * 2**24 - 3 <= sums[0][0] <= 3 * 2**24  # shortened: by a step each


class Nothing:
    def batches(self) -> Any:
        return iter(())


@pytest.mark.parametrize("unit", ["record", "person", "holder"])
def test_a_holder_without_records_adds_nothing(unit: Any) -> None:
    promise = Promise(1.0, unit=unit)
    first, query = asked(Summed(), promise)
    holding = Holding(Summed(), first, Nothing(), promise, Serial().map_sum)
    assert not holding.sum(first, query).any()
