"""Ring signatures: the curve's formula agrees, one key has one tag, and the signer stays hidden."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.bindings import crypto_core_ed25519_is_valid_point
from scipy import stats

import tacit
from tacit.crypto import ring_signatures
from tacit.crypto.prg import Keystream, SeededRandomness
from tacit.crypto.ring_signatures import (
    RingSignature,
    ring_sign,
    signature_bytes,
    usable_in_rings,
)
from tacit.crypto.signing import SigningKey, signed_by
from tacit.errors import InputError, UsageError


def key_of(name: str) -> SigningKey:
    seed = hashlib.sha256(name.encode()).digest()
    return SigningKey(Ed25519PrivateKey.from_private_bytes(seed))


KEYS = [key_of(f"member {i}") for i in range(5)]
RING = [key.public_key for key in KEYS]
OUTSIDER = key_of("outsider")
EVENT, MESSAGE = b"study, question", b"report"
FALSE_ALARM = 1e-6  # draws are seeded: this is how often another seed would fail
FEW = settings(max_examples=10)


def signed(member: int = 0, seed: object = 0, message: bytes = MESSAGE) -> RingSignature:
    return ring_sign(KEYS[member], RING, EVENT, message, SeededRandomness(str(seed)))


SIGNATURE = signed()

# ── The curve by its formula: −x² + y² = 1 + d·x²·y² modulo p (RFC 8032, 5.1) ───────────────────

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]
ZERO: Point = (0, 1)
HALF: Point = (0, P - 1)  # of order 2


def plus(a: Point, b: Point) -> Point:
    (x1, y1), (x2, y2) = a, b
    cross = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + cross, -1, P)
    y = (y1 * y2 + x1 * x2) * pow(1 - cross, -1, P)
    return x % P, y % P


def times(scalar: int, point: Point) -> Point:
    total = ZERO
    while scalar:
        if scalar & 1:
            total = plus(total, point)
        point, scalar = plus(point, point), scalar >> 1
    return total


def encoded(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def decoded(body: bytes) -> Point:
    number = int.from_bytes(body, "little")
    y, sign = number & ((1 << 255) - 1), number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert x * x % P == square
    return (P - x if x & 1 != sign else x), y


BASE = decoded((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def number(body: bytes) -> int:
    return int.from_bytes(body, "little")


class Textbook:
    """The equations of LSAG, without a look at the order of points."""

    def __init__(self, ring: list[str], event: bytes, message: bytes) -> None:
        self.members = sorted(bytes.fromhex(key) for key in ring)
        self.parts = hashlib.blake2b(b"".join(self.members)), hashlib.blake2b(event)
        self.message = hashlib.blake2b(message).digest()
        self.base = decoded(ring_signatures._base_point(self.members, event))

    def next(self, tag: Point, left: Point, right: Point) -> int:
        ring, event = (part.digest() for part in self.parts)
        body = ring + event + encoded(tag) + self.message + encoded(left) + encoded(right)
        return number(hashlib.blake2b(body, person=b"tacit ring walk").digest()) % L

    def step(self, tag: Point, place: int, c: int, s: int) -> int:
        left = plus(times(s, BASE), times(c, decoded(self.members[place])))
        return self.next(tag, left, plus(times(s, self.base), times(c, tag)))

    def accepts(self, signature: RingSignature) -> bool:
        tag, c = decoded(signature.tag), number(signature.challenge)
        for place, response in enumerate(signature.responses):
            c = self.step(tag, place, c, number(response))
        return c == number(signature.challenge)


def test_the_formula_is_the_curve() -> None:
    assert times(L, BASE) == ZERO
    assert times(2, HALF) == ZERO
    scalar = number(KEYS[0].secret_scalar())
    assert encoded(times(scalar, BASE)).hex() == RING[0]


def test_a_signature_is_what_the_note_says() -> None:
    assert Textbook(RING, EVENT, MESSAGE).accepts(SIGNATURE)
    assert not Textbook(RING, EVENT, b"another").accepts(SIGNATURE)


def test_a_tag_is_the_secret_times_the_events_point() -> None:
    book = Textbook(RING, EVENT, MESSAGE)
    for member, key in enumerate(KEYS):
        tag = times(number(key.secret_scalar()) % L, book.base)
        assert signed(member).tag == encoded(tag)


def test_the_events_point_has_prime_order() -> None:
    for event in (b"", b"1", b"2"):
        base = Textbook(RING, event, b"").base
        assert base != ZERO
        assert times(L, base) == ZERO


# ── Who can sign what ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("member", range(len(KEYS)))
def test_every_member_can_sign(member: int) -> None:
    signature = signed(member)
    assert signature.verify(RING, EVENT, MESSAGE)
    assert signature.verify(RING[::-1], EVENT, MESSAGE)  # a ring is a set
    assert len(signature.to_bytes()) == signature_bytes(len(RING)) == 32 * (len(RING) + 2)
    assert RingSignature.from_bytes(signature.to_bytes()) == signature


@FEW
@given(st.integers(2, 6), st.data(), st.binary(max_size=80), st.binary(max_size=80))
def test_any_ring_event_and_message(
    size: int, data: st.DataObject, event: bytes, message: bytes
) -> None:
    keys = [key_of(f"{size} {i}") for i in range(size)]
    ring = data.draw(st.permutations([key.public_key for key in keys]))
    key = data.draw(st.sampled_from(keys))
    signature = ring_sign(key, ring, event, message)
    assert signature.verify(ring, event, message)
    assert not signature.verify(ring, event + b"!", message)
    assert not signature.verify(ring, event, message + b"!")


def test_other_messages_events_and_rings_are_refused() -> None:
    assert not SIGNATURE.verify(RING, EVENT, b"")
    assert not SIGNATURE.verify(RING, b"", MESSAGE)
    assert not SIGNATURE.verify([*RING[:-1], OUTSIDER.public_key], EVENT, MESSAGE)
    assert not SIGNATURE.verify(RING[:-1], EVENT, MESSAGE)
    assert not SIGNATURE.verify([*RING, OUTSIDER.public_key], EVENT, MESSAGE)


def test_event_and_message_do_not_run_into_each_other() -> None:
    signature = ring_sign(KEYS[0], RING, b"ab", b"c")
    assert not signature.verify(RING, b"a", b"bc")


def test_an_outsider_cannot_sign() -> None:
    with pytest.raises(UsageError, match="not in it"):
        ring_sign(OUTSIDER, RING, EVENT, MESSAGE)
    own = [*RING[1:], OUTSIDER.public_key]
    foreign = ring_sign(OUTSIDER, own, EVENT, MESSAGE)
    assert foreign.verify(own, EVENT, MESSAGE)
    assert not foreign.verify(RING, EVENT, MESSAGE)


def test_a_tag_of_another_cannot_be_put_on() -> None:
    assert not replace(SIGNATURE, tag=signed(1).tag).verify(RING, EVENT, MESSAGE)


@settings(max_examples=60)
@given(st.integers(0, 8 * signature_bytes(len(RING)) - 1))
def test_every_bit_counts(bit: int) -> None:
    body = bytearray(SIGNATURE.to_bytes())
    body[bit // 8] ^= 1 << (bit % 8)
    assert not RingSignature.from_bytes(bytes(body)).verify(RING, EVENT, MESSAGE)


def test_a_scalar_has_one_spelling() -> None:
    """s + L gives the same points and another spelling."""
    more = (number(SIGNATURE.responses[0]) + L).to_bytes(32, "little")
    respelled = replace(SIGNATURE, responses=(more, *SIGNATURE.responses[1:]))
    assert Textbook(RING, EVENT, MESSAGE).accepts(respelled)
    assert not respelled.verify(RING, EVENT, MESSAGE)
    challenge = (number(SIGNATURE.challenge) + L).to_bytes(32, "little")
    assert not replace(SIGNATURE, challenge=challenge).verify(RING, EVENT, MESSAGE)


def test_the_key_still_signs_as_ever() -> None:
    assert signed_by(KEYS[0].public_key, KEYS[0].sign(MESSAGE), MESSAGE)


# ── Once ────────────────────────────────────────────────────────────────────────────────────────


def test_one_key_has_one_tag_for_an_event() -> None:
    tags = {signed(2, seed, str(seed).encode()).tag for seed in range(4)}
    assert len(tags) == 1
    assert len({signed(member).tag for member in range(len(KEYS))}) == len(KEYS)


def test_another_event_or_ring_has_another_tag() -> None:
    ring = [*RING, OUTSIDER.public_key]
    tags = [ring_sign(KEYS[0], RING, event, MESSAGE).tag for event in (b"1", b"2")]
    tags.append(ring_sign(KEYS[0], ring, b"1", MESSAGE).tag)
    assert len(set(tags)) == 3


def doubled(book: Textbook, key: SigningKey) -> RingSignature:
    """A second tag of the same key: a point of order 2 is added, and the nonce drawn again until
    the challenge at the signer's place is even, so that the addition vanishes there."""
    x = number(key.secret_scalar()) % L
    tag = plus(times(x, book.base), HALF)
    place = book.members.index(bytes.fromhex(key.public_key))
    assert len(book.members) == 2
    other, stream = 1 - place, SeededRandomness("attack").stream()
    while True:
        nonce, response = stream.below(L), stream.below(L)
        first = book.next(tag, times(nonce, BASE), times(nonce, book.base))
        c = book.step(tag, other, first, response)
        if c % 2 == 0:
            break
    scalars = {place: (nonce - c * x) % L, other: response}
    challenge = c if place == 0 else first
    responses = tuple(scalars[i].to_bytes(32, "little") for i in range(2))
    return RingSignature(encoded(tag), challenge.to_bytes(32, "little"), responses)


@pytest.mark.parametrize("member", [0, 1])
def test_a_second_tag_by_a_point_of_small_order_is_refused(member: int) -> None:
    ring = RING[:2]
    book = Textbook(ring, EVENT, MESSAGE)
    forged = doubled(book, KEYS[member])
    assert book.accepts(forged)  # the equations alone do not refuse it
    assert forged.tag != ring_sign(KEYS[member], ring, EVENT, MESSAGE).tag
    assert not forged.verify(ring, EVENT, MESSAGE)


def small_order() -> list[Point]:
    """All eight points whose order divides 8, from one of order 8."""
    y = 2
    while True:
        try:
            point = times(L, decoded(y.to_bytes(32, "little")))
        except AssertionError:
            point = ZERO
        if times(4, point) != ZERO:
            return [times(k, point) for k in range(8)]
        y += 1


def test_keys_outside_the_group_are_refused() -> None:
    """Small and mixed orders; libsodium before 2026 let some of the mixed ones through."""
    key = decoded(bytes.fromhex(RING[0]))
    small = small_order()
    assert len(set(small)) == 8
    assert usable_in_rings(RING[0])
    for torsion in small:
        assert not usable_in_rings(encoded(torsion).hex())
        mixed = encoded(plus(key, torsion))
        assert usable_in_rings(mixed.hex()) is (torsion == ZERO)
        assert crypto_core_ed25519_is_valid_point(mixed) is (torsion == ZERO)


@pytest.mark.parametrize(
    "text",
    [
        "",
        RING[0][:-2],
        RING[0] + "00",
        RING[0].upper(),
        "zz" * 32,
        (P + 1).to_bytes(32, "little").hex(),  # y = 1 in another spelling
        (2).to_bytes(32, "little").hex(),  # not on the curve
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    assert not usable_in_rings(text)


@pytest.mark.parametrize("bad", [encoded(HALF).hex(), (2).to_bytes(32, "little").hex()])
def test_a_bad_key_spoils_the_ring_and_says_so(bad: str) -> None:
    with pytest.raises(InputError, match="usable_in_rings"):
        ring_sign(KEYS[0], [*RING, bad], EVENT, MESSAGE)
    responses = (*SIGNATURE.responses, SIGNATURE.challenge)
    assert not replace(SIGNATURE, responses=responses).verify([*RING, bad], EVENT, MESSAGE)


@pytest.mark.parametrize("tag", [encoded(ZERO), encoded(HALF), bytes(32), b"\xff" * 32, b""])
def test_what_is_no_tag_is_refused(tag: bytes) -> None:
    assert not replace(SIGNATURE, tag=tag).verify(RING, EVENT, MESSAGE)


def test_malformed_rings_are_refused() -> None:
    for ring in ([RING[0]], []):
        with pytest.raises(UsageError, match="2 to 1000"):
            ring_sign(KEYS[0], ring, EVENT, MESSAGE)
    with pytest.raises(UsageError, match="not 1001"):
        SIGNATURE.verify(["00" * 32] * 1001, EVENT, MESSAGE)
    with pytest.raises(InputError, match="twice"):
        ring_sign(KEYS[0], [*RING, RING[1]], EVENT, MESSAGE)
    with pytest.raises(InputError, match="hex"):
        ring_sign(KEYS[0], [*RING[:-1], RING[-1].upper()], EVENT, MESSAGE)


@pytest.mark.parametrize("size", [0, 64, 96, 127, 129, 32 * 1003])
def test_signatures_of_another_length_are_refused(size: int) -> None:
    with pytest.raises(InputError, match=f"{size} bytes"):
        RingSignature.from_bytes(bytes(size))


# ── Hidden ──────────────────────────────────────────────────────────────────────────────────────


def p_value(values: list[int]) -> float:
    counts = np.bincount([16 * value // L for value in values], minlength=16)
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.statistical
def test_responses_are_uniform_at_the_signers_place_and_elsewhere() -> None:
    """300 signatures in a ring of two; a response that is a sum of two draws would show."""
    ring = sorted(RING[:2])
    for key in KEYS[:2]:
        made = [
            ring_sign(key, ring, EVENT, MESSAGE, SeededRandomness(f"draw {i}")) for i in range(300)
        ]
        columns = [[number(signature.responses[i]) for signature in made] for i in range(2)]
        columns.append([number(signature.challenge) for signature in made])
        for values in columns:
            assert p_value(values) > FALSE_ALARM
        both = [(a + b) // 2 for a, b in zip(columns[0], columns[1], strict=True)]
        assert p_value(both) < FALSE_ALARM


def test_the_randomness_shows_everywhere() -> None:
    one, other = signed(0, 1), signed(0, 2)
    assert one.tag == other.tag
    assert not set(one.responses) & set(other.responses)
    assert one.challenge != other.challenge


class Stuck:
    """A broken Randomness: always the same stream."""

    secure = False

    def stream(self) -> Keystream:
        return Keystream(bytes(32))


def test_repeated_randomness_gives_neither_key_nor_place_away() -> None:
    """With equal draws, two messages would have equal responses at all places but the signer's."""
    one, other = (ring_sign(KEYS[3], RING, EVENT, text, Stuck()) for text in (b"1", b"2"))
    assert not set(one.responses) & set(other.responses)
    again = ring_sign(KEYS[3], RING, EVENT, b"1", Stuck())
    assert again == one
    neighbour = ring_sign(KEYS[2], RING, EVENT, b"1", Stuck())
    assert not set(one.responses) & set(neighbour.responses)


def test_the_secret_scalar_stays_in_its_room() -> None:
    """Only ring signatures ask a key for its secret, and nothing prints it."""
    source = Path(tacit.__file__).parent
    users = {path.name for path in source.rglob("*.py") if "secret_scalar" in path.read_text()}
    assert users == {"signing.py", "ring_signatures.py"}
    assert KEYS[0].secret_scalar().hex() not in repr(KEYS[0]) + repr(SIGNATURE)
