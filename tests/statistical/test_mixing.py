"""Whether anybody can follow a packet through an honest relay: orders, and a game.

Shuffles come from seeds, so nothing here is flaky: the adversary decides by places and by equality
of packets, never by the value of a ciphertext. Thresholds would raise a false alarm once in a
million seeds. Each test is shown to catch a relay that is no good.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1] / "channels" / "crowd"))

from drawn_study import ONE, TWO, DrawnStudy

from tacit.channels.crowd.assignment import context_of
from tacit.channels.crowd.letters import Wave
from tacit.channels.crowd.relay import Outgoing, Relay
from tacit.crypto.onion import open_payload, peel
from tacit.crypto.prg import SeededRandomness
from tacit.privacy.audit import clopper_pearson

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
GAMES = 400
WAVE = Wave(0, 0, 0.0)


class InOrder(Relay):
    """Passes on as it came: what an honest relay must not do."""

    arrived: list[bytes | None]

    def open_wave(self, wave: Wave) -> None:
        super().open_wave(wave)
        self.arrived = []

    def _peeled(self, batch: object, packet: bytes) -> bytes | None:
        found = super()._peeled(batch, packet)  # type: ignore[arg-type]
        self.arrived.append(found)
        return found

    def release(self, wave: Wave) -> list[Outgoing]:
        return [
            replace(out, packets=self.ordered(sorted(out.packets, key=self.arrived.index)))
            for out in super().release(wave)
        ]

    def ordered(self, packets: list[bytes]) -> list[bytes]:
        return packets


class Cutting(InOrder):
    """Cuts the deck once: every packet may come to every place, and yet neighbours stay so."""

    def ordered(self, packets: list[bytes]) -> list[bytes]:
        cut = self._randomness.stream().below(len(packets))
        return [*packets[cut:], *packets[:cut]]


@cache
def study_of(people: int, questions: int = 1) -> DrawnStudy:
    return DrawnStudy(people, plan=(ONE, TWO)[questions - 1])


# ── arrival order ──


def orders(kind: type[Relay], count: int, runs: int) -> list[list[int]]:
    """In which order packets sent as 0, 1, 2 … leave a relay, in so many runs."""
    study = study_of(count)
    batch, _ = study.drawn.batches(0)  # and the idle
    shape, place = study.drawn.shape, study.way(batch, WAVE)[0]
    packets = [study.packet(WAVE, batch) for _ in range(count)]
    context, key = context_of(study.drawn.drawing, WAVE, batch), study.cast.relays[place][1]
    number = {peel(shape, context, key, p).packet: n for n, p in enumerate(packets)}
    found = []
    for run in range(runs):
        made = study.relay(place, kind=kind, randomness=SeededRandomness(f"order {run}"))
        made.open_wave(WAVE)
        for person, packet in zip(study.people, packets, strict=True):
            made.take(person, 0, 0, 0, batch, [packet])
        (out,) = made.release(WAVE)
        found.append([number[packet] for packet in out.packets])
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


@dataclass(frozen=True)
class Setting:
    """A game: a study, the hop at which the one honest relay stands, and the two who are played
    for, by their numbers."""

    study: DrawnStudy
    honest: int
    pair: tuple[int, int] = (0, 1)
    kind: type[Relay] = Relay

    def batch_of(self, person: int) -> str:
        (name,) = self.study.drawn.slots(self.study.people[person], 0)
        return name

    def way(self, batch: str) -> tuple[int, ...]:
        return self.study.way(batch, WAVE)

    def context(self, batch: str) -> bytes:
        return context_of(self.study.drawn.drawing, WAVE, batch)

    def peeled(self, batch: str, places: Sequence[int], packet: bytes) -> bytes:
        """Without the layers of these relays, whose keys the adversary has."""
        for place in places:
            key = self.study.cast.relays[place][1]
            packet = peel(self.study.drawn.shape, self.context(batch), key, packet).packet
        return packet


@dataclass
class Wire:
    """Who hands what to whom, in which order: the adversary reads it all."""

    first: list[bytes]  # by person
    into: dict[str, list[bytes]]  # the honest relay's batches
    out: dict[str, list[bytes]]


def played(setting: Setting, payloads: list[bytes], seed: int) -> Wire:
    """One wave, with real relays; of those at the honest one's hop all are honest."""
    study, wire = setting.study, Wire([], {}, {})
    relays = {}
    for place in study.drawn.relays:
        kind = setting.kind if study.drawn.hop_of(place, ()) == setting.honest else Relay
        chance = SeededRandomness(f"{place} {seed}")
        relays[place] = study.relay(place, kind=kind, randomness=chance)
        relays[place].open_wave(WAVE)
    for number, payload in enumerate(payloads):
        batch = setting.batch_of(number)
        packet = study.packet(WAVE, batch, payload)
        relays[setting.way(batch)[0]].take(study.people[number], 0, 0, 0, batch, [packet])
        wire.first.append(packet)
        if setting.honest == 0:
            wire.into.setdefault(batch, []).append(packet)
    for sender in sorted(relays.values(), key=lambda relay: relay.hop):
        for out in sender.release(WAVE):
            if out.to is not None:
                before = study.key(sender.place)
                relays[out.to].take(before, 0, 0, out.hop, out.question, out.packets)
            if out.hop == setting.honest:
                wire.into[out.question] = out.packets
            if sender.hop == setting.honest:
                wire.out[out.question] = out.packets
    return wire


def straight(setting: Setting, wire: Wire, first: bytes, second: bytes) -> bool:
    """The adversary's guess: whether the first of the two has sent `first`, the second `second`.

    It has the keys of the collector and of all relays at other hops, so it follows every packet up
    to the honest relay and from there on. What came in for one question left for it; if that does
    not decide, all that is left is to hope that the order was kept.
    """
    came = [_came(setting, wire, person) for person in setting.pair]
    went = _went(setting, wire)
    left = [went[first], went[second]]
    if came[0][0] != came[1][0]:
        return came[0][0] == left[0][0]
    return (came[0][1] < came[1][1]) == (left[0][1] < left[1][1])


def _came(setting: Setting, wire: Wire, person: int) -> tuple[str, int]:
    """Where this person's packet enters the honest relay: in which batch, the how manieth."""
    batch = setting.batch_of(person)
    before = setting.way(batch)[: setting.honest]
    packet = setting.peeled(batch, before, wire.first[person])
    return batch, wire.into[batch].index(packet)


def _went(setting: Setting, wire: Wire) -> dict[bytes, tuple[str, int]]:
    """Which payload comes of each packet that leaves the honest relay."""
    found, study = {}, setting.study
    for batch, packets in wire.out.items():
        after = setting.way(batch)[setting.honest + 1 :]
        for place, packet in enumerate(packets):
            last = setting.peeled(batch, after, packet)
            key = study.cast.secrets.onion
            found[open_payload(study.drawn.shape, setting.context(batch), key, last)] = batch, place
    return found


def wins(setting: Setting, games: int = GAMES) -> int:
    """How often the adversary tells who of two people sent which of two payloads."""
    won, (one, other) = 0, setting.pair
    for game in range(games):
        coin = random.Random(game).random() < 0.5
        payloads = [bytes([n]) for n in range(len(setting.study.people))]
        first, second = payloads[one], payloads[other]
        if not coin:
            payloads[one], payloads[other] = second, first
        wire = played(setting, payloads, game)
        won += straight(setting, wire, first, second) == coin
    return won


def interval(won: int) -> tuple[float, float]:
    return clopper_pearson(won, GAMES, FALSE_ALARM / 2)


@pytest.mark.parametrize("honest", range(3), ids=["first hop", "middle", "last hop"])
def test_one_honest_relay_hides_who_sent_what(honest: int) -> None:
    low, high = interval(wins(Setting(study_of(7), honest)))
    assert low <= 0.5 <= high


@pytest.mark.parametrize("honest", range(3), ids=["first hop", "middle", "last hop"])
def test_the_game_is_lost_with_a_relay_that_keeps_the_order(honest: int) -> None:
    """The others are honest here too; the adversary, who has their keys, follows them all the
    same."""
    assert wins(Setting(study_of(7), honest, kind=InOrder), 60) == 60


def test_the_game_is_lost_with_a_relay_that_only_cuts() -> None:
    """The two hand in their packets one after the other, and seldom lie on either side."""
    low, _ = interval(wins(Setting(study_of(7), 0, kind=Cutting)))
    assert low > 0.5


@pytest.mark.parametrize("honest", range(3), ids=["first hop", "middle", "last hop"])
def test_people_who_are_asked_different_things_are_not_mixed(honest: int) -> None:
    """Why only answers to the same question are counted: who is asked what is public."""
    study = study_of(8, questions=2)
    asked = Setting(study, honest).batch_of
    other = next(number for number in range(1, 8) if asked(number) != asked(0))
    same = next(number for number in range(1, 8) if asked(number) == asked(0))
    assert wins(Setting(study, honest, (0, other)), 50) == 50
    assert wins(Setting(study, honest, (0, same)), 50) < 45
