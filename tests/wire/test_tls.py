"""Pinned TLS: the right key gets in, every other one gets nothing."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tacit.crypto.signing import SigningKey, fingerprint
from tacit.errors import CheckFailed, InputError
from tacit.wire.client import Peer
from tacit.wire.loop import run
from tacit.wire.tls import WrongKey, is_loopback, pinned_context, server_context

LOOPS = pytest.mark.parametrize("run_in", [asyncio.run, run], ids=["asyncio", "uvloop"])
APPLICATION_DATA = 23  # the record type of everything encrypted (RFC 8446, 5.1)


class Tap:
    """A machine in the middle that passes everything on and keeps what the client sent."""

    def __init__(self, port: int) -> None:
        self.target, self.sent, self.done = port, bytearray(), asyncio.Event()

    async def __call__(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, onward = await asyncio.open_connection("127.0.0.1", self.target)

        async def pass_on() -> None:
            while data := await near.read(65_536):
                self.sent += data
                onward.write(data)
            onward.close()

        async def pass_back() -> None:
            while data := await far.read(65_536):
                back.write(data)
            back.close()

        await asyncio.gather(pass_on(), pass_back(), return_exceptions=True)
        onward.close()
        back.close()
        self.done.set()

    def record_types(self) -> list[int]:
        types, at = [], 0
        while at < len(self.sent):
            types.append(self.sent[at])
            at += 5 + int.from_bytes(self.sent[at + 3 : at + 5], "big")
        return types


async def tapped(rig: Any, key: SigningKey) -> tuple[list[int], Exception | None]:
    """Which TLS records a client that pins `key` sends to Bob, and how it ends."""
    failure: Exception | None = None
    async with rig.site() as site:
        tap = Tap(site.service.port)
        server = await asyncio.start_server(tap, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with rig.client() as client:
            try:
                await client.ask(
                    Peer("Bob", f"https://127.0.0.1:{port}", key.public_key), "share", 1, b"secret"
                )
            except CheckFailed as error:
                failure = error
        await tap.done.wait()
        server.close()
    return tap.record_types(), failure


@LOOPS
def test_the_right_key_gets_the_request(rig: Any, run_in: Callable[..., Any]) -> None:
    types, failure = run_in(tapped(rig, rig.BOB))
    assert failure is None
    assert APPLICATION_DATA in types


@LOOPS
def test_another_key_gets_not_one_encrypted_byte(rig: Any, run_in: Callable[..., Any]) -> None:
    types, failure = run_in(tapped(rig, rig.EVE))
    assert "the key is not the one in the study" in str(failure)
    assert types
    assert APPLICATION_DATA not in types


@LOOPS
def test_streams_honour_the_pin(rig: Any, run_in: Callable[..., Any]) -> None:
    async def main() -> None:
        async with rig.site() as site:
            context = pinned_context(rig.EVE.public_key)
            with pytest.raises(WrongKey):
                await asyncio.open_connection("127.0.0.1", site.service.port, ssl=context)
            _, writer = await site.connect()
            writer.close()

    run_in(main())


def test_blocking_sockets_honour_the_pin(rig: Any) -> None:
    def shake(port: int, key: SigningKey) -> str | None:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            pinned_context(key.public_key).wrap_socket(plain) as safe,
        ):
            return safe.version()

    async def main() -> None:
        async with rig.site() as site:
            assert await asyncio.to_thread(shake, site.service.port, rig.BOB) == "TLSv1.3"
            with pytest.raises(WrongKey):
                await asyncio.to_thread(shake, site.service.port, rig.EVE)

    asyncio.run(main())


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_older_tls_is_refused(rig: Any, newest: ssl.TLSVersion) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = newest

    async def main() -> None:
        async with rig.site() as site:
            _, writer = await asyncio.open_connection("127.0.0.1", site.service.port, ssl=context)
            writer.close()

    if newest is ssl.TLSVersion.TLSv1_3:
        asyncio.run(main())
    else:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            asyncio.run(main())


def test_a_handshake_that_never_ends_is_closed(rig: Any) -> None:
    async def main() -> None:
        async with rig.site(patience=0.05) as site:
            reader, writer = await asyncio.open_connection("127.0.0.1", site.service.port)
            writer.write(b"\x16\x03\x01")  # a handshake begins
            assert await rig.until_closed(reader) == b""
            writer.close()

    asyncio.run(main())


def test_the_certificate_is_the_keys_own() -> None:
    key = SigningKey.generate()
    certificate = x509.load_pem_x509_certificate(key.self_signed())
    certificate.verify_directly_issued_by(certificate)
    assert certificate.subject.rfc4514_string() == f"CN={fingerprint(key.public_key)}"
    assert key.self_signed() == key.self_signed()


def test_the_key_is_never_in_the_clear_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[bytes, int]] = []
    load = ssl.SSLContext.load_cert_chain

    def look(context: ssl.SSLContext, certificate: Path, secret: Path, password: bytes) -> None:
        written.append((secret.read_bytes(), os.stat(secret).st_mode & 0o777))
        load(context, certificate, secret, password)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    server_context(SigningKey.generate())
    [(content, mode)] = written
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in content
    assert mode == 0o600
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_loopback(host: str, inside: bool) -> None:
    assert is_loopback(host) is inside


def test_a_pin_must_be_a_key() -> None:
    for text in ("", "00", "xyz"):
        with pytest.raises(InputError, match="Ed25519 public key"):
            pinned_context(text)
