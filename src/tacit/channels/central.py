"""The central channel: one holder has the data, adds the noise, and everyone sees the result."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.channels.selection import Selection
from tacit.channels.studies.asked import asked_by_holder, column_names
from tacit.channels.studies.checks import parallel_problem
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.data.digests import digests_of
from tacit.data.records import Records
from tacit.data.remaining import remaining
from tacit.data.schema import Schema
from tacit.engines import Engine, Serial
from tacit.errors import InternalFault, UsageError
from tacit.privacy.accounting import SpendCost, cost
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Ledger, Reservation
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Promise, Unit
from tacit.privacy.release import Release
from tacit.programs.contribute import decoded
from tacit.programs.holding import Holding
from tacit.programs.levels import Levels
from tacit.programs.program import Plan, Program, Query
from tacit.programs.range_words import range_remarks
from tacit.programs.ranged import ranged

__all__ = ["TRUST", "Central", "Outcome"]

S = TypeVar("S")
M = TypeVar("M")

ONE_HOLDER = (
    "The data set is one holder's, with all that it has of a person: what other holders release of "
    "the same person is not covered."
)
TRUST = "The holder of the data, who adds the noise. Everyone else sees noisy results only."


@dataclass(frozen=True, slots=True)
class Outcome(Generic[S, M]):
    """A model, the state it was read from, an unsigned certificate of its cost, and its rounds.

    `schema` is what the model is read with: the one that was given, with the bounds that were found
    where it says "private".
    """

    model: M
    state: S
    certificate: Certificate
    rounds: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class Central:
    """Runs programs over one holder's records.

    ledger, dataset   where the whole promise is reserved before anything is drawn
    sampling          each unit takes part in each round with this probability, secretly: less noise
                      per round for the same promise (amplification), less data per round
    selection         release only coordinates that stand out (PEM's sparse vectors)
    progress          is told after each round: (rounds done, rounds planned)
    """

    engine: Engine = field(default_factory=Serial)
    randomness: Randomness = SYSTEM
    ledger: Ledger | None = None
    dataset: str = "data"
    sampling: Fraction = Fraction(1)
    selection: Selection | None = None
    progress: Callable[[int, int], None] | None = None

    def run(
        self, program: Program[S, M], records: Records, schema: Schema, promise: Promise
    ) -> Outcome[S, M]:
        """Reserve the whole promise, run all rounds, charge it.

        Where the schema says bounds = "private", records are as `ranged(program, schema)` encodes
        them (tacit.programs.ranged), and the first rounds find those bounds.
        """
        planned = None if self.ledger is None else self.planned_cost(program, schema, promise)
        stay = self._remaining(records)
        with self._reserved(promise, program, schema, records, cost=planned) as reservation:
            return self.rounds(program, stay, schema, promise, reservation)

    def planned_cost(
        self, program: Program[S, M], schema: Schema, promise: Promise
    ) -> SpendCost | None:
        """What all rounds can reveal together, known before the first; None if only the promise
        says it (a selection's choices are not planned)."""
        if self.selection is not None or not promise.is_private:
            return None
        program = ranged(program, schema)
        plan = self._planned(program, program.init(schema, promise), promise)
        return SpendCost.of(Levels.planned(promise, plan).planned_releases(), promise.adjacency)

    def rounds(
        self,
        program: Program[S, M],
        records: Records,
        schema: Schema,
        promise: Promise,
        reservation: Reservation | None = None,
    ) -> Outcome[S, M]:
        """All rounds, under a reservation that the caller has made."""
        program = ranged(program, schema)
        state = first = program.init(schema, promise)
        plan = self._planned(program, first, promise)
        choosing, rest = _divided(promise, self.selection, plan)
        levels = Levels.planned(rest, plan)
        choices: list[Release] = []
        holding = Holding(program, first, records, promise, self.engine.map_sum)
        done = 0
        while (query := _next(program, plan, state, done + 1)) is not None:
            done += 1
            rate = plan.stage(done).sampling
            total = holding.sum(state, query, rate, self.randomness)
            if done == 1 and reservation is not None:
                reservation.mark_drawn()
            mechanisms = levels.charge(done, query)
            noisy = self._noisy(total, query, mechanisms, choosing, choices)
            # A sample's sum, scaled up, is an unbiased estimate of the sum.
            state = program.reduce(noisy / float(rate), state)
            if self.progress is not None:
                self.progress(done, plan.rounds)
        releases = (*levels.releases, *_counted(choices))
        model, learned = program.result(state), program.learned_schema(schema, state)
        certificate = self._certificate(program, schema, promise, releases, model, learned)
        return Outcome(model, state, certificate, done, learned)

    def follow(
        self,
        program: Program[S, M],
        windows: Iterable[Records],
        schema: Schema,
        promise: Promise,
        planned: int | None = None,
    ) -> Iterator[Outcome[Any, M]]:
        """Online learning: windows of new records, each kept to the whole promise.

        A record lies in one window, so the windows compose in parallel: the cost is that of the
        worst, not their sum. Windows must be disjoint; the caller answers for that. Yields the
        model of all records so far after each window. UsageError for promises that do not compose
        so: of a person or a holder, who may be in several windows, and under replace, where a
        record may change windows.

        planned   how many windows there will be, which the rounds of each follow from; by default
                  as many as `windows` has. Further ones are left alone.
        """
        problem = parallel_problem(promise)
        if problem is not None:
            raise UsageError(f"{problem}.")
        if self.selection is not None:
            raise UsageError("windows are released whole: leave selection out when following.")
        learned = ranged(program, schema).windowed(_how_many(windows, planned))
        state = first = learned.init(schema, promise)
        plan = self._planned(learned, first, promise)
        done, releases = 0, tuple[Release, ...]()
        # The caller answers for windows of this run; another run's are cut in another way.
        partition = f"{program.name} windows {secrets.token_hex(8)}"
        for number, records in zip(range(1, plan.windows + 1), windows, strict=False):
            window, part = f"window {number}", plan.part(number)
            levels = Levels.planned(promise, part)
            cost = SpendCost.of(levels.planned_releases(), promise.adjacency)
            stay = self._remaining(records)
            reserved = self._reserved(promise, program, schema, records, window, partition, cost)
            with reserved as reservation:
                holding = Holding(learned, first, stay, promise, self.engine.map_sum)
                state = self._window(learned, holding, state, levels, reservation)
            done += part.rounds
            if self.progress is not None:
                self.progress(done, plan.rounds)
            releases += tuple(replace(release, part=window) for release in levels.releases)
            model, found = learned.result(state), learned.learned_schema(schema, state)
            certificate = self._certificate(learned, schema, promise, releases, model, found)
            yield Outcome(model, state, certificate, done, found)

    def _window(
        self,
        program: Program[Any, M],
        holding: Holding,
        state: Any,
        levels: Levels,
        reservation: Reservation | None,
    ) -> Any:
        """All rounds of one window, over the same records."""
        for number in range(1, levels.plan.rounds + 1):
            stage = levels.plan.stage(number)
            query = program.asked(state, stage.query)
            if query is None:
                raise InternalFault(f"{program.name} ended in the midst of its windows.")
            total = holding.sum(state, query, stage.sampling, self.randomness)
            if number == 1 and reservation is not None:
                reservation.mark_drawn()
            noisy = self._noisy(total, query, levels.charge(number, query))
            state = program.reduce(noisy / float(stage.sampling), state)
        return state

    def _planned(self, program: Program[S, M], first: S, promise: Promise) -> Plan:
        plan = Plan(tuple(program.plan(first))).sampled(self.sampling)
        if all(stage.sampling == 1 for stage in plan.stages):
            return plan
        if self.selection is not None:
            raise UsageError(
                "a selection looks at the sums of the sample that are then released, which is not "
                "accounted for together: leave out selection, or leave sampling at 1."
            )
        if promise.unit is Unit.HOLDER:
            raise UsageError(
                "a whole holder is the unit: there is no sample of one holder. Leave sampling at "
                '1, or protect unit = "record".'
            )
        return plan

    def _reserved(
        self,
        promise: Promise,
        program: Program[S, M],
        schema: Schema,
        records: Records,
        part: str | None = None,
        partition: str | None = None,
        cost: SpendCost | None = None,
    ) -> AbstractContextManager[Reservation | None]:
        if self.ledger is None:
            return nullcontext()
        asked = asked_by_holder(self.ledger, program.written_name, column_names(schema), schema)
        return self.ledger.reserve(
            promise,
            self.dataset,
            program.name,
            part,
            partition=partition,
            cost=cost,
            records=digests_of(records),
            asked=asked,
        )

    def _remaining(self, records: Records) -> Records:
        """Without people who asked the holder to be left out."""
        if self.ledger is None:
            return records
        return remaining(records, self.ledger.decisions.left_out(self.dataset))

    def _noisy(
        self,
        total: NDArray[np.int64],
        query: Query,
        mechanisms: Sequence[Laplace | Gaussian],
        choosing: Promise | None = None,
        choices: list[Release] | None = None,
    ) -> NDArray[np.float64]:
        # Without privacy there are no mechanisms, and no noise.
        for (_, place), mechanism in zip(query.slices(), mechanisms, strict=False):
            exact = total[place].copy()
            total[place] = mechanism.perturb(exact, self.randomness)
            if self.selection is not None and choosing is not None and choices is not None:
                sums = mechanism.grid.decode(exact)
                chosen, spent = self.selection.choose(sums, mechanism, choosing, self.randomness)
                choices += spent
                total[place][~chosen] = 0
        return decoded(total, query)

    def _certificate(
        self,
        program: Program[S, M],
        schema: Schema,
        promise: Promise,
        releases: tuple[Release, ...],
        model: M,
        learned: Schema,
    ) -> Certificate:
        found = cost(releases, promise.delta, promise.adjacency) if releases else None
        if found and program.promise_holds and found.epsilon > promise.epsilon * (1 + 1e-9):
            raise InternalFault(
                f"{program.name}: its releases cost ε = {found.epsilon:.6g}, more than {promise}."
            )
        return Certificate(
            promise=promise,
            releases=releases,
            trust=TRUST,
            accountant=found.accountant if found else "none",
            program=f"{program.written_name} {program.version}",
            program_digest=program.digest,
            schema_digest=schema.digest,
            subject="",
            secure_randomness=self.randomness.secure,
            promise_holds=program.promise_holds,
            remarks=(*range_remarks(schema, learned), *program.remarks(model)),
            conditions=(ONE_HOLDER,) if promise.unit is Unit.PERSON else (),
            ledger=None if self.ledger is None else self.ledger.head,
        )


def _how_many(windows: Iterable[Records], planned: int | None) -> int:
    if planned is not None:
        return planned
    if isinstance(windows, Sized):
        return len(windows)
    raise UsageError(
        "how many windows there will be is not known of an iterator, and the rounds of each window "
        "follow from it: say so with planned=12, or give a list."
    )


def _next(program: Program[S, M], plan: Plan, state: S, number: int) -> Query | None:
    """What round `number` asks, or None when there is nothing left to ask."""
    if number > plan.rounds:
        return None
    return program.asked(state, plan.stage(number).query)


def _divided(
    promise: Promise, selection: Selection | None, plan: Plan
) -> tuple[Promise | None, Promise]:
    """What pays for each choice, if there is a selection, and what for the noise.

    There is a choice in every block of every round (selection.md).
    """
    if selection is None or not promise.is_private:
        return None, promise
    return selection.split(promise, sum(s.count * len(s.query.blocks) for s in plan.stages))


def _counted(releases: list[Release]) -> list[Release]:
    """Equal releases as one, with their number."""
    found: list[Release] = []
    for release in releases:
        for place, known in enumerate(found):
            if replace(known, count=release.count) == release:
                found[place] = replace(known, count=known.count + release.count)
                break
        else:
            found.append(release)
    return found
