"""Which relays stand at which hop: layers, the same for everyone.

Relays are dealt out to as many layers as a circuit has hops, and a circuit takes one of each. So
the way that a packet came says nothing about the way that it goes on, and all packets that meet at
a relay are alike: whoever knows every other relay's order still has to tell apart all that passed
the honest one (relay.md). In circuits of any relays, a packet cannot go back to where it was, which
leaves far fewer that are alike.
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["layers"]


def layers(relays: int, hops: int, silent: Collection[int] = ()) -> list[list[int]]:
    """The places of the relays at each hop. Silent ones are left out, as long as there are enough
    others."""
    here = [place for place in range(relays) if place not in silent]
    if len(here) < hops:
        here = list(range(relays))
    return [here[hop::hops] for hop in range(hops)]
