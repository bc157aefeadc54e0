"""The relay: takes from whom it may, in the batch and the wave that a packet was made for."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from drawn_study import PEOPLE, DrawnStudy
from one_batch import (
    ASKED,
    BATCH,
    LATER,
    OTHER,
    REQUIRED,
    SIZE,
    STUDY,
    WAVE,
    WAY,
    filled,
    opened,
    packet,
    passed_on,
)

from tacit.channels.crowd.assignment import context_of
from tacit.channels.crowd.letters import Wave
from tacit.channels.crowd.relay import Outgoing, Relay, Taken
from tacit.crypto.onion import Hop, Kem, OnionKey, open_payload
from tacit.errors import CheckFailed, InputError, Refused


def run(study: DrawnStudy, relays: Sequence[Relay], wave: Wave) -> list[Outgoing]:
    """Release hop after hop, as the services do; what comes to the collector."""
    arrived: list[Outgoing] = []
    for sender in sorted(relays, key=lambda relay: relay.hop):
        for out in sender.release(wave):
            if out.to is None:
                arrived.append(out)
                continue
            about = (wave.stage, wave.number, out.hop, out.question)
            taken = relays[out.to].take(study.key(sender.place), *about, out.packets)
            assert taken == Taken(len(out.packets), 0, 0)
    return arrived


# ── the whole way ──


@pytest.mark.parametrize("kem", ["x25519", "hybrid"])
def test_every_report_arrives_once_in_its_own_batch(kem: Kem) -> None:
    study = DrawnStudy(kem=kem)
    relays = [study.relay(place) for place in range(5)]
    for made in relays:
        made.open_wave(WAVE)
    sent = {batch: [key[:9].encode() for key in study.asked(batch)] for batch in (BATCH, OTHER)}
    for batch, payloads in sent.items():
        first = relays[study.way(batch, WAVE)[0]]
        for person, payload in zip(study.asked(batch), payloads, strict=True):
            first.take(person, 0, 0, 0, batch, [study.packet(WAVE, batch, payload)])
    shape, key = study.drawn.shape, study.cast.secrets.onion
    arrived = run(study, relays, WAVE)
    assert sorted(out.question for out in arrived) == [BATCH, OTHER]
    for out in arrived:
        assert {len(p) for p in out.packets} == {shape.packet_bytes}
        context = context_of(study.drawn.drawing, WAVE, out.question)
        payloads = [open_payload(shape, context, key, p) for p in out.packets]
        assert sorted(payloads) == sorted(sent[out.question])
    for batch in (BATCH, OTHER):
        for place in study.way(batch, WAVE):
            assert relays[place].attest(0, 0)[batch] == (PEOPLE // 2, PEOPLE // 2)
    assert not any(made.dropped for made in relays)


class Recorder(OnionKey):
    """A relay's key that writes down all that it opens."""

    def open(self, sealed: bytes, info: bytes) -> bytes:
        opened = super().open(sealed, info)
        self.log.append(opened)
        return opened

    @classmethod
    def of(cls, key: OnionKey) -> Recorder:
        made = cls(key.kem, key.to_bytes())
        made.log: list[bytes] = []
        return made


def seen_by_the_middle(payload: bytes) -> tuple[list[bytes], Outgoing]:
    """All that the relay at hop 1 can read of the first of its packets, and where it sends it."""
    key = Recorder.of(STUDY.cast.relays[WAY[1]][1])
    first, middle = opened(), STUDY.relay(WAY[1], key=key)
    for person in ASKED[:REQUIRED]:
        first.take(person, 0, 0, 0, BATCH, [packet(payload)])
    (out,) = first.release(WAVE)
    middle.open_wave(WAVE)
    middle.take(STUDY.key(WAY[0]), 0, 0, 1, BATCH, out.packets)
    (onward,) = middle.release(WAVE)
    return [out.packets[0], key.log[0]], onward


def test_a_relay_learns_its_neighbours_and_nothing_else() -> None:
    payload = b"what I answered"
    own, shape = STUDY.cast.relays[WAY[1]][1], STUDY.drawn.shape
    seen, onward = seen_by_the_middle(payload)
    assert seen[1][0] == onward.to == WAY[2]
    keys = {place: onion.public for place, (_, onion) in enumerate(STUDY.cast.relays)}
    del keys[WAY[1]]
    for text in seen:
        assert payload not in text
        for stranger in (*keys.values(), STUDY.proposal.collector.onion):
            assert bytes.fromhex(stranger) not in text
    context = context_of(STUDY.drawn.drawing, WAVE, BATCH)
    for position in range(4):  # what is inside its layer stays closed to it, under any pretence
        forged = bytes([position]) + seen[1][1:] + bytes(shape.packet_bytes - len(seen[1]))
        info = b"tacit onion, version 1, towards the collector" + bytes([position])
        with pytest.raises(CheckFailed):
            own.open(forged[1 : 1 + shape.sealed_bytes(position)], info + context)


def test_what_a_relay_reads_does_not_depend_on_what_is_inside() -> None:
    """Other payloads differ to it in nothing but ciphertext."""
    one, to_one = seen_by_the_middle(b"what I answered")
    two, to_two = seen_by_the_middle(b"")
    assert [len(text) for text in one] == [len(text) for text in two]
    assert one[1][0] == two[1][0] == to_one.to == to_two.to
    assert one[0][0] == two[0][0] == 1  # its own position, which it does learn


# ── who may hand in what ──

NOT_ASKED = next(person for person in STUDY.people if person not in ASKED)
OUTSIDE = next(place for place in range(5) if place not in WAY)


@pytest.mark.parametrize(
    ("sender", "hop"),
    [
        ("a stranger", 0),
        (NOT_ASKED, 0),
        (STUDY.key(WAY[0]), 0),
        (STUDY.key(WAY[1]), 0),
        ("a stranger", 1),
        (ASKED[0], 1),
        (STUDY.key(WAY[1]), 1),
        (STUDY.key(WAY[2]), 1),
        (STUDY.key(OUTSIDE), 1),
        (STUDY.key(WAY[0]), 2),
        (STUDY.key(OUTSIDE), 2),
    ],
)
def test_only_who_is_asked_begins_and_only_the_relay_before_goes_on(sender: str, hop: int) -> None:
    made = opened(hop)
    with pytest.raises(Refused, match=r"people who are asked this|from the relay before"):
        made.take(sender, 0, 0, hop, BATCH, [bytes([hop]) + packet()[1:]])
    assert made.release(WAVE) == []


def test_a_batch_comes_to_the_relays_of_its_circuit_and_at_its_hop() -> None:
    here = {place: hop for hop, place in enumerate(WAY)}
    for place in range(5):
        made = STUDY.relay(place)
        made.open_wave(WAVE)
        for hop in range(4):
            if here.get(place) != hop:
                with pytest.raises(Refused, match="do not come here"):
                    made.take(ASKED[0], 0, 0, hop, BATCH, [bytes([hop]) + packet()[1:]])
        with pytest.raises(Refused, match="do not come here"):
            made.take(ASKED[0], 0, 0, 0, "table-9", [packet()])


def test_a_packet_of_another_question_s_batch_is_dropped() -> None:
    """People who are asked something else would hide nobody."""
    made = opened()
    other = STUDY.packet(WAVE, OTHER, way=WAY)  # by this circuit, and yet
    assert made.take(ASKED[0], 0, 0, 0, BATCH, [other]) == Taken(0, 0, 1)
    for person in ASKED[1:REQUIRED]:
        made.take(person, 0, 0, 0, BATCH, [packet()])
    assert made.release(WAVE) == []  # one too few


def test_wrong_lengths_and_positions_are_refused_as_a_whole() -> None:
    made = opened()
    good = packet(b"good")
    for bad in (good[:-1], good + b"\0", b"", b"\1" + good[1:]):
        with pytest.raises(InputError, match="at hop 0 has"):
            made.take(ASKED[0], 0, 0, 0, BATCH, [good, bad])
    assert made.take(ASKED[0], 0, 0, 0, BATCH, [good]) == Taken(1, 0, 0)


def test_nobody_may_hand_in_more_than_she_is_asked_for() -> None:
    made = opened()
    packets = [packet(bytes([number])) for number in range(2)]
    with pytest.raises(Refused, match="1 packets"):
        made.take(ASKED[0], 0, 0, 0, BATCH, packets)
    assert made.take(ASKED[0], 0, 0, 0, BATCH, packets[:1]) == Taken(1, 0, 0)
    with pytest.raises(Refused, match="1 packets"):
        made.take(ASKED[0], 0, 0, 0, BATCH, packets[1:])
    assert made.take(ASKED[1], 0, 0, 0, BATCH, packets[1:]) == Taken(1, 0, 0)


def test_garbage_counts_towards_the_quota() -> None:
    made = opened()
    assert made.take(ASKED[0], 0, 0, 0, BATCH, [bytes(SIZE)]) == Taken(0, 0, 1)
    with pytest.raises(Refused, match="1 packets"):
        made.take(ASKED[0], 0, 0, 0, BATCH, [packet()])


def test_a_relay_may_hand_in_what_all_people_together_could_have_sent() -> None:
    """Bounded, and no less: its owner may have thrown in some of her own."""
    made = opened(1)
    made_up = [bytes([1, n]) + bytes(SIZE - 2) for n in range(PEOPLE + 1)]
    with pytest.raises(Refused, match="12 packets"):
        made.take(STUDY.key(WAY[0]), 0, 0, 1, BATCH, made_up)
    assert made.take(STUDY.key(WAY[0]), 0, 0, 1, BATCH, made_up[:12]) == Taken(0, 0, 12)


# ── once ──


def test_the_same_packet_again_is_acknowledged_and_ignored() -> None:
    made = filled(2)
    again = packet(b"again")
    assert made.take(ASKED[2], 0, 0, 0, BATCH, [again, again]) == Taken(1, 1, 0)
    assert made.take(ASKED[2], 0, 0, 0, BATCH, [again]) == Taken(0, 1, 0)
    assert made.take(ASKED[3], 0, 0, 0, BATCH, [again]) == Taken(0, 1, 0)  # by another, the same
    (out,) = made.release(WAVE)
    assert len(out.packets) == 3


def test_another_fill_does_not_make_another_packet() -> None:
    packets = passed_on(3)
    other_fill = [p[:-1] + bytes([p[-1] ^ 1]) for p in packets]
    second, before = opened(1), STUDY.key(WAY[0])
    assert second.take(before, 0, 0, 1, BATCH, packets) == Taken(3, 0, 0)
    assert second.take(before, 0, 0, 1, BATCH, packets) == Taken(0, 3, 0)
    assert second.take(before, 0, 0, 1, BATCH, other_fill) == Taken(0, 0, 3)
    (out,) = second.release(WAVE)
    assert len(out.packets) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"number": 2},
        {"stage": 1},
        {"opens": 201.0},
        {"before": "ba" * 32},
        {"thresholds": {"age": [30.0, 61.0]}},
        {"statements": {place: LATER.statements[place] for place in range(1, 5)}},
        {"delivered": {BATCH: 2}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_packets_of_whoever_was_shown_another_wave_are_dropped(
    change: Mapping[str, object],
) -> None:
    made = opened(wave=LATER)
    other = msgspec.structs.replace(LATER, **change)
    sent = STUDY.packet(other, BATCH, way=WAY)
    assert made.take(ASKED[0], 0, 1, 0, BATCH, [sent]) == Taken(0, 0, 1)
    assert made.take(ASKED[1], 0, 1, 0, BATCH, [packet(wave=LATER)]) == Taken(1, 0, 0)
    assert made.dropped == 1


@pytest.mark.parametrize("other", [DrawnStudy(lots="others"), DrawnStudy(here=range(4))])
def test_packets_of_whoever_was_shown_other_lots_are_dropped(other: DrawnStudy) -> None:
    assert other.proposal.digest == STUDY.proposal.digest
    made = opened()
    sent = STUDY.packet(WAVE, BATCH, drawing=other.drawn.drawing)
    assert made.take(ASKED[0], 0, 0, 0, BATCH, [sent]) == Taken(0, 0, 1)


def test_a_packet_is_of_no_use_in_a_later_wave() -> None:
    made, old = opened(), packet(b"old")
    made.take(ASKED[0], 0, 0, 0, BATCH, [old])
    made.open_wave(LATER)
    assert made.take(ASKED[0], 0, 1, 0, BATCH, [old]) == Taken(0, 0, 1)
    assert made.dropped == 1


def test_packets_that_leave_the_circuit_are_dropped_and_counted() -> None:
    made = opened()
    home, away = (STUDY.proposal.stops[place].key for place in WAY[:2])
    beside = next(place for place in range(5) if place not in WAY and place % 3 == 1)
    routes = {
        "to itself": [Hop(9, home), Hop(WAY[0], away), WAY[2]],
        "to no relay": [WAY[0], Hop(7, away), WAY[2]],
        "to another of the next layer": [WAY[0], beside, WAY[2]],
        "past a layer": [WAY[0], WAY[2], WAY[1]],
        "to another relay first": [WAY[1], WAY[0], WAY[2]],
    }
    for person, route in zip(ASKED, routes.values(), strict=False):
        sent = STUDY.packet(WAVE, BATCH, way=route)
        assert made.take(person, 0, 0, 0, BATCH, [sent]) == Taken(0, 0, 1)
    assert made.dropped == len(routes)
