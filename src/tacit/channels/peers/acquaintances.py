"""A few peers remembered for good, so that a network which fell apart grows together again.

A view forgets within a few cycles. Two halves that a broken line has kept apart for longer know
nobody on the other side any more, and Newscast alone would leave them apart for ever. Each place
here holds one peer of all that were ever met, every one as likely as any other however often it was
met: the one whose hash under the place's secret salt is smallest (Bortnikov et al. 2009, Brahms,
section 3.1). Who shouts louder is not remembered sooner. The first place keeps the first peer met,
through whom this one came into the network, as long as it answers.
"""

from __future__ import annotations

import hashlib

from tacit.channels.peers.descriptors import Descriptor, origin
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.privacy.noise import uniform_below

__all__ = ["PATIENCE", "PLACES", "Acquaintances"]

PLACES = 8
PATIENCE = 8  # calls in a row without an answer: lines break for hours, and are mended
_HASH_BYTES = 16


class Acquaintances:
    def __init__(self, randomness: Randomness = SYSTEM) -> None:
        self._randomness = randomness
        self._places = [_Place(self._salt()) for _ in range(PLACES)]

    def meet(self, descriptor: Descriptor) -> None:
        """Remember it, or its newer address, wherever it is the smallest so far."""
        where = origin(descriptor.address).encode()
        for number, place in enumerate(self._places):
            place.meet(descriptor, where, for_good=number == 0)

    def missed(self, key: str) -> None:
        """It did not answer. Who does so too often makes room for another, found by a new salt."""
        for number, place in enumerate(self._places):
            if place.held is not None and place.held.key == key:
                place.missed += 1
                if place.missed >= PATIENCE:
                    self._places[number] = _Place(self._salt())

    def recall(self) -> Descriptor | None:
        held = [place.held for place in self._places if place.held is not None]
        if not held:
            return None
        return held[int(uniform_below(len(held), 1, self._randomness)[0])]

    def _salt(self) -> bytes:
        return uniform_below(1 << 8, _HASH_BYTES, self._randomness).astype("u1").tobytes()


class _Place:
    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._rank = b""
        self.held: Descriptor | None = None
        self.missed = 0

    def meet(self, descriptor: Descriptor, where: bytes, for_good: bool) -> None:
        # By origin first: a thousand keys at one address weigh as much as one.
        rank = self._hash(where) + self._hash(descriptor.key.encode())
        held = self.held
        if held is not None and held.key == descriptor.key:
            better = held.time < descriptor.time
        else:
            better = held is None or (rank < self._rank and not for_good)
        if better:
            self.held, self._rank, self.missed = descriptor, rank, 0

    def _hash(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._salt, digest_size=_HASH_BYTES).digest()
