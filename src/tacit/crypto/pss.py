"""EMSA-PSS: what an RSA signature is the root of (RFC 8017, 9.1.1), with SHA-384 and MGF1.

`cryptography` encodes and signs in one step; a blind signature is encoded by one party and signed
by another.
"""

from __future__ import annotations

import hashlib

__all__ = ["HASH_BYTES", "encode_pss"]

HASH_BYTES = 48
TRAILER = b"\xbc"


def encode_pss(message: bytes, salt: bytes, size: int) -> int:
    """The encoding of `message` for a modulus of `size` bytes whose highest bit is set.

    The highest bit of the encoding is 0, so that it is below every such modulus.
    """
    hashed = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    room = size - HASH_BYTES - len(TRAILER)
    block = int.from_bytes(b"\x01" + salt, "big")
    masked = (block ^ _mask(hashed, room)) & ((1 << (8 * room - 1)) - 1)
    return int.from_bytes(masked.to_bytes(room, "big") + hashed + TRAILER, "big")


def _mask(seed: bytes, size: int) -> int:
    """MGF1 (RFC 8017, B.2.1)."""
    counters = (index.to_bytes(4, "big") for index in range(-(-size // HASH_BYTES)))
    stretched = b"".join(hashlib.sha384(seed + counter).digest() for counter in counters)
    return int.from_bytes(stretched[:size], "big")
