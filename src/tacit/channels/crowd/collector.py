"""The collector: registers people, draws lots, signs tokens blindly, counts what arrives.

A state machine without input, output or clock: `answer` and `tick` are told the time. It is not
trusted with anything: what it could do if it lied is in collector.md.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable
from functools import cached_property

from tacit.channels.crowd.asking import Asking
from tacit.channels.crowd.assignment import Assignment, context_of, wave_digest
from tacit.channels.crowd.collector_store import CollectorStore, Phase, Progress, Stored
from tacit.channels.crowd.drawing import commits, reveals, roster_digest, roster_of
from tacit.channels.crowd.letters import (
    Batches,
    Bulletin,
    Commitment,
    Drawn,
    Packets,
    Reveal,
    Roster,
    SeenBulletin,
    TokenAsked,
    TokenGiven,
    Wave,
)
from tacit.channels.crowd.payload import read_payload
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.receipts import receipts_of
from tacit.channels.crowd.secrets import Secrets
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.crypto.lots import opens
from tacit.crypto.onion import open_payload
from tacit.crypto.ring_signatures import usable_in_rings
from tacit.errors import CheckFailed, InputError, Refused, UsageError

__all__ = ["Collector"]

PACKETS_AT_ONCE = 4096  # in one delivery of a relay
SMALL = 4096  # bytes: the longest of all other letters
LATE_WINDOWS = 4  # of sending, for which relays are waited for that must reveal


class Collector:
    """One study's, over one store. Started again over the same store, it goes on."""

    def __init__(
        self,
        proposal: Proposal,
        secrets: Secrets,
        store: CollectorStore,
        now: float,
        tell: Tell = lambda event, **fields: None,
    ) -> None:
        proposal.check_current()
        if not opens(proposal.collector.lot, secrets.seed):
            raise UsageError("these are the secrets of another study than the proposal's.")
        self._proposal, self._secrets, self._store, self._tell = proposal, secrets, store, tell
        self._members = set(store.members())
        self._commitments, self._reveals = store.lots()
        self._reports = {stored.mark: stored for stored in store.reports()}
        self._receipts_of: dict[int, bytes] = {}  # by stage
        found = store.progress()
        self._progress = found or Progress(1, "gathering", now + proposal.windows.register)
        if found is None:
            store.put_progress(self._progress)
        self._packets_seen: set[bytes] = set()  # of the open wave
        self._asking: Asking | None = None
        if self._progress.phase in ("issuing", "asking", "over"):
            self._asking = self._begun()
        if found is not None and found.phase in ("drawing", "issuing"):
            # While we were away nobody could reveal, or ask: they get the whole time again.
            self._go(found.phase, now + proposal.windows.send, stage=found.stage)

    # ── what is seen of it ──

    @property
    def is_over(self) -> bool:
        return self._progress.phase == "over"

    @property
    def failure(self) -> str:
        return self._progress.reason if self._progress.phase == "failed" else ""

    @property
    def mark(self) -> int:
        """Rises with every step of the study."""
        return self._progress.number

    @property
    def deadline(self) -> float | None:
        """When time alone changes something next."""
        progress = self._progress
        if progress.phase in ("over", "failed"):
            return None
        if progress.phase == "drawing" and len(self._reveals) < self._proposal.route.hops:
            windows = self._proposal.windows
            return progress.closes + LATE_WINDOWS * windows.send
        return progress.closes if progress.wave is None else self._wave_ends(progress.wave)

    def limit(self, kind: str) -> int:
        """The longest body of a letter of this kind, in bytes; InputError for unknown kinds."""
        if kind not in self._answers:
            raise InputError(f"a collector does not answer letters of kind {kind}.")
        if kind == "batches":
            return SMALL * (1 + len(self._proposal.questions))
        if kind != "packets" or self._asking is None:
            return SMALL
        return PACKETS_AT_ONCE * (self._asking.drawn.shape.packet_bytes + 8) + SMALL

    def is_last(self, sender: str, letter: Letter) -> bool:
        """Whether this letter is the last that somebody who carries out her part writes."""
        if not self.is_over:
            return False
        if sender in self._members:
            return (letter.kind, letter.round) == ("receipts", self._proposal.drawn_up.stages - 1)
        return letter.kind == "bulletin" and sender in self._officials

    # ── letters ──

    @cached_property
    def _answers(self) -> dict[str, Callable[[str, Letter, float], Letter]]:
        return {
            "register": self._register,
            "commit": self._commit,
            "reveal": self._reveal,
            "bulletin": self._bulletin,
            "roster": self._roster_letter,
            "token": self._token,
            "receipts": self._receipts,
            "packets": self._packets,
            "batches": self._batches,
        }

    def answer(self, sender: str, letter: Letter, now: float) -> Letter:
        """The reply to an authentic letter, or what it is refused for."""
        if letter.kind not in self._answers:
            raise InputError(f"a collector does not answer letters of kind {letter.kind}.")
        self.tick(now)
        reply = self._answers[letter.kind](sender, letter, now)
        self.tick(now)
        return reply

    def _register(self, sender: str, letter: Letter, now: float) -> Letter:
        group = self._proposal.group
        if sender not in self._members:
            if self._progress.phase != "gathering":
                raise Refused("registration is closed: the roster was drawn up without you.")
            if group.members and sender not in group.members:
                raise Refused("this key is not among those that may take part.")
            if sender in self._officials:
                raise Refused("a relay or collector does not answer questions itself.")
            if group.proof == "ring" and not usable_in_rings(sender):
                raise Refused("this key cannot be in a ring: make another with `tacit keys new`.")
            if len(self._members) >= group.maximum:
                raise Refused(f"the group is full: {group.maximum} people have registered.")
            self._store.put_member(sender)
            self._members.add(sender)
        return Letter("registered", letter.round)

    def _commit(self, sender: str, letter: Letter, now: float) -> Letter:
        place = self._relay(sender)
        said = read(Commitment, letter.body)
        if not commits(self._proposal, place, said):
            raise Refused("this commitment is not signed by the relay that it is for.")
        known = self._commitments.get(place)
        if known is not None and not hmac.compare_digest(known.commitment, said.commitment):
            raise Refused("you have committed to another seed already.")
        if known is None:
            if self._progress.phase != "gathering":
                raise Refused("the roster is closed: lots are drawn without you.")
            self._store.put_commitment(place, said)
            self._commitments[place] = said
            self._tell("relay ready", relay=self._proposal.relays[place].name)
        return Letter("committed", letter.round)

    def _reveal(self, sender: str, letter: Letter, now: float) -> Letter:
        place = self._relay(sender)
        said = read(Reveal, letter.body)
        if self._progress.phase == "gathering":
            raise Refused("the roster is not closed yet: keep your seed to yourself.")
        if place not in self._reveals:
            if self._progress.phase != "drawing":
                raise Refused("the lots are drawn: this study goes on without you.")
            if not reveals(self._proposal, self._roster, place, said):
                raise Refused("this is not the seed that you committed to, for this roster.")
            self._store.put_reveal(place, said)
            self._reveals[place] = said
        return Letter("revealed", letter.round)

    def _bulletin(self, sender: str, letter: Letter, now: float) -> Letter:
        if read(SeenBulletin, letter.body).mark >= self.mark:
            return Letter("wait", letter.round)
        return Letter("bulletin", letter.round, write(self.bulletin(now)))

    def _roster_letter(self, sender: str, letter: Letter, now: float) -> Letter:
        if self._progress.phase == "gathering":
            raise Refused("the roster is not closed yet.")
        return Letter("roster", letter.round, self._roster_body)

    def _token(self, sender: str, letter: Letter, now: float) -> Letter:
        """One blind signature for each person and question, before the first wave of its stage: who
        got hers later would be known by the wave that her answer comes in. The same request again
        gets the same."""
        asked = read(TokenAsked, letter.body)
        asking, key = self._open_study(), self._secrets.tokens.get(asked.question)
        if key is None or asked.question not in asking.drawn.names(sender):
            raise Refused("this question is not one that the lots have given to you.")
        given = self._store.issued(sender, asked.question)
        if given is None:
            if self._progress.phase != "issuing" or self._stage_of(asked.question) != self._stage:
                raise Refused("tokens of a stage are issued before its first wave, and not later.")
            given = asked.blinded, key.sign_blinded(asked.blinded)
            self._store.put_issued(sender, asked.question, *given)
            self._issued += 1
        elif not hmac.compare_digest(given[0], asked.blinded):
            raise Refused("you have had a token for this question, for another answer.")
        return Letter("token", letter.round, write(TokenGiven(given[1])))

    def _receipts(self, sender: str, letter: Letter, now: float) -> Letter:
        """All of a stage that is over. Whoever asks shows nothing but that she takes part."""
        self._open_study()
        if not 0 <= letter.round < self._proposal.drawn_up.stages:
            raise InputError(f"there is no stage {letter.round} to have receipts of.")
        if letter.round >= self._stage:
            raise Refused("there are receipts of a stage when it is over.")
        body = self._receipts_of.get(letter.round)
        if body is None:
            said = receipts_of(self._reports.values(), letter.round)
            body = self._receipts_of[letter.round] = write(said)
        return Letter("receipts", letter.round, body)

    def _packets(self, sender: str, letter: Letter, now: float) -> Letter:
        place, asking, sent = self._relay(sender), self._open_study(), read(Packets, letter.body)
        if self._is_open(sent) and self._last_of(sent.question) != place:
            raise Refused("packets of this question come from another relay.")
        kept: dict[bytes, Stored] = {}
        found: Counter[str] = Counter()
        for packet in sent.packets:
            fate = self._opened(asking, packet, sent)
            if isinstance(fate, str):
                found[fate] += 1
            else:
                found[self._counted(fate, kept)] += 1
        del found["counted"]
        self._store.put_reports(kept.values(), found, self._new(sent))
        self._reports.update(kept)
        asking.arrived += len(kept)
        if refused := {k: n for k, n in found.items() if k not in ("cover", "again")}:
            self._tell("reports refused", **{k.replace(" ", "_"): n for k, n in refused.items()})
        return Letter("taken", letter.round)

    def _new(self, sent: Packets) -> tuple[int, int, str, int]:
        """How many of these packets have not come before: relays repeat what was not answered."""
        marks = {hashlib.sha256(packet).digest() for packet in sent.packets}
        fresh = marks - self._packets_seen
        if self._is_open(sent):
            self._packets_seen |= fresh
        return sent.stage, sent.wave, sent.question, len(fresh) if self._is_open(sent) else 0

    def _is_open(self, sent: Packets) -> bool:
        wave = self._progress.wave
        return wave is not None and (sent.stage, sent.wave) == (wave.stage, wave.number)

    def _last_of(self, question: str) -> int | None:
        """The relay from which a question's answers come in the open wave."""
        drawn, wave = self._open_study().drawn, self._progress.wave
        assert wave is not None  # while it is open
        way = drawn.open_batches(wave).get(question)
        return None if way is None else way[-1]

    def _batches(self, sender: str, letter: Letter, now: float) -> Letter:
        """What a relay signs of the open wave; the first that it says."""
        place, said = self._relay(sender), read(Batches, letter.body).statement
        drawn, wave = self._open_study().drawn, self._progress.wave
        if self._store.statements(said.stage, said.wave).get(place) == said:
            return Letter("noted", letter.round)
        if wave is None or (said.stage, said.wave) != (wave.stage, wave.number):
            raise Refused("this wave is over.")
        left_out = drawn.left_out(wave)
        mine = {name for name, way in drawn.open_batches(wave).items() if place in way}
        if (
            (said.relay, said.drawing) != (sender, drawn.drawing)
            or said.hop != drawn.hop_of(place, left_out)
            or not set(said.batches) <= mine
            or not said.holds
        ):
            raise Refused("this is not about the batches that pass this relay in this wave.")
        if not self._store.put_statement(place, said):
            raise Refused("you have said something else of this wave before.")
        return Letter("noted", letter.round)

    # ── one packet ──

    def _opened(self, asking: Asking, packet: bytes, sent: Packets) -> Stored | str:
        """The report in a packet, or in a word why it does not count. No word says whose it is."""
        wave = self._progress.wave
        if wave is None or not self._is_open(sent):
            return "after the window"  # its owner may have sent it again already
        study, questions = self._proposal.digest, asking.questions
        try:
            context = context_of(asking.drawn.drawing, wave, sent.question)
            payload = open_payload(asking.drawn.shape, context, self._secrets.onion, packet)
        except CheckFailed:
            return "unreadable"
        try:
            answer = read_payload(payload, study, questions, asking.drawn.proofs.size)
        except InputError as error:
            return str(error)
        if answer is None:
            return "cover"
        question = questions[answer.question]
        if question.name != sent.question:
            return "another batch"  # it was hidden among answers to something else
        if not question.accepts(answer.report):
            return "malformed"
        mark = asking.drawn.proofs.mark(question.name, answer.report, answer.proof)
        if mark is None:
            return "forged"
        return Stored(mark, question.name, question.stage, sent.wave, answer.report)

    def _counted(self, stored: Stored, kept: dict[bytes, Stored]) -> str:
        known = self._reports.get(stored.mark) or kept.get(stored.mark)
        if known is None:
            kept[stored.mark] = stored
            return "counted"
        # The same report again is a lost receipt, not a fraud.
        return "again" if known.report == stored.report else "double use"

    # ── time ──

    def tick(self, now: float) -> None:
        """Let time do what is due; several steps may be."""
        while True:
            before = self._progress
            match before.phase:
                case "gathering":
                    self._close_roster(now)
                case "drawing":
                    self._draw(now)
                case "issuing":
                    self._end_issuing(now)
                case "asking":
                    self._end_wave(now)
            if self._progress is before:
                return

    def _close_roster(self, now: float) -> None:
        group, ready = self._proposal.group, len(self._commitments)
        full = len(self._members) >= min(len(group.members) or group.maximum, group.maximum)
        early = full and ready == len(self._proposal.relays)
        if now < self._progress.closes and not early:
            return
        if len(self._members) < group.minimum:
            self._fail(f"{len(self._members)} people registered, fewer than {group.minimum}")
        elif ready < self._proposal.route.hops:
            self._fail(f"{ready} relays are there, and a circuit has {self._proposal.route.hops}")
        else:
            self._tell("roster closed", people=len(self._members), relays=ready)
            self._go("drawing", now + self._proposal.windows.send)

    def _draw(self, now: float) -> None:
        """With everybody's part; after the window with as many as one must be honest of. Nothing
        was asked yet, so it does no harm to wait for these a little longer."""
        everyone, hops = len(self._reveals) == len(self._commitments), self._proposal.route.hops
        windows, late = self._proposal.windows, now - self._progress.closes
        if not everyone and late < 0:
            return
        if len(self._reveals) < hops:
            if late < LATE_WINDOWS * windows.send:
                return
            self._fail(f"{len(self._reveals)} relays revealed their part of the lot, of {hops}")
            return
        self._asking = asking = self._begun()
        self._store.put_drawing(asking.drawn.drawing, asking.drawn.relays)
        self._tell("lots drawn", people=len(self._members), relays=len(self._reveals))
        self._enter(0, now)

    def _enter(self, stage: int, now: float) -> None:
        """Have the answers of a stage made and proved; a ring is nobody's to issue."""
        asking = self._open_study()
        asking.enter(stage, self._reports.values())
        if self._proposal.group.proof == "ring":
            self._open_wave(Wave(stage, 0, now, thresholds=asking.thresholds))
            return
        self._issued = self._tokens_of(stage)
        self._go("issuing", now + self._proposal.windows.send, stage=stage)
        self._tell("tokens issued", stage=stage)

    def _end_issuing(self, now: float) -> None:
        asking = self._open_study()
        if self._issued < asking.expected and now < self._progress.closes:
            return
        asking.expected = self._issued  # people without a token send idle packets
        self._open_wave(Wave(self._stage, 0, now, thresholds=asking.thresholds))

    def _end_wave(self, now: float) -> None:
        asking, wave = self._open_study(), self._progress.wave
        assert wave is not None  # while asking
        complete = asking.arrived >= asking.expected
        statements = self._store.statements(wave.stage, wave.number)
        heard = len(statements) == len(asking.drawn.relays)
        if now < self._wave_ends(wave) and not (complete and heard):
            return
        if not complete and wave.number + 1 < self._proposal.windows.waves:
            after = self._next(wave, now)
            if asking.drawn.repeated(after):
                self._open_wave(after)
                return
        self._tell("stage over", stage=wave.stage, reports=asking.arrived, of=asking.expected)
        if wave.stage + 1 < self._proposal.drawn_up.stages:
            self._enter(wave.stage + 1, now)
        else:
            self._go("over", now, stage=self._proposal.drawn_up.stages)
            self._tell("study over", reports=len(self._reports))

    def _next(self, wave: Wave, now: float) -> Wave:
        """The wave in which questions are asked once more of which nothing has left a relay."""
        drawn, number = self._open_study().drawn, wave.number + 1
        found = Wave(
            wave.stage,
            number,
            now,
            wave.thresholds,
            self._store.statements(wave.stage, wave.number),
            self._store.delivered(wave.stage, wave.number),
            wave_digest(drawn.drawing, wave),
        )
        for place in drawn.left_out(found):
            name = self._proposal.relays[place].name
            self._tell("relay left out", stage=wave.stage, wave=number, relay=name)
        return found

    def _open_wave(self, wave: Wave) -> None:
        self._packets_seen.clear()
        self._go("asking", self._wave_ends(wave), wave, wave.stage)
        self._tell("wave opened", stage=wave.stage, wave=wave.number)

    def _go(
        self,
        phase: Phase,
        closes: float,
        wave: Wave | None = None,
        stage: int = 0,
        reason: str = "",
    ) -> None:
        step = Progress(self._progress.number + 1, phase, closes, wave, stage, reason)
        self._store.put_progress(step)
        self._progress = step

    def _fail(self, reason: str) -> None:
        self._tell("study stopped", reason=reason)
        self._go("failed", self._progress.closes, reason=reason)

    # ── what follows from the state ──

    def bulletin(self, now: float) -> Bulletin:
        progress, asking = self._progress, self._asking
        closed = progress.phase in ("drawing", "issuing", "asking", "over")
        return Bulletin(
            mark=self.mark,
            phase=progress.phase,
            now=now,
            registered=len(self._members),
            roster=self._roster_digest if closed else "",
            drawn=None if asking is None else Drawn(self._secrets.seed, self._reveals),
            stage=progress.stage,
            wave=progress.wave,
            thresholds={} if asking is None else asking.thresholds,
            arrived=0 if asking is None else asking.arrived,
            expected=0 if asking is None else asking.expected,
            reason=progress.reason,
        )

    @cached_property
    def _officials(self) -> set[str]:
        return {self._proposal.collector.key, *(relay.key for relay in self._proposal.relays)}

    @cached_property
    def _roster(self) -> Roster:
        """Only asked for once it is closed."""
        return roster_of(self._members, self._commitments)

    @cached_property
    def _roster_body(self) -> bytes:
        """Everyone asks for it, within a moment."""
        return write(self._roster)

    @cached_property
    def _roster_digest(self) -> str:
        return roster_digest(self._proposal.digest, self._roster)

    @property
    def _stage(self) -> int:
        """That is being asked; after the study, one more than there are."""
        return self._progress.stage

    def _wave_ends(self, wave: Wave) -> float:
        # One more release than there are hops: what the last relay sends must arrive.
        return wave.opens + self._proposal.wave_seconds + self._proposal.windows.release

    def _relay(self, sender: str) -> int:
        try:
            return self._proposal.relay_place(sender)
        except UsageError:
            raise Refused("only a relay of this study may say that.") from None

    def _open_study(self) -> Asking:
        if self._asking is None:
            raise Refused("nothing is asked yet: wait for the bulletin.")
        return self._asking

    def _stage_of(self, question: str) -> int:
        return self._proposal.questions[question].stage

    def _tokens_of(self, stage: int) -> int:
        tokens = self._store.tokens()
        return sum(number for name, number in tokens.items() if self._stage_of(name) == stage)

    def _begun(self) -> Asking:
        drawn = Drawn(self._secrets.seed, self._reveals)
        asking = Asking(Assignment(self._proposal, self._roster, drawn))
        for stage in range(self._stage + 1):
            asking.enter(stage, self._reports.values())
        self._issued = self._tokens_of(self._stage)
        if self._progress.phase == "asking" and self._proposal.group.proof == "tokens":
            asking.expected = self._issued
        return asking
