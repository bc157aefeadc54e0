"""What a round asks of a program, and what records add to it: by hand, without a channel."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.programs.contribute import Prepared, prepared, record_rows, record_sum
from tacit.programs.program import Plan, Program, Query

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


def half_the_noise(mechanism: Any) -> Any:
    """A mechanism that draws half of its noise and says that it drew all: one that tells would not
    be certified."""

    class Cheating(type(mechanism)):  # type: ignore[misc]
        spend = property(lambda self: mechanism.spend)

    parts = {f.name: getattr(mechanism, f.name) for f in fields(mechanism)}
    return Cheating(**{**parts, "scale": mechanism.scale / 2})


def planned(program: Program[Any, Any], first: Any) -> Plan:
    return Plan(tuple(program.plan(first)))


def asked(program: Program[Any, Any], first: Any, state: Any, number: int = 1) -> Query:
    """What round `number` asks in this state; it must ask something."""
    query = program.asked(state, planned(program, first).stage(number).query)
    assert query is not None
    return query


def ready(program: Program[Any, Any], X: Any, y: Any, first: Any) -> Prepared:
    return prepared(program, Encoded(X, y, None), first)


def unshortened(
    program: Program[Any, Any], batch: Prepared, state: Any, query: Query
) -> list[Integers]:
    """Of each block, what each record adds where there is room for four times its bound, in steps.

    So whoever is beyond the bound is seen to be.
    """
    parts = program.map(batch.seen(program, state, query), state, query)
    assert not isinstance(parts, np.ndarray)
    return [
        part.within(4 * block.limit, block.norm).rows()
        for part, block in zip(parts, query.blocks, strict=True)
    ]


def check_sums(program: Program[Any, Any], batch: Prepared, state: Any, query: Query) -> Integers:
    """The fast sum is that of the rows, and every row is within the bound; gives the rows."""
    rows = record_rows(program, batch, state, query)
    assert np.array_equal(record_sum(program, batch, state, query), rows.sum(axis=0))
    for block, place in query.slices():
        for row in rows[:, place].tolist():  # Python's whole numbers: nothing is rounded
            size = sum(map(abs, row)) if block.norm == "L1" else sum(v * v for v in row)
            assert size <= (block.limit if block.norm == "L1" else block.limit**2)
    return rows
