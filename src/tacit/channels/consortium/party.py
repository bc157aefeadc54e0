"""A party: trains its own model, takes the protocol's steps, pays when it reveals its part.

No input, no output, no clock here. A party that crashed repeats its steps from a journaled seed and
says what it has said before; if its records have changed meanwhile it gives the attempt up, since
no randomness is ever used around two different values (encoding.py).
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable

from tacit.channels.consortium.encoding import encoding_of, randomness_for
from tacit.channels.consortium.journals import Attempt, PartyJournal
from tacit.channels.consortium.letters import Answer, Result, Roster, Turn
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.protocol import PartySide
from tacit.channels.consortium.protocols import (
    check_consortium,
    check_own_run,
    party_side,
    roster_is_allowed,
    terms_of,
)
from tacit.channels.roles.budget import Budget, drawn_by
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.member_service import Opened
from tacit.channels.roles.standing import Standing, stopped_by, tell_waiting
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, RecordsChanged, Refused, TacitError, Unreachable
from tacit.privacy.certificate import Certificate

__all__ = ["Party"]

SEED_BYTES = 32
LAST_ATTEMPT = 2**31  # a journal has no numbers beyond 2^63


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
        self._standing: tuple[object, ...] = ()  # what we have told last of what we wait for
        self._step, self._body, self._again = 0, b"", False
        self._side: PartySide | None = None
        self.result: tuple[bytes, Certificate] | None = None
        journal.belongs_to(self.key)
        self._attempt = journal.attempt()
        budget.belongs_to(drawn_by(journal.identity, self.key))
        kept = journal.result()
        if kept is not None:  # we had it before a crash, and may not have settled
            self._end(kept[0], check_consortium(study, *kept))
            return
        if not journal.paid:
            self._reserve()
        if self._attempt is not None:
            self._take_up(self._attempt)

    def _reserve(self) -> None:
        """What was drawn under a reservation is gone on with by the journal that noted it alone:
        another one, a copy from before included, would release a second time for one charge."""
        drawn = self._budget.reserve(1)
        if drawn and self._journal.revealed() is None:
            raise Refused(
                f"your part in study {self.study.name} was revealed and paid for, and this folder "
                "does not know of it: it is an older copy. Start with the newest one, or leave the "
                "study (--leave): what was revealed is charged then."
            )

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
        letter = Letter("turn", number, write(Turn(self._step, self._body, self._again)))
        return [(self.study.aggregator.key, letter)]

    def give_up(self) -> None:
        """There is no round to miss: the curator waits, or goes on without us."""

    def opened(self, reply: Letter) -> Opened | None:
        """There are no rounds to be in time for."""
        return None

    def told(self, to: str, asked: Letter, reply: Letter | TacitError) -> None:
        self._asked = False
        if isinstance(reply, (Unreachable, CheckFailed)):
            return
        if isinstance(reply, Refused) and self._again:
            raise RecordsChanged(str(reply))
        if isinstance(reply, TacitError):
            raise reply
        match reply.kind:
            case "roster":
                self._begin(read(Roster, reply.body))
            case "answer":
                self._go_on(read(Answer, reply.body))
            case "model":
                self._take(read(Result, reply.body))
            case "stopped":
                raise stopped_by(read(Standing, reply.body), self.study)
            case "wait" if reply.body:
                self._wait(read(Standing, reply.body))

    def _wait(self, standing: Standing) -> None:
        """Say what we wait for, whenever it changes."""
        if standing.subject != self._standing:
            self._standing = standing.subject
            tell_waiting(self._tell, standing)

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
        if not 0 < roster.attempt <= LAST_ATTEMPT:
            raise Refused("the curator's attempts are not numbered as they should be.")
        parties = tuple(roster.parties)
        if self.key not in parties or not roster_is_allowed(self.study, parties):
            raise Refused("the curator's roster is not one that the study allows.")
        encoding = encoding_of(terms_of(self.study, parties), roster.attempt, self._local)
        attempt = Attempt(roster.attempt, parties, self._seed(), self._key.private_digest(encoding))
        self._journal.begin(attempt)
        self._take_up(attempt)
        self._tell("attempt begun", round=attempt.number, holders=len(parties))

    def _take_up(self, attempt: Attempt) -> None:
        """Begin the attempt, or go again through what was journaled of it."""
        self._attempt, self._again = attempt, False
        self._terms = terms_of(self.study, attempt.roster)
        if self._journal.revealed() is not None:
            self._repeat()
            return
        encoding = encoding_of(self._terms, attempt.number, self._local)
        if not hmac.compare_digest(attempt.encoding, self._key.private_digest(encoding)):
            self._set_aside(attempt)
            return
        self._side = party_side(
            self.study,
            self._terms,
            attempt.number,
            self._key,
            self._local,
            randomness_for(attempt.seed, encoding),
        )
        self._step, received = 0, b""
        for answer in self._journal.answers():
            self._step += 1
            self._side.send(self._step, received)
            received = answer
        body, said = self._next(self._side, received), self._journal.said()
        if said is None:
            self._journal.say(self._step + 1, body)
        elif said != (self._step + 1, body):  # whatever the reason is: not twice, and otherwise
            self._set_aside(attempt)
            return
        self._advance(body)

    def _repeat(self) -> None:
        """All that we have to say was written down before it left: it is repeated, byte for byte,
        whatever our records are by now."""
        found = self._journal.said()
        assert found is not None  # noted before the reveal was
        self._pay()
        self._side, (self._step, self._body) = None, found

    def _set_aside(self, attempt: Attempt) -> None:
        """What we encode is not what this attempt was begun with: nothing more is said in it. Its
        seed stays until another attempt begins: put back, the records can go on with it."""
        self._side = None
        self._step, self._body, self._again = 0, b"", True
        self._tell("records changed", round=attempt.number)

    def _go_on(self, answer: Answer) -> None:
        side = self._side
        if side is None or answer.step != self._step or self._step > self._terms.steps:
            return
        body = self._next(side, answer.body)  # refuses what is wrong, before it is kept
        self._journal.put(answer.step, answer.body, body)
        self._advance(body)

    def _next(self, side: PartySide, received: bytes) -> bytes:
        step = self._step + 1
        return b"" if step > self._terms.steps else side.send(step, received)

    def _advance(self, body: bytes) -> None:
        """Take the next step. The one that reveals is noted for good and paid first, in this order:
        a journal that has not noted it never reveals under what was drawn (`_reserve`)."""
        assert self._attempt is not None
        if self._step + 1 == self._terms.reveals_at:
            self._journal.reveal(self._attempt.number)
            self._pay()
            self._side = None  # and with it all that could take our masks off
        self._step, self._body = self._step + 1, body

    def _pay(self) -> None:
        assert self._attempt is not None
        if not self._journal.paid:
            self._budget.spend(1)
            self._journal.pay(self._attempt.number)

    # ── the end ──

    def _take(self, finished: Result) -> None:
        """Only the run that we have revealed in, if there is one, can have a result for us, and
        that we recompute."""
        model, attempt, roster = finished.model, self._attempt, None
        if attempt is not None and self._journal.revealed() is not None:
            roster, told = attempt.roster, self._journal.answers()
            check_own_run(self.study, self._terms, attempt.number, told, model, finished.evidence)
        certificate = check_consortium(self.study, model, finished.certificate, roster)
        if certificate.superseded is not None:
            raise CheckFailed(f"an old result of this study was shown: {certificate.superseded}.")
        # First the result, then the bill: whoever crashes after paying could not ask for it again.
        self._journal.put_result(model, finished.certificate)
        self._end(model, certificate)

    def _end(self, model: bytes, certificate: Certificate) -> None:
        self._budget.settle(certificate.to_json())
        self.result = model, certificate
        self._tell("model received", subject=certificate.subject)
