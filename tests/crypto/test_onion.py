"""Onions: every layer opens once, in its place, for its owner, and all packets look alike."""

from __future__ import annotations

from itertools import pairwise

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.onion import Hop, Kem, OnionKey, Shape, open_payload, peel, wrap
from tacit.errors import CheckFailed, InputError, UsageError

CONTEXT = b"study, stage and wave"
KEYS = [OnionKey.generate() for _ in range(6)]
HYBRID = [OnionKey.generate("hybrid") for _ in range(6)]
COLLECTOR = 5
SMALL = Shape("x25519", 2, 8)


def keys(kem: Kem) -> list[OnionKey]:
    return KEYS if kem == "x25519" else HYBRID


def wrapped(shape: Shape, payload: bytes, places: tuple[int, ...] | None = None) -> bytes:
    ring = keys(shape.kem)
    places = tuple(range(shape.hops)) if places is None else places
    route = [Hop(place, ring[place].public) for place in places]
    return wrap(shape, CONTEXT, route, ring[COLLECTOR].public, payload)


def journey(shape: Shape, packet: bytes) -> list[bytes]:
    """The packet as it comes to each relay of the circuit 0, 1, 2 … and to the collector."""
    packets = [packet]
    for hop in range(shape.hops):
        peeled = peel(shape, CONTEXT, keys(shape.kem)[hop], packets[-1])
        assert (peeled.hop, peeled.to) == (hop, hop + 1 if hop + 1 < shape.hops else None)
        packets.append(peeled.packet)
    return packets


@pytest.mark.parametrize("kem", ["x25519", "hybrid"])
@pytest.mark.parametrize("hops", [1, 2, 3, 5])
def test_a_payload_comes_through_and_all_packets_have_one_length(kem: Kem, hops: int) -> None:
    shape = Shape(kem, hops, 512)
    payload = bytes(range(256)) * 2
    lengths = set()
    for size in (0, 1, 511, 512):
        packets = journey(shape, wrapped(shape, payload[:size]))
        lengths |= {len(packet) for packet in packets}
        assert open_payload(shape, CONTEXT, keys(kem)[COLLECTOR], packets[-1]) == payload[:size]
    assert lengths == {shape.packet_bytes}


@given(st.binary(max_size=8) | st.sampled_from([b"\0", b"\x80", b"\x80\0\0", bytes(8)]))
def test_padding_gives_back_every_payload(payload: bytes) -> None:
    arrived = journey(SMALL, wrapped(SMALL, payload))[-1]
    assert open_payload(SMALL, CONTEXT, KEYS[COLLECTOR], arrived) == payload


@pytest.mark.parametrize(("kem", "layer"), [("x25519", 48), ("hybrid", 1136)])
def test_a_layer_costs_what_hpke_adds_and_one_address(kem: Kem, layer: int) -> None:
    shape = Shape(kem, 3, 512)
    assert shape.packet_bytes == 1 + (512 + 1 + layer) + 3 * (1 + layer)


def test_a_packet_is_plain_hpke_in_layers() -> None:
    """Made by hand with nothing but the standard's sealing: `peel` takes it."""
    packet = by_hand([5, 255], b"by hand\x80\0")
    assert open_payload(SMALL, CONTEXT, KEYS[COLLECTOR], journey_of(packet)) == b"by hand"


def by_hand(addresses: list[int], content: bytes) -> bytes:
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
    places = [0, 1, COLLECTOR]
    for position in (2, 1, 0):
        key = X25519PublicKey.from_public_bytes(bytes.fromhex(KEYS[places[position]].public))
        label = b"tacit onion, version 1, towards the collector" + bytes([position])
        content = suite.encrypt(content, key, info=label + CONTEXT)
        if position:
            content = bytes([addresses[position - 1]]) + content
    return b"\0" + content


def journey_of(packet: bytes) -> bytes:
    for place in (0, 1):
        packet = peel(SMALL, CONTEXT, KEYS[place], packet).packet
    return packet


@pytest.mark.parametrize("addresses", [[255, 255], [1, 1], [255, 1]])
def test_a_circuit_of_another_length_is_refused(addresses: list[int]) -> None:
    """A sender cannot have the collector reached too soon, or not at all."""
    with pytest.raises(CheckFailed):
        journey_of(by_hand(addresses, b"by hand\x80\0"))


@pytest.mark.parametrize("content", [bytes(9), b"12345678\x81"])
def test_a_payload_without_its_end_is_refused(content: bytes) -> None:
    arrived = journey_of(by_hand([1, 255], content))
    with pytest.raises(CheckFailed):
        open_payload(SMALL, CONTEXT, KEYS[COLLECTOR], arrived)


def opened_by(place: int, packet: bytes, context: bytes = CONTEXT) -> bool:
    """Whether this key opens the packet, as a relay's or as the collector's."""
    try:
        if packet[:1] == bytes([SMALL.hops]):
            open_payload(SMALL, context, KEYS[place], packet)
        else:
            peel(SMALL, context, KEYS[place], packet)
    except CheckFailed:
        return False
    return True


def test_a_layer_is_for_one_key_one_place_and_one_context() -> None:
    for hop, packet in enumerate(journey(SMALL, wrapped(SMALL, b"payload"))):
        owner = COLLECTOR if hop == SMALL.hops else hop
        assert [place for place in range(6) if opened_by(place, packet)] == [owner]
        assert not opened_by(owner, packet, CONTEXT + b"'")
        assert not opened_by(owner, packet, b"")
        for other in {0, 1, 2, 3, 255} - {hop}:
            assert not opened_by(owner, bytes([other]) + packet[1:])


def test_any_altered_byte_is_noticed() -> None:
    """Also in the fill: nobody can mark a packet to know it again at the next relay."""
    for hop, packet in enumerate(journey(SMALL, wrapped(SMALL, b"payload"))):
        owner = COLLECTOR if hop == SMALL.hops else hop
        for place in range(len(packet)):
            altered = bytearray(packet)
            altered[place] ^= 1 << place % 8
            assert not opened_by(owner, bytes(altered))


@pytest.mark.parametrize("packet", [b"", b"\0", bytes(SMALL.packet_bytes - 1), b"\xff" * 500])
def test_malformed_packets_are_refused_without_detail(packet: bytes) -> None:
    for attempt in (
        lambda: peel(SMALL, CONTEXT, KEYS[0], packet),
        lambda: open_payload(SMALL, CONTEXT, KEYS[COLLECTOR], packet),
    ):
        with pytest.raises(CheckFailed, match=r"^a packet was not made for us, here and now, or"):
            attempt()


@pytest.mark.parametrize("kem", ["x25519", "hybrid"])
def test_degenerate_encapsulations_are_refused(kem: Kem) -> None:
    """Zeros are a point of small order on the curve, and no ciphertext of ML-KEM's."""
    shape = Shape(kem, 1, 8)
    with pytest.raises(CheckFailed):
        peel(shape, CONTEXT, keys(kem)[0], bytes(shape.packet_bytes))


@pytest.mark.parametrize("kem", ["x25519", "hybrid"])
def test_no_part_of_a_packet_comes_out_again(kem: Kem) -> None:
    """Whoever sees a packet before and after a relay finds no 8 bytes of one in the other."""
    shape = Shape(kem, 3, 64)
    for before, after in pairwise(journey(shape, wrapped(shape, bytes(64)))):
        pieces = {before[i : i + 8] for i in range(len(before) - 7)}
        assert not any(after[i : i + 8] in pieces for i in range(len(after) - 7))


def test_one_packet_has_one_way_on() -> None:
    """No choice is left to a relay, so that a packet seen twice is known by its bytes."""
    packet = wrapped(SMALL, b"payload")
    assert len({peel(SMALL, CONTEXT, KEYS[0], packet).packet for _ in range(3)}) == 1


def test_two_wrappings_of_one_report_have_nothing_in_common() -> None:
    first, second = wrapped(SMALL, b"payload"), wrapped(SMALL, b"payload")
    for one, other in zip(journey(SMALL, first), journey(SMALL, second), strict=True):
        assert not {one[i : i + 8] for i in range(len(one) - 7)} & {
            other[i : i + 8] for i in range(len(other) - 7)
        }


@pytest.mark.parametrize("places", [(0,), (0, 0), (0, 1, 2)])
def test_a_route_has_as_many_different_relays_as_the_study_says(places: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="2 different relays"):
        wrapped(SMALL, b"", places)


def test_a_payload_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="9 bytes"):
        wrapped(SMALL, bytes(9))


@pytest.mark.parametrize(
    "shape", [("x448", 3, 512), ("x25519", 0, 512), ("x25519", 256, 512), ("x25519", 3, 0)]
)
def test_impossible_shapes_are_refused(shape: tuple[Kem, int, int]) -> None:
    with pytest.raises(UsageError):
        Shape(*shape)


@pytest.mark.parametrize("kem", ["x25519", "hybrid"])
def test_a_stored_key_opens_what_was_wrapped_for_it(kem: Kem) -> None:
    shape = Shape(kem, 1, 8)
    again = OnionKey.from_bytes(keys(kem)[0].to_bytes())
    assert (again.kem, again.public) == (kem, keys(kem)[0].public)
    assert peel(shape, CONTEXT, again, wrapped(shape, b"payload")).to is None


def test_a_key_does_not_print_itself() -> None:
    for key in (KEYS[0], HYBRID[0]):
        assert key.to_bytes().hex() not in repr(key)
        assert str(key.to_bytes()) not in repr(key)


@pytest.mark.parametrize(
    "public",
    ["", "zz", "ab" * 31, "AB" * 32, "ab " * 32, "ab" * 33, "ab" * 1215, KEYS[0].public * 2],
)
def test_what_is_not_a_public_key_is_said_so(public: str) -> None:
    with pytest.raises(InputError, match="not a public onion key"):
        Hop(0, public)


def test_a_point_of_small_order_is_not_a_key() -> None:
    with pytest.raises(InputError, match="not a public onion key"):
        wrap(Shape("x25519", 1, 8), CONTEXT, [Hop(0, "00" * 32)], KEYS[0].public, b"")


@pytest.mark.parametrize("address", [-1, 255, 256])
def test_addresses_are_those_of_relays(address: int) -> None:
    with pytest.raises(UsageError, match="addresses 0 to 254"):
        Hop(address, KEYS[0].public)


def test_keys_of_another_kind_are_refused() -> None:
    with pytest.raises(InputError, match="another kind"):
        wrap(Shape("hybrid", 1, 8), CONTEXT, [Hop(0, KEYS[0].public)], HYBRID[0].public, b"")
    with pytest.raises(UsageError, match="hybrid"):
        peel(SMALL, CONTEXT, HYBRID[0], wrapped(SMALL, b""))
    for secret in (b"", bytes(31), bytes(64)):
        with pytest.raises(InputError, match="not a stored onion key"):
            OnionKey.from_bytes(secret)
