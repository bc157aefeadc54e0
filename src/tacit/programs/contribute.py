"""From a batch of records to one vector of integers: map, clip per unit, round, add.

This is where the bound is enforced (proof: sensitivity.md). What a record adds depends on the
record, the plan, the round and its state alone, for *any* state that can be read: no value of it
can make a record count for more, and no record can make this fail. Integers add up to the same sum
in any order, on any number of cores and machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.data.encode import Encoded
from tacit.errors import InternalFault, UsageError
from tacit.privacy import noise
from tacit.programs.coarse import carry
from tacit.programs.contributions import Contribution, Rows, integers_within
from tacit.programs.program import Block, Program, Query

__all__ = [
    "Prepared",
    "clipped",
    "decoded",
    "holder_sum",
    "person_sum",
    "prepared",
    "record_rows",
    "record_sum",
    "sampled",
]

Integers = NDArray[np.int64]
HALF = 32  # bits: a holder's own sum is carried in two integers


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch that the program's own `prepare` has made ready: done once, used in every round.

    What the program makes of it under a part of the state (`Program.seen`) is kept with the exact
    bytes of that part, one at a time: another state's is never used.
    """

    batch: Encoded
    _kept: dict[bytes, Encoded] = field(default_factory=dict, repr=False, compare=False)

    def seen(self, program: Program[Any, Any], state: Any, query: Query) -> Encoded:
        """What `map` looks at in this round."""
        key = program.seen_under(state, query)
        if key is None:
            return self.batch
        found = self._kept.get(key)
        if found is None:
            found = _frozen(program.seen(self.batch, state))
            self._kept.clear()
            self._kept[key] = found
        return found


def prepared(program: Program[Any, Any], batch: Encoded, first: Any) -> Prepared:
    """`first` is the state before any data: nothing that arrived since may be remembered here."""
    with np.errstate(all="ignore"):
        return Prepared(_frozen(program.prepare(_frozen(batch), first)))


def _frozen(batch: Encoded) -> Encoded:
    """Nobody can change it, so no round leaves anything in it for the next; and it always lies in
    memory in the same way, because numpy's exp and log have other last bits for other strides."""
    parts = []
    for part in batch:
        if part is not None:
            part = np.ascontiguousarray(part).view()
            part.flags.writeable = False
        parts.append(part)
    return Encoded(*parts)  # type: ignore[arg-type]


def record_sum(
    program: Program[Any, Any], ready: Prepared, state: Any, query: Query, clip: bool = True
) -> Integers:
    """The batch's sum when every record is a unit. `clip` is off only where nothing is private."""
    if not clip:
        return _joined(c.unclipped() for c in _contributions(program, ready, state, query))
    parts = clipped(program, ready, state, query)
    return _joined(p.total(b.limit) for p, b in zip(parts, query.blocks, strict=True))


def record_rows(program: Program[Any, Any], ready: Prepared, state: Any, query: Query) -> Integers:
    """What each record adds: one row each."""
    parts = clipped(program, ready, state, query)
    return np.hstack([part.rows() for part in parts])


def person_sum(
    program: Program[Any, Any],
    batches: Iterable[Prepared],
    state: Any,
    query: Query,
    rate: Fraction = Fraction(1),
    randomness: Randomness = SYSTEM,
) -> Integers:
    """The sum over all batches when all records of one person are one unit.

    A person's records may lie in different batches, so each person's sum is kept until the end:
    memory grows with the number of persons, not of records. As `coarse.carry` gives it.
    """
    sums: dict[Any, Integers] = {}
    for ready in batches:
        if ready.batch.person is None:
            raise UsageError("unit 'person' needs a column with role = \"person\" in the schema.")
        rows = record_rows(program, ready, state, query)
        people, places = _people(ready.batch.person)
        own = np.zeros((len(people), query.length), dtype=np.int64)
        np.add.at(own, places, rows)
        for person, total in zip(people, own, strict=True):
            sums[person] = sums[person] + total if person in sums else total
    totals = np.array(list(sums.values()), dtype=np.int64).reshape(-1, query.length)
    if rate < 1:
        totals = totals[noise.bernoulli(rate, len(totals), randomness)]
    return np.asarray(carry(_within(totals, query), query).sum(axis=0))


def _people(ids: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Who there is, and for each record who of them it is.

    Ids are compared for equality alone: sorting some of different types would fail, and tell of
    them. Whoever has no number (NaN) is one person, in all batches together.
    """
    found: dict[Any, int] = {}
    known = (one if one == one else None for one in ids.tolist())
    places = [found.setdefault(one, len(found)) for one in known]
    return list(found), np.array(places, dtype=np.intp)


def holder_sum(
    program: Program[Any, Any], batches: Iterable[Prepared], state: Any, query: Query
) -> Integers:
    """The sum when the whole holder is the unit: clipped once more, as a whole."""
    high, low = np.zeros((2, query.length), dtype=np.int64)
    for ready in batches:
        part = record_sum(program, ready, state, query)
        high += part >> HALF
        low += part & (2**HALF - 1)
    high += low >> HALF
    low &= 2**HALF - 1
    # Beyond 62 bits it is far longer than any limit: what it is shortened to needs no last digits.
    spare = max(0, int(np.abs(high).max(initial=0)).bit_length() + HALF - 62)
    total = (high << (HALF - spare)) + (low >> spare)
    return np.asarray(_within(total[None, :], query)[0])


def decoded(integers: Integers, query: Query) -> NDArray[np.float64]:
    """A sum that has left its holders as real numbers, each block on its own grid."""
    real = np.empty(query.length)
    for block, place in query.slices():
        real[place] = block.sum_grid.decode(integers[place])
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
        yield _chosen(ready, kept)


def _chosen(ready: Prepared, which: Any) -> Prepared:
    parts = (None if part is None else part[which] for part in ready.batch)
    return Prepared(Encoded(*parts))  # type: ignore[arg-type]


def _within(rows: Integers, query: Query) -> Integers:
    """Each row shortened to every block's bound."""
    return np.hstack(
        [integers_within(rows[:, place], b.limit, b.norm) for b, place in query.slices()]
    )


def clipped(
    program: Program[Any, Any], ready: Prepared, state: Any, query: Query
) -> Sequence[Contribution]:
    """Every record's contribution to every block, in whole numbers within the block's bound."""
    # No warning of numpy's: whether there is one would tell of a record.
    with np.errstate(all="ignore"):
        try:
            return _bounded(_contributions(program, ready, state, query), query)
        except Exception:
            _check_use(program, ready, state, query)
            # Some record cannot be mapped in this state. Which one must not show: it counts for
            # nothing, and all others for what they would have counted for without it.
            return _one_by_one(program, ready, state, query)


def _check_use(program: Program[Any, Any], ready: Prepared, state: Any, query: Query) -> None:
    """Raise what is wrong with the program or its use, if it is so without any record too."""
    try:
        _bounded(_contributions(program, _chosen(ready, slice(0)), state, query), query)
    except (InternalFault, UsageError):
        raise
    except Exception:
        return


def _bounded(parts: Sequence[Contribution], query: Query) -> list[Contribution]:
    bounded = [c.within(b.limit, b.norm) for c, b in zip(parts, query.blocks, strict=True)]
    return [
        part.nonnegative() if block.nonnegative else part
        for part, block in zip(bounded, query.blocks, strict=True)
    ]


def _one_by_one(
    program: Program[Any, Any], ready: Prepared, state: Any, query: Query
) -> list[Contribution]:
    rows = np.zeros((len(ready.batch.X), query.length))
    for record in range(len(rows)):
        one = _chosen(ready, slice(record, record + 1))
        try:
            parts = _bounded(_contributions(program, one, state, query), query)
        except Exception:
            continue
        rows[record] = np.hstack([part.rows() for part in parts])[0]
    return [Rows(rows[:, place]) for _, place in query.slices()]


def _contributions(
    program: Program[Any, Any], ready: Prepared, state: Any, query: Query
) -> Sequence[Contribution]:
    """What the program's map gives, in steps of each block."""
    given = program.map(ready.seen(program, state, query), state, query)
    if isinstance(given, np.ndarray):
        given = _split(program, given, query)
    shapes = [(len(ready.batch.X), block.length) for block in query.blocks]
    if [part.shape for part in given] != shapes:
        raise InternalFault(
            f"{program.name}.map gave {[part.shape[1:] for part in given]} coordinates, or not one "
            f"row for each record, for blocks of {[block.length for block in query.blocks]}."
        )
    return given


def _split(program: Program[Any, Any], rows: NDArray[Any], query: Query) -> list[Contribution]:
    values = np.asarray(rows, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != query.length:
        raise InternalFault(
            f"{program.name}.map gave {values.shape[1:]} coordinates for a query of length "
            f"{query.length}."
        )
    return [Rows(values[:, place] / _step(block)) for block, place in query.slices()]


def _step(block: Block) -> float:
    return float(block.grid.step)


def _joined(totals: Iterable[Integers]) -> Integers:
    return np.concatenate(list(totals))
