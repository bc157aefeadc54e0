"""The curator: gathers parties, carries their steps, restarts without whoever vanished.

No input, no output, no clock here. A curator that crashed goes through the bodies it had journaled
again; its own draws follow from a journaled seed, so it says what it has said before.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from pathlib import Path

from tacit.channels.consortium.journals import Attempt, CuratorJournal
from tacit.channels.consortium.letters import Answer, Result, Roster, Turn
from tacit.channels.consortium.protocol import CuratorSide
from tacit.channels.consortium.protocols import certified, curator_side, terms_of
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.standing import Standing, named
from tacit.channels.studies.study import Study
from tacit.crypto.prg import DerivedRandomness
from tacit.crypto.signing import SigningKey
from tacit.errors import InputError, Refused, TacitError, Unreachable

__all__ = ["Curator", "curator"]

SEED_BYTES = 32
SMALL = 4096
MOST_GIVEN_UP = 3  # attempts that one party may give up before the others go on without it
LARGEST_TURN = 2**27  # bytes: encrypted comparisons of many parties are long


class Curator:
    """The state machine of the curator of one study."""

    def __init__(
        self,
        study: Study,
        key: SigningKey,
        journal: CuratorJournal,
        now: float,
        tell: Tell = lambda event, **fields: None,
        seed: Callable[[], bytes] = lambda: os.urandom(SEED_BYTES),
        date: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self.study, self._key, self._journal = study, key, journal
        self._tell, self._seed, self._date = tell, seed, date
        self._names = {holder.key: holder.name for holder in study.holders}
        self._here: set[str] = set()
        self._given_up = Counter[str]()
        self._step = 0
        self.failure: TacitError | None = None
        self._attempt = journal.attempt()
        self.deadline: float | None = now + study.deadlines.gather
        if self._attempt is not None and not self.is_over:
            self._take_up(now)

    # ── what services ask ──

    @property
    def is_over(self) -> bool:
        return self.result is not None

    @property
    def result(self) -> tuple[bytes, str] | None:
        return self._journal.result()

    @property
    def waiting_for(self) -> set[str]:
        """Parties that the result belongs to."""
        return set(self._attempt.roster) if self._attempt else set()

    @property
    def round(self) -> int:
        return self._attempt.number if self._attempt else 0

    @property
    def mark(self) -> Hashable:
        return self.round, self._step, self.is_over, self.failure is None

    def limit(self, kind: str) -> int:
        """The longest letter of this kind, in bytes."""
        if kind == "turn":
            return LARGEST_TURN
        if kind in ("leave", "status"):
            return SMALL
        raise InputError(f"a curator does not know how to {kind[:20]}.")

    # ── parties take turns ──

    def answer(self, sender: str, letter: Letter, now: float) -> Letter:
        if letter.kind == "status" and sender in (*self._names, self.study.aggregator.key):
            return Letter("status", letter.round, write(self.standing(now)))
        if sender not in self._names:
            raise Refused("this party is not in the study.")
        if letter.kind == "leave":
            self._leave(sender, now)
            return Letter("left", letter.round)
        if letter.kind != "turn":
            raise InputError(f"a curator does not know how to {letter.kind}.")
        reply = self._turn(sender, letter.round, read(Turn, letter.body), now)
        if reply.kind == "wait":
            kind = "wait" if self.failure is None else "stopped"
            return Letter(kind, letter.round, write(self.standing(now)))
        return Letter(reply.kind, letter.round, reply.body)

    def standing(self, now: float) -> Standing:
        """For everybody who takes part: the step, who is waited for, and how long at most."""
        failure, gathering = self.failure, self._attempt is None
        if failure is not None:
            return Standing("stopped", self.round, reason=str(failure), kind=type(failure).__name__)
        if self.is_over:
            return Standing("over", self.round)
        wanted = set(self._names) - self._here
        if not gathering:
            wanted = set(self._terms.roster) - self._journal.delivered(self._step)
        return Standing(
            "gathering" if gathering else f"step {self._step} of {self._terms.steps}",
            self.round,
            awaited=named([name for key, name in self._names.items() if key in wanted]),
            seconds=None if self.deadline is None else max(0.0, self.deadline - now),
        )

    def _turn(self, sender: str, number: int, turn: Turn, now: float) -> Letter:
        if sender not in self._here:
            self._here.add(sender)
            self._tell("holder joined", holder=self._names[sender])
        result = self.result
        if result is not None:
            return Letter("model", number, write(Result(*result, self._journal.evidence())))
        attempt = self._attempt
        if attempt is None or sender not in attempt.roster or self.failure is not None:
            return Letter("wait", number)
        if number != attempt.number:
            return Letter("roster", number, write(Roster(attempt.number, list(attempt.roster))))
        if turn.again:
            return self._anew(sender, number, now)
        if turn.step > 0:
            self._take(sender, turn, now)
        if turn.step in self._answers:
            return Letter(
                "answer", number, write(Answer(turn.step, self._answers[turn.step][sender]))
            )
        result = self.result
        return (
            Letter("wait", number)
            if result is None
            else Letter("model", number, write(Result(*result, self._journal.evidence())))
        )

    def _take(self, sender: str, turn: Turn, now: float) -> None:
        if turn.step > self._terms.steps:
            return  # it has done all and waits for the model
        known = self._journal.bodies(turn.step)
        if sender in known:
            if known[sender] != turn.body:
                raise Refused(f"another letter of this party is here for step {turn.step}.")
            return
        if turn.step != self._step:
            raise Refused(f"step {self._step} comes next, not {turn.step}.")
        self._check(sender, turn, known)
        self._journal.put(turn.step, sender, turn.body)
        self._tell("step taken", round=self.round, step=turn.step, holder=self._names[sender])
        if len(known) + 1 == len(self._terms.roster):
            self._move(now)

    def _check(self, sender: str, turn: Turn, known: Mapping[str, bytes]) -> None:
        """What would spoil the attempt for all is its sender's trouble alone: it is not taken."""
        try:
            self._side.check(turn.step, sender, turn.body, known)
        except TacitError as error:
            name = self._names[sender]
            self._tell("step refused", round=self.round, step=turn.step, holder=name)
            raise Refused(f"step {turn.step} of {name} is refused: {error}") from None

    def _move(self, now: float) -> None:
        """All bodies of this step are here."""
        bodies = self._journal.bodies(self._step)
        try:
            if self._step < self._terms.steps:
                self._answers[self._step] = self._side.answer(self._step, bodies)
            else:
                self._publish(self._side.result(bodies), self._side.evidence(bodies))
        except TacitError as error:
            self._fail(error)
            return
        self._step += 1
        self.deadline = now + self.study.deadlines.round

    def _publish(self, model: bytes, evidence: bytes) -> None:
        last = self._journal.bodies(self._terms.steps)
        certificate = certified(self.study, self._terms, model, last).signed(
            self._key, self._date()
        )
        certificate.verify(self._key.public_key)
        self._journal.put_result(model, certificate.to_json(), evidence)
        self._tell("model published", holders=len(self._terms.roster))

    # ── time passes ──

    def tick(self, now: float) -> list[tuple[str, Letter]]:
        """Move on if it is time. A curator never speaks first."""
        late = self.deadline is not None and now >= self.deadline
        if self.failure is not None or self.is_over:
            return []
        if self._attempt is None:
            everyone = len(self._here) == len(self.study.holders)
            if everyone or late:
                self._begin(self._here, now)
        elif late:
            self._restart(now)
        return []

    def _begin(self, parties: set[str], now: float) -> None:
        least, most = self.study.take_part.minimum, self.study.take_part.maximum
        roster = tuple(sorted(parties)[:most])
        if len(roster) < max(2, least):
            self._fail(
                Unreachable(
                    f"{len(roster)} parties are there; the study needs {max(2, least)}. Start the "
                    "curator again when they are ready. Nothing was released, nobody pays."
                )
            )
            return
        attempt = Attempt(self.round + 1, roster, self._seed())
        self._journal.begin(attempt)
        self._attempt = attempt
        self._take_up(now)
        self._tell("attempt begun", round=attempt.number, holders=len(roster))

    def _take_up(self, now: float) -> None:
        """Begin the attempt, or go again through what was journaled of it."""
        assert self._attempt is not None
        attempt = self._attempt
        self._terms = terms_of(self.study, attempt.roster)
        randomness = DerivedRandomness(attempt.seed)
        self._side: CuratorSide = curator_side(self.study, self._terms, attempt.number, randomness)
        self._answers: dict[int, dict[str, bytes]] = {}
        self._step = 1
        self._here |= set(attempt.roster)
        self.deadline = now + self.study.deadlines.round
        while self.result is None and self.failure is None:
            bodies = self._journal.bodies(self._step)
            if len(bodies) < len(attempt.roster):
                break
            self._move(now)

    def _restart(self, now: float) -> None:
        """Somebody vanished: without them, if nothing was revealed yet and enough are left."""
        delivered = set(self._journal.bodies(self._step))
        gone = set(self._terms.roster) - delivered
        names = ", ".join(sorted(self._names[party] for party in gone))
        if self._step >= self._terms.reveals_at:
            self._fail(
                Unreachable(
                    f"{names} vanished in the last step: the sum cannot be read, but those who "
                    "have revealed their part pay for it. Start the curator again when they are "
                    "back: the run goes on."
                )
            )
            return
        self._tell("attempt given up", round=self.round, missing=names)
        self._here -= gone
        self._begin(set(self._terms.roster) - gone, now)

    def _leave(self, sender: str, now: float) -> None:
        """Nobody waits for it: the attempt is begun anew without it, if nothing was revealed yet.
        Later on the sum cannot be read without what it owes."""
        if sender in self._here:
            self._tell("holder left", holder=self._names[sender])
        self._here.discard(sender)
        going = self._attempt is not None and not self.is_over and self.failure is None
        if going and sender in self._terms.roster and self._step < self._terms.reveals_at:
            self._tell("attempt given up", round=self.round, missing=self._names[sender])
            self._begin(set(self._terms.roster) & self._here, now)

    def _anew(self, sender: str, number: int, now: float) -> Letter:
        """A party's records have changed: another attempt, with it, if nothing was revealed yet."""
        name = self._names[sender]
        if self._step >= self._terms.reveals_at:
            raise Refused(
                f"your records have changed, {name}, and the last step has begun: others may have "
                "revealed their part, so no other attempt is made. Put your records back as they "
                "were when this attempt began, and start again: it goes on. Or leave (--leave)."
            )
        self._given_up[sender] += 1
        stays = self._given_up[sender] <= MOST_GIVEN_UP
        self._tell("attempt begun anew", round=number, holder=name)
        self._here -= set() if stays else {sender}
        self._begin(set(self._terms.roster) & self._here, now)
        attempt = self._attempt
        assert attempt is not None
        if self.failure is not None or sender not in attempt.roster:
            return Letter("wait", number)
        return Letter("roster", number, write(Roster(attempt.number, list(attempt.roster))))

    def _fail(self, error: TacitError) -> None:
        self.failure = error
        self._tell("study stopped", reason=str(error))

    def told(self, server: str, asked: Letter, reply: Letter | TacitError, now: float) -> None:
        """Nobody is asked, so nobody answers."""


def curator(
    study: Study, key: SigningKey, folder: Path, now: float, tell: Tell
) -> tuple[Curator, CuratorJournal]:
    """The curator of a consortium, as its journal knows it."""
    journal = CuratorJournal(folder / "curator.db", study.digest)
    return Curator(study, key, journal, now, tell), journal
