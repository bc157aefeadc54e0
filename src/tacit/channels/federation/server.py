"""A server: keeps one share of each holder, adds them up, adds its noise, answers once.

No input, no output, no clock here: `answer_all` takes letters and returns replies, and what must
outlive a crash is in the store before a reply exists. What the server relies on is the study alone.
The aggregator sends the state of a round, and with it how long the vectors are; what they are
clipped to, on which grid, and how much noise is due, the server computes for itself (`Study.plan`,
`Levels`), so an invented state changes what is asked, never how well it is hidden (server.md).

A round is answered once: it seals one question, answers it when all servers have sealed it, and the
noise follows from the question and a secret of its own, so asking again brings the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tacit.channels.federation.certify import Attestation, statement_of
from tacit.channels.federation.letters import (
    Holders,
    Past,
    Sealed,
    Share,
    Subject,
    Wanted,
    Witnessed,
    context_of,
    digest_of,
)
from tacit.channels.federation.noise_plan import NoisePlan, asked_by
from tacit.channels.federation.seals import (
    Question,
    check_seals,
    is_seal,
    mark_of,
    marks_of,
    seal,
)
from tacit.channels.federation.server_store import Round, ServerStore
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.standing import Statement
from tacit.channels.studies.study import Study
from tacit.crypto.prg import DerivedRandomness, Randomness
from tacit.crypto.ring import RingSum
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, InputError, Refused, TacitError, UsageError
from tacit.programs.levels import check_asked

__all__ = ["Server"]


class Server:
    """The state machine of one server in one study."""

    def __init__(
        self,
        study: Study,
        key: SigningKey,
        store: ServerStore,
        randomness: Callable[[int], Randomness] | None = None,
        tell: Tell = lambda event, **fields: None,
    ) -> None:
        """`randomness` is for tests, which name seeds by round; without it noise follows from the
        store's secret and the question."""
        self.study, self._key, self._store = study, key, store
        self._place = study.server_place(key.public_key)
        self._randomness, self._tell = randomness, tell
        self._names = {holder.key: holder.name for holder in study.holders}
        self._recall()

    def _recall(self) -> None:
        """All that is in memory, from the store: after a start, a crash or a failed write."""
        self._rounds = {r.number: r for r in self._store.rounds()}
        for known in self._rounds.values():
            self._check_version(known)
        # Whose shares are here for the last round, with a digest of each.
        self._arrived = {
            holder: mark_of(form, body) for holder, form, body in self._store.shares_of(self._last)
        }
        self._shown = self._store.shown()
        self._plan = NoisePlan(self.study)
        for done in self._rounds.values():
            if done.holders is not None:
                self._plan.charge(done.number, done.query)

    def _check_version(self, known: Round) -> None:
        """A round whose noise was planned otherwise cannot be counted as one of this study's."""
        planned = self.study.plan().stage(known.number).query
        try:
            check_asked(known.query, planned)
        except UsageError:
            raise Refused(
                f"round {known.number} of study {self.study.name} was opened by another version of "
                "tacit, with other bounds: the study cannot go on. Agree on a new one, and run it "
                "in a new folder."
            ) from None

    @property
    def is_finished(self) -> bool:
        return self._store.is_finished

    @property
    def length(self) -> int:
        """Of the vector of the round that is open, or was last; 0 before the first."""
        return self._rounds[self._last].query.length if self._rounds else 0

    def answer_all(self, asked: Sequence[tuple[str, Letter]]) -> list[Letter | TacitError]:
        """Answer letters by their senders; durable together, in one transaction."""
        try:
            with self._store.transaction():
                return [self._answer(sender, letter) for sender, letter in asked]
        except BaseException:
            self._recall()  # memory must not run ahead of the disk
            raise

    def _answer(self, sender: str, letter: Letter) -> Letter | TacitError:
        try:
            return self._dispatch(sender, letter)
        except TacitError as error:
            self._tell(f"{letter.kind} refused", round=letter.round, reason=str(error))
            if sender == self.study.aggregator.key:  # for the aggregator to show to holders
                error.statement = Statement.of(
                    self._key, self.study, letter.round, letter.kind, error
                )
            return error

    def _dispatch(self, sender: str, letter: Letter) -> Letter:
        number = letter.round
        if letter.kind == "share":
            return self._take(number, sender, letter.body)
        if sender != self.study.aggregator.key:
            raise Refused(f"only the study's aggregator may ask a server to {letter.kind}.")
        match letter.kind:
            case "open":
                return self._open(number, letter.body)
            case "present":
                return self._present(number)
            case "seal":
                return self._seal(number, read(Sealed, letter.body))
            case "close":
                return self._close(number, read(Sealed, letter.body))
            case "recall":
                return self._recall_round(number, read(Past, letter.body))
            case "attest":
                return self._attest(number, read(Subject, letter.body))
            case "finish":
                if not self.is_finished:
                    self._store.finish()
                    self._tell("study over")
                return Letter("finished", number)
        raise InputError(f"a server does not know how to {letter.kind}.")

    @property
    def _last(self) -> int:
        return max(self._rounds, default=0)

    @property
    def _wanted(self) -> int:
        """The first round that this server does not know the end of."""
        open_ = self._last and self._rounds[self._last].holders is None
        return self._last if open_ else self._last + 1

    def _is_behind(self, number: int) -> bool:
        """Whether the study may have gone on without us: the store was put back, then.

        Only a store that says so itself asks to be told; any other says no to what is out of turn.
        """
        last = self.study.last_round + 1
        return self._store.restored is not None and self._wanted < number <= last

    def _behind(self, asked: int) -> Letter:
        return Letter("behind", asked, write(Wanted(self._wanted)))

    # ── a round opens ──

    def _open(self, number: int, state: bytes) -> Letter:
        known = self._rounds.get(number)
        if known is not None:
            if known.state != digest_of(state):
                raise Refused(f"round {number} is open with another state.")
            return Letter("opened", number, self._own_word(known))
        if self._is_behind(number):
            return self._behind(number)
        self._may_open(number)
        self._begin(number, state)
        self._tell("round opened", round=number, length=self.length)
        return Letter("opened", number)

    def _begin(self, number: int, state: bytes) -> Round:
        _, query = asked_by(self.study, number, state)
        self.study.capacity_check(query)
        self._store.open_round(number, digest_of(state), query)
        self._rounds[number] = Round(number, digest_of(state), query)
        self._store.drop_shares(number)
        self._arrived = {}  # it is about the last round alone
        return self._rounds[number]

    def _own_word(self, known: Round) -> bytes:
        """What was sealed in this round, for an aggregator that has forgotten; else nothing."""
        if known.sealed is None:
            return b""
        question = known.sealed
        own = seal(self._key, self.study.digest, known.number, question.digest(self.study.digest))
        return write(Sealed(list(question.keys), list(question.marks), [own]))

    def _may_open(self, number: int) -> None:
        last = self.study.last_round
        if number > last:
            raise Refused(f"the study promises {last} rounds; there is no round {number}.")
        if self._store.newest_attested[1] and not self.study.plan().windows:
            raise Refused(
                f"this server has signed a result: the study ended with round {self._last}."
            )
        if number != self._last + 1:
            raise Refused(f"round {self._last + 1} comes next, not {number}.")
        if self._last and self._rounds[self._last].holders is None:
            raise Refused(f"round {self._last} is not closed yet.")

    # ── a share arrives ──

    def _take(self, number: int, holder: str, body: bytes) -> Letter:
        if holder not in self._names:
            raise Refused("this holder is not in the study.")
        share = read(Share, body)
        if share.before is not None:
            self._be_shown(number - 1, share.before)
        known = self._rounds.get(number)
        if known is None:
            raise Refused(f"round {number} is not open.")
        if number != self._last:
            raise Refused(f"round {number} is over: take part in round {self._wanted}.")
        if holder in self._arrived:
            if self._store.share(number, holder) != (share.form, share.body):
                raise Refused(f"another share of this holder is here for round {number}.")
            return Letter("stored", number)  # sent again: the answer may have been lost
        if known.answer is not None or not self._is_of_sum(known, holder):
            raise Refused(f"round {number} is closed: take part in the next.")
        if share.state != known.state:
            raise Refused(f"this share was made for another state of round {number}.")
        share.check(known.query.length)
        self._store.put_share(number, holder, share.form, share.body)
        self._arrived[holder] = mark_of(share.form, share.body)
        self._tell("share received", round=number, holder=self._names[holder])
        return Letter("stored", number)

    def _is_of_sum(self, known: Round, holder: str) -> bool:
        """Whether this share can still be summed: in any case before the round is sealed."""
        return known.sealed is None or holder in known.sealed.keys

    def _present(self, number: int) -> Letter:
        """Whose shares are here, and a digest of each."""
        if number not in self._rounds and self._is_behind(number + 1):
            return self._behind(number)
        if number != self._last:
            return Letter("holders", number, write(Holders([])))
        here = sorted(self._arrived.items())
        said = Holders([key for key, _ in here], [mark for _, mark in here])
        return Letter("holders", number, write(said))

    # ── what a round sums is settled ──

    def _seal(self, number: int, said: Sealed) -> Letter:
        """Our word that this is the one question that we answer in this round."""
        known = self._rounds.get(number)
        if known is None:
            return self._unknown(number)
        question = Question.of(number, known.state, said, self.study)
        if known.sealed is None:
            self._may_sum(question.keys)
            self._may_be_new(number)
            if self._is_lacking(question):
                return Letter("lacking", number)
            self._settle(known, question)
        elif known.sealed != question:
            raise Refused(_TWICE.format(number=number))
        return Letter("sealed", number, self._own_word(self._rounds[number]))

    def _unknown(self, number: int) -> Letter:
        if self._is_behind(number + 1):
            return self._behind(number)
        raise Refused(f"round {number} is not open.")

    def _may_be_new(self, number: int) -> None:
        """A round that is followed by one of which we were shown our seal is over."""
        if number not in self._shown and max(self._shown, default=0) > number:
            raise Refused(
                f"round {number} was over before this server's store was put back: nothing new is "
                "summed in it."
            )

    def _settle(self, known: Round, question: Question) -> None:
        """Once, and never against a seal of ours that anybody has shown us."""
        shown = self._shown.get(known.number)
        if shown is not None and shown != question.digest(self.study.digest):
            raise Refused(_TWICE.format(number=known.number))
        if known.holders is not None:
            raise Refused(f"round {known.number} is closed.")  # by a version that did not seal
        self._store.seal(question)
        self._rounds[known.number] = replace(known, sealed=question)

    def _be_shown(self, number: int, before: Witnessed) -> None:
        """A holder has seen us seal this. Whoever has forgotten it was put back to before it."""
        known = self._rounds.get(number)
        if known is not None and known.sealed is not None:
            return  # we remember
        (word,) = before.seals if len(before.seals) == 1 else ("",)
        if is_seal(self._key.public_key, word, self.study.digest, number, before.digest):
            self._note_shown(number, before.digest)

    def _note_shown(self, number: int, digest: bytes) -> None:
        if number not in self._shown:
            self._store.put_shown(number, digest)
            self._shown[number] = digest
            self._tell("forgotten round shown", round=number)

    def _recall_round(self, number: int, past: Past) -> Letter:
        """Take back into the books what we have sealed ourselves, and nothing else."""
        known = self._rounds.get(number)
        if known is not None and known.holders is not None:
            return Letter("recalled", number)  # told again: the answer may have been lost
        if self._is_behind(number):
            return self._behind(number)
        if number != self._wanted:
            raise Refused(f"round {self._wanted} comes next, not {number}.")
        question = Question.of(number, digest_of(past.state), past.sealed, self.study)
        digest = question.digest(self.study.digest)
        check_seals(self.study, number, digest, past.sealed.seals)
        if known is None:
            known = self._begin(number, past.state)
        if known.state != question.state:
            raise Refused(f"round {number} is open with another state.")
        if known.sealed is None:
            self._settle(known, question)
        elif known.sealed != question:
            raise Refused(_TWICE.format(number=number))
        self._store.close_round(number, question.keys, None)
        self._rounds[number] = replace(self._rounds[number], holders=question.keys)
        self._plan.charge(number, known.query)
        self._tell("round recalled", round=number, holders=len(question.keys))
        return Letter("recalled", number)

    # ── a round closes ──

    def _close(self, number: int, said: Sealed) -> Letter:
        known = self._rounds.get(number)
        if known is None:
            return self._unknown(number)
        question = Question.of(number, known.state, said, self.study)
        if known.sealed is not None and known.sealed != question:
            raise Refused(_TWICE.format(number=number))
        try:
            check_seals(self.study, number, question.digest(self.study.digest), said.seals)
        except CheckFailed as error:
            raise Refused(f"{error} A sum is given away only once all have sealed it.") from None
        if known.sealed is None:  # our own word is among them: we have forgotten it
            self._settle(known, question)
        if known.answer is not None:
            return Letter("partial", number, known.answer)
        if self._is_lacking(question):
            return Letter("lacking", number)
        return Letter("partial", number, self._answered(self._rounds[number], question))

    def _answered(self, known: Round, question: Question) -> bytes:
        number, holders = known.number, question.keys
        answer = self._noisy_sum(known, question)
        self._store.close_round(number, holders, answer)
        self._rounds[number] = replace(known, holders=holders, answer=answer)
        self._tell("round closed", round=number, holders=len(holders))
        return answer

    def _is_lacking(self, question: Question) -> bool:
        """Whether shares of this sum are not here, though they were; Refused if others are."""
        marks = self._arrived if question.number == self._last else {}
        here = [marks[key] for key in question.keys if key in marks]
        if len(here) < len(question.keys):
            if self._store.restored is not None:
                return True
            missing = len(question.keys) - len(here)
            raise Refused(f"the shares of {missing} of these holders are not here.")
        if marks_of(here) != question.marks[self._place]:
            raise Refused(f"the shares that are here for round {question.number} are others.")
        return False

    def _may_sum(self, holders: Sequence[str]) -> None:
        least, most = self.study.take_part.minimum, self.study.take_part.maximum
        if not least <= len(holders) <= most:
            raise Refused(
                f"a sum of {len(holders)} holders was asked for; the study allows {least} to "
                f"{most}."
            )

    def _noisy_sum(self, known: Round, question: Question) -> bytes:
        number, query = known.number, known.query
        total = RingSum(query.length)
        chosen, context = set(question.keys), context_of(self.study.digest, number)
        for bodies in self._store.bodies(number, "full", chosen):
            total.add(bodies)
        for seeds in self._store.bodies(number, "seed", chosen):
            total.add_seeds(seeds, context)
        integers = total.total.view(np.int64)
        source = self._source(question)
        # A round that was recalled is in our plan already: it is drawn again as it was.
        plan = self._plan if known.holders is None else NoisePlan(self.study)
        mechanisms = plan.charge(number, query)
        # Without privacy there are no mechanisms, and no noise.
        for (_, place), mechanism in zip(query.slices(), mechanisms, strict=False):
            integers[place] = mechanism.perturb(integers[place], source)
        return integers.astype("<i8").tobytes()

    def _source(self, question: Question) -> Randomness:
        if self._randomness is not None:
            return self._randomness(question.number)
        digest = question.digest(self.study.digest)
        return DerivedRandomness.for_question(self._store.secret, digest)

    # ── what it did in all ──

    def _attest(self, number: int, result: Subject) -> Letter:
        """Sign our books and the one result that they belong to. It ends the study for us; in
        windows there is one after each."""
        if self._is_behind(number):
            return self._behind(number)
        result.check()
        if not self._last or self._rounds[self._last].holders is None:
            raise Refused(f"round {self._wanted} is not closed yet: there is nothing to attest.")
        plan = self.study.plan()
        if plan.windows and not plan.ends_window(self._last):
            raise Refused(f"round {self._last} does not end its window: there is no result yet.")
        known = self._store.attested(self._last)
        if known is None:
            self._store.attest(result.digest, self._last)
        elif known != result.digest:
            raise Refused(
                f"this server has signed another result of this study after {self._last} rounds: "
                "there is one model of the same rounds."
            )
        return Letter("attestation", number, write(self._attestation(result.digest)))

    def _attestation(self, subject: str) -> Attestation:
        given = self._randomness
        secure = given is None or all(given(number).secure for number in self._rounds)
        sets = [r.holders or () for r in self._rounds.values()]
        said = statement_of(self.study, self._plan, sets, secure, subject)
        return Attestation(self._key.sign(said), secure)


_TWICE = (
    "round {number} is to be summed in another way than it was: the difference of two sums would "
    "show a single holder."
)
