"""Layers: every relay that is heard of stands at exactly one hop."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tacit.channels.crowd.layers import layers


@given(st.integers(1, 40), st.integers(1, 40), st.sets(st.integers(-3, 45)))
def test_everyone_who_is_heard_stands_at_one_hop(relays: int, hops: int, silent: set[int]) -> None:
    if hops > relays:
        hops, relays = relays, hops
    dealt = layers(relays, hops, silent)
    here = [place for place in range(relays) if place not in silent]
    enough = len(here) >= hops
    assert len(dealt) == hops
    assert sorted(place for layer in dealt for place in layer) == (
        here if enough else list(range(relays))
    )
    sizes = [len(layer) for layer in dealt]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1


def test_five_relays_at_three_hops() -> None:
    assert layers(5, 3) == [[0, 3], [1, 4], [2]]
    assert layers(5, 3, {1}) == [[0, 4], [2], [3]]
    assert layers(5, 3, {0, 1}) == [[2], [3], [4]]
    assert layers(5, 3, {0, 1, 2}) == layers(5, 3), "too few are left: all are tried"
