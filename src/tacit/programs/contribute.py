"""From a batch of records to one vector of integers: map, clip per unit, round, add.

This is where the bound is enforced. Integers add up to the same sum in any order, on any number of
cores and machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.data.encode import Encoded
from tacit.errors import InternalFault, UsageError
from tacit.privacy import noise
from tacit.privacy.clipping import clip_to_ball
from tacit.programs.levels import block_grid
from tacit.programs.program import Program, Query

__all__ = [
    "Prepared",
    "clipped_sum",
    "decoded",
    "holder_sum",
    "person_sum",
    "prepared",
    "record_sum",
    "sampled",
]

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch that the program's own `prepare` has made ready: done once, used in every round."""

    batch: Encoded


Given = Encoded | Prepared  # what is not prepared yet is prepared where it is used


def prepared(program: Program[Any, Any], batch: Given, state: Any) -> Prepared:
    return batch if isinstance(batch, Prepared) else Prepared(program.prepare(batch, state))


def record_sum(
    program: Program[Any, Any], batch: Given, state: Any, query: Query, clip: bool = True
) -> Integers:
    """The batch's sum when every record is a unit. `clip` is off only where nothing is private."""
    ready = prepared(program, batch, state)
    fast = program.map_sum(ready.batch, state)
    if fast is not None:
        return fast
    return clipped_sum(_mapped(program, ready, state, query), query, clip)


def person_sum(
    program: Program[Any, Any],
    batches: Iterable[Given],
    state: Any,
    query: Query,
    rate: Fraction = Fraction(1),
    randomness: Randomness = SYSTEM,
    clip: bool = True,
) -> Integers:
    """The sum over all batches when all records of one person are one unit.

    A person's records may lie in different batches, so each person's sum is kept until the end:
    memory grows with the number of persons, not of records.
    """
    sums: dict[Any, NDArray[np.float64]] = {}
    for batch in batches:
        ready = prepared(program, batch, state)
        if ready.batch.person is None:
            raise UsageError("unit 'person' needs a column with role = \"person\" in the schema.")
        rows = _mapped(program, ready, state, query)
        people, places = np.unique(ready.batch.person, return_inverse=True)
        own = np.zeros((len(people), query.length))
        np.add.at(own, places, rows)
        for person, total in zip(people.tolist(), own, strict=True):
            sums[person] = sums[person] + total if person in sums else total
    totals = np.array(list(sums.values())).reshape(-1, query.length)
    if rate < 1:
        totals = totals[noise.bernoulli(rate, len(totals), randomness)]
    return clipped_sum(totals, query, clip)


def holder_sum(
    program: Program[Any, Any],
    batches: Iterable[Given],
    state: Any,
    query: Query,
    clip: bool = True,
) -> Integers:
    """The sum when the whole holder is the unit: clipped once, as a whole."""
    total = np.zeros(query.length)
    for batch in batches:
        total += _mapped(program, prepared(program, batch, state), state, query).sum(axis=0)
    return clipped_sum(total[None, :], query, clip)


def clipped_sum(contributions: NDArray[np.float64], query: Query, clip: bool = True) -> Integers:
    """Each row clipped to every block's bound and rounded to its grid; their sum."""
    total = np.zeros(query.length, dtype=np.int64)
    for block, place in query.slices():
        rows = contributions[:, place]
        if clip:
            rows = clip_to_ball(rows, float(block.bound), block.norm)
        total[place] = block_grid(block).encode(rows).sum(axis=0)
    return total


def decoded(integers: Integers, query: Query) -> NDArray[np.float64]:
    """The sum as real numbers, each block on its own grid."""
    real = np.empty(query.length)
    for block, place in query.slices():
        real[place] = block_grid(block).decode(integers[place])
    return real


def sampled(
    batches: Iterable[Prepared], rate: Fraction, randomness: Randomness = SYSTEM
) -> Iterator[Prepared]:
    """A secret Poisson sample of the records, drawn in their order, so that a seed repeats it."""
    for ready in batches:
        if rate == 1:
            yield ready
            continue
        kept = noise.bernoulli(rate, len(ready.batch.X), randomness)
        parts = (None if part is None else part[kept] for part in ready.batch)
        yield Prepared(Encoded(*parts))  # type: ignore[arg-type]


def _mapped(
    program: Program[Any, Any], ready: Prepared, state: Any, query: Query
) -> NDArray[np.float64]:
    rows = np.asarray(program.map(ready.batch, state), dtype=np.float64)
    if rows.shape != (len(ready.batch.X), query.length):
        raise InternalFault(
            f"{program.name}.map gave {rows.shape} for {len(ready.batch.X)} records and a query "
            f"of length {query.length}."
        )
    return rows
