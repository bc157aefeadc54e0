"""The central channel: one holder has the data, adds the noise, and everyone sees the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.signing import digest
from tacit.data.records import Records
from tacit.data.schema import Schema
from tacit.engines import Engine, Serial
from tacit.privacy.accounting import cost
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Ledger, Reservation
from tacit.privacy.promise import Promise, Unit
from tacit.programs.contribute import decoded, holder_sum, person_sum, record_sum, sampled
from tacit.programs.levels import Levels
from tacit.programs.program import Program, Query

__all__ = ["TRUST", "Central", "Outcome"]

S = TypeVar("S")
M = TypeVar("M")

TRUST = "The holder of the data, who adds the noise. Everyone else sees noisy results only."


@dataclass(frozen=True, slots=True)
class Outcome(Generic[S, M]):
    """A model, the state it was read from, and an unsigned certificate of what it cost."""

    model: M
    state: S
    certificate: Certificate


@dataclass(frozen=True, slots=True)
class Central:
    """Runs programs over one holder's records.

    ledger, dataset   where the whole promise is reserved before anything is drawn
    progress          is told after each round: (rounds done, rounds planned)
    """

    engine: Engine = field(default_factory=Serial)
    randomness: Randomness = SYSTEM
    ledger: Ledger | None = None
    dataset: str = "data"
    progress: Callable[[int, int], None] | None = None

    def run(
        self, program: Program[S, M], records: Records, schema: Schema, promise: Promise
    ) -> Outcome[S, M]:
        """Reserve the whole promise, run all rounds, charge it."""
        if self.ledger is None:
            return self.rounds(program, records, schema, promise)
        with self.ledger.reserve(promise, self.dataset, program.name) as reservation:
            return self.rounds(program, records, schema, promise, reservation)

    def rounds(
        self,
        program: Program[S, M],
        records: Records,
        schema: Schema,
        promise: Promise,
        reservation: Reservation | None = None,
    ) -> Outcome[S, M]:
        """All rounds, under a reservation that the caller has made."""
        state = program.init(schema, promise)
        plan = program.plan(state)
        levels = Levels.planned(promise, plan)
        done, planned = 0, sum(share.count for share in plan)
        while (query := program.query(state)) is not None:
            total = self._sum(program, records, state, query, levels)
            if done == 0 and reservation is not None:
                reservation.mark_drawn()
            state = program.reduce(self._noisy(total, query, levels), state)
            done += 1
            if self.progress is not None:
                self.progress(done, planned)
        certificate = self._certificate(program, schema, promise, levels)
        return Outcome(program.result(state), state, certificate)

    def _sum(
        self, program: Program[S, M], records: Records, state: S, query: Query, levels: Levels
    ) -> NDArray[np.int64]:
        batches, rate, clip = records.batches(), levels.sampling(query), levels.promise.is_private
        match levels.promise.unit:
            case Unit.PERSON:
                return person_sum(program, batches, state, query, rate, self.randomness, clip)
            case Unit.HOLDER:
                return holder_sum(program, batches, state, query, clip)
            case Unit.RECORD:
                return self.engine.map_sum(
                    sampled(batches, rate, self.randomness),
                    lambda batch: record_sum(program, batch, state, query, clip),
                )

    def _noisy(self, total: NDArray[np.int64], query: Query, levels: Levels) -> NDArray[np.float64]:
        for (_, place), mechanism in zip(query.slices(), levels.charge(query), strict=False):
            total[place] = mechanism.perturb(total[place], self.randomness)
        return decoded(total, query)

    def _certificate(
        self, program: Program[S, M], schema: Schema, promise: Promise, levels: Levels
    ) -> Certificate:
        releases = levels.releases
        found = cost(releases, promise.delta, promise.adjacency) if releases else None
        return Certificate(
            promise=promise,
            releases=releases,
            trust=TRUST,
            accountant=found.accountant if found else "none",
            program=f"{program.name} {program.version}",
            program_digest=digest({"name": program.name, "settings": _plain(program.settings())}),
            schema_digest=schema.digest,
            subject="",
            secure_randomness=self.randomness.secure,
            ledger=None if self.ledger is None else self.ledger.head,
        )


def _plain(settings: dict[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in settings.items()}
