"""A person: registers, checks her lots, answers under noise, and sends with everybody, once.

`take_part` is a script without input, output or clock: it yields errands, one at a time, and is
sent what came of each. Started again over the same journal, it goes on. Whatever leaves was
randomised first, paid for before that, and is the same at every try (person.md).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from tacit.channels.crowd.assignment import Assignment, context_of
from tacit.channels.crowd.binning import cells, check_cuts
from tacit.channels.crowd.drawing import roster_digest
from tacit.channels.crowd.errands import Errand, Script
from tacit.channels.crowd.letters import (
    IDLE,
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
LATEST = 0.9  # of the window of sending, for a first try: the way takes time too


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
        if self._budget.reserve(0) and self._journal.pinned("payment") is None:
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
        arrived = sum(given.arrived for given in self._answers.values())
        self._tell("answers arrived", arrived=arrived, of=len(self._answers))

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

    def _receipts(self, drawn: Assignment, stage: int) -> Script[None]:
        """See which of our answers to this stage have arrived, and keep what everybody is shown."""
        reply = yield from self._asked(Letter("receipts", stage))
        said = read(Receipts, reply.body)
        counts = {name: len(found) // RECEIPT_BYTES for name, found in said.digests.items()}
        self._journal.pin(f"receipts of stage {stage}", receipts_digest(said))
        self._journal.pin(f"counts of stage {stage}", counts_of(counts))
        for question in self._questions(drawn):
            given = self._answers.get(question.name)
            if question.stage == stage and given is not None and given.mark:
                found = said.digests.get(question.name, b"")
                self._keep(replace(given, arrived=is_among(found, receipt_of(given.mark))))

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
        self._journal.pin("payment", "begun")  # a crash from here on loses an answer, and no more
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
        """Send as many packets as everybody: our answers, if they are asked for in this wave, and
        cover."""
        self._journal.pin_wave(drawn.drawing, wave)
        batches = drawn.open_batches(wave)
        closes = wave.opens - self._ahead + LATEST * self._proposal.windows.send
        if self._is_begun(wave) or self._now > closes:
            return  # whoever sent late would be seen to
        asks = wave.number == 0 or bool(drawn.repeated(wave))
        if asks and self._proposal.group.proof == "ring":  # which nobody issues
            yield from self._prepared(drawn, news)
        self._pin_thresholds(wave.stage, wave.thresholds)
        slots = self._slots(drawn, wave.stage, batches)
        opens = max(wave.opens - self._ahead, self._now)
        moments = sorted(self._moment(opens, closes) for _ in slots)
        mixed = random_permutation(len(slots), self._randomness)
        self._last = (wave.stage, wave.number)
        self._journal.put_wave(*self._last)
        for moment, place in zip(moments, mixed, strict=True):
            packet = _Packet(drawn, wave, slots[place], batches[slots[place]])
            yield from self._handed_in(packet, moment, closes)

    def _slots(self, drawn: Assignment, stage: int, batches: Collection[str]) -> list[str]:
        """The batch of each of our packets. An answer without a proof has no part in its batch, not
        even by cover: relays count who is there, and a collector that refuses all tokens but one
        would have that one's answer go among cover. We are among the idle then."""
        proved = {name for name, given in self._answers.items() if given.proof}
        slots = drawn.slots(self._key.public_key, stage)
        return [name if name in batches and name in proved else IDLE for name in slots]

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

    def _payload(self, batch: str) -> bytes:
        """Our answer; among the idle, cover."""
        given = self._answers.get(batch)
        if given is None:
            return COVER
        number = self._proposal.drawn_up.names.index(batch)
        return Answer(self._proposal.digest, number, given.report, given.proof).to_bytes()

    def _handed_in(self, packet: _Packet, moment: float, closes: float) -> Script[None]:
        """Give one packet to the first relay of its circuit.

        A relay that does not answer may have passed it on nevertheless: within a wave it gets the
        same packet again and nobody else gets another, or the collector would see one token twice
        and, with that relay's help, whose it is. What is lost then stays lost: whoever sent it in
        a later wave would be alone there.
        """
        yield Errand(None, None, moment)
        wave, stops = packet.wave, self._proposal.stops
        sealed = wrap(
            packet.drawn.shape,
            context_of(packet.drawn.drawing, wave, packet.batch),
            [stops[place] for place in packet.way],
            self._proposal.collector.onion,
            self._payload(packet.batch),
        )
        body = write(Packets(wave.stage, wave.number, 0, packet.batch, [sealed]))
        ends = closes + (1 - LATEST) * self._proposal.windows.send
        for _ in range(TRIES):
            came = yield Errand(packet.way[0], Letter("packets", 0, body), moment)
            self._now = came.now
            if isinstance(came.reply, Letter) or came.now > ends:
                return
            moment = came.now + (ends - came.now) / TRIES

    def _moment(self, opens: float, closes: float) -> float:
        share = int(uniform_below(2**32, 1, self._randomness)[0]) / 2**32
        return opens + share * max(0.0, closes - opens)

    def _keep(self, given: Given) -> Given:
        self._journal.put(given)
        self._answers[given.question] = given
        return given
