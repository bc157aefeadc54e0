"""Sealing what lies on a disk: AES-256-GCM under a key that a passphrase opens (sealing.md).

The passphrase opens a key, and the key opens the data, so that a passphrase can be changed without
touching the data.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import CheckFailed, InputError, Refused

__all__ = ["COST", "Locked", "OpenSeal", "Seal", "Sealed", "locked", "unlocked"]

COST = 17  # scrypt: 2^17 blocks of 1 KiB, 128 MiB and some tenths of a second for each guess
NONCE, KEY, SALT = 12, 32, 16


class Seal(Protocol):
    """Closes and opens pieces of data. `about` says which piece it is, and is bound to it."""

    def close(self, data: bytes, about: str) -> bytes: ...

    def open(self, data: bytes, about: str) -> bytes: ...


class OpenSeal:
    """No passphrase: data lies in the clear, protected by the rights of its file alone."""

    def close(self, data: bytes, about: str) -> bytes:
        return data

    def open(self, data: bytes, about: str) -> bytes:
        return data


class Sealed:
    """Under a key. The key is never printed."""

    def __init__(self, key: bytes, randomness: Randomness = SYSTEM) -> None:
        self._key, self._randomness = key, randomness
        self._cipher = AESGCM(key)

    @classmethod
    def fresh(cls, randomness: Randomness = SYSTEM) -> Sealed:
        return cls(randomness.stream().bytes(KEY), randomness)

    def close(self, data: bytes, about: str) -> bytes:
        nonce = self._randomness.stream().bytes(NONCE)
        return nonce + self._cipher.encrypt(nonce, data, about.encode())

    def open(self, data: bytes, about: str) -> bytes:
        try:
            return self._cipher.decrypt(data[:NONCE], data[NONCE:], about.encode())
        except (InvalidTag, ValueError):
            raise CheckFailed(
                f"{about}: was changed or belongs elsewhere; it does not open."
            ) from None


class Locked(msgspec.Struct, frozen=True):
    """A seal's key, closed with a passphrase: may lie beside the data."""

    salt: bytes
    cost: int
    key: bytes


def locked(seal: Sealed, passphrase: str, cost: int = COST) -> Locked:
    """Close the seal's key."""
    if not passphrase:
        raise InputError("an empty passphrase keeps nobody out: choose another.")
    salt = seal._randomness.stream().bytes(SALT)
    outer = Sealed(_stretched(passphrase, salt, cost), seal._randomness)
    return Locked(salt, cost, outer.close(seal._key, "key"))


def unlocked(lock: Locked, passphrase: str) -> Sealed:
    """The seal; Refused if the passphrase is another."""
    if not 10 <= lock.cost <= 24 or len(lock.salt) != SALT:
        raise CheckFailed("the lock of this store was changed; it does not open.")
    outer = Sealed(_stretched(passphrase, lock.salt, lock.cost))
    try:
        return Sealed(outer.open(lock.key, "key"))
    except CheckFailed:
        raise Refused("this is not the passphrase.") from None


def _stretched(passphrase: str, salt: bytes, cost: int) -> bytes:
    """scrypt (RFC 7914), r = 8, p = 1."""
    return hashlib.scrypt(
        passphrase.encode(), salt=salt, n=1 << cost, r=8, p=1, maxmem=(256 << cost) * 8, dklen=KEY
    )
