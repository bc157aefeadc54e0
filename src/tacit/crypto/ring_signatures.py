"""Linkable ring signatures: one of these people signed, nobody can tell who, and nobody twice.

LSAG (Liu, Wei & Wong, ACISP 2004) over the Ed25519 identity keys that people have anyway. A
signature carries a tag that is the same whenever the same key signs for the same event and ring,
and that nobody can link to a key or to the tag of another event. For groups that have no issuer
they trust with blind signatures. Assumptions, claims and the cofactor: ring_signatures.md.

In the comments x is a secret scalar, P = x·B its public key, h the event's base point, and L the
prime order of the group. Scalars and points are 32 bytes, as libsodium wants them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from nacl.bindings import (
    crypto_core_ed25519_add,
    crypto_core_ed25519_from_uniform,
    crypto_core_ed25519_is_valid_point,
    crypto_core_ed25519_scalar_mul,
    crypto_core_ed25519_scalar_reduce,
    crypto_core_ed25519_scalar_sub,
    crypto_scalarmult_ed25519_base_noclamp,
    crypto_scalarmult_ed25519_noclamp,
)
from nacl.exceptions import CryptoError

from tacit.crypto.prg import SYSTEM, Keystream, Randomness
from tacit.crypto.signing import SigningKey
from tacit.errors import InputError, UsageError

__all__ = [
    "LARGEST_RING",
    "SMALLEST_RING",
    "RingSignature",
    "ring_sign",
    "signature_bytes",
    "usable_in_rings",
]

SMALLEST_RING, LARGEST_RING = 2, 1000
POINT_BYTES = SCALAR_BYTES = 32
ORDER = (1 << 252) + 27742317777372353535851937790883648493  # L, RFC 8032, 5.1


@dataclass(frozen=True, slots=True)
class RingSignature:
    """The tag, the first challenge c₀, and a response s_i for each member in the ring's order."""

    tag: bytes
    challenge: bytes = field(repr=False)
    responses: tuple[bytes, ...] = field(repr=False)

    def to_bytes(self) -> bytes:
        """As many bytes for every signature of a ring of that size: `signature_bytes`."""
        return self.tag + self.challenge + b"".join(self.responses)

    @classmethod
    def from_bytes(cls, body: bytes) -> RingSignature:
        parts = [body[at : at + SCALAR_BYTES] for at in range(0, len(body), SCALAR_BYTES)]
        members = len(parts) - 2
        if len(body) % SCALAR_BYTES or not SMALLEST_RING <= members <= LARGEST_RING:
            raise InputError(f"a ring signature is not {len(body)} bytes long: it was cut.")
        return cls(parts[0], parts[1], tuple(parts[2:]))

    def verify(self, ring: Sequence[str], event: bytes, message: bytes) -> bool:
        """Whether a member of `ring` signed; False for anything malformed in the signature.

        The ring is a set: its order does not matter. It must be the one that was agreed for the
        event: in another ring the same key has another tag.
        """
        members = _members(ring)
        if len(self.responses) != len(members) or not _is_point(self.tag):
            return False
        if not all(_is_scalar(number) for number in (self.challenge, *self.responses)):
            return False
        walk = _Walk(members, event, message, self.tag)
        challenge = self.challenge
        try:
            for place, response in enumerate(self.responses):
                challenge = walk.step(place, challenge, response)
        except CryptoError:  # a member's key is not one: see usable_in_rings
            return False
        return challenge == self.challenge


def signature_bytes(members: int) -> int:
    """The length of every signature in a ring of that many members."""
    return POINT_BYTES + (1 + members) * SCALAR_BYTES


def usable_in_rings(public_key: str) -> bool:
    """Whether a public key can be a member of a ring. One that cannot spoils the ring for all."""
    return (
        len(public_key) == 2 * POINT_BYTES
        and _is_hex(public_key)
        and _is_point(bytes.fromhex(public_key))
    )


def ring_sign(
    key: SigningKey,
    ring: Sequence[str],
    event: bytes,
    message: bytes,
    randomness: Randomness = SYSTEM,
) -> RingSignature:
    """`key`'s signature as some member of `ring`, which holds the public keys of all members."""
    members = _members(ring)
    own = bytes.fromhex(key.public_key)
    if own not in members:
        raise UsageError("a ring is signed in by its members only: this key is not in it.")
    place = members.index(own)
    x = _reduced(key.secret_scalar())
    tag = crypto_scalarmult_ed25519_noclamp(x, _base_point(members, event))
    walk = _Walk(members, event, message, tag)
    stream = _hedged(x, walk.context, randomness)
    nonce, *responses = (_reduced(stream.bytes(64)) for _ in range(len(members) + 1))
    challenge = walk.start(nonce)
    challenges = {(place + 1) % len(members): challenge}
    try:
        for step in range(1, len(members)):
            at = (place + step) % len(members)
            challenge = walk.step(at, challenge, responses[at])
            challenges[(at + 1) % len(members)] = challenge
    except CryptoError:
        raise InputError(
            "a member's key is not a point of the group that Ed25519 works in: nobody can sign in "
            "this ring. See usable_in_rings."
        ) from None
    # s = nonce − c·x, so that s·B + c·P = nonce·B and s·h + c·tag = nonce·h: the ring closes.
    responses[place] = crypto_core_ed25519_scalar_sub(
        nonce, crypto_core_ed25519_scalar_mul(challenge, x)
    )
    return RingSignature(tag, challenges[0], tuple(responses))


class _Walk:
    """Round the ring: each member's challenge follows from the challenge and response before."""

    def __init__(self, members: list[bytes], event: bytes, message: bytes, tag: bytes) -> None:
        self._members = members
        self._base = _base_point(members, event)
        self._tag = tag
        parts = (*_identified(members, event), tag, hashlib.blake2b(message).digest())
        self.context = b"".join(parts)

    def step(self, place: int, challenge: bytes, response: bytes) -> bytes:
        """c' = H(s·B + c·P, s·h + c·tag). The costly part: everything else is a few percent."""
        multiply, add = crypto_scalarmult_ed25519_noclamp, crypto_core_ed25519_add
        left = add(
            crypto_scalarmult_ed25519_base_noclamp(response),
            multiply(challenge, self._members[place]),
        )
        right = add(multiply(response, self._base), multiply(challenge, self._tag))
        return self._challenge(left, right)

    def start(self, nonce: bytes) -> bytes:
        """What follows the signer: H(nonce·B, nonce·h)."""
        return self._challenge(
            crypto_scalarmult_ed25519_base_noclamp(nonce),
            crypto_scalarmult_ed25519_noclamp(nonce, self._base),
        )

    def _challenge(self, left: bytes, right: bytes) -> bytes:
        """BLAKE2b, not Ed25519's SHA-512: no challenge here is a challenge of the key's ordinary
        signatures."""
        return _reduced(_hash(b"tacit ring walk", self.context, left, right))


def _members(ring: Sequence[str]) -> list[bytes]:
    """The ring's keys in their one order."""
    if not SMALLEST_RING <= len(ring) <= LARGEST_RING:
        raise UsageError(
            f"a ring has {SMALLEST_RING} to {LARGEST_RING} members, not {len(ring)}: split a "
            "larger group into rings before it starts."
        )
    if not all(len(key) == 2 * POINT_BYTES and _is_hex(key) for key in ring):
        raise InputError("a member's key is not 64 lower-case hex digits: see SigningKey.")
    members = sorted(set(ring))
    if len(members) != len(ring):
        raise InputError("a key is in the ring twice: list every member once.")
    return [bytes.fromhex(key) for key in members]


def _identified(members: list[bytes], event: bytes) -> tuple[bytes, bytes]:
    return hashlib.blake2b(b"".join(members)).digest(), hashlib.blake2b(event).digest()


def _base_point(members: list[bytes], event: bytes) -> bytes:
    """h: a point of order L whose logarithm nobody knows, uniform as far as anyone can tell.

    Elligator 2 alone reaches half of the points; the sum of two reaches all (Farashahi, Fouque,
    Shparlinski, Tibouchi & Voloch 2013). libsodium multiplies each by the cofactor.
    """
    both = _hash(b"tacit ring base", *_identified(members, event))
    return crypto_core_ed25519_add(
        crypto_core_ed25519_from_uniform(both[:POINT_BYTES]),
        crypto_core_ed25519_from_uniform(both[POINT_BYTES:]),
    )


def _hedged(x: bytes, context: bytes, randomness: Randomness) -> Keystream:
    """Draws for one signature, from the key, everything signed, and fresh randomness.

    If the randomness repeats, two nonces of two messages are still different: equal ones give the
    key away, and equal responses the signer's place.
    """
    fresh = randomness.stream().bytes(32)
    seed = hashlib.blake2b(fresh + context, key=x, digest_size=32, person=b"tacit ring draws")
    return Keystream(seed.digest())


def _hash(purpose: bytes, *parts: bytes) -> bytes:
    """64 bytes. Every part has one length for its purpose, so that no two inputs look the same."""
    return hashlib.blake2b(b"".join(parts), person=purpose).digest()


def _reduced(number: bytes) -> bytes:
    """A number of up to 64 bytes modulo L; uniform to 2^−256 if all 64 are."""
    return crypto_core_ed25519_scalar_reduce(number.ljust(64, b"\0"))


def _is_scalar(number: bytes) -> bool:
    """Below L, so that a signature has one spelling."""
    return len(number) == SCALAR_BYTES and int.from_bytes(number, "little") < ORDER


def _is_point(point: bytes) -> bool:
    """Canonical, of order L: a point plus one of small order would be a second tag of one key."""
    return len(point) == POINT_BYTES and crypto_core_ed25519_is_valid_point(point)


def _is_hex(text: str) -> bool:
    return set(text) <= set("0123456789abcdef")
