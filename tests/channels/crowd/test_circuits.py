"""Circuits: one for each question, of one relay of each layer, which nobody could choose; and who
is left out of them, because it was not heard."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent))

from drawn_study import DrawnStudy

from tacit.channels.crowd.assignment import Assignment
from tacit.channels.crowd.circuits import circuits, layers, unheard
from tacit.channels.crowd.letters import Wave
from tacit.crypto.lots import order
from tacit.privacy.attested import BatchStatement

FALSE_ALARM = 1e-6  # and seeds are fixed: what passes once passes always
NAMES = tuple(f"table-{number}" for number in range(7))


def seed(number: int) -> bytes:
    return hashlib.sha256(f"seed {number}".encode()).digest()


# ── layers ──


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(1, 40), st.sets(st.integers(-3, 65)))
def test_everyone_who_is_heard_stands_at_one_hop(
    relays: set[int], hops: int, left_out: set[int]
) -> None:
    hops = min(hops, len(relays))
    dealt = layers(relays, hops, left_out)
    here = relays - left_out
    enough = len(here) >= hops
    assert len(dealt) == hops
    assert sorted(place for layer in dealt for place in layer) == sorted(here if enough else relays)
    sizes = [len(layer) for layer in dealt]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1


def test_five_relays_at_three_hops() -> None:
    everyone = range(5)
    assert layers(everyone, 3) == [[0, 3], [1, 4], [2]]
    assert layers(everyone, 3, {1}) == [[0, 4], [2], [3]]
    assert layers(everyone, 3, {0, 1}) == [[2], [3], [4]]
    assert layers(everyone, 3, {0, 1, 2}) == layers(everyone, 3), "too few are left: all are tried"
    assert layers({1, 4, 6, 9}, 3) == [[1, 9], [4], [6]], "who has not revealed is not in play"


# ── circuits ──


@given(
    st.integers(1, 20),
    st.sets(st.integers(0, 30), min_size=1, max_size=12),
    st.integers(1, 12),
    st.sets(st.integers(0, 30), max_size=3),
    st.integers(0, 1000),
)
def test_a_circuit_has_one_relay_of_each_layer(
    batches: int, relays: set[int], hops: int, left_out: set[int], number: int
) -> None:
    hops, places = min(hops, len(relays)), tuple(sorted(relays))
    names = tuple(map(str, range(batches)))
    found = circuits(names, seed(number), places, hops, tuple(sorted(left_out)))
    dealt = layers(relays, hops, left_out)
    assert tuple(found) == names
    for way in found.values():
        assert len(way) == len(set(way)) == hops
        assert all(place in layer for place, layer in zip(way, dealt, strict=True))
    for hop, layer in enumerate(dealt):  # none has more to do than another
        loads = Counter(way[hop] for way in found.values())
        each = [loads[place] for place in layer]
        assert max(each) - min(each) <= 1


def test_everybody_computes_the_same() -> None:
    """Whoever reads the same drawing, in whatever order its parts come."""
    one, two = DrawnStudy(), DrawnStudy()
    lots = type(two.lots)(two.lots.seed, dict(reversed(two.lots.reveals.items())))
    again = Assignment(two.proposal, two.roster, lots)
    assert one.drawn.ways(0) == again.ways(0)
    assert one.drawn.ways(0, (3, 1)) == again.ways(0, [1, 3, 3])
    other = [DrawnStudy(lots=number).drawn.ways(0) for number in range(8)]
    assert any(ways != one.drawn.ways(0) for ways in other)


def test_circuits_keep_to_the_relays_that_are_in_play() -> None:
    study = DrawnStudy(here=(0, 2, 3, 4))
    assert study.drawn.relays == (0, 2, 3, 4)
    for left_out in ((), (2,), (1,), (0, 2)):
        for way in study.drawn.ways(0, left_out).values():
            assert len(set(way)) == 3
            assert 1 not in way
            gone = set(left_out) & set(study.drawn.relays)
            assert not gone & set(way) or len(gone) > 1


def chance_of(name: str, seeds: int = 3000) -> float:
    """p-value of: this batch has each of the possible circuits as often as any other."""
    relays, hops = tuple(range(7)), 3
    every = {way: n for n, way in enumerate(product(*layers(relays, hops)))}
    counts = [0] * len(every)
    for number in range(seeds):
        counts[every[circuits(NAMES, seed(number), relays, hops, ())[name]]] += 1
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("name", [NAMES[0], NAMES[-1]])
def test_over_seeds_every_circuit_is_as_likely_as_any_other(name: str) -> None:
    """A false alarm once in a million seeds."""
    assert chance_of(name) > FALSE_ALARM


def alike(seed: bytes, label: str, size: int) -> NDArray[np.int64]:
    return order(seed, "the same at every hop", size)


def fixed(seed: bytes, label: str, size: int) -> NDArray[np.int64]:
    return np.arange(size)


@pytest.mark.statistical
@pytest.mark.parametrize("deal", [alike, fixed])
def test_a_deal_that_is_no_good_is_caught(
    deal: Callable[[bytes, str, int], NDArray[np.int64]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.channels.crowd.circuits.order", deal)
    monkeypatch.setitem(globals(), "circuits", circuits.__wrapped__)  # nothing is kept of it
    assert chance_of(NAMES[0]) < FALSE_ALARM


# ── who was not heard ──

# Two batches: a passes the relays 0, 1, 2, and b passes 3, 4, 2.
WAYS = {"a": (0, 1, 2), "b": (3, 4, 2)}
EVERYONE = range(5)


def said(
    received: Mapping[tuple[int, str], int] | None = None,
    passed: Mapping[tuple[int, str], int] | None = None,
) -> dict[int, BatchStatement]:
    """What all say, if each has got 10 of either batch and passed them on, but for these."""
    found = {}
    for place in EVERYONE:
        batches = {
            name: ((received or {}).get((place, name), 10), (passed or {}).get((place, name), 10))
            for name, way in WAYS.items()
            if place in way
        }
        hop = next(way.index(place) for way in WAYS.values() if place in way)
        found[place] = BatchStatement(f"relay {place}", "", 0, 0, hop, batches)
    return found


def without(*silent: int, **changes: Mapping[tuple[int, str], int]) -> dict[int, BatchStatement]:
    return {place: one for place, one in said(**changes).items() if place not in silent}


ALL = {"a": 10, "b": 10}


def test_when_all_are_heard_nobody_is_left_out() -> None:
    assert unheard(EVERYONE, 3, said(), ALL) == ()


def test_half_may_be_lost_on_the_way_and_not_more() -> None:
    assert unheard(EVERYONE, 3, said(received={(1, "a"): 5}), {"a": 5, "b": 5}) == ()
    assert unheard(EVERYONE, 3, said(received={(1, "a"): 4}), ALL) == (0,)


@pytest.mark.parametrize("silent", EVERYONE)
def test_a_silent_relay_is_named_and_nobody_is_blamed_for_it(silent: int) -> None:
    """Nobody can say how much it has received; nor has it passed anything on."""
    after = {
        (place, name): 0
        for name, way in WAYS.items()
        if silent in way
        for place in way[way.index(silent) + 1 :]
    }
    delivered = {name: 0 if silent in way else 10 for name, way in WAYS.items()}
    heard = without(silent, received=after, passed=after)
    assert unheard(EVERYONE, 3, heard, delivered) == (silent,)


def test_with_both_of_a_layer_silent_both_are_named() -> None:
    heard = without(1, 4, received={(2, "a"): 0, (2, "b"): 0}, passed={(2, "a"): 0, (2, "b"): 0})
    assert unheard(EVERYONE, 3, heard, {}) == (1, 4)
    assert unheard(EVERYONE, 3, {}, {}) == tuple(EVERYONE)


@pytest.mark.parametrize("swallows", [0, 1])
def test_a_relay_that_says_it_passed_on_what_never_came_is_named(swallows: int) -> None:
    """It swallows batch a, after which there is nothing to pass on."""
    after = {(place, "a"): 0 for place in WAYS["a"][swallows + 1 :]}
    found = unheard(EVERYONE, 3, said(received=after, passed=after), {"a": 0, "b": 10})
    assert found == (swallows,)


def test_a_relay_that_swallows_one_batch_of_two_is_named() -> None:
    assert unheard(EVERYONE, 3, said(), {"a": 10, "b": 0}) == (2,)
    assert unheard(EVERYONE, 3, said(), {"a": 10}) == (2,)
    assert unheard(EVERYONE, 3, said(), {"a": 10, "b": 4}) == (2,)
    assert unheard(EVERYONE, 3, said(), {"a": 10, "b": 5}) == ()


def test_who_holds_back_and_says_so_is_not_named() -> None:
    """Too few people had sent: nobody's fault."""
    nothing = {(1, "a"): 0, (2, "a"): 0}
    heard = said(received={(0, "a"): 4, **nothing}, passed={(0, "a"): 0, **nothing})
    assert unheard(EVERYONE, 3, heard, {"a": 0, "b": 10}) == ()


def test_who_was_left_out_and_said_so_is_heard() -> None:
    heard = without(3) | {3: BatchStatement("relay 3", "", 0, 0, -1, {})}
    assert unheard(EVERYONE, 3, heard, ALL) == ()


def test_only_relays_in_play_are_left_out() -> None:
    assert unheard((0, 1, 2), 3, without(0, 3, 4), ALL) == (0,)


# ── what follows for a wave ──

STUDY = DrawnStudy()


def later(*silent: int) -> Wave:
    """The second wave, after one of which these said nothing and the others that nothing came."""
    heard = {
        place: STUDY.statement(place, STUDY.drawn.hop_of(place, ()), {})
        for place in STUDY.drawn.relays
        if place not in silent
    }
    return Wave(0, 1, 100.0, {}, heard, {}, "cd" * 32)


@pytest.mark.parametrize("silent", [(), (2,), (0, 4), (3, 4)])
def test_a_wave_goes_without_those_that_were_not_heard(silent: tuple[int, ...]) -> None:
    assert STUDY.drawn.left_out(later(*silent)) == silent
    for place in range(5):
        assert (STUDY.drawn.hop_of(place, silent) == -1) == (place in silent)


@pytest.mark.parametrize("silent", [(0, 1, 2), (1, 2, 3, 4), tuple(range(5))])
def test_if_fewer_than_a_circuit_has_are_left_nobody_is_left_out(silent: tuple[int, ...]) -> None:
    assert STUDY.drawn.left_out(later(*silent)) == ()
    assert STUDY.drawn.ways(0, silent) == STUDY.drawn.ways(0)


def test_in_the_first_wave_of_a_stage_nobody_is_left_out() -> None:
    assert STUDY.drawn.left_out(Wave(0, 0, 100.0)) == ()
    with pytest.raises(ValueError, match="before the first wave"):
        Wave(0, 0, 100.0, statements=later().statements)
