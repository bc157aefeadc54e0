"""TLS 1.3 between parties that know each other's public keys, without a certificate authority.

A study names every party's Ed25519 key. The same key signs a certificate of its own, and the client
accepts exactly that key: see tls.md for why this is enough.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tacit.crypto.signing import SigningKey
from tacit.errors import InputError

__all__ = ["WrongKey", "is_loopback", "pinned_context", "server_context"]


class WrongKey(ssl.SSLError):
    """The handshake was sound, but with the owner of another key."""

    def __init__(self) -> None:
        super().__init__(ssl.SSL_ERROR_SSL, "the peer's key is not the pinned one")


def is_loopback(host: str) -> bool:
    """Whether what is sent to `host` stays on this machine, so that it may go without TLS."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # any other name may lead anywhere
        return False


def server_context(key: SigningKey) -> ssl.SSLContext:
    """The server's side: TLS 1.3 only, proving possession of `key`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # clients keep connections open instead of resuming sessions
    # OpenSSL reads key and certificate from files only. The key is on disk for a moment, in a
    # folder of ours, and encrypted under a password that never leaves this function.
    password = secrets.token_bytes(32).hex().encode()
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        certificate, secret = Path(folder) / "certificate.pem", Path(folder) / "key.pem"
        certificate.write_bytes(key.self_signed())
        secret.touch(mode=0o600)
        secret.write_bytes(key.encrypted_pem(password))
        context.load_cert_chain(certificate, secret, password)
    return context


def pinned_context(public_key: str) -> ssl.SSLContext:
    """The client's side: trusts the owner of `public_key` and nobody else.

    The check runs inside `do_handshake`, for a stream in memory (asyncio, anyio) and for a blocking
    socket alike. When it fails, the client's last handshake message is not yet sent, let alone
    a byte of data.
    """
    pinned = _key_info(public_key)

    class PinnedObject(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            _check(self.getpeercert(binary_form=True), pinned)

    class PinnedSocket(ssl.SSLSocket):
        def do_handshake(self, block: bool = False) -> None:
            super().do_handshake(block)
            _check(self.getpeercert(binary_form=True), pinned)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the key is the name
    context.verify_mode = ssl.CERT_NONE  # no chain to verify; possession is proven all the same
    context.sslobject_class = PinnedObject
    context.sslsocket_class = PinnedSocket
    return context


def _key_info(public_key: str) -> bytes:
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    except ValueError:
        raise InputError(
            "A party's key must be an Ed25519 public key of 64 hexadecimal digits: "
            "ask the party for it again."
        ) from None
    return _der(key)


def _check(certificate: bytes | None, pinned: bytes) -> None:
    try:
        presented = x509.load_der_x509_certificate(certificate or b"").public_key()
    except ValueError:
        raise WrongKey from None
    if not isinstance(presented, Ed25519PublicKey) or not hmac.compare_digest(
        _der(presented), pinned
    ):
        raise WrongKey


def _der(key: Ed25519PublicKey) -> bytes:
    """The SubjectPublicKeyInfo (RFC 8410): algorithm and key together."""
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
