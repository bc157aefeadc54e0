"""The aggregator: opens rounds, counts who is there, decodes the noisy sum, publishes what is next.

No input, no output, no clock here. `tick` says what to ask the servers now, `told` takes what they
answered, `answer` serves holders; times are given by the caller. Every decision that a crash must
not change (the holders of a sum, the next state, the result) is in the journal before anybody hears
of it.

    gathering → ( opening → collecting → counting → sealing → closing )* → attesting → finishing

A server that refuses ends the study: its signed reason goes to every holder, and what comes next is
to let the servers go. A server that cannot be reached is waited for, but not without end.
In a study in windows there is a model after each: attesting → opening, until the last.

A server whose store was put back answers that it is *behind*, and is told what it has sealed since;
or that it is *lacking* shares, and holders are asked to send theirs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.channels.federation.aggregator_state import PATIENCE, AggregatorState
from tacit.channels.federation.certify import (
    certified,
    check_result,
    checked_attestation,
    remarks_of,
)
from tacit.channels.federation.history import repair, witnessed
from tacit.channels.federation.letters import Asked, Holders, News, Sealed, Wanted
from tacit.channels.federation.noise_plan import took_part
from tacit.channels.federation.phases import QUESTIONS, Phase
from tacit.channels.federation.seals import marks_of
from tacit.channels.roles.letters import Finished, Letter, read, write
from tacit.channels.roles.standing import Statement
from tacit.crypto.signing import digest
from tacit.errors import (
    CheckFailed,
    InputError,
    Refused,
    StudyStopped,
    TacitError,
    Unreachable,
)
from tacit.privacy.certificate import Witness

__all__ = ["ODD_ANSWERS", "Aggregator"]

SMALL = 4096  # bytes of a letter that carries next to nothing
ODD_ANSWERS = 20  # of one server, one after another, that are of no use, before a study stops


class Aggregator(AggregatorState):
    """The state machine of the aggregator of one study."""

    def limit(self, kind: str) -> int:
        if kind in ("ask", "leave", "status"):
            return SMALL
        raise InputError(f"an aggregator does not know how to {kind[:20]}.")

    # ── holders ask ──

    def answer(self, sender: str, letter: Letter, now: float) -> Letter:
        if letter.kind == "status" and sender in self._parties:
            return Letter("status", letter.round, write(self.standing(now)))
        if sender not in self._holders.names:
            raise Refused("this holder is not in the study.")
        match letter.kind:
            case "ask":
                asked = read(Asked, letter.body) if letter.body else Asked(0)
                done = self._hear(sender, letter, asked)
                return self._news(done, letter.round, asked, now)
            case "leave":
                self._holders.note(sender, here=False)
                return Letter("left", letter.round)
        raise InputError(f"an aggregator does not know how to {letter.kind}.")

    def _hear(self, holder: str, letter: Letter, asked: Asked) -> int:
        """Note that a holder asks; the last round that it has nothing left to do for."""
        self._holders.note(holder, here=True)
        done = letter.round
        if self.round and done == self.round and asked.attempt < self._rounds.last.attempt:
            return done - 1
        if done == self.round and self.phase is Phase.COLLECTING:
            self._holders.sent.add(holder)
        return done

    def _news(self, done: int, asked: int, said: Asked, now: float) -> Letter:
        result = self.result
        if result is not None:
            return Letter("model", asked, write(Finished(*result)))
        rounds, model, certificate = self._journal.newest()
        if rounds > said.model:
            return Letter("window", asked, write(Finished(model, certificate)))
        if self.failure is not None:
            return Letter("stopped", asked, write(self.standing(now)))
        if self.phase is Phase.COLLECTING and done < self.round and self.deadline is not None:
            left, step = max(0.0, self.deadline - now), self._rounds.last
            before = witnessed(self.study, self._rounds.steps)
            news = News(step.number, left, step.state, step.attempt, before)
            return Letter("round", asked, write(news))
        return Letter("wait", asked, write(self.standing(now)))

    # ── time passes ──

    def tick(self, now: float) -> list[tuple[str, Letter]]:
        """Move on if it is time, and say what to ask which server now."""
        if self.failure is not None and self.phase is not Phase.STOPPING:
            return []
        if self.phase is Phase.GATHERING:
            self._gather(now)
        if self.phase is Phase.COLLECTING:
            self._collect(now)
        kind = QUESTIONS.get(self.phase)
        if kind is None or self._gave_up_servers(now):
            return []
        letter = Letter(kind, self.round, self._rounds.question(self.phase))
        keys = [server.key for server in self.study.servers]
        wanted = [key for key in keys if key not in self._asked and key not in self._answers]
        self._asked.update(wanted)
        return [(key, self._repairs.get(key, letter)) for key in wanted]

    def _gave_up_servers(self, now: float) -> bool:
        """Whether servers were asked for too long. After the end nobody waits for them."""
        if now < self._patience_ends or self.phase is Phase.STOPPING:
            return False
        names, asked = ", ".join(self._awaited()), QUESTIONS[self.phase]
        longest = PATIENCE * max(self.study.deadlines.gather, self.study.deadlines.round)
        self._fail(
            Unreachable(
                f"{names} did not {asked} round {self.round} within {longest:g} seconds. Start the "
                "aggregator again when they are back: it goes on from there."
            )
        )
        return True

    def _gather(self, now: float) -> None:
        here, late = len(self.waiting_for), self.deadline is not None and now >= self.deadline
        if here == len(self.study.holders) or (late and here >= self.study.take_part.minimum):
            self._rounds.begin()
            self._enter(Phase.OPENING, now)
        elif late:
            self._fail(
                Unreachable(
                    f"{here} holder(s) joined within {self.study.deadlines.gather:g} seconds; the "
                    f"study needs {self.study.take_part.minimum}. Start the aggregator again when "
                    "they are ready."
                )
            )

    def _collect(self, now: float) -> None:
        late = self.deadline is not None and now >= self.deadline
        chosen, sent = self._rounds.last.holders, self._holders.sent
        if chosen is not None:  # their shares, and no others, are wanted again
            if late or set(chosen) <= sent:
                self._enter(Phase.SEALING, now)
            return
        enough = len(sent) >= self.study.take_part.minimum
        if late or (enough and self.waiting_for <= sent):
            self._enter(Phase.COUNTING, now)

    # ── servers answer ──

    def told(self, server: str, asked: Letter, reply: Letter | TacitError, now: float) -> None:
        """What a server said to what `tick` asked; what is no longer wanted is ignored."""
        if self._repairs.get(server) == asked:
            self._repaired(server, asked, reply, now)
            return
        if asked.kind != QUESTIONS.get(self.phase) or asked.round != self.round:
            return
        if self.phase is Phase.STOPPING:
            return  # each is told once: they may be gone already
        self._asked.discard(server)
        try:
            if isinstance(reply, TacitError):
                raise reply
            if reply.kind == "behind":
                self._repairs[server] = repair(self._rounds.steps, read(Wanted, reply.body).number)
                self._tell("server put back", round=self.round)
                return
            if reply.kind == "lacking":
                self._lack(now)
                return
            self._answers[server] = self._understood(server, reply)
            del self._odd[server]
        except TacitError as error:
            self._refused(server, asked, error, now)
            return
        if len(self._answers) < len(self.study.servers):
            return
        try:
            self._all_told(now)
        except TacitError as error:
            self._fail(error)

    def _repaired(self, server: str, asked: Letter, reply: Letter | TacitError, now: float) -> None:
        self._asked.discard(server)
        if isinstance(reply, TacitError):
            self._refused(server, asked, reply, now)
        else:
            del self._repairs[server]

    def _refused(self, server: str, asked: Letter, error: TacitError, now: float) -> None:
        name = self.study.servers[self.study.server_place(server)].name
        self._tell("server failed", server=name, asked=asked.kind, reason=str(error))
        # Who is away is asked again; who says no, and signs it, will say no again.
        if error.statement or isinstance(error, Refused):
            self._stop(name, asked, error, now)
        elif not isinstance(error, Unreachable):
            self._odd[server] += 1
            if self._odd[server] >= ODD_ANSWERS:
                self._fail(
                    CheckFailed(
                        f"server {name} was asked to {asked.kind} round {self.round} "
                        f"{ODD_ANSWERS} times, and gave no answer that is of use: {error}"
                    )
                )

    def _stop(self, name: str, asked: Letter, error: TacitError, now: float) -> None:
        """For good: after a start we say the same to everybody, and ask nothing more."""
        statement = error.statement
        try:
            Statement.read(statement, self.study)
        except CheckFailed:  # from a version that signs none: our word alone
            statement = ""
        stopped = StudyStopped(f"server {name} refused to {asked.kind}: {error}")
        stopped.statement = statement
        with self._journal.transaction():
            self._journal.stop(str(stopped), statement)
        self._fail(stopped)
        self._enter(Phase.STOPPING, now)

    def _understood(self, server: str, reply: Letter) -> Any:
        match self.phase:
            case Phase.OPENING:
                return read(Sealed, reply.body) if reply.body else None
            case Phase.COUNTING:
                said = read(Holders, reply.body)
                return dict(zip(said.keys, said.marks, strict=False))
            case Phase.SEALING:
                return self._rounds.checked_seal(server, read(Sealed, reply.body))
            case Phase.CLOSING:
                return self._rounds.partial_sum(reply.body)
            case Phase.ATTESTING:
                rounds, subject = self._rounds, digest(self._rounds.model())
                return checked_attestation(
                    self.study, rounds.noise, rounds.sets, subject, server, reply.body
                )
        return True

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
        self._holders.sent.clear()
        sealed = [said for said in self._answers.values() if said is not None]
        if sealed:  # we were put back: the servers have settled this round with us before
            self._settle(sealed[0].keys, sealed[0].marks, now)
            return
        self._enter(Phase.COLLECTING, now)
        self._tell("round opened", round=self.round, of=self.study.last_round)

    def _choose(self, now: float) -> None:
        """The holders whose shares reached all servers."""
        limits, answers, holders = self.study.take_part, self._answers, self._holders
        chosen = sorted(set.intersection(*map(set, answers.values())))[: limits.maximum]
        lost = holders.sent - set(chosen)
        holders.absent |= self.waiting_for - set(chosen)
        if len(chosen) < limits.minimum:
            if lost:  # they have sent theirs, and a server has lost them
                holders.sent -= lost
                self._rounds.ask_again()
            self._wait_again(len(chosen), now)
            return
        marks = [
            marks_of(answers[server.key][holder] for holder in chosen)
            for server in self.study.servers
        ]
        self._failures = 0
        self._settle(chosen, marks, now)

    def _settle(self, chosen: Sequence[str], marks: Sequence[bytes], now: float) -> None:
        self._rounds.settle(chosen, marks)
        self._enter(Phase.SEALING, now)

    def _close(self, now: float) -> None:
        """All have given their word: from here on there is one sum of this round."""
        self._rounds.seal(tuple(self._answers[server.key] for server in self.study.servers))
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
        self._rounds.ask_again()
        self._holders.sent.clear()
        self._enter(Phase.COLLECTING, now)

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
        total = np.add.reduce(list(self._answers.values()), dtype=np.int64)  # modulo 2^64
        if not self._rounds.is_possible(total):
            self._retry_sum(now)
            return
        number, holders = self.round, len(self._rounds.last.holders or ())
        self._failures = 0
        self._rounds.go_on(total)
        self._tell("round done", round=number, holders=holders, of=self.study.last_round)
        self._resume(now)

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

    def _publish(self, now: float) -> None:
        rounds, model = self._rounds, self._rounds.model()
        secure = all(attestation.secure for attestation in self._answers.values())
        witnesses = tuple(
            Witness(server.key, self._answers[server.key].signature)
            for server in self.study.servers
        )
        part, remarks = took_part(rounds.sets), remarks_of(self.study, model)
        releases, subject = rounds.noise.releases, digest(model)
        draft = certified(self.study, releases, part, subject, witnesses, secure, remarks)
        certificate = draft.signed(self._key, self._date()).to_json()
        check_result(self.study, model, certificate, part.rounds)  # as every holder will
        if not rounds.have_ended:
            self._publish_window(part.rounds, model, certificate, now)
            return
        with self._journal.transaction():
            self._journal.put_result(model, certificate)
        self._tell("model published", rounds=part.rounds)
        self._enter(Phase.FINISHING, now)

    def _publish_window(self, rounds: int, model: bytes, certificate: str, now: float) -> None:
        """A model of all windows so far; the next one begins."""
        with self._journal.transaction():
            self._journal.put_newest(rounds, model, certificate)
        self._tell("window published", window=self.study.window_of(rounds), rounds=rounds)
        self._enter(Phase.OPENING, now)
