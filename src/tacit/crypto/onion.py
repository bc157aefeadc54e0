"""Onions: packets that several relays pass on, each taking one layer off (proof: onion.md).

A layer is one sealing of HPKE (RFC 9180, base mode), for one relay, and holds the address of the
next stop and the packet for it; the innermost is for the collector and holds the payload.

    packet = position (1 byte, in clear) ‖ sealed for that position ‖ fill

Each layer makes the sealed part longer; the fill makes up for it, so that all packets of a study
have one length on every hop. It is a hash of the sealed part and is checked, so that nobody can
mark a packet there. A relay learns its position in the circuit, and its two neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import (
    AEAD,
    KDF,
    KEM,
    MLKEM768X25519PrivateKey,
    MLKEM768X25519PublicKey,
    Suite,
)

from tacit.errors import CheckFailed, InputError, UsageError

__all__ = ["Hop", "Kem", "OnionKey", "Peeled", "Shape", "open_payload", "peel", "wrap"]

Kem = Literal["x25519", "hybrid"]
PublicKey = X25519PublicKey | MLKEM768X25519PublicKey

MOST = 255  # relays of a study, and of a circuit
COLLECTOR = 255  # the address after the last relay's: 0 … 254 are relays
TAG_BYTES = 16  # of AES-GCM
CURVE_BYTES = 32  # of either half of an X25519 key
LATTICE_BYTES, SEED_BYTES = 1184, 64  # of an ML-KEM-768 public key, and of the seed of a secret one
END = b"\x80"  # of the payload; zeros follow
LABEL = b"tacit onion, version 1, towards the collector"
KEMS = {"x25519": KEM.X25519, "hybrid": KEM.MLKEM768_X25519}


@dataclass(frozen=True, slots=True)
class Shape:
    """The one form of all packets of a study.

    kem            what seals a layer: X25519, or the hybrid of it and ML-KEM-768, which stays
                   closed even to who keeps packets until there is a quantum computer
    hops           relays on a circuit
    payload_bytes  the longest payload; shorter ones are padded
    """

    kem: Kem
    hops: int
    payload_bytes: int

    def __post_init__(self) -> None:
        if self.kem not in KEMS:
            raise UsageError(f"layers are made with {' or '.join(KEMS)}, not {self.kem!r}.")
        if not 1 <= self.hops <= MOST:
            raise UsageError(f"a circuit has 1 to {MOST} relays, not {self.hops}.")
        if self.payload_bytes < 1:
            raise UsageError(f"a payload has at least 1 byte, not {self.payload_bytes}.")

    @property
    def packet_bytes(self) -> int:
        """Of every packet, on every hop."""
        return 1 + self.sealed_bytes(0)

    def sealed_bytes(self, position: int) -> int:
        """Of the sealed part of a packet that comes to this position; `hops` is the collector's."""
        layer = KEMS[self.kem].enc_length() + TAG_BYTES
        return self.payload_bytes + len(END) + layer + (self.hops - position) * (layer + 1)


@dataclass(frozen=True, slots=True)
class Hop:
    """A relay as a stop: its place among the study's relays, and its public onion key."""

    address: int
    key: str

    def __post_init__(self) -> None:
        if not 0 <= self.address < MOST:
            raise UsageError(f"relays have the addresses 0 to {MOST - 1}, not {self.address}.")
        _parsed(self.key)


class OnionKey:
    """A relay's or the collector's key. Its secret half is never printed."""

    def __init__(self, kem: Kem, secret: bytes) -> None:
        self.kem, self._bytes = kem, secret
        curve = X25519PrivateKey.from_private_bytes(secret[-CURVE_BYTES:])
        public = curve.public_key().public_bytes_raw()
        self._secret: X25519PrivateKey | MLKEM768X25519PrivateKey = curve
        if kem == "hybrid":
            lattice = MLKEM768PrivateKey.from_seed_bytes(secret[:SEED_BYTES])
            public = lattice.public_key().public_bytes_raw() + public
            self._secret = MLKEM768X25519PrivateKey(lattice, curve)
        self.public = public.hex()

    @classmethod
    def generate(cls, kem: Kem = "x25519") -> OnionKey:
        secret = X25519PrivateKey.generate().private_bytes_raw()
        if kem == "hybrid":
            secret = MLKEM768PrivateKey.generate().private_bytes_raw() + secret
        return cls(kem, secret)

    @classmethod
    def from_bytes(cls, secret: bytes) -> OnionKey:
        """The key that `to_bytes` wrote. Its length tells of which kind it is."""
        kinds: dict[int, Kem] = {CURVE_BYTES: "x25519", SEED_BYTES + CURVE_BYTES: "hybrid"}
        if len(secret) not in kinds:
            raise InputError("this is not a stored onion key: it has another length.")
        return cls(kinds[len(secret)], secret)

    def to_bytes(self) -> bytes:
        """The secret half, for the owner's own file."""
        return self._bytes

    def open(self, sealed: bytes, info: bytes) -> bytes:
        """What was sealed for this key; why it cannot be opened is not said."""
        try:
            return _suite(self.kem).decrypt(sealed, self._secret, info=info)
        except InvalidTag:
            raise _not_for_us() from None


@dataclass(frozen=True, slots=True)
class Peeled:
    """A packet without its outermost layer.

    hop     the position at which it was taken off, from 0
    to      the address of the next relay; None: the collector is next
    packet  for that one, of the same length as before
    """

    hop: int
    to: int | None
    packet: bytes


def wrap(
    shape: Shape, context: bytes, route: Sequence[Hop], collector_key: str, payload: bytes
) -> bytes:
    """The packet to hand to the first relay of the route.

    `context` says what the packet is for (study and window of sending): layers made for one are of
    no use in another.
    """
    if len(route) != shape.hops or len({hop.address for hop in route}) < len(route):
        raise UsageError(f"a circuit of this study has {shape.hops} different relays.")
    if len(payload) > shape.payload_bytes:
        raise UsageError(
            f"the payload has {len(payload)} bytes, and the study's packets {shape.payload_bytes}."
        )
    content = payload + END + bytes(shape.payload_bytes - len(payload))
    sealed = _seal(shape.kem, collector_key, _info(context, shape.hops), content)
    to = COLLECTOR
    for position in reversed(range(shape.hops)):
        stop = route[position]
        sealed = _seal(shape.kem, stop.key, _info(context, position), bytes([to]) + sealed)
        to = stop.address
    return bytes([0]) + sealed


def peel(shape: Shape, context: bytes, key: OnionKey, packet: bytes) -> Peeled:
    """Take a relay's layer off. CheckFailed, without saying why, for whatever is not as it was."""
    position, opened = _opened(shape, context, key, packet)
    is_last = position == shape.hops - 1
    if position == shape.hops or (opened[0] == COLLECTOR) != is_last:
        raise _not_for_us()
    sealed = opened[1:]
    onward = bytes([position + 1]) + sealed + _fill(shape, position + 1, sealed)
    return Peeled(position, None if is_last else opened[0], onward)


def open_payload(shape: Shape, context: bytes, key: OnionKey, packet: bytes) -> bytes:
    """What the sender gave to `wrap`: the collector's step."""
    position, opened = _opened(shape, context, key, packet)
    payload = opened.rstrip(b"\0")
    if position != shape.hops or not payload.endswith(END):
        raise _not_for_us()
    return payload.removesuffix(END)


def _opened(shape: Shape, context: bytes, key: OnionKey, packet: bytes) -> tuple[int, bytes]:
    """The position that a packet came to, and the content of its sealed part."""
    if key.kem != shape.kem:
        raise UsageError(f"the study's layers are made with {shape.kem}, this key with {key.kem}.")
    if len(packet) != shape.packet_bytes or packet[0] > shape.hops:
        raise _not_for_us()
    position = packet[0]
    end = 1 + shape.sealed_bytes(position)
    sealed = packet[1:end]
    if packet[end:] != _fill(shape, position, sealed):
        raise _not_for_us()
    return position, key.open(sealed, _info(context, position))


def _fill(shape: Shape, position: int, sealed: bytes) -> bytes:
    """What makes a packet as long as the others.

    From the first bytes of the sealing, which are fresh in every packet (the KEM's); any change of
    the others is noticed by opening.
    """
    missing = shape.packet_bytes - 1 - shape.sealed_bytes(position)
    return hashlib.shake_128(b"tacit onion fill" + sealed[:CURVE_BYTES]).digest(missing)


def _seal(kem: Kem, public: str, info: bytes, content: bytes) -> bytes:
    key = _parsed(public)
    if isinstance(key, X25519PublicKey) != (kem == "x25519"):
        raise InputError(
            f"the study's layers are made with {kem}, and this key is of another kind."
        )
    try:
        return _suite(kem).encrypt(content, key, info=info)
    except ValueError:  # one of the few points of small order
        raise _not_a_key() from None


def _info(context: bytes, position: int) -> bytes:
    return LABEL + bytes([position]) + context


@cache
def _suite(kem: Kem) -> Suite:
    return Suite(KEMS[kem], KDF.HKDF_SHA256, AEAD.AES_128_GCM)


@lru_cache(maxsize=4 * MOST)  # parsing costs as much as a tenth of a sealing
def _parsed(public: str) -> PublicKey:
    """The key that is written so. Its length tells of which kind it is."""
    try:
        raw = bytes.fromhex(public)
        if public != raw.hex():
            raise ValueError("one spelling only")
        curve = X25519PublicKey.from_public_bytes(raw[-CURVE_BYTES:])
        if len(raw) == CURVE_BYTES:
            return curve
        lattice = MLKEM768PublicKey.from_public_bytes(raw[:-CURVE_BYTES])
    except ValueError:
        raise _not_a_key() from None
    return MLKEM768X25519PublicKey(lattice, curve)


def _not_a_key() -> InputError:
    digits = (2 * CURVE_BYTES, 2 * (LATTICE_BYTES + CURVE_BYTES))
    return InputError(
        f"this is not a public onion key: {digits[0]} hexadecimal digits in small letters, or "
        f"{digits[1]} for the hybrid."
    )


def _not_for_us() -> CheckFailed:
    return CheckFailed("a packet was not made for us, here and now, or was changed.")
