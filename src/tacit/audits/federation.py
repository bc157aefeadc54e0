"""Games through the state machines of a federation, against aggregator, servers and holders.

All but one server, the aggregator and all other holders work together. They know their own noise
and subtract it, so the servers among them may as well add none. What is left between them and the
unit is one holder, one server, and what these two do by themselves: both are the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audits.central import Table, joined
from tacit.audits.claims import gaussian_claim
from tacit.audits.game import Heard, WhiteBox
from tacit.audits.likelihood import Losses
from tacit.audits.watched import weakened
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.letters import Holders, News, Sealed, Witnessed, digest_of
from tacit.channels.federation.local import local_study
from tacit.channels.federation.noise_plan import NoisePlan
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.seals import Question, marks_of
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Study
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.errors import TacitError
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.programs.contribute import decoded
from tacit.programs.program import Query
from tacit.programs.states import state_bytes, state_from

__all__ = ["Aggregates", "Coalition", "federation_game"]

SERVERS = 2
LONG = 1e9  # seconds until a deadline

Aggregates = Callable[[Any, int], Iterator[Any]]
"""(the state that follows from what was released, number of the round) ↦ states that the aggregator
tries to ask with, one after another, until one is let through"""


class _LessNoise(NoisePlan):
    """What the study plans; of its noise, this part is added."""

    def __init__(self, study: Study, noise: Fraction) -> None:
        super().__init__(study)
        self._noise = noise

    def charge(self, number: int, query: Query) -> Sequence[Laplace | Gaussian]:
        planned = super().charge(number, query)
        return weakened(planned, self._noise) if self._noise else []


class _WeakServer(Server):
    """A server that adds less noise than it should, or none."""

    def __init__(self, noise: Fraction, *args: Any) -> None:
        self._noise = noise
        super().__init__(*args)

    def _recall(self) -> None:
        super()._recall()
        self._plan = _LessNoise(self.study, self._noise)


@dataclass(frozen=True)
class Coalition:
    """A study of which the adversary runs all but one server and those holders that have the unit.

    shared   so many have it, each of them all of its records
    """

    table: Table
    shared: int = 1

    @cached_property
    def keys(self) -> list[SigningKey]:
        """Of nobody: that they are known tells nothing, and a seeded game repeats."""
        return [SigningKey.generate(SeededRandomness(i)) for i in range(SERVERS + 1)]

    @cached_property
    def study(self) -> Study:
        table, per_person = self.table, self.shared if self.shared > 1 else None
        return local_study(
            table.program(),
            max(2, self.shared),
            table.schema,
            table.promise,
            self.keys,
            holders_per_person=per_person,
        )

    def run(
        self, present: bool, noise: Fraction, randomness: Randomness, aggregates: Aggregates
    ) -> Heard:
        study, losses = self.study, Losses()
        servers = self._servers(noise, randomness)
        holders = self._holders(present, randomness)
        state, mechanisms = study.first_state(), study.levels()
        before: Witnessed | None = None
        for number in range(1, study.plan().rounds + 1):
            told = self._opened(servers, aggregates(state, number), number)
            if told is None:
                break
            for holder in holders:
                self._answered(holder, servers, News(number, LONG, told, before=before))
            sealed, before = self._sealed(servers, number, told)
            total = self._closed(servers, number, sealed)
            asked = state_from(told, study.first_state())
            query = study.program().asked(asked, study.plan().stage(number).query)
            assert query is not None  # the servers opened the round
            seen = (total - self.table.known(asked, query)).astype(np.float64)
            moved = self.shared * self.table.moved(asked, query).astype(np.float64)
            losses.add_all([mechanisms.mechanism(b) for b in query.blocks], seen, moved)
            if told == state_bytes(state):  # whoever invents states has no use for what follows
                state = study.program().reduce(decoded(total, query), asked)
        return losses.heard()

    def _servers(self, noise: Fraction, randomness: Randomness) -> list[Server]:
        """The honest one comes first."""
        study, parts = self.study, [noise, *[Fraction(0)] * (SERVERS - 1)]
        found: list[Server] = []
        for part, key in zip(parts, self.keys, strict=False):
            arguments = (study, key, ServerStore(MEMORY, study.digest), lambda number: randomness)
            found.append(Server(*arguments) if part == 1 else _WeakServer(part, *arguments))
        return found

    def _holders(self, present: bool, randomness: Randomness) -> list[Holder]:
        table, study = self.table, self.study
        own = table.unit if present else table.instead
        assert table.others is not None  # each holder has a part of them
        count = len(study.holders)
        parts = [_part(table.others, slice(place, None, count)) for place in range(count)]
        parts[: self.shared] = [joined(part, own) for part in parts[: self.shared]]
        return [
            Holder(
                study,
                party.key,
                Outbox(MEMORY, study.digest),
                from_records(study, ArrayRecords(*records)),
                NoBudget(),
                randomness,
            )
            for party, records in zip(study.holders, parts, strict=True)
        ]

    def _opened(
        self, servers: Sequence[Server], states: Iterator[Any], number: int
    ) -> bytes | None:
        """Ask all servers with the first state that they let through."""
        for state in states:
            told = state_bytes(state)
            replies = [self._told(server, Letter("open", number, told)) for server in servers]
            if not any(isinstance(reply, TacitError) for reply in replies):
                return told
        return None

    def _answered(self, holder: Holder, servers: Sequence[Server], news: News) -> None:
        aggregator, number = self.study.aggregator.key, news.number
        by_key = {s.key: core for s, core in zip(self.study.servers, servers, strict=True)}
        holder.told(aggregator, Letter("ask", number - 1), Letter("round", number, write(news)))
        for to, letter in holder.tick():
            (reply,) = by_key[to].answer_all([(holder.key, letter)])
            holder.told(to, letter, reply)

    def _sealed(
        self, servers: Sequence[Server], number: int, state: bytes
    ) -> tuple[Sealed, Witnessed]:
        """What is summed, with all servers' word on it, and what holders are told of it."""
        here = [self._heard(server, Letter("present", number)) for server in servers]
        marks = [marks_of(read(Holders, reply.body).marks) for reply in here]
        asked = Sealed(read(Holders, here[0].body).keys, marks)
        replies = [self._heard(server, Letter("seal", number, write(asked))) for server in servers]
        seals = [read(Sealed, reply.body).seals[0] for reply in replies]
        question = Question.of(number, digest_of(state), asked, self.study)
        witnessed = Witnessed(question.digest(self.study.digest), seals)
        return Sealed(asked.keys, marks, seals), witnessed

    def _closed(self, servers: Sequence[Server], number: int, sealed: Sealed) -> NDArray[np.int64]:
        total: NDArray[np.uint64] | None = None
        for server in servers:
            reply = self._heard(server, Letter("close", number, write(sealed)))
            part = np.frombuffer(reply.body, dtype="<u8")
            total = part.copy() if total is None else total + part
        assert total is not None
        return total.view(np.int64)

    def _heard(self, server: Server, letter: Letter) -> Letter:
        reply = self._told(server, letter)
        if isinstance(reply, TacitError):
            raise reply
        return reply

    def _told(self, server: Server, letter: Letter) -> Letter | TacitError:
        (reply,) = server.answer_all([(self.study.aggregator.key, letter)])
        return reply


def federation_game(table: Table, aggregates: Aggregates, trials: int, shared: int = 1) -> WhiteBox:
    coalition = Coalition(table, shared)

    def trial(present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        return coalition.run(present, noise, randomness, aggregates)

    return WhiteBox(gaussian_claim(table.promise), trial, trials)


def _part(records: Encoded, place: slice) -> Encoded:
    return Encoded(*(None if column is None else column[place] for column in records))  # type: ignore[arg-type]
