"""Games against programs in the central channel, at all of their rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audits.claims import Claim, gaussian_claim, laplace_claim
from tacit.audits.game import Heard, WhiteBox
from tacit.audits.likelihood import Losses, amplified
from tacit.audits.watched import Watched, Weakened
from tacit.channels.central import Central
from tacit.crypto.prg import Randomness
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.data.schema import Schema
from tacit.engines import Serial
from tacit.errors import AuditFailed
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Promise
from tacit.programs.holding import Holding
from tacit.programs.levels import Levels
from tacit.programs.program import Plan, Program, Query

__all__ = ["Table", "central_game", "channel_of", "joined"]

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A program, and two neighbouring tables of records.

    others        what the adversary knows; None: nobody else is there
    unit          the records of the unit that is there or not
    instead       under replace adjacency: the records that are there when the unit is not
    steady        whether the unit moves all sums alike, whatever the states; a run in which it does
                  not is refused, as a claim that rests on it would not hold
    """

    program: Callable[[], Program[Any, Any]]
    schema: Schema
    promise: Promise
    others: Encoded | None
    unit: Encoded
    instead: Encoded | None = None
    sampling: Fraction = Fraction(1)
    steady: bool = False

    def records(self, present: bool) -> ArrayRecords:
        return ArrayRecords(*joined(self.others, self.unit if present else self.instead))

    @cached_property
    def first(self) -> Any:
        return self.program().init(self.schema, self.promise)

    @cached_property
    def plan(self) -> Plan:
        return Plan(tuple(self.program().plan(self.first))).sampled(self.sampling)

    @cached_property
    def levels(self) -> Levels:
        """The noise as it is agreed on, whatever was added."""
        return Levels.planned(self.promise, self.plan)

    @cached_property
    def claim(self) -> Claim:
        if self.promise.delta > 0:
            return gaussian_claim(self.promise)
        return laplace_claim(self.promise, self.plan, self.moves if self.steady else None)

    @cached_property
    def moves(self) -> list[list[Reals]]:
        """By which parts of its bound the unit moves each block of each round: in any one run."""
        program = Watched(self.program())
        Central().run(program, self.records(True), self.schema, self.promise)
        return [
            self.parts(self.moved(state, query), query)
            for number, (state, _) in enumerate(program.heard, start=1)
            for query in [self.query(state, number)]
        ]

    def parts(self, moved: Integers, query: Query) -> list[Reals]:
        """The sizes of what moves, largest last, each as a part of its block's bound."""
        sizes = [
            (np.abs(moved[place]), m.bound.value / m.grid.step)
            for (_, place), m in zip(query.slices(), self.mechanisms(query), strict=True)
        ]
        return [np.sort(size[size > 0]) / float(bound) for size, bound in sizes]

    def query(self, state: Any, number: int) -> Query:
        query = self.program().asked(state, self.plan.stage(number).query)
        assert query is not None  # the round was answered
        return query

    def mechanisms(self, query: Query) -> list[Laplace | Gaussian]:
        return [self.levels.mechanism(block) for block in query.blocks]

    def known(self, state: Any, query: Query) -> Integers:
        """What the adversary subtracts: the sum if the unit is not there."""
        others = self._sum(self._others, state, query)
        return others + self._sum(self._instead, state, query)

    def moved(self, state: Any, query: Query) -> Integers:
        """How much the sum differs if it is."""
        own = self._sum(self._unit, state, query)
        return own - self._sum(self._instead, state, query)

    @cached_property
    def _others(self) -> Holding | None:
        return self._holding(self.others)

    @cached_property
    def _unit(self) -> Holding | None:
        return self._holding(self.unit)

    @cached_property
    def _instead(self) -> Holding | None:
        return self._holding(self.instead)

    def _holding(self, records: Encoded | None) -> Holding | None:
        if records is None:
            return None
        source = ArrayRecords(*records)
        return Holding(self.program(), self.first, source, self.promise, Serial().map_sum)

    def _sum(self, holding: Holding | None, state: Any, query: Query) -> Integers:
        if holding is None:
            return np.zeros(query.length, dtype=np.int64)
        return holding.sum(state, query)


def central_game(table: Table, trials: int, claim: Claim | None = None) -> WhiteBox:
    """`Central.run` on the table with the unit or without it; the loss from states and sums."""

    def trial(present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        program = Watched(table.program())
        channel = channel_of(noise, randomness=randomness, sampling=table.sampling)
        channel.run(program, table.records(present), table.schema, table.promise)
        return _heard(table, program)

    return WhiteBox(claim or table.claim, trial, trials)


def _heard(table: Table, program: Watched) -> Heard:
    losses, rate = Losses(), float(table.sampling)
    total = 0.0
    for number, (state, noisy) in enumerate(program.heard, start=1):
        query = table.query(state, number)
        seen = steps(noisy * rate, query) - table.known(state, query)
        moved = table.moved(state, query)
        _check_steady(table, number, moved, query)
        before = losses.loss
        mechanisms = table.mechanisms(query)
        losses.add_all(mechanisms, seen.astype(np.float64), moved.astype(np.float64))
        total += losses.loss - before if rate == 1 else amplified(losses.loss - before, rate)
    found = losses.heard(rate, len(program.heard))
    return Heard(total, found.shifts, found.reach)


def _check_steady(table: Table, number: int, moved: Integers, query: Query) -> None:
    if not table.steady or table.promise.delta > 0:
        return
    for now, then in zip(table.parts(moved, query), table.moves[number - 1], strict=True):
        if len(now) != len(then) or not np.allclose(now, then, atol=1e-4):
            raise AuditFailed(f"the unit moved round {number} otherwise than in another run.")


def channel_of(noise: Fraction, **options: Any) -> Central:
    """The channel itself, or the same with less noise."""
    return Central(**options) if noise == 1 else Weakened(**options, noise=noise)


def steps(total: NDArray[np.float64], query: Query) -> Integers:
    """A decoded sum in whole steps again; exact, as steps are powers of two."""
    found = np.empty(query.length, dtype=np.int64)
    for block, place in query.slices():
        found[place] = np.rint(total[place] / float(block.sum_grid.step)).astype(np.int64)
    return found


def joined(*parts: Encoded | None) -> Encoded:
    """Records one after another."""
    known = [part for part in parts if part is not None]
    columns = zip(*known, strict=True)
    return Encoded(*(None if c[0] is None else np.concatenate(c) for c in columns))  # type: ignore[arg-type]
