"""A relay: takes packets in, a layer off each, and passes them on in an order nobody can follow.

No network and no clock here: the service hands in what arrives, and says when a window is over. A
batch is what comes to one relay in one wave for one question; it is released once, shuffled, or
never (relay.md). Packets are in memory only; that a batch was released is on the disk before it
leaves.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tacit.channels.crowd.assignment import Assignment, context_of
from tacit.channels.crowd.letters import IDLE, Wave
from tacit.channels.crowd.relay_store import RelayStore
from tacit.crypto.blind_permute import permuted, random_permutation
from tacit.crypto.onion import OnionKey, peel
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import CheckFailed, InputError, Refused, UsageError

__all__ = ["Outgoing", "Relay", "Taken"]


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of packets handed in: taken, here already, or dropped as not made for us."""

    new: int
    again: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A batch for its next stop: the relay with that place, or the collector (None)."""

    to: int | None
    hop: int  # at which it arrives there
    question: str
    packets: list[bytes]


@dataclass(slots=True)
class _Batch:
    """What is here of one question of the open wave."""

    context: bytes
    before: str | None  # the key of the relay that it comes from; None: from people
    after: tuple[int, ...]  # the relays that it passes next, before the collector
    marks: set[bytes] = field(default_factory=set)
    handed_in: Counter[str] = field(default_factory=Counter)
    people: set[str] = field(default_factory=set)  # first hop: who handed in something good
    received: int = 0
    peeled: list[bytes] = field(default_factory=list)

    @property
    def to(self) -> int | None:
        """Its next stop."""
        return self.after[0] if self.after else None

    @property
    def size(self) -> int:
        """What hides: people at the first hop, who can be told apart; packets after it."""
        return len(self.people) if self.before is None else len(self.peeled)


class Relay:
    """The state machine of one relay in one study."""

    def __init__(
        self,
        drawn: Assignment,
        key: OnionKey,
        place: int,
        store: RelayStore,
        randomness: Randomness = SYSTEM,
    ) -> None:
        """`place` is this relay's among those of the proposal."""
        if key.kem != drawn.shape.kem:
            raise UsageError(f"the study's layers are of {drawn.shape.kem}: make such a key.")
        self.drawn, self.shape, self.place, self.dropped = drawn, drawn.shape, place, 0
        self._key, self._store, self._randomness = key, store, randomness
        self._passed_on = store.passed_on()
        self._wave: Wave | None = None
        self._last = max(((stage, wave) for stage, wave, _ in self._passed_on), default=(-1, -1))
        self.hop = -1
        self._batches: dict[str, _Batch] = {}
        self._outgoing: list[Outgoing] | None = None

    def open_wave(self, wave: Wave) -> None:
        """Begin a wave, as everybody is shown it; what came before is over.

        Packets that were held back until now are dropped: their owners miss them. CheckFailed if
        this wave was another before.
        """
        if (wave.stage, wave.number) < self._last:
            raise Refused(f"{_name(wave)} is over: a later one has begun.")
        if wave == self._wave:
            return
        drawn = self.drawn
        left_out, batches = drawn.left_out(wave), drawn.open_batches(wave)
        self._store.pin_wave(drawn.drawing, wave)
        self._wave, self._last = wave, (wave.stage, wave.number)
        self._outgoing, self.hop = None, drawn.hop_of(self.place, left_out)
        self._batches = {
            name: self._batch(wave, name, way) for name, way in batches.items() if self.place in way
        }

    def _batch(self, wave: Wave, name: str, way: Sequence[int]) -> _Batch:
        hop = way.index(self.place)
        relays = self.drawn.proposal.relays
        return _Batch(
            context_of(self.drawn.drawing, wave, name),
            relays[way[hop - 1]].key if hop else None,
            tuple(way[hop + 1 :]),
        )

    def take(
        self, sender: str, stage: int, wave: int, hop: int, question: str, packets: Sequence[bytes]
    ) -> Taken:
        """Packets from a member (first hop) or from the relay before, all or none of them.

        One that was handed in before is acknowledged and changes nothing. One that cannot be opened
        is dropped, and counted in `dropped`: every honest relay sends only what it has opened, so
        it is a person's or a dishonest relay's doing, or of somebody who was shown other things.
        """
        batch = self._open(stage, wave, hop, question)
        if (stage, wave, question) in self._passed_on:
            raise Refused(f"stage {stage}, wave {wave} was released: send in the next wave.")
        allowed = self._allowance(sender, stage, question, batch)
        fresh = self._fresh(batch, packets)
        if batch.handed_in[sender] + len(fresh) > allowed:
            raise Refused(f"a sender may hand in {allowed} packets of this batch in a wave.")
        batch.handed_in[sender] += len(fresh)
        good = [peeled for packet in fresh.values() if (peeled := self._peeled(batch, packet))]
        batch.marks.update(fresh)
        batch.received += len(fresh)
        batch.peeled.extend(good)
        if good:
            batch.people.add(sender)
        self.dropped += len(fresh) - len(good)
        return Taken(len(good), len(packets) - len(fresh), len(fresh) - len(good))

    def stops(self) -> set[int]:
        """The relays that the batches of the open wave pass after us."""
        return {place for batch in self._batches.values() for place in batch.after}

    def release(self, wave: Wave, absent: Collection[int] = ()) -> list[Outgoing]:
        """All batches of the wave, each shuffled; asked again, the same.

        A batch below the share that the study asks for is held back: so few hide nobody. So is one
        that would pass a relay which is absent: what has left us is never sent again.
        """
        if wave != self._wave:
            raise Refused(f"{_name(wave)} is not open here.")
        if self._outgoing is None:
            self._outgoing = self._released(wave, absent)
        return self._outgoing

    def _released(self, wave: Wave, absent: Collection[int]) -> list[Outgoing]:
        about = (wave.stage, wave.number)
        if any((stage, number) == about for stage, number, _ in self._passed_on):
            raise Refused(
                f"{_name(wave)} was released before this relay was started again, and is gone: a "
                "second batch would undo the mixing of the first."
            )
        outgoing, sizes = [], {}
        for name, batch in self._batches.items():
            enough = batch.size >= self.drawn.required(name) and not set(batch.after) & set(absent)
            if name != IDLE or batch.received:  # the idle are often none at all
                sizes[name] = (batch.received, len(batch.peeled) if enough else 0)
            if enough:
                order = random_permutation(len(batch.peeled), self._randomness)
                shuffled = permuted(batch.peeled, order)
                outgoing.append(Outgoing(batch.to, self.hop + 1, name, shuffled))
        self._store.put(*about, sizes)
        for batch in self._batches.values():
            batch.peeled = []
        self._passed_on.update({(*about, name): size for name, size in sizes.items()})
        return outgoing

    def attest(self, stage: int, wave: int) -> Mapping[str, tuple[int, int]]:
        """Packets received and passed on together in this wave, by question: public numbers."""
        return {
            name: sizes
            for (s, w, name), sizes in sorted(self._passed_on.items())
            if (s, w) == (stage, wave)
        }

    def is_open(self, stage: int, wave: int) -> bool:
        """Whether we take packets of this wave."""
        here = self._wave
        return here is not None and (here.stage, here.number) == (stage, wave)

    def _open(self, stage: int, wave: int, hop: int, question: str) -> _Batch:
        here = self._wave
        if here is None or (stage, wave) != (here.stage, here.number):
            raise Refused(f"stage {stage}, wave {wave} is not open here.")
        if hop != self.hop or question not in self._batches:
            raise Refused(f"packets of {question!r} do not come here at hop {hop} in this wave.")
        return self._batches[question]

    def _allowance(self, sender: str, stage: int, question: str, batch: _Batch) -> int:
        """How many packets this sender may hand in; a relay no more than all people together."""
        if batch.before is None:
            slots = self.drawn.slots(sender, stage)
            # Whoever has no proof of an answer hands her packet in among the idle.
            allowed = len(slots) if question == IDLE else slots.count(question)
            if not allowed or self.drawn.place_of(sender) is None:
                raise Refused("only people who are asked this may hand in packets for it.")
            return allowed
        if sender != batch.before:
            raise Refused("after the first hop, packets come from the relay before.")
        return self.drawn.plan.packets(stage) * len(self.drawn.members)

    def _fresh(self, batch: _Batch, packets: Sequence[bytes]) -> dict[bytes, bytes]:
        """The packets that are not here yet, by their marks."""
        size = self.shape.packet_bytes
        if any(len(packet) != size or packet[0] != self.hop for packet in packets):
            raise InputError(
                f"a packet at hop {self.hop} has {size} bytes, of which the first is {self.hop}."
            )
        marked = {hashlib.sha256(packet).digest(): packet for packet in packets}
        return {m: packet for m, packet in marked.items() if m not in batch.marks}

    def _peeled(self, batch: _Batch, packet: bytes) -> bytes | None:
        """Without its layer; None if it is not for us, or leaves its batch's circuit."""
        try:
            peeled = peel(self.shape, batch.context, self._key, packet)
        except CheckFailed:
            return None
        return peeled.packet if peeled.to == batch.to else None


def _name(wave: Wave) -> str:
    return f"stage {wave.stage}, wave {wave.number}"
