"""Whom a peer knows: Newscast's partial view, as a state machine (proof: view.md).

Each cycle a peer and a random neighbour show one another their views, and each keeps the freshest
of both (Jelasity, Kowalczyk & van Steen 2003). Whoever has vanished signs nothing new and ages out
of all views; whoever lives is known to about as many others as anybody else.

Clocks are not shared. A descriptor therefore travels with its age, to which everyone who holds it
adds the time it held it, by a clock of its own; the signed time only bounds how far an age may lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from tacit.channels.peers.acquaintances import Acquaintances
from tacit.channels.peers.descriptors import Descriptor, origin
from tacit.channels.peers.freshest import freshest, thinned
from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.privacy.noise import permutation, uniform_below

__all__ = ["LARGEST_VIEW", "SKEW", "Sighting", "View"]

SKEW = 5 * 60_000  # milliseconds by which two clocks may differ
LARGEST_VIEW = 100
_REMEMBERED = 16  # checked descriptors kept for each place of the view


class Sighting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A descriptor, and how many milliseconds ago its owner signed it, as far as the sender knows.

    The age is not signed: it changes at every peer.
    """

    descriptor: Descriptor
    age: int


class _Held(NamedTuple):
    descriptor: Descriptor
    born: int  # when it was signed, by this peer's clock

    def age(self, now: int) -> int:
        return max(0, now - self.born)  # a clock may be set back


class View:
    """At most `size` descriptors of others. Times are milliseconds by this peer's clock.

    `check` says whether a descriptor is its owner's. `oldest` is the age at which a descriptor is
    given up: some tens of cycles. `per_origin` bounds how many from one block of addresses stand in
    the view at a time; `size` lifts the bound, for trials on one machine.
    """

    def __init__(
        self,
        own: str,
        size: int,
        check: Callable[[Descriptor], bool],
        oldest: int,
        per_origin: int,
        randomness: Randomness = SYSTEM,
    ) -> None:
        if not 1 <= size <= LARGEST_VIEW:
            raise UsageError(f"a view of {size} descriptors: choose from 1 to {LARGEST_VIEW}.")
        if not 1 <= per_origin <= size:
            raise UsageError(
                f"per_origin = {per_origin} in a view of {size}: choose from 1 to {size}."
            )
        self._own, self._size, self._check = own, size, check
        self._oldest, self._per_origin = oldest, per_origin
        self._randomness = randomness
        self._held: dict[str, _Held] = {}
        self._forgotten: dict[str, int] = {}  # key → signed times up to which nothing is believed
        self._checked: dict[Descriptor, None] = {}  # oldest first
        self._acquaintances = Acquaintances(randomness)

    @property
    def descriptors(self) -> tuple[Descriptor, ...]:
        return tuple(held.descriptor for held in self._held.values())

    def offer(self, now: int, own: Descriptor) -> list[Sighting]:
        """What is shown to the other: oneself first, then everyone known.

        Whoever is called makes its offer before it merges the caller's.
        """
        ages = ((held.descriptor, held.age(now)) for held in self._held.values())
        known = [Sighting(descriptor, age) for descriptor, age in ages if age <= self._oldest]
        return [Sighting(own, 0), *known]

    def merge(self, received: Sequence[Sighting], source: str, now: int) -> None:
        """Keep the freshest of one's own view and of what `source` offers; all of it or nothing.

        `source` is the key by which the message was signed.
        """
        self._check_offer(received, source, now)
        merged = dict(self._held)
        for sighting in received:
            if self._is_news(sighting, now):
                key = sighting.descriptor.key
                merged[key] = _newer(merged.get(key), sighting, now)
        kept = self._selected(merged, now)
        before = set(self.descriptors)
        news = [held.descriptor for held in kept.values() if held.descriptor not in before]
        for descriptor in news:
            self._verify(descriptor)
        for descriptor in news:
            self._acquaintances.meet(descriptor)
        self._held = kept

    def pick(self) -> Descriptor | None:
        """A random neighbour, to exchange views with; None if nobody is known."""
        some = self.sample(1)
        return some[0] if some else None

    def recall(self) -> Descriptor | None:
        """Somebody met at any time: one exchange in eight goes there, so that what has fallen
        apart finds together."""
        return self._acquaintances.recall()

    def sample(
        self, count: int, wanted: Callable[[Descriptor], bool] = lambda descriptor: True
    ) -> list[Descriptor]:
        """`count` random neighbours of the wanted kind, nobody twice; all of them if fewer."""
        fitting = [descriptor for descriptor in self.descriptors if wanted(descriptor)]
        if count == 1 and fitting:
            return [fitting[int(uniform_below(len(fitting), 1, self._randomness)[0])]]
        order = permutation(len(fitting), self._randomness)
        return [fitting[place] for place in order[:count]]

    def forget(self, key: str) -> None:
        """Whoever does not answer is left out until it has signed something newer; acquaintances
        only after several calls in vain."""
        held = self._held.pop(key, None)
        if held is not None:
            self._forgotten[key] = held.descriptor.time
            while len(self._forgotten) > _REMEMBERED * self._size:
                self._forgotten.pop(next(iter(self._forgotten)))
        self._acquaintances.missed(key)

    # ── merging ──

    def _check_offer(self, received: Sequence[Sighting], source: str, now: int) -> None:
        """What no honest peer of this network sends is refused whole."""
        if not received or received[0].descriptor.key != source or received[0].age != 0:
            raise InputError(
                "An offer of descriptors must begin with the sender's own, of age 0. "
                "Run the same version of tacit as the others."
            )
        keys = {sighting.descriptor.key for sighting in received}
        if len(received) > self._size + 1 or len(keys) < len(received):
            raise InputError(
                f"An offer holds at most {self._size + 1} descriptors, one for each key. "
                "Run the same version of tacit as the others, with the same pact."
            )
        if any(sighting.age < 0 for sighting in received):
            raise InputError("An age cannot be negative: run the same version of tacit.")
        if abs(now - received[0].descriptor.time) > SKEW:
            raise Refused(
                f"The two clocks differ by more than {SKEW // 60_000} minutes. "
                "Set the wrong one; most systems do so by NTP."
            )

    def _is_news(self, sighting: Sighting, now: int) -> bool:
        """Whether it may be kept: somebody else's, young enough, and its age as signed but for
        clocks that differ."""
        said = sighting.descriptor
        return (
            said.key != self._own
            and sighting.age <= self._oldest
            and abs((now - said.time) - sighting.age) <= SKEW
            and said.time > self._forgotten.get(said.key, -1)
        )

    def _selected(self, merged: dict[str, _Held], now: int) -> dict[str, _Held]:
        found = [held for held in merged.values() if held.age(now) <= self._oldest]
        if not found:
            return {}
        ages = np.array([[held.age(now) for held in found]], dtype=np.int64)
        new = np.array([[held.descriptor.key not in self._held for held in found]])
        ties = permutation(len(found), self._randomness)[None, :]
        ages = thinned(ages, ties, _numbered_origins(found), self._per_origin)
        places = freshest(ages, ties, new, self._size)[0]
        kept = [found[place] for place in places if place >= 0]
        return {held.descriptor.key: held for held in kept}

    def _verify(self, descriptor: Descriptor) -> None:
        """Once for each: the same descriptor comes by many ways."""
        if descriptor in self._checked:
            return
        if not self._check(descriptor):
            raise CheckFailed(
                "A descriptor in the offer was not signed by its owner for this network. Nothing "
                "of the offer was used: run the same version of tacit, with the same pact."
            )
        self._checked[descriptor] = None
        while len(self._checked) > _REMEMBERED * self._size:
            self._checked.pop(next(iter(self._checked)))


def _newer(held: _Held | None, sighting: Sighting, now: int) -> _Held:
    """Of one owner's descriptors the later, by the owner's own clock.

    The same one twice is as old as the older account: nobody can make it younger than it is known
    to be. Of two different ones with the same time the first stays.
    """
    said, born = sighting.descriptor, now - sighting.age
    if held is None or said.time > held.descriptor.time:
        return _Held(said, born)
    return _Held(said, min(born, held.born)) if said == held.descriptor else held


def _numbered_origins(found: Sequence[_Held]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    numbers: dict[str, int] = {}
    row = [numbers.setdefault(origin(held.descriptor.address), len(numbers)) for held in found]
    return np.array([row], dtype=np.int64)
