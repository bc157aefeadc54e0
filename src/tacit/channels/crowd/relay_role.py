"""What a relay does in the course of a study: commits, reveals once, and passes each wave on.

`serve` is a script (errands.py); `answer` takes packets in at any time.
"""

from __future__ import annotations

import hashlib

from tacit.channels.crowd.drawing import checked_seed, members_of, reveal, roster_digest
from tacit.channels.crowd.errands import Errand, Script
from tacit.channels.crowd.layers import layers
from tacit.channels.crowd.letters import (
    Batches,
    Bulletin,
    Commitment,
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
from tacit.crypto.lots import commitment
from tacit.crypto.onion import OnionKey
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, InputError, Refused, Unreachable

__all__ = ["RelayRole"]

AT_ONCE = 256  # packets in one letter
TRIES = 4  # of handing a letter on
SMALL = 4096

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

    # ── packets in ──

    def limit(self, kind: str) -> int:
        """The longest body of a letter of this kind, in bytes; InputError for unknown kinds."""
        if kind != "packets":
            raise InputError(f"a relay does not answer letters of kind {kind}.")
        if self._relay is None:
            return SMALL
        return AT_ONCE * (self._relay.shape.packet_bytes + 8) + SMALL

    def answer(self, sender: str, letter: Letter) -> Letter:
        """Take packets in, or say why not."""
        self.limit(letter.kind)
        if self._relay is None:
            raise Refused("no wave is open here yet: try again a little later.")
        sent = read(Packets, letter.body)
        self._relay.take(sender, sent.stage, sent.wave, sent.hop, sent.packets)
        return Letter("taken", letter.round)

    # ── the script ──

    def serve(self) -> Script[None]:
        """From the proposal to the end of the study."""
        news = yield from self._bulletin(0)
        if news.phase == "gathering":
            yield from self._commit()
        while news.phase == "gathering":
            news = yield from self._bulletin(news.mark)
        if news.phase in ("failed", "over"):
            return
        yield from self._join(news)
        while news.phase == "drawing":
            news = yield from self._bulletin(news.mark)
        while news.phase == "asking":
            assert news.wave is not None  # while asking
            yield from self._wave(news, news.wave)
            news = yield from self._bulletin(news.mark)
        self._tell("study over")

    def _commit(self) -> Script[None]:
        body = write(Commitment(commitment(self._seed)))
        try:
            yield from self._asked(Letter("commit", 0, body))
        except Refused as error:  # too late for the lots, in time for the packets
            self._tell("not in the lots", reason=str(error))

    def _join(self, news: Bulletin) -> Script[None]:
        """Reveal our part of the lot, for one roster and never for another."""
        reply = yield from self._asked(Letter("roster", 0))
        roster, proposal = read(Roster, reply.body), self._proposal
        found = roster_digest(proposal.digest, roster)
        if found != news.roster:
            raise CheckFailed("the roster is another than the one that was announced.")
        members = members_of(proposal, roster)
        self._store.keep_roster(found)
        if news.phase == "drawing" and roster.commitments.get(self._place):
            said = reveal(self._key, proposal.digest, found, self._seed)
            yield from self._asked(Letter("reveal", 0, write(said)))
        elif news.drawn is not None:
            checked_seed(proposal, roster, news.drawn)
        self._members = frozenset(members)
        quota = max(proposal.drawn_up.packets(s) for s in range(proposal.drawn_up.stages))
        self._relay = Relay(
            proposal.digest,
            proposal.shape(len(members)),
            self._onion,
            self._place,
            [relay.key for relay in proposal.relays],
            proposal.route.batch,
            quota,
            self._store,
            self._randomness,
        )

    def _wave(self, news: Bulletin, wave: Wave) -> Script[None]:
        """Hold what comes until our window, pass it on shuffled, and say how much it was."""
        relay, windows = self._relay, self._proposal.windows
        assert relay is not None  # since _join
        try:
            relay.open_stage(wave.stage, wave.number, self._members, news.silent, wave.receipts)
        except Refused:  # of an earlier time, before we were started again
            return
        places = layers(len(self._proposal.relays), self._proposal.route.hops, news.silent)
        hop = next((hop for hop, layer in enumerate(places) if self._place in layer), None)
        if hop is not None:
            opens = wave.opens - self._ahead
            came = yield Errand(None, None, opens + windows.send + hop * windows.release)
            self._now = came.now
            yield from self._pass_on(relay, wave, hop)
        sizes = relay.attest(wave.stage, wave.number)
        body = write(Batches(wave.stage, wave.number, sizes))
        yield from self._asked(Letter("batches", 0, body))

    def _pass_on(self, relay: Relay, wave: Wave, hop: int) -> Script[None]:
        try:
            outgoing = relay.release(wave.stage, wave.number, hop)
        except Refused as error:
            self._tell("batch held back", reason=str(error))
            return
        self._tell("batch passed on", stage=wave.stage, wave=wave.number, hop=hop)
        parts = [
            (stop, stop.packets[start : start + AT_ONCE])
            for stop in outgoing
            for start in range(0, len(stop.packets), AT_ONCE)
        ]
        wait = self._proposal.windows.release / (TRIES + 1)
        for number in range(TRIES):
            parts = yield from self._sent(wave, parts, self._now + wait * (number > 0))
        if parts:  # are missed by their owners
            self._tell("packets lost", packets=sum(len(packets) for _, packets in parts))

    def _sent(self, wave: Wave, parts: Parts, moment: float) -> Script[Parts]:
        """Hand each part on, once; what is left. A stop that is not there is asked once, so that
        the others do not wait for it."""
        left: Parts = []
        gone: set[int | None] = set()
        for stop, packets in parts:
            if stop.to not in gone:
                body = write(Packets(wave.stage, wave.number, stop.hop, packets))
                came = yield Errand(stop.to, Letter("packets", 0, body), moment)
                self._now = came.now
                if isinstance(came.reply, Letter):
                    continue
                if isinstance(came.reply, Unreachable):
                    gone.add(stop.to)
            left.append((stop, packets))
        return left
