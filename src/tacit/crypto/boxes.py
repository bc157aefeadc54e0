"""Secrets between two parties whose letters a third one carries: X25519, HKDF, ChaCha20-Poly1305.

A key is made for one run and signed by its owner's identity, elsewhere. Two parties derive a seed
that nobody else knows, or seal boxes for one another. Forward secret: with the run's keys gone,
what was carried stays closed.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import CheckFailed, InputError

__all__ = ["BoxKey", "is_public_key"]

KEY_BYTES = 32
PRIME = 2**255 - 19
# The points of small order, which make every shared secret zero (RFC 7748, section 6.1; the list is
# Bernstein's, cr.yp.to/ecdh.html#validate).
SMALL_ORDER = frozenset(
    (
        0,
        1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
        PRIME - 1,
    )
)
NONCE = bytes(12)  # every box has a key of its own (its label is part of the derivation)


def is_public_key(text: str) -> bool:
    """Whether this is an X25519 key in its one spelling: lower-case hex of a number below the
    prime, and no point of small order. Otherwise one point would have several names."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return False
    number = int.from_bytes(raw, "little")
    sound = number < PRIME and number not in SMALL_ORDER
    return sound and len(raw) == KEY_BYTES and raw.hex() == text


class BoxKey:
    """One party's key for one run. Its secret half is never printed."""

    def __init__(self, randomness: Randomness = SYSTEM) -> None:
        secret = randomness.stream().bytes(KEY_BYTES)
        self._secret = X25519PrivateKey.from_private_bytes(secret)
        raw = self._secret.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw
        )
        self.public = raw.hex()

    def shared(self, other: str, context: bytes, label: str) -> bytes:
        """32 bytes that only the two owners of the keys can compute; the same for both."""
        if not is_public_key(other):
            raise InputError("this is not an X25519 public key.")
        agreed = self._secret.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(other)))
        names = "".join(sorted((self.public, other)))
        sized = len(context).to_bytes(2, "big") + context  # no two lists of parts read alike
        info = b"tacit box " + sized + names.encode() + label.encode()
        return HKDF(SHA256(), KEY_BYTES, None, info).derive(agreed)

    def seal(self, other: str, context: bytes, label: str, content: bytes) -> bytes:
        """A box that only the owner of `other` can open. One box per label and direction."""
        return ChaCha20Poly1305(self._one_way(self.public, other, context, label)).encrypt(
            NONCE, content, None
        )

    def open(self, other: str, context: bytes, label: str, box: bytes) -> bytes:
        """What the owner of `other` has sealed for us."""
        key = self._one_way(other, self.public, context, label)
        try:
            return ChaCha20Poly1305(key).decrypt(NONCE, box, None)
        except InvalidTag:
            raise CheckFailed(
                "a box was not sealed by its sender for us, or was changed."
            ) from None

    def _one_way(self, sender: str, receiver: str, context: bytes, label: str) -> bytes:
        other = receiver if sender == self.public else sender
        return self.shared(other, context, f"{label} from {sender}")
