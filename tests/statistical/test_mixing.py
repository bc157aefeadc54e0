"""Whether anybody can follow a packet through an honest relay: orders, and a game.

Shuffles come from seeds, so nothing here is flaky: the adversary decides by places and by equality
of packets, never by the value of a ciphertext. Thresholds would raise a false alarm once in a
million seeds. Each test is shown to catch a relay that is no good.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats
from tacit.channels.crowd.layers import layers

from tacit.channels.crowd.relay import Relay, context_of
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.store import MEMORY
from tacit.crypto.onion import Hop, OnionKey, Peeled, Shape, open_payload, peel, wrap
from tacit.crypto.prg import SeededRandomness
from tacit.errors import Refused
from tacit.privacy.audit import clopper_pearson

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
STUDY = "c3" * 32
CONTEXT = context_of(STUDY, 0, 0)
KEYS = [OnionKey.generate() for _ in range(6)]
COLLECTOR = OnionKey.generate()
GAMES = 400


class InOrder(Relay):
    """Passes on as it came: what an honest relay must not do."""

    def _shuffled(self, packets: Sequence[Peeled]) -> list[Peeled]:
        return list(packets)


class Cutting(Relay):
    """Cuts the deck once: every packet may come to every place, and yet neighbours stay so."""

    def _shuffled(self, packets: Sequence[Peeled]) -> list[Peeled]:
        cut = self._randomness.stream().below(len(packets))
        return [*packets[cut:], *packets[:cut]]


def relay(kind: type[Relay], place: int, shape: Shape, relays: int, seed: object) -> Relay:
    made = kind(
        STUDY,
        shape,
        KEYS[place],
        place,
        [f"relay {p}" for p in range(relays)],
        minimum=1,
        quota=1,
        store=RelayStore(MEMORY, STUDY),
        randomness=SeededRandomness(f"{place} {seed}"),
    )
    made.open_stage(0, 0, frozenset(f"person {n}" for n in range(64)))
    return made


# ── arrival order ──


def orders(kind: type[Relay], count: int, runs: int) -> list[list[int]]:
    """In which order packets sent as 0, 1, 2 … leave a relay, in so many runs."""
    shape = Shape("x25519", 1, 1)
    route = [Hop(0, KEYS[0].public)]
    packets = [wrap(shape, CONTEXT, route, COLLECTOR.public, bytes([n])) for n in range(count)]
    found = []
    for run in range(runs):
        made = relay(kind, 0, shape, 1, run)
        for number, packet in enumerate(packets):
            made.take(f"person {number}", 0, 0, 0, [packet])
        (out,) = made.release(0, 0, 0)
        found.append([open_payload(shape, CONTEXT, COLLECTOR, p)[0] for p in out.packets])
    return found


def uniform(found: list[list[int]]) -> float:
    """p-value of: every order is as likely as any other."""
    every = {order: place for place, order in enumerate(permutations(range(len(found[0]))))}
    counts = np.bincount([every[tuple(order)] for order in found], minlength=len(every))
    return float(stats.chisquare(counts).pvalue)


def unrelated(found: list[list[int]]) -> float:
    """p-value of: the rank correlation of sending and arriving is 0, over all runs together.

    Under a uniform shuffle of n it has mean 0 and variance 1 / (n − 1), and runs are independent.
    """
    size, runs = len(found[0]), len(found)
    sent = np.arange(size)
    mean = np.mean([np.corrcoef(sent, order)[0, 1] for order in found])
    return float(2 * stats.norm.sf(abs(mean) * np.sqrt(runs * (size - 1))))


def test_every_order_of_arrival_is_as_likely_as_any_other() -> None:
    assert uniform(orders(Relay, 4, 600)) > FALSE_ALARM
    assert uniform(orders(Cutting, 4, 600)) < FALSE_ALARM
    assert uniform(orders(InOrder, 4, 600)) < FALSE_ALARM


def test_arrival_does_not_follow_sending() -> None:
    assert unrelated(orders(Relay, 30, 60)) > FALSE_ALARM
    assert unrelated(orders(InOrder, 30, 60)) < FALSE_ALARM


# ── the game ──

Route = tuple[int, ...]


@dataclass(frozen=True)
class Setting:
    """A game: the circuits that people draw from, the place of the one honest relay, and at which
    hops it is met by the two who are played for."""

    circuits: list[Route]
    honest: int
    meet: tuple[int, int]
    kind: type[Relay] = Relay

    @property
    def relays(self) -> int:
        return 1 + max(max(circuit) for circuit in self.circuits)

    @property
    def shape(self) -> Shape:
        return Shape("x25519", len(self.circuits[0]), 1)

    def through(self, hop: int) -> list[Route]:
        return [circuit for circuit in self.circuits if circuit[hop] == self.honest]


def layered(relays: int, hops: int) -> list[Route]:
    return list(product(*layers(relays, hops)))


@dataclass(frozen=True)
class Seen:
    """A packet beside the honest relay: at which hop, the how manieth, and where else it was."""

    hop: int
    place: int
    others: frozenset[int]


@dataclass
class Wire:
    """Who hands what to whom, in which order: the adversary reads it all."""

    first: list[tuple[int, bytes]]  # by person: her first relay, her packet
    into: dict[int, list[bytes]]  # the honest relay's batches, by hop
    out: dict[int, list[tuple[int | None, bytes]]]


def played(setting: Setting, routes: list[Route], payloads: list[bytes], seed: int) -> Wire:
    """One wave, with real relays."""
    shape, honest = setting.shape, setting.honest
    relays = [
        relay(setting.kind if place == honest else Relay, place, shape, setting.relays, seed)
        for place in range(setting.relays)
    ]
    wire = Wire([], {}, {})
    for person, (route, payload) in enumerate(zip(routes, payloads, strict=True)):
        stops = [Hop(place, KEYS[place].public) for place in route]
        packet = wrap(shape, CONTEXT, stops, COLLECTOR.public, payload)
        relays[route[0]].take(f"person {person}", 0, 0, 0, [packet])
        wire.first.append((route[0], packet))
        if route[0] == honest:
            wire.into.setdefault(0, []).append(packet)
    for hop in range(shape.hops):
        for sender in relays:
            _release(sender, hop, relays, honest, wire)
    return wire


def _release(sender: Relay, hop: int, relays: list[Relay], honest: int, wire: Wire) -> None:
    try:
        batches = sender.release(0, 0, hop)
    except Refused:
        return  # nothing came this way
    for out in batches:
        if out.to is not None:
            relays[out.to].take(f"relay {sender.place}", 0, 0, out.hop, out.packets)
        if out.to == honest:
            wire.into.setdefault(out.hop, []).extend(out.packets)
        if sender.place == honest:
            wire.out.setdefault(hop, []).extend((out.to, packet) for packet in out.packets)


def straight(setting: Setting, wire: Wire, first: bytes, second: bytes) -> bool:
    """The adversary's guess: whether person 0 has sent `first` and person 1 `second`.

    It has the keys of the collector and of all relays but one, so it follows every packet up to the
    honest relay and from there on. What came in at one hop left at that hop, and did not go back to
    where it had been; if both ways of joining the ends are still possible, all that is left is to
    hope that the order was kept.
    """
    came = [_came(setting, wire, person) for person in (0, 1)]
    went = _went(setting.shape, wire)
    left = [went[first], went[second]]
    kept = all(_joins(a, b) for a, b in zip(came, left, strict=True))
    crossed = all(_joins(a, b) for a, b in zip(came, reversed(left), strict=True))
    if kept != crossed:
        return kept
    return (came[0].place < came[1].place) == (left[0].place < left[1].place)


def _joins(came: Seen, left: Seen) -> bool:
    return came.hop == left.hop and not came.others & left.others


def _came(setting: Setting, wire: Wire, person: int) -> Seen:
    """Where this person's packet enters the honest relay."""
    shape = setting.shape
    at, packet = wire.first[person]
    before = set()
    while at != setting.honest:
        before.add(at)
        peeled = peel(shape, CONTEXT, KEYS[at], packet)
        assert peeled.to is not None
        at, packet = peeled.to, peeled.packet
    hop = packet[0]
    return Seen(hop, wire.into[hop].index(packet), frozenset(before))


def _went(shape: Shape, wire: Wire) -> dict[bytes, Seen]:
    """Which payload comes of each packet that leaves the honest relay."""
    found = {}
    for hop, batch in wire.out.items():
        for place, (to, packet) in enumerate(batch):
            after, at, left = set(), to, packet
            while at is not None:
                after.add(at)
                peeled = peel(shape, CONTEXT, KEYS[at], left)
                at, left = peeled.to, peeled.packet
            payload = open_payload(shape, CONTEXT, COLLECTOR, left)
            found[payload] = Seen(hop, place, frozenset(after))
    return found


def wins(setting: Setting, games: int = GAMES) -> int:
    """How often the adversary tells who of two people sent which of two payloads."""
    won = 0
    for game in range(games):
        chance = random.Random(game)
        pair = [chance.choice(setting.through(hop)) for hop in setting.meet]
        routes = [*pair, *(chance.choice(setting.circuits) for _ in range(5))]
        coin = chance.random() < 0.5
        payloads = [bytes([n]) for n in range(7)]
        if not coin:
            payloads[:2] = payloads[1::-1]
        wire = played(setting, routes, payloads, game)
        won += straight(setting, wire, b"\0", b"\1") == coin
    return won


def interval(won: int) -> tuple[float, float]:
    return clopper_pearson(won, GAMES, FALSE_ALARM / 2)


@pytest.mark.parametrize(("relays", "hops", "honest"), [(4, 2, 0), (5, 3, 1), (5, 3, 2)])
def test_one_honest_relay_hides_who_sent_what(relays: int, hops: int, honest: int) -> None:
    hop = honest % hops
    low, high = interval(wins(Setting(layered(relays, hops), honest, (hop, hop))))
    assert low <= 0.5 <= high


def test_the_game_is_lost_with_a_relay_that_keeps_the_order() -> None:
    last = Setting(layered(4, 2), 1, (1, 1))
    assert wins(replace(last, kind=InOrder), 100) == 100
    assert wins(last, 100) < 70


def test_who_does_not_meet_is_not_mixed() -> None:
    """Why only those who come to the same relay at the same hop are counted as mixed."""
    anywhere = list(permutations(range(4), 2))
    assert wins(Setting(anywhere, 1, (0, 1)), 50) == 50


def test_without_layers_the_way_there_tells_of_the_way_on() -> None:
    """Why circuits are not any three different relays: they do not go back to where they were."""
    anywhere = list(permutations(range(4), 3))
    low, _ = interval(wins(Setting(anywhere, 1, (1, 1))))
    assert low > 0.5
