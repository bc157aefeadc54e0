"""A party: trains its own model, takes the protocol's steps, pays when it reveals its part.

No input, no output, no clock here. A party that crashed repeats its steps from a journaled seed and
says what it has said before.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from tacit.channels.consortium.journals import Attempt, PartyJournal
from tacit.channels.consortium.letters import Answer, Roster, Turn
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.protocol import PartySide
from tacit.channels.consortium.protocols import check_consortium, party_side, terms_of
from tacit.channels.federation.holder import Budget
from tacit.channels.federation.letters import Finished, Letter, read, write
from tacit.channels.federation.server import Tell
from tacit.channels.federation.study import Study
from tacit.crypto.prg import DerivedRandomness
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, Refused, TacitError, Unreachable
from tacit.privacy.certificate import Certificate

__all__ = ["Party"]

SEED_BYTES = 32


class Party:
    """The state machine of one party in one study."""

    def __init__(
        self,
        study: Study,
        key: SigningKey,
        journal: PartyJournal,
        local: Local,
        budget: Budget,
        tell: Tell = lambda event, **fields: None,
        seed: Callable[[], bytes] = lambda: os.urandom(SEED_BYTES),
    ) -> None:
        if study.holder_named(key.public_key) is None:
            raise Refused(
                f"this key is not among the parties of study {study.name}: send its author what "
                "`tacit keys show` prints."
            )
        self.study, self.key, self._key = study, key.public_key, key
        self._journal, self._local, self._budget = journal, local, budget
        self._tell, self._seed = tell, seed
        self._asked = False
        self._step, self._body = 0, b""
        self.result: tuple[bytes, Certificate] | None = None
        budget.reserve(1)
        self._attempt = journal.attempt()
        if self._attempt is not None:
            self._take_up(self._attempt)

    @property
    def is_over(self) -> bool:
        return self.result is not None

    # ── letters ──

    def tick(self) -> list[tuple[str, Letter]]:
        """What to send now: where we are, until the curator knows."""
        if self.is_over or self._asked:
            return []
        self._asked = True
        number = self._attempt.number if self._attempt else 0
        letter = Letter("turn", number, write(Turn(self._step, self._body)))
        return [(self.study.aggregator.key, letter)]

    def leaving(self) -> tuple[str, Letter]:
        return self.study.aggregator.key, Letter("leave", 0)

    def give_up(self) -> None:
        """There is no round to miss: the curator waits, or goes on without us."""

    def has_answered(self, number: int) -> bool:
        """There are no windows to wait for."""
        return True

    def told(self, to: str, asked: Letter, reply: Letter | TacitError) -> None:
        self._asked = False
        if isinstance(reply, (Unreachable, CheckFailed)):
            return
        if isinstance(reply, TacitError):
            raise reply
        match reply.kind:
            case "roster":
                self._begin(read(Roster, reply.body))
            case "answer":
                self._go_on(read(Answer, reply.body))
            case "model":
                self._take(read(Finished, reply.body))

    # ── steps ──

    def _begin(self, roster: Roster) -> None:
        """A new attempt, with draws of its own."""
        if self._attempt is not None and roster.attempt <= self._attempt.number:
            return
        if self._journal.revealed() is not None:
            raise Refused(
                "the curator asks for a second run after we have revealed our part of the first: "
                "that would be a second release. Nothing is sent."
            )
        parties = tuple(roster.parties)
        self._check(parties)
        attempt = Attempt(roster.attempt, parties, self._seed())
        self._journal.begin(attempt)
        self._take_up(attempt)
        self._tell("attempt begun", round=attempt.number, holders=len(parties))

    def _check(self, parties: tuple[str, ...]) -> None:
        limits = self.study.take_part
        known = {holder.key for holder in self.study.holders}
        sound = list(parties) == sorted(set(parties) & known) and self.key in parties
        if not sound or not max(2, limits.minimum) <= len(parties) <= limits.maximum:
            raise Refused("the curator's roster is not one that the study allows.")

    def _take_up(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._terms = terms_of(self.study, attempt.roster)
        self._side: PartySide = party_side(
            self.study,
            self._terms,
            attempt.number,
            self._key,
            self._local,
            DerivedRandomness(attempt.seed),
        )
        self._step, received = 0, b""
        for answer in self._journal.answers():
            self._step += 1
            self._side.send(self._step, received)
            received = answer
        self._send(received)

    def _go_on(self, answer: Answer) -> None:
        if answer.step != self._step or self._step > self._terms.steps:
            return
        self._journal.put(answer.step, answer.body)
        self._send(answer.body)

    def _send(self, received: bytes) -> None:
        """The next step. Before the one that reveals, it is paid, and noted for good."""
        assert self._attempt is not None
        self._step += 1
        if self._step > self._terms.steps:
            self._body = b""
            return
        if self._step == self._terms.reveals_at and self._journal.revealed() is None:
            self._body = b""
            body = self._side.send(self._step, received)  # refuses what it must not reveal for
            self._budget.spend(1)
            self._journal.reveal(self._attempt.number)
            self._body = body
            return
        self._body = self._side.send(self._step, received)

    # ── the end ──

    def _take(self, finished: Finished) -> None:
        certificate = check_consortium(self.study, finished.model, finished.certificate)
        self._budget.settle(finished.certificate)
        self.result = finished.model, certificate
        self._tell("model received")
