"""What a relay does in the course of a study: commits, reveals once, and passes each wave on.

`serve` is a script (errands.py); `answer` takes packets in at any time, and says whether we object
to having been left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from tacit.channels.crowd.assignment import Assignment
from tacit.channels.crowd.drawing import committed, members_of, reveal, roster_digest
from tacit.channels.crowd.errands import Errand, Script
from tacit.channels.crowd.letters import (
    IDLE,
    Batches,
    Bulletin,
    LeftOut,
    Packets,
    Roster,
    Wave,
)
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.reader import Reader
from tacit.channels.crowd.relay import Outgoing, Relay
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.crypto.onion import OnionKey
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, InputError, Refused, Unreachable
from tacit.privacy.attested import BatchStatement

__all__ = ["RelayRole"]

AT_ONCE = 256  # packets in one letter
TRIES = 8  # of handing a letter on: what is lost then stays lost
SMALL = 4096
DRAWING = LeftOut(-1, -1)

Parts = list[tuple[Outgoing, list[bytes]]]


class RelayRole(Reader):
    """One relay in one study, over one store."""

    def __init__(
        self,
        proposal: Proposal,
        key: SigningKey,
        onion: OnionKey,
        store: RelayStore,
        randomness: Randomness = SYSTEM,
        tell: Tell = lambda event, **fields: None,
    ) -> None:
        super().__init__()
        proposal.check_current()
        self._proposal, self._key, self._onion, self._store = proposal, key, onion, store
        self._place = proposal.relay_place(key.public_key)
        if proposal.relays[self._place].onion != onion.public:
            raise Refused(
                "this onion key is not the one that the proposal names for this relay: use the "
                "folder that the relay's card was made with."
            )
        self._randomness, self._tell = randomness, tell
        # Follows from the onion key, so that a relay that was started again still has it.
        about = b"tacit crowd relay seed" + bytes.fromhex(proposal.digest)
        self._seed = hashlib.sha256(about + onion.to_bytes()).digest()
        self._relay: Relay | None = None
        self._objection = store.pinned("objection") or ""  # why we pass nothing on

    # ── letters of others ──

    def limit(self, kind: str) -> int:
        """The longest body of a letter of this kind, in bytes; InputError for unknown kinds."""
        if kind in ("left-out", "ready"):
            return SMALL
        if kind != "packets":
            raise InputError(f"a relay does not answer letters of kind {kind}.")
        if self._relay is None:
            return SMALL
        return AT_ONCE * (self._relay.shape.packet_bytes + 8) + SMALL

    def answer(self, sender: str, letter: Letter) -> Letter:
        """Take packets in, or say why not; or whether we object."""
        self.limit(letter.kind)
        if letter.kind == "left-out":
            was_there = self._was_there(read(LeftOut, letter.body))
            return Letter("objected" if was_there else "agreed", letter.round)
        if self._relay is None or self._objection:
            raise Refused("no wave is open here yet: try again a little later.")
        if letter.kind == "ready":
            about = read(LeftOut, letter.body)
            if not self._relay.is_open(about.stage, about.wave):
                raise Refused("this wave is not open here.")
            return Letter("ready", letter.round)
        sent = read(Packets, letter.body)
        self._relay.take(sender, sent.stage, sent.wave, sent.hop, sent.question, sent.packets)
        return Letter("taken", letter.round)

    def _was_there(self, about: LeftOut) -> bool:
        """Whether we have reason to object to having been left out: the collector has acknowledged
        our word, or answers have left us, which are not to be sent once more (relay.md)."""
        passed = any(
            gone and name != IDLE
            for (stage, wave, name), (_, gone) in self._store.passed_on().items()
            if (stage, wave) == (about.stage, about.wave)
        )
        return passed or self._store.pinned(_acknowledged(about)) is not None

    # ── the script ──

    def serve(self) -> Script[None]:
        """From the proposal to the end of the study. CheckFailed if the collector was caught: then
        nothing was passed on from that moment."""
        news = yield from self._bulletin(0)
        if news.phase == "gathering":
            yield from self._commit()
        while news.phase == "gathering":
            news = yield from self._bulletin(news.mark)
        if news.phase in ("failed", "over"):
            return
        roster = yield from self._reveal(news)
        while news.phase == "drawing":
            news = yield from self._bulletin(news.mark)
        if news.phase != "failed":
            yield from self._join(roster, news)
        while news.phase in ("issuing", "asking"):
            self._check_unchanged(news)
            if news.wave is not None and self._relay is not None:
                yield from self._wave(self._relay, news.wave)
            news = yield from self._bulletin(news.mark)
        if self._objection:
            raise CheckFailed(self._objection)
        self._tell("study over")

    def _commit(self) -> Script[None]:
        body = write(committed(self._key, self._proposal.digest, self._seed))
        try:
            yield from self._asked(Letter("commit", 0, body))
            self._store.pin("acknowledged commitment", "yes")
        except Refused as error:  # too late
            self._tell("not in the lots", reason=str(error))

    def _reveal(self, news: Bulletin) -> Script[Roster]:
        """Our part of the lot, for one roster and never for another."""
        reply = yield from self._asked(Letter("roster", 0))
        roster, proposal = read(Roster, reply.body), self._proposal
        found = roster_digest(proposal.digest, roster)
        if found != news.roster:
            raise CheckFailed("the roster is another than the one that was announced.")
        members_of(proposal, roster)
        self._store.pin("roster", found)
        if self._place not in roster.commitments:
            if self._store.pinned("acknowledged commitment") is not None:
                self._store.pin(_acknowledged(DRAWING), "yes")
        elif news.phase == "drawing":
            said = reveal(self._key, proposal.digest, found, self._seed)
            try:
                yield from self._asked(Letter("reveal", 0, write(said)))
                self._store.pin(_acknowledged(DRAWING), "yes")
            except Refused as error:  # too late
                self._tell("not in the lots", reason=str(error))
        return roster

    def _join(self, roster: Roster, news: Bulletin) -> Script[None]:
        """Check the drawing, and that nobody was left out of it who is there."""
        if news.drawn is None or news.roster != self._store.pinned("roster"):
            raise CheckFailed("the lots were drawn for another roster than ours.")
        drawn = Assignment(self._proposal, roster, news.drawn)
        self._shown = (news.roster, news.drawn)
        self._store.pin("drawing", drawn.drawing)
        if self._place not in drawn.relays:
            if self._store.pinned(_acknowledged(DRAWING)) is not None:
                self._object("the lots were drawn without our part, which the collector has had.")
            return
        self._relay = Relay(drawn, self._onion, self._place, self._store, self._randomness)
        absent = set(range(len(self._proposal.relays))) - set(drawn.relays)
        yield from self._hear(sorted(absent), DRAWING)

    def _check_unchanged(self, news: Bulletin) -> None:
        if (news.roster, news.drawn) != self._shown:
            raise CheckFailed("the collector shows another roster or other lots than before.")

    def _hear(self, places: Iterable[int], about: LeftOut) -> Script[None]:
        """Ask those that were left out whether they were there."""
        for place in places:
            if place == self._place:
                continue
            came = yield Errand(place, Letter("left-out", 0, write(about)))
            self._now = came.now
            if isinstance(came.reply, Letter) and came.reply.kind == "objected":
                name = self._proposal.relays[place].name
                self._object(f"relay {name} was heard, and the collector says that it was not.")

    def _object(self, reason: str) -> None:
        if not self._objection:
            self._objection = f"{reason} Nothing more is passed on; tell the others."
            self._store.pin("objection", self._objection)
            self._tell("objects", reason=reason)

    # ── one wave ──

    def _wave(self, relay: Relay, wave: Wave) -> Script[None]:
        """Hold what comes for the whole window, by our own clock; pass it on shuffled, and sign how
        much it was."""
        windows, learned = self._proposal.windows, self._now
        if learned > wave.opens - self._ahead + windows.send / 2:
            return  # too late to hold it for a whole window: we would be late for the next one too
        try:
            relay.open_wave(wave)
        except Refused:  # of an earlier time, before we were started again
            return
        before = LeftOut(wave.stage, wave.number - 1)
        silent = set(relay.drawn.relays) - set(wave.statements) if wave.number else set()
        if self._place in silent and self._was_there(before):
            self._object("we were there in the last wave, and the collector says that we were not.")
        yield from self._hear(sorted(silent), before)
        if relay.hop >= 0 and not self._objection:
            opens = max(wave.opens - self._ahead, learned)
            came = yield Errand(None, None, opens + windows.send + relay.hop * windows.release)
            self._now = came.now
            yield from self._pass_on(relay, wave)
        if not self._objection:
            yield from self._account(relay, wave)

    def _account(self, relay: Relay, wave: Wave) -> Script[None]:
        """How many packets came, and were passed on together: signed, for the certificate."""
        said = BatchStatement(
            self._key.public_key,
            relay.drawn.drawing,
            wave.stage,
            wave.number,
            relay.hop,
            dict(relay.attest(wave.stage, wave.number)),
        ).signed(self._key)
        try:
            yield from self._asked(Letter("batches", 0, write(Batches(said))))
            self._store.pin(_acknowledged(LeftOut(wave.stage, wave.number)), "yes")
        except Refused as error:  # too late
            self._tell("not heard", reason=str(error))

    def _pass_on(self, relay: Relay, wave: Wave) -> Script[None]:
        absent = yield from self._absent(relay, wave)
        try:
            outgoing = relay.release(wave, absent)
        except Refused as error:
            self._tell("batch held back", reason=str(error))
            return
        self._tell_of(relay, wave)
        parts = [
            (batch, batch.packets[start : start + AT_ONCE])
            for batch in outgoing
            for start in range(0, len(batch.packets), AT_ONCE)
        ]
        wait = self._proposal.windows.release / (TRIES + 1)
        for number in range(TRIES):
            parts = yield from self._sent(wave, parts, self._now + wait * (number > 0))
        if parts:  # are missed by their owners
            self._tell("packets lost", packets=sum(len(packets) for _, packets in parts))

    def _tell_of(self, relay: Relay, wave: Wave) -> None:
        sizes = relay.attest(wave.stage, wave.number)
        if any(gone for _, gone in sizes.values()):
            self._tell("batch passed on", stage=wave.stage, wave=wave.number, hop=relay.hop)
        held = ", ".join(name for name, (_, gone) in sizes.items() if name != IDLE and not gone)
        if held:
            reason = f"too few answers to {held} came in stage {wave.stage}, wave {wave.number}."
            self._tell("batch held back", reason=reason)

    def _absent(self, relay: Relay, wave: Wave) -> Script[set[int]]:
        """The relays after us that would not take our packets: they are asked before anything
        leaves, since nothing that has left us is ever sent again."""
        found, body = set(), write(LeftOut(wave.stage, wave.number))
        for place in sorted(relay.stops()):
            for _ in range(TRIES):
                came = yield Errand(place, Letter("ready", 0, body))
                self._now = came.now
                if isinstance(came.reply, Letter):
                    break
            else:
                found.add(place)
        return found

    def _sent(self, wave: Wave, parts: Parts, moment: float) -> Script[Parts]:
        """Hand each part on, once; what is left. A stop that is not there is asked once, so that
        the others do not wait for it."""
        left: Parts = []
        gone: set[int | None] = set()
        for batch, packets in parts:
            if batch.to not in gone:
                said = Packets(wave.stage, wave.number, batch.hop, batch.question, packets)
                came = yield Errand(batch.to, Letter("packets", 0, write(said)), moment)
                self._now = came.now
                if isinstance(came.reply, Letter):
                    continue
                if isinstance(came.reply, Unreachable):
                    gone.add(batch.to)
            left.append((batch, packets))
        return left


def _acknowledged(about: LeftOut) -> str:
    return f"acknowledged {about.stage} {about.wave}"
