"""Ed25519 signatures, and the canonical bytes that are signed or hashed."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import os
import re
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.errors import InputError
from tacit.home import tacit_home

__all__ = ["SigningKey", "canonical", "digest", "fingerprint", "is_public_key", "signed_by"]

KEY = re.compile(r"[0-9a-f]{64}")
SIGNATURE = re.compile(r"[0-9a-f]{128}")
PRIME = 2**255 - 19
# The y of the points of order 1, 2, 4 and 8. Under such a key one signature fits many messages, and
# anybody can make it (Chalkias, Garillot and Nikolaenko 2020).
ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
SMALL_ORDER = frozenset((0, 1, PRIME - 1, ORDER_8, PRIME - ORDER_8))


def canonical(document: Any) -> bytes:
    """One JSON text per document: sorted keys, no blanks, UTF-8, no NaN.

    Numbers that must survive exactly (bounds, scales) are written as text by the caller, so that no
    reader's floating point can change a signed value.
    """
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def digest(document: Any) -> str:
    """SHA-256 of the canonical bytes, or of bytes as they are."""
    data = document if isinstance(document, bytes) else canonical(document)
    return hashlib.sha256(data).hexdigest()


def fingerprint(public_key: str) -> str:
    """A short name for a public key, for people to compare by eye."""
    raw = hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]
    return ":".join(raw[i : i + 4] for i in range(0, 16, 4))


def is_public_key(text: str) -> bool:
    """Whether this can be somebody's Ed25519 key, in its one spelling: lower-case hex of a number
    below the prime, and no point of small order, for which anybody can sign."""
    if not KEY.fullmatch(text):
        return False
    y = int.from_bytes(bytes.fromhex(text), "little") % 2**255  # without the sign of x
    return y < PRIME and y not in SMALL_ORDER


def signed_by(public_key: str, signature: str, message: bytes) -> bool:
    """Whether `signature` is that key's signature of `message`; False for anything malformed.

    Both have one spelling only, so that every byte of a file counts: otherwise anybody could write
    what another has signed in a second way, and have it taken for a second thing.
    """
    if not is_public_key(public_key) or not SIGNATURE.fullmatch(signature):
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


class SigningKey:
    """A holder's Ed25519 identity. Its secret half is never printed or copied in the clear."""

    def __init__(self, secret: Ed25519PrivateKey) -> None:
        self._secret = secret

    @classmethod
    def generate(cls, randomness: Randomness = SYSTEM) -> SigningKey:
        return cls(Ed25519PrivateKey.from_private_bytes(randomness.stream().bytes(32)))

    @classmethod
    def of_holder(cls) -> SigningKey:
        """The identity of whoever works on this machine, made at the first call."""
        return cls.load_or_create(tacit_home() / "keys" / "holder.pem")

    @classmethod
    def load_or_create(cls, path: Path) -> SigningKey:
        """The key in `path`, made there (readable by its owner only) if there is none.

        Safe when several processes come at once: each writes a file of its own, and the first to
        link it under the final name wins.
        """
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
            pem = Ed25519PrivateKey.generate().private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(pem)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(draft, path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except ValueError:
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise InputError(
                f"{path} is not an Ed25519 key in PEM form: move it away and tacit makes a new one."
            )
        return cls(key)

    @property
    def public_key(self) -> str:
        raw = self._secret.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw
        )
        return raw.hex()

    def sign(self, message: bytes) -> str:
        return self._secret.sign(message).hex()

    def private_digest(self, content: bytes) -> bytes:
        """A digest that nobody else can compute: it may lie on a disk beside what it is of, and a
        thief of that disk cannot try out guesses. HMAC-SHA256 under a key that is derived from the
        secret half for this alone."""
        own = hashlib.sha256(b"tacit private digest" + self._secret.private_bytes_raw()).digest()
        return hmac.new(own, content, hashlib.sha256).digest()

    def secret_scalar(self) -> bytes:
        """The number that the public key is a multiple by (RFC 8032, 5.1.5): the secret itself, for
        crypto/ring_signatures.py alone."""
        scalar = bytearray(hashlib.sha512(self._secret.private_bytes_raw()).digest()[:32])
        scalar[0] &= 0b11111000
        scalar[31] = scalar[31] & 0b00111111 | 0b01000000
        return bytes(scalar)

    def self_signed(self) -> bytes:
        """A certificate (PEM) of this key by itself, for TLS between parties that pin keys.

        Nobody looks at its name or dates: the name is the key's fingerprint, and the last date is
        the one that RFC 5280 (4.1.2.5) keeps for certificates without an end.
        """
        name = x509.Name(
            [x509.NameAttribute(x509.NameOID.COMMON_NAME, fingerprint(self.public_key))]
        )
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._secret.public_key())
            .serial_number(int(digest(bytes.fromhex(self.public_key))[:16], 16) + 1)
            .not_valid_before(datetime.datetime(2000, 1, 1))
            .not_valid_after(datetime.datetime(9999, 12, 31, 23, 59, 59))
            .sign(self._secret, algorithm=None)
        )
        return certificate.public_bytes(serialization.Encoding.PEM)

    def encrypted_pem(self, password: bytes) -> bytes:
        """The secret half under a password, for OpenSSL, which reads keys from files only."""
        return self._secret.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password),
        )
