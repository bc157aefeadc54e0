"""A person: registers, checks her lots, answers under noise, and sends until it has arrived.

`take_part` is a script without input, output or clock: it yields errands, one at a time, and is
sent what came of each. Started again over the same journal, it goes on. Whatever leaves was
randomised first, paid for before that, and is the same at every try.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tacit.channels.crowd.binning import cells
from tacit.channels.crowd.drawing import checked_seed, members_of, place_of, roster_digest
from tacit.channels.crowd.errands import Errand, Script
from tacit.channels.crowd.layers import layers
from tacit.channels.crowd.letters import (
    Bulletin,
    Packets,
    Receipts,
    Roster,
    TokenAsked,
    TokenGiven,
    Wave,
    is_among,
)
from tacit.channels.crowd.payload import COVER, Answer, receipt_of, signed_message
from tacit.channels.crowd.person_journal import Given, PersonJournal
from tacit.channels.crowd.proofs import Proofs, proofs_of, ring_event
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.reader import Reader
from tacit.channels.crowd.relay import context_of
from tacit.channels.roles.budget import Budget
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.crypto.blind_permute import random_permutation
from tacit.crypto.blind_signatures import Blinded
from tacit.crypto.onion import Hop, Shape, wrap
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.ring_signatures import ring_sign
from tacit.crypto.signing import SigningKey, digest
from tacit.data.batch import Batch
from tacit.errors import CheckFailed, Refused, StudyStopped, Unreachable
from tacit.privacy.noise import uniform_below

__all__ = ["Person"]

TRIES = 8  # of handing in one packet in one wave
LATEST = 0.9  # of the window of sending: the way takes time too


class Person(Reader):
    """One person in one study, with the one row that she answers from."""

    def __init__(
        self,
        proposal: Proposal,
        key: SigningKey,
        journal: PersonJournal,
        row: Batch,
        budget: Budget,
        randomness: Randomness = SYSTEM,
        tell: Tell = lambda event, **fields: None,
    ) -> None:
        super().__init__()
        self._proposal, self._key, self._row = proposal, key, row
        self._journal, self._budget = journal, budget
        self._randomness, self._tell = randomness, tell
        self._answers = journal.answers()
        budget.belongs_to(journal.identity)
        self._silent: set[int] = set()
        self._unreached: set[int] = set()
        self._last = journal.last_wave()

    @property
    def answers(self) -> list[Given]:
        """What was answered so far."""
        return list(self._answers.values())

    def take_part(self) -> Script[None]:
        """The whole study. Raises what ends it: Refused, CheckFailed."""
        self._budget.reserve(0)  # the whole promise, before anybody hears of us
        yield from self._asked(Letter("register", 0))
        self._tell("registered")
        news = yield from self._bulletin(0)
        while news.phase in ("gathering", "drawing"):
            news = yield from self._bulletin(news.mark)
        if news.phase == "failed":
            raise StudyStopped(f"the study was stopped: {news.reason}. Nothing was asked of you.")
        drawn = yield from self._lots(news)
        while news.phase == "asking":
            assert news.wave is not None  # while asking
            yield from self._wave(drawn, news, news.wave)
            news = yield from self._bulletin(news.mark)
        for stage in sorted({q.stage for q in drawn.asked}):
            yield from self._receipts(drawn, stage)
        arrived = sum(given.arrived for given in self._answers.values())
        self._tell("answers arrived", arrived=arrived, of=len(self._answers))

    # ── the collector ──

    def _lots(self, news: Bulletin) -> Script[_Drawn]:
        """Check every step of the drawing, and see what it gave to us."""
        reply = yield from self._asked(Letter("roster", 0))
        roster, proposal = read(Roster, reply.body), self._proposal
        if news.drawn is None or roster_digest(proposal.digest, roster) != news.roster:
            raise CheckFailed("the roster is another than the one that was announced.")
        seed = checked_seed(proposal, roster, news.drawn)
        place, members = place_of(roster, self._key.public_key), members_of(proposal, roster)
        asked = proposal.drawn_up.asked(place, len(members), seed)
        self._tell("lots checked", questions=len(asked), people=len(members))
        return _Drawn(members, asked, proposal.shape(len(members)), proofs_of(proposal, members))

    def _receipts(self, drawn: _Drawn, stage: int, wave: Wave | None = None) -> Script[bool]:
        """See which of our answers to this stage have arrived; of this wave, as it was announced.

        False if another wave has begun meanwhile. Receipts for us alone would have us alone send
        again, and show which report is ours.
        """
        reply = yield from self._asked(Letter("receipts", stage))
        said = read(Receipts, reply.body)
        digests = said.digests
        if wave is not None and said.wave != wave.number:
            return False
        if wave is not None and digest(digests) != wave.receipts:
            raise CheckFailed(
                "the collector shows other receipts than it has announced to everybody. Nothing "
                "more is sent."
            )
        for question in drawn.asked:
            given = self._answers.get(question.name)
            if question.stage == stage and given is not None and given.mark:
                arrived = is_among(digests, receipt_of(given.mark))
                self._keep(replace(given, arrived=arrived))
        return True

    # ── one wave ──

    def _wave(self, drawn: _Drawn, news: Bulletin, wave: Wave) -> Script[None]:
        """Send as many packets as everybody: our answers that have not arrived, and cover."""
        self._silent = {p for p in news.silent if 0 <= p < len(self._proposal.relays)}
        closes = wave.opens - self._ahead + LATEST * self._proposal.windows.send
        if self._is_begun(wave) or self._now > closes:
            return  # whoever sent late would be seen to
        if wave.number > 0 and not (yield from self._receipts(drawn, wave.stage, wave)):
            return  # it is over already
        payloads = []
        for question in drawn.asked:
            if question.stage == wave.stage:
                given = yield from self._answered(drawn, question, news)
                if given is not None and not given.arrived:
                    payloads.append(self._payload(question, given))
        slots = self._proposal.drawn_up.packets(wave.stage)
        payloads += [COVER] * (slots - len(payloads))
        opens = max(wave.opens - self._ahead, self._now)
        moments = sorted(self._moment(opens, closes) for _ in payloads)
        mixed = random_permutation(len(payloads), self._randomness)
        self._last = (wave.stage, wave.number)
        self._journal.put_wave(*self._last)
        for moment, place in zip(moments, mixed, strict=True):
            yield from self._handed_in(drawn, wave, payloads[place], moment, closes)

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

    def _answered(self, drawn: _Drawn, question: Question, news: Bulletin) -> Script[Given | None]:
        """Our answer with its proof; made once. None if its window was over before the proof."""
        given = self._answers.get(question.name)
        if given is None:
            given = self._randomised(question, news)
        if given.proof:
            return given
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
            except Refused as error:
                self._tell("token refused", reason=str(error))
                return None
            proof = blinded.finalize(read(TokenGiven, reply.body).signature).to_bytes()
        proof = proof.ljust(drawn.proofs.size, b"\0")
        mark = drawn.proofs.mark(question.name, given.report, proof)
        if mark is None:
            raise CheckFailed("the collector's signature does not make a valid token.")
        return self._keep(replace(given, proof=proof, mark=mark))

    def _randomised(self, question: Question, news: Bulletin) -> Given:
        """The one and only randomised answer; paid before it is drawn, kept before it is sent."""
        cuts = {name: tuple(edges) for name, edges in news.thresholds.items()}
        value = cells(question, self._proposal.schema, cuts, self._row)
        self._budget.spend(0)
        report = question.randomiser.release(value, self._randomness)[0].tobytes()
        blinded = b""
        if self._proposal.group.proof == "tokens":
            message = signed_message(self._proposal.digest, question.name, report)
            key = self._proposal.token_keys[question.name]
            blinded = key.blind(message, self._randomness).to_bytes()
        self._tell("answered", question=question.name)
        return self._keep(Given(question.name, report, blinded))

    def _payload(self, question: Question, given: Given) -> bytes:
        number = self._proposal.drawn_up.names.index(question.name)
        return Answer(self._proposal.digest, number, given.report, given.proof).to_bytes()

    def _handed_in(
        self, drawn: _Drawn, wave: Wave, payload: bytes, moment: float, closes: float
    ) -> Script[None]:
        """Give one packet to the first relay of a fresh circuit.

        A relay that does not answer may have passed it on nevertheless: within a wave it gets the
        same packet again and nobody else gets another, or the collector would see one token twice
        and, with that relay's help, whose it is. What is lost is sent again in the next wave.
        """
        packet, first = self._packet(drawn, wave, payload)
        body = write(Packets(wave.stage, wave.number, 0, [packet]))
        for _ in range(TRIES):
            came = yield Errand(first, Letter("packets", 0, body), moment)
            self._now = came.now
            if isinstance(came.reply, Letter):
                self._unreached.discard(first)
                return
            if isinstance(came.reply, Unreachable):
                self._unreached.add(first)
            if came.now > closes:
                return
            moment = came.now + (closes - came.now) / TRIES

    def _packet(self, drawn: _Drawn, wave: Wave, payload: bytes) -> tuple[bytes, int]:
        """A packet for a fresh circuit, and the place of its first relay."""
        circuit = self._circuit()
        study = self._proposal.digest
        context = context_of(study, wave.stage, wave.number, self._silent, wave.receipts)
        packet = wrap(drawn.shape, context, circuit, self._proposal.collector.onion, payload)
        return packet, circuit[0].address

    def _circuit(self) -> list[Hop]:
        """One relay of each layer, drawn anew; one that we could not reach in an earlier wave only
        where there is no other."""
        stops, chosen = self._proposal.stops, []
        for layer in layers(len(stops), self._proposal.route.hops, self._silent):
            within = [place for place in layer if place not in self._unreached] or layer
            drawn = int(uniform_below(len(within), 1, self._randomness)[0])
            chosen.append(stops[within[drawn]])
        return chosen

    def _moment(self, opens: float, closes: float) -> float:
        share = int(uniform_below(2**32, 1, self._randomness)[0]) / 2**32
        return opens + share * max(0.0, closes - opens)

    def _keep(self, given: Given) -> Given:
        self._journal.put(given)
        self._answers[given.question] = given
        return given


class _Drawn(NamedTuple):
    """What follows from the lots."""

    members: tuple[str, ...]
    asked: tuple[Question, ...]
    shape: Shape
    proofs: Proofs
