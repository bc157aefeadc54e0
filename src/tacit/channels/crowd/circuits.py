"""Which way answers go: one circuit for each question, the same for everybody who is asked it.

Relays are dealt out to as many layers as a circuit has hops, and a circuit takes one of each. Who
is asked what is public, so an answer hides among those to the same question and among no others; on
one circuit all of these meet at every relay, whichever of them is the honest one (relay.md). On
circuits that everybody draws for herself only some of them would.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from tacit.crypto.lots import order
from tacit.privacy.attested import BatchStatement

__all__ = ["circuits", "layers", "unheard"]

MOST_LOST = Fraction(1, 2)  # of what a relay says it has passed on, or it is left out


def layers(relays: Collection[int], hops: int, left_out: Collection[int] = ()) -> list[list[int]]:
    """The places of the relays at each hop. Some are left out, as long as there are enough others;
    otherwise nobody is."""
    here = sorted(set(relays) - set(left_out))
    if len(here) < hops:
        here = sorted(relays)
    return [here[hop::hops] for hop in range(hops)]


@lru_cache(maxsize=64)
def circuits(
    names: Sequence[str], seed: bytes, relays: Sequence[int], hops: int, left_out: Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """The relays that packets of each batch pass, in order. Nobody could choose them: they follow
    from the seed of the lots, so that each relay of a layer has as many batches as any other."""
    found: dict[str, list[int]] = {name: [] for name in names}
    for hop, layer in enumerate(layers(relays, hops, left_out)):
        dealt = order(seed, f"circuits, hop {hop}", len(layer))
        for number, name in enumerate(names):
            found[name].append(layer[int(dealt[number % len(layer)])])
    return {name: tuple(places) for name, places in found.items()}


def unheard(
    relays: Collection[int],
    hops: int,
    statements: Mapping[int, BatchStatement],
    delivered: Mapping[str, int],
) -> tuple[int, ...]:
    """The relays, by place, that were not heard in a wave: that said nothing, or whose next stop
    has received less than half of what they say they have passed on.

    delivered  what the last stop, the collector, has received of each batch
    """
    received = {
        (one.hop, name): one.received(name) for one in statements.values() for name in one.batches
    }
    received |= {(hops, name): delivered.get(name, 0) for _, name in list(received)}
    found = set(relays) - set(statements)
    for place, one in statements.items():
        for name in one.batches:
            there = received.get((one.hop + 1, name))  # None: nobody is there to say
            if there is not None and there < one.passed_on(name) * (1 - MOST_LOST):
                found.add(place)
    return tuple(sorted(found & set(relays)))
