"""A person: registers, checks her lots, answers under noise, and sends until it has arrived.

`take_part` is a script without input, output or clock: it yields errands, one at a time, and is
sent what came of each. Started again over the same journal, it goes on. Whatever leaves was
randomised first, paid for before that, and is the same at every try (person.md).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from tacit.channels.crowd.assignment import Assignment, context_of
from tacit.channels.crowd.binning import cells, check_cuts
from tacit.channels.crowd.drawing import roster_digest
from tacit.channels.crowd.errands import Errand, Script
from tacit.channels.crowd.letters import (
    RECEIPT_BYTES,
    Bulletin,
    Packets,
    Receipts,
    Roster,
    TokenAsked,
    TokenGiven,
    Wave,
    counts_of,
    is_among,
    receipts_digest,
    thresholds_digest,
)
from tacit.channels.crowd.payload import COVER, Answer, receipt_of, signed_message
from tacit.channels.crowd.person_journal import Given, PersonJournal
from tacit.channels.crowd.proofs import ring_event
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.reader import Reader
from tacit.channels.roles.budget import Budget, drawn_by
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.crypto.blind_permute import random_permutation
from tacit.crypto.blind_signatures import Blinded
from tacit.crypto.onion import wrap
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.ring_signatures import ring_sign
from tacit.crypto.signing import SigningKey
from tacit.data.batch import Batch
from tacit.errors import CheckFailed, InputError, Refused, StudyStopped
from tacit.privacy.noise import uniform_below

__all__ = ["Person"]

TRIES = 8  # of handing in one packet in one wave
LATEST = 0.9  # of the window of sending: the way takes time too


class _Packet(NamedTuple):
    """Which batch of a wave a packet goes to, and by which relays."""

    drawn: Assignment
    wave: Wave
    batch: str
    way: tuple[int, ...]


class Person(Reader):
    """One person in one study, with the one row that she answers from.

    Without a row she takes part all the same, and nothing that leaves her device tells: her answers
    are those of a row drawn at random.
    """

    def __init__(
        self,
        proposal: Proposal,
        key: SigningKey,
        journal: PersonJournal,
        row: Batch | None,
        budget: Budget,
        randomness: Randomness = SYSTEM,
        tell: Tell = lambda event, **fields: None,
    ) -> None:
        super().__init__()
        proposal.check_current()
        self._proposal, self._key, self._row = proposal, key, row
        self._journal, self._budget = journal, budget
        self._randomness, self._tell = randomness, tell
        journal.belong_to(key.public_key)
        self._answers = journal.answers()
        budget.belongs_to(drawn_by(journal.identity, key.public_key))
        self._last = journal.last_wave()

    @property
    def answers(self) -> list[Given]:
        """What was answered so far."""
        return list(self._answers.values())

    def take_part(self) -> Script[None]:
        """The whole study. Raises what ends it: Refused, CheckFailed."""
        # The whole promise, before anybody hears of us.
        if self._budget.reserve(0) and not self._answers:
            raise Refused(
                "answers were drawn under this reservation, and this journal does not hold them: "
                "it is an older copy. Start with the folder in which they are."
            )
        yield from self._asked(Letter("register", 0))
        self._tell("registered")
        news = yield from self._bulletin(0)
        while news.phase in ("gathering", "drawing"):
            news = yield from self._bulletin(news.mark)
        if news.phase == "failed":
            raise StudyStopped(f"the study was stopped: {news.reason}. Nothing was asked of you.")
        drawn = yield from self._lots(news)
        while news.phase in ("issuing", "asking"):
            self._check_unchanged(news)
            if news.wave is None:
                yield from self._prepared(drawn, news)
            else:
                yield from self._wave(drawn, news, news.wave)
            news = yield from self._bulletin(news.mark)
        for stage in range(self._proposal.drawn_up.stages):
            yield from self._receipts(drawn, stage)
        self._tell_end()

    # ── the collector ──

    def _lots(self, news: Bulletin) -> Script[Assignment]:
        """Check every step of the drawing, and see what it gave to us: the first that we are shown,
        and never another."""
        reply = yield from self._asked(Letter("roster", 0))
        roster, proposal = read(Roster, reply.body), self._proposal
        if news.drawn is None or roster_digest(proposal.digest, roster) != news.roster:
            raise CheckFailed("the roster is another than the one that was announced.")
        drawn = Assignment(proposal, roster, news.drawn)
        if drawn.place_of(self._key.public_key) is None:
            raise CheckFailed(
                "you registered, but you are not in the roster: ask the collector why."
            )
        self._journal.pin("drawing", drawn.drawing)
        self._shown = (news.roster, news.drawn)
        mine = self._questions(drawn)
        self._tell("lots checked", questions=len(mine), people=len(drawn.members))
        return drawn

    def _check_unchanged(self, news: Bulletin) -> None:
        if (news.roster, news.drawn) != self._shown:
            raise CheckFailed(
                "the collector shows another roster, or other lots, than before: that is a fraud. "
                "Nothing more is sent; tell the others."
            )

    def _questions(self, drawn: Assignment) -> tuple[Question, ...]:
        return drawn.asked(self._key.public_key)

    def _receipts(self, drawn: Assignment, stage: int, wave: Wave | None = None) -> Script[bool]:
        """See which of our answers to this stage have arrived; of this wave, as it was announced.

        False if another wave has begun meanwhile. Receipts for us alone would have us alone send
        again, and show which report is ours.
        """
        reply = yield from self._asked(Letter("receipts", stage))
        said = read(Receipts, reply.body)
        if wave is not None and said.wave != wave.number:
            return False
        if wave is not None and receipts_digest(said) != wave.receipts:
            raise CheckFailed(
                "the collector shows other receipts than it has announced to everybody. Nothing "
                "more is sent."
            )
        if wave is None:
            counts = {name: len(main) // RECEIPT_BYTES for name, main in said.main.items()}
            self._journal.pin(f"receipts of stage {stage}", receipts_digest(said))
            self._journal.pin(f"counts of stage {stage}", counts_of(counts))
        for question in self._questions(drawn):
            given = self._answers.get(question.name)
            if question.stage == stage and given is not None and given.mark:
                receipt = receipt_of(given.mark)
                main = is_among(said.main.get(question.name, b""), receipt)
                later = is_among(said.later.get(question.name, b""), receipt)
                self._keep(replace(given, arrived=main or later, main=main))
        return True

    def _tell_end(self) -> None:
        arrived = [given for given in self._answers.values() if given.arrived]
        self._tell("answers arrived", arrived=len(arrived), of=len(self._answers))
        if not all(given.main for given in arrived):
            self._tell("sent again", answers=sum(not given.main for given in arrived))

    # ── answers ──

    def _prepared(self, drawn: Assignment, news: Bulletin) -> Script[None]:
        """Make our answers to a stage, and have them proved, before its first wave: whoever came by
        a token later would be seen to."""
        self._pin_thresholds(news.stage, news.thresholds)
        for question in self._questions(drawn):
            if question.stage == news.stage:
                given = self._answers.get(question.name) or self._randomised(question, news)
                if not given.proof:
                    yield from self._proved(drawn, question, given)

    def _pin_thresholds(self, stage: int, thresholds: dict[str, list[float]]) -> None:
        self._journal.pin(f"list of thresholds of stage {stage}", thresholds_digest(thresholds))

    def _randomised(self, question: Question, news: Bulletin) -> Given:
        """The one and only randomised answer; paid before it is drawn, kept before it is sent."""
        cuts = {name: tuple(edges) for name, edges in news.thresholds.items()}
        check_cuts(question, self._proposal.schema, cuts)
        self._check_cost(question)
        self._budget.spend(0)
        if self._row is None:
            value = uniform_below(question.values, 1, self._randomness)
        else:
            value = cells(question, self._proposal.schema, cuts, self._row)
        report = question.randomiser.release(value, self._randomness)[0].tobytes()
        blinded = b""
        if self._proposal.group.proof == "tokens":
            message = signed_message(self._proposal.digest, question.name, report)
            key = self._proposal.token_keys[question.name]
            blinded = key.blind(message, self._randomness).to_bytes()
        self._tell("answered", question=question.name)
        return self._keep(Given(question.name, report, blinded))

    def _check_cost(self, question: Question) -> None:
        """All that was ever answered from this journal, and this: whatever lots anybody shows."""
        names = {*self._answers, question.name}
        cost = sum(Fraction(self._proposal.questions[name].epsilon) for name in names)
        if cost > Fraction(self._proposal.promise.epsilon):
            raise CheckFailed(
                f"with this answer you would have given ε = {float(cost):g}, more than the "
                f"{self._proposal.promise.epsilon:g} that was promised to you. Nothing is sent."
            )

    def _proved(self, drawn: Assignment, question: Question, given: Given) -> Script[None]:
        """Without a proof an answer is never sent; as many packets as everybody's are."""
        message = signed_message(self._proposal.digest, question.name, given.report)
        if self._proposal.group.proof == "ring":
            event = ring_event(self._proposal.digest, question.name)
            signature = ring_sign(self._key, drawn.members, event, message, self._randomness)
            proof = signature.to_bytes()
        else:
            key = self._proposal.token_keys[question.name]
            blinded = Blinded.from_bytes(key, given.blinded)
            body = write(TokenAsked(question.name, blinded.blinded))
            try:
                reply = yield from self._asked(Letter("token", 0, body))
                proof = blinded.finalize(read(TokenGiven, reply.body).signature).to_bytes()
            except (Refused, CheckFailed, InputError) as error:
                self._tell("token refused", reason=str(error))
                return
        proof = proof.ljust(drawn.proofs.size, b"\0")
        mark = drawn.proofs.mark(question.name, given.report, proof)
        if mark is None:
            self._tell("token refused", reason="the signature does not make a valid token.")
            return
        self._keep(replace(given, proof=proof, mark=mark))

    # ── one wave ──

    def _wave(self, drawn: Assignment, news: Bulletin, wave: Wave) -> Script[None]:
        """Send as many packets as everybody: our answers that have not arrived, and cover."""
        self._journal.pin_wave(drawn.drawing, wave)
        left_out = drawn.left_out(wave)
        self._see_what_became(drawn, wave)
        closes = wave.opens - self._ahead + LATEST * self._proposal.windows.send
        if self._is_begun(wave) or self._now > closes:
            return  # whoever sent late would be seen to
        if wave.number > 0 and not (yield from self._receipts(drawn, wave.stage, wave)):
            return  # it is over already
        if wave.number == 0 and self._proposal.group.proof == "ring":  # which nobody issues
            yield from self._prepared(drawn, news)
        self._pin_thresholds(wave.stage, wave.thresholds)
        ways = drawn.ways(wave.stage, left_out)
        slots = drawn.slots(self._key.public_key, wave.stage)
        opens = max(wave.opens - self._ahead, self._now)
        moments = sorted(self._moment(opens, closes) for _ in slots)
        mixed = random_permutation(len(slots), self._randomness)
        self._last = (wave.stage, wave.number)
        self._journal.put_wave(*self._last)
        for moment, place in zip(moments, mixed, strict=True):
            batch = slots[place]
            packet = _Packet(drawn, wave, batch, ways[batch])
            yield from self._handed_in(packet, moment, closes)

    def _is_begun(self, wave: Wave) -> bool:
        """Whether we have sent in this wave before we were started again: a second packet with the
        same report would join two circuits. Whoever has us send in other waves than were proposed
        could do that too."""
        here = (wave.stage, wave.number)
        if here < self._last or wave.number >= self._proposal.windows.waves:
            raise CheckFailed(
                f"the collector opens wave {wave.number} of stage {wave.stage}, which is over or "
                "was not proposed. Tell the others; nothing more is sent."
            )
        return here == self._last

    def _to_send(self, given: Given, drawn: Assignment, wave: Wave) -> Given | None:
        """The answer with a note that it is sent; None if it is not, in this wave.

        All are sent in the first wave; if its relay says that too few were, everybody's once more
        in the second. What was not sent then is never: it would stand out among the few that are
        sent again.
        """
        if wave.number == 0:
            return replace(given, sent=0)
        if wave.number == 1 and drawn.held_back(wave, given.question):
            return replace(given, sent=1)
        return given if given.again else None

    def _see_what_became(self, drawn: Assignment, wave: Wave) -> None:
        """An answer is sent again only if as many as must were there when it was sent, or if nobody
        is left to say so: else it may be the only one that ever comes."""
        for given in self.answers:
            here = self._proposal.questions[given.question].stage == wave.stage
            if here and given.sent == wave.number - 1 and wave.number > 0:
                again = not drawn.held_back(wave, given.question)
                self._keep(replace(given, again=again))

    def _payload(self, batch: str, drawn: Assignment, wave: Wave) -> bytes:
        """Our answer, if it is to be sent in this wave, or cover."""
        given = self._answers.get(batch)
        if given is None or not given.proof or given.arrived:
            return COVER
        sending = self._to_send(given, drawn, wave)
        if sending is None:
            return COVER
        self._keep(sending)
        number = self._proposal.drawn_up.names.index(batch)
        return Answer(self._proposal.digest, number, given.report, given.proof).to_bytes()

    def _handed_in(self, packet: _Packet, moment: float, closes: float) -> Script[None]:
        """Give one packet to the first relay of its circuit.

        A relay that does not answer may have passed it on nevertheless: within a wave it gets the
        same packet again and nobody else gets another, or the collector would see one token twice
        and, with that relay's help, whose it is. What is lost is sent again in the next wave.
        """
        yield Errand(None, None, moment)
        wave, stops = packet.wave, self._proposal.stops
        sealed = wrap(
            packet.drawn.shape,
            context_of(packet.drawn.drawing, wave, packet.batch),
            [stops[place] for place in packet.way],
            self._proposal.collector.onion,
            self._payload(packet.batch, packet.drawn, wave),
        )
        body = write(Packets(wave.stage, wave.number, 0, packet.batch, [sealed]))
        for _ in range(TRIES):
            came = yield Errand(packet.way[0], Letter("packets", 0, body), moment)
            self._now = came.now
            if isinstance(came.reply, Letter) or came.now > closes:
                return
            moment = came.now + (closes - came.now) / TRIES

    def _moment(self, opens: float, closes: float) -> float:
        share = int(uniform_below(2**32, 1, self._randomness)[0]) / 2**32
        return opens + share * max(0.0, closes - opens)

    def _keep(self, given: Given) -> Given:
        self._journal.put(given)
        self._answers[given.question] = given
        return given
