"""A relay: takes packets in, a layer off each, and passes them on in an order nobody can follow.

No network and no clock here: the service hands in what arrives, and says when a window is over. A
batch is what comes to one relay at one hop of one wave; it is released once, shuffled, or never
(relay.md). Packets are in memory only; that a batch was released is on the disk before it leaves.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tacit.channels.crowd.relay_store import RelayStore
from tacit.crypto.blind_permute import permuted, random_permutation
from tacit.crypto.onion import OnionKey, Peeled, Shape, peel
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import CheckFailed, InputError, Refused, UsageError

__all__ = ["Outgoing", "Relay", "Taken", "context_of"]


def context_of(
    study: str, stage: int, wave: int, silent: Iterable[int] = (), receipts: str = ""
) -> bytes:
    """What a packet is made for: one window of sending of one study (its digest, hexadecimal), the
    relays that were left out of it, from which everybody's layers follow, and the receipts by
    which people know what to send again (their digest).

    A layer can be opened in its own wave only, so a packet cannot come back in a later one. And a
    collector that shows different people different relays, to tell them apart by their circuits,
    or different receipts, to have one of them alone send again, makes packets that honest relays
    cannot open.
    """
    window = stage.to_bytes(4, "big") + wave.to_bytes(4, "big")
    return bytes.fromhex(study + receipts) + window + bytes(sorted(set(silent)))


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of packets handed in: taken, here already, or dropped as not made for us."""

    new: int
    again: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Packets for one stop: the relay with that place, or the collector (None)."""

    to: int | None
    hop: int  # at which they arrive there
    packets: list[bytes]


@dataclass(slots=True)
class _Batch:
    """What is here at one hop of the open wave."""

    marks: set[bytes] = field(default_factory=set)
    handed_in: Counter[str] = field(default_factory=Counter)
    people: set[str] = field(default_factory=set)  # first hop: who handed in something good
    peeled: list[Peeled] = field(default_factory=list)
    outgoing: list[Outgoing] | None = None


class Relay:
    """The state machine of one relay in one study."""

    def __init__(
        self,
        study: str,
        shape: Shape,
        key: OnionKey,
        place: int,
        relays: Sequence[str],
        minimum: int,
        quota: int,
        store: RelayStore,
        randomness: Randomness = SYSTEM,
    ) -> None:
        """
        place    this relay's among `relays`, the public identity keys of all
        minimum  people at the first hop, packets at the others, below which nothing is passed on
        quota    packets that one person may hand in at this relay in one wave
        """
        if key.kem != shape.kem:
            raise UsageError(f"the study's layers are made with {shape.kem}: make such a key.")
        if not 0 <= place < len(relays):
            raise UsageError(f"there is no place {place} among {len(relays)} relays.")
        if minimum < 1 or quota < 1:
            raise UsageError(f"minimum = {minimum} and quota = {quota}: both are at least 1.")
        self.study, self.shape, self.place, self.dropped = study, shape, place, 0
        self._key, self._relays, self._randomness = key, tuple(relays), randomness
        self._minimum, self._quota, self._store = minimum, quota, store
        self._stops = {None, *range(len(relays))} - {place}
        self._passed_on = store.passed_on()
        self._wave = max(((stage, wave) for stage, wave, _ in self._passed_on), default=(-1, -1))
        self._members: frozenset[str] | None = None  # None: no wave is open
        self._context = b""
        self._batches: dict[int, _Batch] = {}

    def open_stage(
        self,
        stage: int,
        wave: int,
        members: frozenset[str],
        silent: Iterable[int] = (),
        receipts: str = "",
    ) -> None:
        """Begin a wave, in which these people may hand in packets; what came before is over.

        Packets that were held back until now are dropped: their owners miss them.
        """
        if (stage, wave) < self._wave:
            raise Refused(f"stage {stage}, wave {wave} is over: {_name(self._wave)} has begun.")
        if (stage, wave) == self._wave and self._members is not None:
            if members != self._members:
                raise Refused(f"{_name(self._wave)} was opened for other people.")
            return
        self._wave, self._members = (stage, wave), members
        self._context = context_of(self.study, stage, wave, silent, receipts)
        self._batches = {hop: _Batch() for hop in range(self.shape.hops)}

    def take(self, sender: str, stage: int, wave: int, hop: int, packets: Sequence[bytes]) -> Taken:
        """Packets from a member (first hop) or from another relay, all or none of them.

        One that was handed in before is acknowledged and changes nothing. One that cannot be opened
        is dropped, and counted in `dropped`: every honest relay sends only what it has opened, so
        it is a person's or a dishonest relay's doing.
        """
        batch, members = self._batch(stage, wave, hop)
        if (stage, wave, hop) in self._passed_on:
            raise Refused(f"{_name(self._wave)}, hop {hop} was released: send in the next wave.")
        allowed = self._allowance(sender, hop, members)
        fresh = self._fresh(batch, hop, packets)
        if batch.handed_in[sender] + len(fresh) > allowed:
            raise Refused(f"a sender may hand in {allowed} packets at hop {hop} of a wave.")
        batch.handed_in[sender] += len(fresh)
        good = [peeled for packet in fresh.values() if (peeled := self._peeled(packet))]
        batch.marks.update(fresh)
        batch.peeled.extend(good)
        if good:
            batch.people.add(sender)
        self.dropped += len(fresh) - len(good)
        return Taken(len(good), len(packets) - len(fresh), len(fresh) - len(good))

    def release(self, stage: int, wave: int, hop: int) -> list[Outgoing]:
        """The batch, shuffled, by next stop; asked again, the same.

        A batch below the minimum is refused and held: more may come until the next wave begins.
        """
        batch, _ = self._batch(stage, wave, hop)
        if batch.outgoing is not None:
            return batch.outgoing
        if (stage, wave, hop) in self._passed_on:
            raise Refused(
                f"{_name(self._wave)}, hop {hop} was released before this relay was started again, "
                "and is gone: a second batch would undo the mixing of the first."
            )
        here = len(batch.people if hop == 0 else batch.peeled)
        if here < self._minimum:
            raise Refused(
                f"{_name(self._wave)}, hop {hop}: {here} are here and the study asks for "
                f"{self._minimum} at least: so few hide nobody. They are held until the next wave."
            )
        shuffled = self._shuffled(batch.peeled)
        self._store.put(stage, wave, hop, len(shuffled))
        self._passed_on[stage, wave, hop] = len(shuffled)
        batch.peeled, batch.outgoing = [], _by_stop(shuffled)
        return batch.outgoing

    def attest(self, stage: int, wave: int) -> dict[int, int]:
        """How many packets were passed on together in this wave, by hop: public numbers."""
        return {
            hop: packets
            for (s, w, hop), packets in sorted(self._passed_on.items())
            if (s, w) == (stage, wave)
        }

    def _batch(self, stage: int, wave: int, hop: int) -> tuple[_Batch, frozenset[str]]:
        if self._members is None or (stage, wave) != self._wave:
            raise Refused(f"{_name((stage, wave))} is not open here.")
        if hop not in self._batches:
            raise InputError(f"circuits have the hops 0 to {self.shape.hops - 1}, not {hop}.")
        return self._batches[hop], self._members

    def _allowance(self, sender: str, hop: int, members: frozenset[str]) -> int:
        """How many packets this sender may hand in; a relay no more than all people together."""
        if hop == 0:
            if sender not in members:
                raise Refused("only the people of this stage may hand in packets at the first hop.")
            return self._quota
        if sender not in self._relays or sender == self._relays[self.place]:
            raise Refused("after the first hop, packets come from the study's other relays.")
        return self._quota * len(members)

    def _fresh(self, batch: _Batch, hop: int, packets: Sequence[bytes]) -> dict[bytes, bytes]:
        """The packets that are not here yet, by their marks."""
        size = self.shape.packet_bytes
        if any(len(packet) != size or packet[0] != hop for packet in packets):
            raise InputError(
                f"a packet at hop {hop} has {size} bytes, of which the first is {hop}."
            )
        marked = {hashlib.sha256(packet).digest(): packet for packet in packets}
        return {m: packet for m, packet in marked.items() if m not in batch.marks}

    def _peeled(self, packet: bytes) -> Peeled | None:
        """Without its layer; None if it is not for us, or leads nowhere."""
        try:
            peeled = peel(self.shape, self._context, self._key, packet)
        except CheckFailed:
            return None
        return peeled if peeled.to in self._stops else None

    def _shuffled(self, packets: Sequence[Peeled]) -> list[Peeled]:
        return permuted(packets, random_permutation(len(packets), self._randomness))


def _by_stop(packets: Sequence[Peeled]) -> list[Outgoing]:
    """The collector first, then relays by place; in each the shuffled order."""
    stops: dict[int | None, list[bytes]] = {}
    for peeled in packets:
        stops.setdefault(peeled.to, []).append(peeled.packet)
    hop = packets[0].hop + 1
    return [
        Outgoing(to, hop, stops[to])
        for to in sorted(stops, key=lambda to: -1 if to is None else to)
    ]


def _name(wave: tuple[int, int]) -> str:
    return f"stage {wave[0]}, wave {wave[1]}"
