"""Random words: a short secret seed stretched by AES-128 in counter mode.

Every draw makes a keystream of its own from a fresh seed, so there is no generator state that two
threads could race on, or that a forked child could repeat.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from itertools import count
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

__all__ = [
    "SYSTEM",
    "DerivedRandomness",
    "Keystream",
    "Randomness",
    "SeededRandomness",
    "SystemRandomness",
]

SEED_BYTES = 32
ZEROS = memoryview(bytes(1 << 18))  # encrypted to get the keystream; small enough for the cache


class Keystream:
    """The AES-CTR keystream of one 32-byte seed (16 bytes key, 16 bytes first counter block)."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
        self._encryptor = Cipher(AES(seed[:16]), CTR(seed[16:])).encryptor()

    def bytes(self, size: int) -> bytes:
        return self.words(size, np.uint8).tobytes()

    def words(self, size: int, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
        """Uniform unsigned integers of the given width."""
        out = np.empty(size, dtype=dtype)
        view = out.view(np.uint8)
        for start in range(0, len(view), len(ZEROS)):
            piece = view[start : start + len(ZEROS)]
            self._encryptor.update_into(ZEROS[: len(piece)], piece.data)
        return out

    def integer(self, bits: int) -> int:
        """A uniform integer of `bits` bits."""
        size = -(-bits // 8)
        return int.from_bytes(self.bytes(size), "little") >> (8 * size - bits)

    def below(self, limit: int) -> int:
        """A uniform integer in [0, limit), by rejection."""
        bits = (limit - 1).bit_length()
        while (drawn := self.integer(bits)) >= limit:
            pass
        return drawn


class Randomness(Protocol):
    """Where seeds come from. `secure` is what a certificate reports."""

    @property
    def secure(self) -> bool: ...

    def stream(self) -> Keystream: ...


class SystemRandomness:
    """Seeds from the operating system: the default."""

    secure = True

    def stream(self) -> Keystream:
        return Keystream(os.urandom(SEED_BYTES))


class SeededRandomness:
    """Repeatable seeds for tests and simulations. UNSAFE: who knows the seed knows the noise."""

    secure = False

    def __init__(self, seed: int | bytes | str) -> None:
        self._root = hashlib.sha256(f"tacit unsafe seed {seed!r}".encode()).digest()
        self._counter = count()

    def stream(self) -> Keystream:
        index = next(self._counter).to_bytes(8, "little")
        return Keystream(hashlib.sha256(self._root + index).digest())


class DerivedRandomness:
    """Seeds that follow from one secret seed, so that work which a crash interrupted is repeated
    with the same draws. As secure as the seed is random and secret."""

    secure = True

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
        self._root = hashlib.sha256(b"tacit derived seeds" + seed).digest()
        self._counter = count()

    @classmethod
    def for_question(cls, secret: bytes, question: bytes) -> DerivedRandomness:
        """The same draws for the same question, for ever; independent ones for any other.

        HMAC-SHA-256 under a secret of 256 bits, a pseudo-random function (Bellare 2006, theorem
        3.1): to whoever lacks the secret, seeds for distinct questions are as fresh ones.
        """
        if len(secret) != SEED_BYTES:
            raise ValueError(f"a secret has {SEED_BYTES} bytes, not {len(secret)}")
        return cls(hmac.digest(secret, b"tacit noise of a question" + question, "sha256"))

    def stream(self) -> Keystream:
        index = next(self._counter).to_bytes(8, "little")
        return Keystream(hashlib.sha256(self._root + index).digest())


SYSTEM: Randomness = SystemRandomness()
