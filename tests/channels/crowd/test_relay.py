"""The relay: takes from whom it may, passes on whole batches, and does either once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tacit.channels.crowd.relay import Outgoing, Relay, Taken, context_of
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.store import MEMORY
from tacit.crypto.onion import Hop, Kem, OnionKey, Shape, open_payload, wrap
from tacit.crypto.prg import SeededRandomness
from tacit.errors import CheckFailed, InputError, Refused, UsageError

STUDY = "5a" * 32
SHAPE = Shape("x25519", 3, 16)
IDENTITIES = [f"relay {place}" for place in range(4)]
PEOPLE = [f"person {number}" for number in range(12)]
KEYS = {kem: [OnionKey.generate(kem) for _ in range(5)] for kem in ("x25519", "hybrid")}
ROUTE = (0, 1, 2)


def collector(kem: Kem = "x25519") -> OnionKey:
    return KEYS[kem][4]


def packet(
    payload: bytes,
    route: Sequence[int] = ROUTE,
    wave: tuple[int, int] = (0, 0),
    shape: Shape = SHAPE,
) -> bytes:
    stops = [Hop(place, KEYS[shape.kem][place].public) for place in route]
    return wrap(shape, context_of(STUDY, *wave), stops, collector(shape.kem).public, payload)


def relay(
    place: int = 0,
    minimum: int = 2,
    quota: int = 1,
    store: RelayStore | None = None,
    shape: Shape = SHAPE,
    opened: bool = True,
    key: OnionKey | None = None,
) -> Relay:
    made = Relay(
        STUDY,
        shape,
        key or KEYS[shape.kem][place],
        place,
        IDENTITIES,
        minimum,
        quota,
        store or RelayStore(MEMORY, STUDY),
        SeededRandomness(f"relay {place}"),
    )
    if opened:
        made.open_stage(0, 0, frozenset(PEOPLE))
    return made


def filled(count: int, store: RelayStore | None = None, **settings: int) -> Relay:
    """The first relay, to which so many people have handed in a packet."""
    made = relay(store=store, **settings)
    for person in PEOPLE[:count]:
        assert made.take(person, 0, 0, 0, [packet(person.encode())]) == Taken(1, 0, 0)
    return made


def run(relays: Sequence[Relay], hops: int) -> list[bytes]:
    """Release hop after hop, as the services do; what comes to the collector."""
    arrived: list[bytes] = []
    for hop in range(hops):
        for sender in relays:
            try:
                batches = sender.release(0, 0, hop)
            except Refused:
                continue
            for out in batches:
                if out.to is None:
                    arrived += out.packets
                else:
                    taken = relays[out.to].take(
                        IDENTITIES[sender.place], 0, 0, out.hop, out.packets
                    )
                    assert taken == Taken(len(out.packets), 0, 0)
    return arrived


# ── the whole way ──


@pytest.mark.parametrize("kem", ["x25519", "hybrid"])
def test_every_report_arrives_once_whatever_its_circuit(kem: Kem) -> None:
    shape = Shape(kem, 3, 16)
    relays = [relay(place, minimum=1, shape=shape) for place in range(4)]
    circuits = [(0, 1, 2), (1, 2, 3), (3, 2, 1), (2, 0, 3), (1, 0, 2), (0, 3, 1)]
    for number, person in enumerate(PEOPLE):
        route = circuits[number % len(circuits)]
        sent = packet(person.encode(), route, shape=shape)
        relays[route[0]].take(person, 0, 0, 0, [sent])
    arrived = run(relays, 3)
    assert {len(p) for p in arrived} == {shape.packet_bytes}
    context = context_of(STUDY, 0, 0)
    payloads = [open_payload(shape, context, collector(kem), p) for p in arrived]
    assert sorted(payloads) == sorted(person.encode() for person in PEOPLE)
    passed = [sum(made.attest(0, 0).get(hop, 0) for made in relays) for hop in range(3)]
    assert passed == [12, 12, 12]
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


def seen_by_the_middle(route: tuple[int, int, int], payload: bytes) -> tuple[list[bytes], Outgoing]:
    """All that relay 1 can read of a packet that passes it at hop 1, and where it sends it."""
    key = Recorder.of(KEYS["x25519"][1])
    relays = [relay(p, minimum=1, key=key if p == 1 else None) for p in range(4)]
    relays[route[0]].take(PEOPLE[0], 0, 0, 0, [packet(payload, route)])
    (first,) = relays[route[0]].release(0, 0, 0)
    assert first.to == 1
    relays[1].take(IDENTITIES[route[0]], 0, 0, 1, first.packets)
    (onward,) = relays[1].release(0, 0, 1)
    return [*first.packets, *key.log], onward


def test_a_relay_learns_its_neighbours_and_nothing_else() -> None:
    payload = b"what I answered"
    own = KEYS["x25519"][1]
    seen, onward = seen_by_the_middle((0, 1, 2), payload)
    assert len(seen) == 2  # what arrived, and the one layer it could open
    assert seen[1][0] == onward.to == 2
    for text in seen:
        assert payload not in text
        for stranger in (0, 2, 3, 4):
            assert bytes.fromhex(KEYS["x25519"][stranger].public) not in text
    for position in range(4):  # what is inside its layer stays closed to it, under any pretence
        forged = bytes([position]) + seen[1][1:] + bytes(SHAPE.packet_bytes - len(seen[1]))
        info = b"tacit onion, version 1, towards the collector" + bytes([position])
        with pytest.raises(CheckFailed):
            own.open(forged[1 : 1 + SHAPE.sealed_bytes(position)], info + context_of(STUDY, 0, 0))


def test_what_a_relay_reads_does_not_depend_on_the_rest_of_the_way() -> None:
    """Other payloads and other senders' circuits differ to it in nothing but ciphertext."""
    one, to_one = seen_by_the_middle((0, 1, 2), b"what I answered")
    two, to_two = seen_by_the_middle((3, 1, 2), b"")
    assert [len(text) for text in one] == [len(text) for text in two]
    assert one[1][0] == two[1][0] == to_one.to == to_two.to
    assert one[0][0] == two[0][0] == 1  # its own position, which it does learn


# ── who may hand in what ──


@pytest.mark.parametrize(
    ("sender", "hop"),
    [("a stranger", 0), (IDENTITIES[1], 0), (PEOPLE[0], 1), ("a stranger", 1), (IDENTITIES[0], 1)],
)
def test_only_people_begin_and_only_other_relays_go_on(sender: str, hop: int) -> None:
    made = relay()
    with pytest.raises(Refused, match=r"the people of this stage|the study's other relays"):
        made.take(sender, 0, 0, hop, [bytes([hop]) + packet(b"")[1:]])


def test_wrong_lengths_and_positions_are_refused_as_a_whole() -> None:
    made = relay(quota=2)
    good = packet(b"good")
    for bad in (good[:-1], good + b"\0", b"", b"\1" + good[1:]):
        with pytest.raises(InputError, match="at hop 0 has"):
            made.take(PEOPLE[0], 0, 0, 0, [good, bad])
    with pytest.raises(InputError, match="hops 0 to 2"):
        made.take(PEOPLE[0], 0, 0, 3, [b"\3" + good[1:]])
    assert made.take(PEOPLE[0], 0, 0, 0, [good]) == Taken(1, 0, 0)


def test_nobody_may_hand_in_more_than_the_quota() -> None:
    made = relay(quota=2)
    packets = [packet(bytes([number])) for number in range(3)]
    with pytest.raises(Refused, match="2 packets"):
        made.take(PEOPLE[0], 0, 0, 0, packets)
    assert made.take(PEOPLE[0], 0, 0, 0, packets[:2]) == Taken(2, 0, 0)
    with pytest.raises(Refused, match="2 packets"):
        made.take(PEOPLE[0], 0, 0, 0, packets[2:])
    assert made.take(PEOPLE[1], 0, 0, 0, packets[2:]) == Taken(1, 0, 0)


def test_garbage_counts_towards_the_quota() -> None:
    made = relay()
    garbage = bytes(SHAPE.packet_bytes)
    assert made.take(PEOPLE[0], 0, 0, 0, [garbage]) == Taken(0, 0, 1)
    with pytest.raises(Refused, match="1 packets"):
        made.take(PEOPLE[0], 0, 0, 0, [packet(b"")])


def test_a_relay_may_hand_in_what_all_people_together_could_have_sent() -> None:
    made = relay(1)
    made_up = [bytes([1, n]) + bytes(SHAPE.packet_bytes - 2) for n in range(13)]
    with pytest.raises(Refused, match="12 packets"):
        made.take(IDENTITIES[0], 0, 0, 1, made_up)
    assert made.take(IDENTITIES[0], 0, 0, 1, made_up[:12]) == Taken(0, 0, 12)


# ── once ──


def test_the_same_packet_again_is_acknowledged_and_ignored() -> None:
    made = filled(2)
    again = packet(b"again")
    assert made.take(PEOPLE[2], 0, 0, 0, [again, again]) == Taken(1, 1, 0)
    assert made.take(PEOPLE[2], 0, 0, 0, [again]) == Taken(0, 1, 0)
    assert made.take(PEOPLE[3], 0, 0, 0, [again]) == Taken(0, 1, 0)  # by another, the same
    (out,) = made.release(0, 0, 0)
    assert len(out.packets) == 3


def test_another_fill_does_not_make_another_packet() -> None:
    (out,) = filled(2).release(0, 0, 0)
    other_fill = [p[:-1] + bytes([p[-1] ^ 1]) for p in out.packets]
    second = relay(1)
    assert second.take(IDENTITIES[0], 0, 0, 1, out.packets) == Taken(2, 0, 0)
    assert second.take(IDENTITIES[0], 0, 0, 1, out.packets) == Taken(0, 2, 0)
    assert second.take(IDENTITIES[3], 0, 0, 1, other_fill) == Taken(0, 0, 2)


def test_a_packet_is_of_no_use_in_another_wave_or_study() -> None:
    made = relay()
    old = packet(b"old")
    made.take(PEOPLE[0], 0, 0, 0, [old])
    for stage, wave in ((0, 1), (1, 0)):
        made.open_stage(stage, wave, frozenset(PEOPLE))
        assert made.take(PEOPLE[0], stage, wave, 0, [old]) == Taken(0, 0, 1)
    assert made.dropped == 2


def test_packets_that_lead_nowhere_are_dropped_and_counted() -> None:
    made = relay(quota=4)
    home, nowhere = KEYS["x25519"][0].public, KEYS["x25519"][1].public
    stops = {
        "to itself": [Hop(9, home), Hop(0, nowhere), Hop(2, nowhere)],
        "to no relay": [Hop(0, home), Hop(4, nowhere), Hop(2, nowhere)],
    }
    for number, route in enumerate(stops.values()):
        sent = wrap(SHAPE, context_of(STUDY, 0, 0), route, collector().public, b"")
        assert made.take(PEOPLE[number], 0, 0, 0, [sent]) == Taken(0, 0, 1)
    other = packet(b"", route=(1, 0, 2))  # sealed for another relay
    assert made.take(PEOPLE[2], 0, 0, 0, [other]) == Taken(0, 0, 1)
    assert made.dropped == 3


# ── release ──


def test_a_batch_below_the_minimum_is_held() -> None:
    made = filled(2, minimum=3)
    with pytest.raises(Refused, match=r"2 are here .* 3 at least"):
        made.release(0, 0, 0)
    assert made.attest(0, 0) == {}
    made.take(PEOPLE[5], 0, 0, 0, [packet(b"one more")])
    (out,) = made.release(0, 0, 0)
    assert (out.to, out.hop, len(out.packets)) == (1, 1, 3)


def test_packets_of_one_person_do_not_make_a_crowd() -> None:
    made = relay(minimum=2, quota=5)
    made.take(PEOPLE[0], 0, 0, 0, [packet(bytes([n])) for n in range(5)])
    made.take(PEOPLE[1], 0, 0, 0, [bytes(SHAPE.packet_bytes)])  # neither does garbage
    with pytest.raises(Refused, match="1 are here"):
        made.release(0, 0, 0)


def test_later_hops_have_the_minimum_too() -> None:
    (out,) = filled(2).release(0, 0, 0)
    second = relay(1)
    second.take(IDENTITIES[0], 0, 0, 1, out.packets[:1])
    with pytest.raises(Refused, match="1 are here"):
        second.release(0, 0, 1)


def test_released_is_released() -> None:
    made = filled(3)
    first = made.release(0, 0, 0)
    assert made.release(0, 0, 0) == first  # asked again, the same in the same order
    with pytest.raises(Refused, match="was released"):
        made.take(PEOPLE[7], 0, 0, 0, [packet(b"late")])
    assert made.attest(0, 0) == {0: 3}


def test_packets_leave_by_next_stop() -> None:
    made = relay()
    for number, person in enumerate(PEOPLE[:6]):
        made.take(
            person,
            0,
            0,
            0,
            [packet(person.encode(), (0, 1 + number % 3, 1 + (number + 1) % 3))],
        )
    assert [(out.to, out.hop, len(out.packets)) for out in made.release(0, 0, 0)] == [
        (1, 1, 2),
        (2, 1, 2),
        (3, 1, 2),
    ]


# ── waves ──


def test_waves_go_forward() -> None:
    made = relay(opened=False)
    with pytest.raises(Refused, match="not open"):
        made.take(PEOPLE[0], 0, 0, 0, [packet(b"")])
    made.open_stage(1, 0, frozenset(PEOPLE))
    made.open_stage(1, 0, frozenset(PEOPLE))  # told twice
    with pytest.raises(Refused, match="other people"):
        made.open_stage(1, 0, frozenset(PEOPLE[1:]))
    for stage, wave in ((0, 0), (0, 7)):
        with pytest.raises(Refused, match="is over"):
            made.open_stage(stage, wave, frozenset(PEOPLE))
    with pytest.raises(Refused, match="not open"):
        made.release(1, 1, 0)


def test_what_was_held_back_does_not_come_with_the_next_wave() -> None:
    made = filled(2, minimum=3)
    made.open_stage(0, 1, frozenset(PEOPLE))
    with pytest.raises(Refused, match="not open"):
        made.release(0, 0, 0)
    for person in PEOPLE[2:5]:
        made.take(person, 0, 1, 0, [packet(b"", wave=(0, 1))])
    made.release(0, 1, 0)
    assert made.attest(0, 0) == {}
    assert made.attest(0, 1) == {0: 3}


# ── crashes ──


def test_a_batch_that_was_released_stays_so_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "relay.db"
    store = RelayStore(path, STUDY)
    filled(3, store).release(0, 0, 0)
    store.close()
    store = RelayStore(path, STUDY)
    again = relay(store=store)
    with pytest.raises(Refused, match="was released"):
        again.take(PEOPLE[0], 0, 0, 0, [packet(b"replayed")])
    with pytest.raises(Refused, match="before this relay was started again"):
        again.release(0, 0, 0)
    assert again.attest(0, 0) == {0: 3}
    store.close()
    with pytest.raises(Refused, match="is over"):
        relay(store=RelayStore(path, STUDY), opened=False).open_stage(-1, 0, frozenset(PEOPLE))


def test_a_batch_that_was_not_released_begins_anew_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "relay.db"
    sent = packet(b"sent twice")
    store = RelayStore(path, STUDY)
    relay(store=store).take(PEOPLE[0], 0, 0, 0, [sent])
    store.close()
    again = relay(store=RelayStore(path, STUDY))
    assert again.take(PEOPLE[0], 0, 0, 0, [sent]) == Taken(1, 0, 0)


def test_nothing_of_a_packet_is_on_the_disk(tmp_path: Path) -> None:
    store = RelayStore(tmp_path / "relay.db", STUDY)
    made = relay(store=store)
    packets = [packet(person.encode()) for person in PEOPLE[:3]]
    for person, sent in zip(PEOPLE, packets, strict=False):
        made.take(person, 0, 0, 0, [sent])
    (out,) = made.release(0, 0, 0)
    written = b"".join(file.read_bytes() for file in tmp_path.glob("relay.db*"))
    assert STUDY.encode() in written
    assert not any(p[1:17] in written for p in (*packets, *out.packets))
    assert not any(person.encode() in written for person in PEOPLE)


class FailingStore(RelayStore):
    broken = True

    def put(self, stage: int, wave: int, hop: int, packets: int) -> None:
        if self.broken:
            raise OSError("no space left")
        super().put(stage, wave, hop, packets)


def test_nothing_leaves_before_it_is_noted() -> None:
    store = FailingStore(MEMORY, STUDY)
    made = filled(3, store)
    with pytest.raises(OSError, match="no space"):
        made.release(0, 0, 0)
    assert made.attest(0, 0) == {}
    store.broken = False
    (out,) = made.release(0, 0, 0)
    assert len(out.packets) == 3


# ── wrong settings ──


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(UsageError, match="place 4 among 4"):
        relay(4)
    with pytest.raises(UsageError, match="minimum = 0"):
        relay(minimum=0)
    with pytest.raises(UsageError, match="quota = 0"):
        relay(quota=0)
    with pytest.raises(UsageError, match="hybrid"):
        relay(shape=Shape("hybrid", 3, 16), key=KEYS["x25519"][0])
