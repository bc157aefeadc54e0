"""The aggregator: opens rounds, counts who is there, decodes the noisy sum, publishes what is next.

No input, no output, no clock here. `tick` says what to ask the servers now, `told` takes what they
answered, `answer` serves holders; times are given by the caller. Every decision that a crash must
not change (the holders of a sum, the next state, the result) is in the journal before anybody hears
of it.

    gathering → ( opening → collecting → counting → sealing → closing )* → attesting → finishing

A server whose store was put back answers that it is *behind*, and is told what it has sealed since;
or that it is *lacking* shares, and holders are asked to send theirs again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.federation.certify import certified, check_result, checked_attestation
from tacit.channels.federation.history import asked_in, repair, sealed_of, witnessed
from tacit.channels.federation.journal import Journal, Step
from tacit.channels.federation.letters import Asked, Holders, News, Sealed, Subject, Wanted
from tacit.channels.federation.noise_plan import NoisePlan, took_part
from tacit.channels.federation.seals import check_seals, is_seal, marks_of
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Finished, Letter, read, write
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey, digest
from tacit.errors import CheckFailed, InputError, Refused, TacitError, Unreachable
from tacit.privacy.certificate import Witness
from tacit.programs.contribute import decoded
from tacit.programs.model_file import model_bytes
from tacit.programs.program import Query
from tacit.programs.states import state_bytes, state_from

__all__ = ["Aggregator", "Phase"]

SMALL = 4096  # bytes of a letter that carries next to nothing
PATIENCE = 3  # deadlines with too few holders, or sums out of range, before a study stops


class Phase(StrEnum):
    GATHERING = "gathering"
    OPENING = "opening"
    COLLECTING = "collecting"
    COUNTING = "counting"
    SEALING = "sealing"
    CLOSING = "closing"
    ATTESTING = "attesting"
    FINISHING = "finishing"
    OVER = "over"


# What each server is asked in each phase.
QUESTIONS = {
    Phase.OPENING: "open",
    Phase.COUNTING: "present",
    Phase.SEALING: "seal",
    Phase.CLOSING: "close",
    Phase.ATTESTING: "attest",
    Phase.FINISHING: "finish",
}


class Aggregator:
    """The state machine of the aggregator of one study."""

    def __init__(
        self,
        study: Study,
        key: SigningKey,
        journal: Journal,
        now: float,
        tell: Tell = lambda event, **fields: None,
        date: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        self.study, self._key, self._journal = study, key, journal
        self._program, self._tell, self._date = study.program(), tell, date
        self._plan = NoisePlan(study)
        self._names = {holder.key: holder.name for holder in study.holders}
        self._members = journal.members()
        self._absent: set[str] = set()  # missed a deadline, and not heard of since
        self._done: set[str] = set()  # say that all their shares of this round are sent
        self._repairs: dict[str, Letter] = {}  # what a server is told before it is asked again
        self._failures = 0
        self._model_file: bytes | None = None
        self.failure: TacitError | None = None
        self._recall(now)

    def _recall(self, now: float) -> None:
        """Where the journal ends is where we are."""
        self._steps = self._journal.steps()
        for step in self._steps[:-1]:  # the sum of the last one is not read yet
            self._plan.charge(step.number, self._asked_in(step))
        if self._steps:
            self._state = state_from(self._steps[-1].state, self.study.first_state())
        if self._journal.result() is not None:
            self._enter(Phase.FINISHING, now)
        elif not self._steps:
            self._enter(Phase.GATHERING, now)
        elif self._steps[-1].seals:
            self._enter(Phase.CLOSING, now)
        elif self._steps[-1].holders is not None:
            self._enter(Phase.SEALING, now)
        else:
            self._resume(now)

    def _resume(self, now: float) -> None:
        ended = self.round > self.study.last_round or self._asks(self.round, self._state) is None
        self._enter(Phase.ATTESTING if ended else Phase.OPENING, now)

    def _enter(self, phase: Phase, now: float) -> None:
        self.phase = phase
        self._asked: set[str] = set()
        self._answers: dict[str, Any] = {}
        limits = {
            Phase.GATHERING: self.study.deadlines.gather,
            Phase.COLLECTING: self.study.deadlines.round,
        }
        self.deadline = now + limits[phase] if phase in limits else None

    @property
    def round(self) -> int:
        return self._steps[-1].number if self._steps else 0

    @property
    def is_over(self) -> bool:
        return self.phase is Phase.OVER

    @property
    def result(self) -> tuple[bytes, str] | None:
        """The model file and its certificate, once there is one."""
        return self._journal.result()

    @property
    def waiting_for(self) -> set[str]:
        """Holders that joined, have not left, and were heard of since the last deadline."""
        return {holder for holder, here in self._members.items() if here} - self._absent

    @property
    def mark(self) -> Hashable:
        return self.phase, self.round, self.failure is None

    def limit(self, kind: str) -> int:
        if kind in ("ask", "leave"):
            return SMALL
        raise InputError(f"an aggregator does not know how to {kind[:20]}.")

    # ── holders ask ──

    def answer(self, sender: str, letter: Letter, now: float) -> Letter:
        if sender not in self._names:
            raise Refused("this holder is not in the study.")
        match letter.kind:
            case "ask":
                done = self._hear(sender, letter)
                return self._news(done, letter.round, now)
            case "leave":
                self._note(sender, here=False)
                return Letter("left", letter.round)
        raise InputError(f"an aggregator does not know how to {letter.kind}.")

    def _hear(self, holder: str, letter: Letter) -> int:
        """Note that a holder asks; the last round that it has nothing left to do for."""
        self._note(holder, here=True)
        self._absent.discard(holder)
        done = letter.round
        attempt = read(Asked, letter.body).attempt if letter.body else 0
        if self._steps and done == self.round and attempt < self._steps[-1].attempt:
            return done - 1
        if done == self.round and self.phase is Phase.COLLECTING:
            self._done.add(holder)
        return done

    def _note(self, holder: str, here: bool) -> None:
        if self._members.get(holder) is here:
            return
        with self._journal.transaction():
            self._journal.put_member(holder, here)
        self._members[holder] = here
        self._tell("holder joined" if here else "holder left", holder=self._names[holder])

    def _news(self, done: int, asked: int, now: float) -> Letter:
        result = self.result
        if result is not None:
            return Letter("model", asked, write(Finished(*result)))
        if self.phase is Phase.COLLECTING and done < self.round and self.deadline is not None:
            left, step = max(0.0, self.deadline - now), self._steps[-1]
            news = News(
                step.number, left, step.state, step.attempt, witnessed(self.study, self._steps)
            )
            return Letter("round", asked, write(news))
        return Letter("wait", asked)

    # ── time passes ──

    def tick(self, now: float) -> list[tuple[str, Letter]]:
        """Move on if it is time, and say what to ask which server now."""
        if self.failure is not None:
            return []
        if self.phase is Phase.GATHERING:
            self._gather(now)
        if self.phase is Phase.COLLECTING:
            self._collect(now)
        kind = QUESTIONS.get(self.phase)
        if kind is None:
            return []
        letter = Letter(kind, self.round, self._body())
        keys = [server.key for server in self.study.servers]
        wanted = [key for key in keys if key not in self._asked and key not in self._answers]
        self._asked.update(wanted)
        return [(key, self._repairs.get(key, letter)) for key in wanted]

    def _gather(self, now: float) -> None:
        here, late = len(self.waiting_for), self.deadline is not None and now >= self.deadline
        if here == len(self.study.holders) or (late and here >= self.study.take_part.minimum):
            self._begin(self.study.first_state(), now)
        elif late:
            self._fail(
                Unreachable(
                    f"{here} holder(s) joined within {self.study.deadlines.gather:g} seconds; the "
                    f"study needs {self.study.take_part.minimum}. Start the aggregator again when "
                    "they are ready."
                )
            )

    def _begin(self, state: Any, now: float) -> None:
        with self._journal.transaction():
            self._journal.put_step(1, state_bytes(state))
        self._steps, self._state = [Step(1, state_bytes(state))], state
        self._enter(Phase.OPENING, now)

    def _collect(self, now: float) -> None:
        late = self.deadline is not None and now >= self.deadline
        chosen = self._steps[-1].holders
        if chosen is not None:  # their shares, and no others, are wanted again
            if late or set(chosen) <= self._done:
                self._enter(Phase.SEALING, now)
            return
        enough = len(self._done) >= self.study.take_part.minimum
        if late or (enough and self.waiting_for <= self._done):
            self._enter(Phase.COUNTING, now)

    def _body(self) -> bytes:
        step = self._steps[-1]
        match self.phase:
            case Phase.OPENING:
                return step.state
            case Phase.SEALING | Phase.CLOSING:
                return write(sealed_of(step))
            case Phase.ATTESTING:
                return write(Subject(digest(self._model())))
        return b""

    # ── servers answer ──

    def told(self, server: str, asked: Letter, reply: Letter | TacitError, now: float) -> None:
        """What a server said to what `tick` asked; what is no longer wanted is ignored."""
        if self._repairs.get(server) == asked:
            self._repaired(server, asked, reply)
            return
        if asked.kind != QUESTIONS.get(self.phase) or asked.round != self.round:
            return
        self._asked.discard(server)
        try:
            if isinstance(reply, TacitError):
                raise reply
            if reply.kind == "behind":
                self._repairs[server] = repair(self._steps, read(Wanted, reply.body).number)
                self._tell("server put back", round=self.round)
                return
            if reply.kind == "lacking":
                self._lack(now)
                return
            self._answers[server] = self._understood(server, reply)
        except TacitError as error:
            self._refused(server, asked, error)
            return
        if len(self._answers) < len(self.study.servers):
            return
        try:
            self._all_told(now)
        except TacitError as error:
            self._fail(error)

    def _repaired(self, server: str, asked: Letter, reply: Letter | TacitError) -> None:
        self._asked.discard(server)
        if isinstance(reply, TacitError):
            self._refused(server, asked, reply)
        else:
            del self._repairs[server]

    def _refused(self, server: str, asked: Letter, error: TacitError) -> None:
        name = self.study.servers[self.study.server_place(server)].name
        self._tell("server failed", server=name, asked=asked.kind, reason=str(error))
        # Who is away or garbled is asked again; who says no will say no again.
        if isinstance(error, Refused):
            self._fail(Refused(f"server {name} refused to {asked.kind}: {error}"))

    def _understood(self, server: str, reply: Letter) -> Any:
        match self.phase:
            case Phase.OPENING:
                return read(Sealed, reply.body) if reply.body else None
            case Phase.COUNTING:
                said = read(Holders, reply.body)
                return dict(zip(said.keys, said.marks, strict=False))
            case Phase.SEALING:
                return self._seal_of(server, read(Sealed, reply.body))
            case Phase.CLOSING:
                return self._partial(reply.body)
            case Phase.ATTESTING:
                subject = digest(self._model())
                return checked_attestation(
                    self.study, self._plan, self._sets, subject, server, reply.body
                )
        return True

    def _seal_of(self, server: str, said: Sealed) -> str:
        step = self._steps[-1]
        digest = asked_in(step).digest(self.study.digest)
        (word,) = said.seals if len(said.seals) == 1 else ("",)
        if not is_seal(server, word, self.study.digest, step.number, digest):
            raise CheckFailed("it has not signed what it was asked to seal.")
        return word

    def _partial(self, body: bytes) -> NDArray[np.int64]:
        query = self._asked_in(self._steps[-1])
        if len(body) != 8 * query.length:
            raise CheckFailed(f"a partial sum has {8 * query.length} bytes, not {len(body)}.")
        return np.frombuffer(body, dtype="<i8").astype(np.int64)

    def _asked_in(self, step: Step) -> Query:
        query = self._asks(step.number, state_from(step.state, self.study.first_state()))
        assert query is not None  # a round is open only while there is something to ask
        return query

    def _asks(self, number: int, state: Any) -> Query | None:
        return self._program.asked(state, self.study.plan().stage(number).query)

    def _all_told(self, now: float) -> None:
        match self.phase:
            case Phase.OPENING:
                self._opened(now)
            case Phase.COUNTING:
                self._choose(now)
            case Phase.SEALING:
                self._close(now)
            case Phase.CLOSING:
                self._add_up(now)
            case Phase.ATTESTING:
                self._publish(now)
            case Phase.FINISHING:
                self._enter(Phase.OVER, now)

    def _opened(self, now: float) -> None:
        self._done.clear()
        sealed = [said for said in self._answers.values() if said is not None]
        if sealed:  # we were put back: the servers have settled this round with us before
            self._settle(sealed[0].keys, sealed[0].marks, now)
            return
        self._enter(Phase.COLLECTING, now)
        self._tell("round opened", round=self.round, of=self.study.last_round)

    def _choose(self, now: float) -> None:
        """The holders whose shares reached all servers."""
        limits, answers = self.study.take_part, self._answers
        chosen = sorted(set.intersection(*map(set, answers.values())))[: limits.maximum]
        lost = self._done - set(chosen)
        self._absent |= self.waiting_for - set(chosen)
        if len(chosen) < limits.minimum:
            if lost:  # they have sent theirs, and a server has lost them
                self._done -= lost
                self._ask_again()
            self._wait_again(len(chosen), now)
            return
        marks = [
            marks_of(answers[server.key][holder] for holder in chosen)
            for server in self.study.servers
        ]
        self._failures = 0
        self._settle(chosen, marks, now)

    def _settle(self, chosen: Sequence[str], marks: Sequence[bytes], now: float) -> None:
        """Whose sum this round is, before any server is asked for its word."""
        with self._journal.transaction():
            self._journal.choose(self.round, chosen, marks)
        self._steps[-1] = replace(self._steps[-1], holders=tuple(chosen), marks=tuple(marks))
        self._enter(Phase.SEALING, now)

    def _close(self, now: float) -> None:
        """All have given their word: from here on there is one sum of this round."""
        seals = tuple(self._answers[server.key] for server in self.study.servers)
        digest = asked_in(self._steps[-1]).digest(self.study.digest)
        check_seals(self.study, self.round, digest, seals)
        with self._journal.transaction():
            self._journal.keep_seals(self.round, seals)
        self._steps[-1] = replace(self._steps[-1], seals=seals)
        self._enter(Phase.CLOSING, now)

    def _lack(self, now: float) -> None:
        """A server that was put back has lost shares: holders have kept theirs, and send again."""
        self._tell("shares lost", round=self.round)
        self._failures += 1
        if self._failures >= PATIENCE:
            self._fail(
                Unreachable(
                    f"round {self.round}: a server was put back from a backup, and shares that it "
                    f"had are not to be had again in {PATIENCE} attempts. Start the aggregator "
                    "again when all holders of the round are back."
                )
            )
        self._ask_again()
        self._done.clear()
        self._enter(Phase.COLLECTING, now)

    def _ask_again(self) -> None:
        step = self._steps[-1]
        with self._journal.transaction():
            self._journal.ask_again(step.number, step.attempt + 1)
        self._steps[-1] = replace(step, attempt=step.attempt + 1)

    def _wait_again(self, here: int, now: float) -> None:
        self._failures += 1
        self._tell("too few holders", round=self.round, holders=here)
        if self._failures >= PATIENCE:
            self._fail(
                Unreachable(
                    f"round {self.round}: {here} holder(s) sent their shares to all servers in "
                    f"{PATIENCE} deadlines; the study needs {self.study.take_part.minimum}. Start "
                    "the aggregator again when they are back: it goes on from this round."
                )
            )
        self._enter(Phase.COLLECTING, now)

    def _add_up(self, now: float) -> None:
        last = self._steps[-1]
        query, holders = self._asked_in(last), last.holders or ()
        total = np.add.reduce(list(self._answers.values()), dtype=np.int64)  # modulo 2^64
        if not self._is_possible(total, query, len(holders)):
            self._retry_sum(now)
            return
        self._failures = 0
        self._plan.charge(self.round, query)
        rate = float(self.study.plan().stage(self.round).sampling)
        state = self._program.reduce(decoded(total, query) / rate, self._state)
        with self._journal.transaction():
            self._journal.put_step(self.round + 1, state_bytes(state))
        self._tell("round done", round=self.round, holders=len(holders), of=self.study.last_round)
        self._state = state
        self._steps.append(Step(self.round + 1, state_bytes(state)))
        self._resume(now)

    def _is_possible(self, total: NDArray[np.int64], query: Query, holders: int) -> bool:
        """Whether these holders, clipped to their bounds, could add up to this, noise included."""
        for block, place in query.slices():
            limit = self.study.largest_sum(block, holders)
            if bool((total[place] > limit).any() or (total[place] < -limit).any()):
                return False
        return True

    def _retry_sum(self, now: float) -> None:
        """A share or partial sum was garbage. Servers repeat their answers, so asking is free."""
        self._failures += 1
        self._tell("sum refused", round=self.round, reason="outside what its holders could send")
        if self._failures >= PATIENCE:
            self._fail(
                CheckFailed(
                    f"round {self.round}: the decoded sum lies outside what its holders could have "
                    "sent, noise included. A server or a holder does not follow the protocol; the "
                    "model was not touched."
                )
            )
        self._enter(Phase.CLOSING, now)

    def _fail(self, error: TacitError) -> None:
        self.failure = error
        self._tell("study stopped", reason=str(error))

    # ── the end ──

    @property
    def _sets(self) -> list[tuple[str, ...]]:
        return [step.holders for step in self._steps if step.holders is not None]

    def _model(self) -> bytes:
        """Of the last state, from which it follows: it is the same after a crash."""
        if self._model_file is None:
            model = self._program.result(self._state)
            self._model_file = model_bytes(model, self._program, self.study.schema)
        return self._model_file

    def _publish(self, now: float) -> None:
        model = self._model()
        secure = all(attestation.secure for attestation in self._answers.values())
        witnesses = tuple(
            Witness(server.key, self._answers[server.key].signature)
            for server in self.study.servers
        )
        part, subject = took_part(self._sets), digest(model)
        draft = certified(self.study, self._plan.releases, part, subject, witnesses, secure)
        certificate = draft.signed(self._key, self._date()).to_json()
        check_result(self.study, model, certificate, part.rounds)  # as every holder will
        with self._journal.transaction():
            self._journal.put_result(model, certificate)
        self._tell("model published", rounds=len(self._sets))
        self._enter(Phase.FINISHING, now)
