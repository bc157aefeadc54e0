"""Strangers who are slow, long or many. Patience is short here, and tests wait for the closing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tacit.wire import guard, service
from tacit.wire.guard import ClosedOnce
from tacit.wire.loop import run

LOOPS = pytest.mark.parametrize("run_in", [asyncio.run, run], ids=["asyncio", "uvloop"])
SHORT = 0.05


async def sent(rig: Any, data: bytes, **options: Any) -> tuple[bytes, list[str]]:
    """What comes back for these bytes until the service closes, and the reasons it logged."""
    async with rig.site(insecure=True, **options) as site:
        reader, writer = await site.connect()
        writer.write(data)
        answer = await rig.until_closed(reader)
        writer.close()
        return answer, site.journal.reasons


async def answered(rig: Any, site: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection after its first answer. On a machine so busy that even a request sent at once
    comes too late for so little patience, another one."""
    while True:
        reader, writer = await site.connect()
        writer.write(rig.http(rig.request()))
        try:
            await reader.readuntil(b"ydob")
            return reader, writer
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@LOOPS
@pytest.mark.parametrize("data", [b"", b"POST /v1/sh", b"POST /v1/share HTTP/1.1\r\nhost: b\r\n"])
def test_slow_headers_are_closed(rig: Any, run_in: Callable[..., Any], data: bytes) -> None:
    answer, reasons = run_in(sent(rig, data, patience=SHORT))
    assert answer == b""
    assert reasons == ["headers not complete within 0.05 s"]


@pytest.mark.parametrize("data", [b"\r\n", b"POST /v1/sh"])
def test_slow_headers_of_a_second_request_are_closed(rig: Any, data: bytes) -> None:
    """Blank lines before a request count as its beginning: they would keep it open for ever."""

    async def main() -> list[str]:
        async with rig.site(insecure=True, patience=SHORT) as site:
            reader, writer = await answered(rig, site)
            writer.write(data)
            assert await rig.until_closed(reader) == b""
            writer.close()
            reasons: list[str] = site.journal.reasons
            return reasons

    assert set(asyncio.run(main())) == {"headers not complete within 0.05 s"}


def test_an_idle_connection_is_kept(rig: Any) -> None:
    """A second connection, made later and closed for its slowness, is the clock."""

    async def main() -> bytes:
        async with rig.site(insecure=True, patience=SHORT) as site:
            reader, writer = await answered(rig, site)
            late, other = await site.connect()
            await rig.until_closed(late)
            writer.write(rig.http(rig.request(body=b"again")))
            answer = await reader.readuntil(b"niaga")
            other.close()
            writer.close()
            return answer

    assert asyncio.run(main()).startswith(b"HTTP/1.1 200")


@LOOPS
def test_a_slow_body_is_refused(rig: Any, run_in: Callable[..., Any]) -> None:
    data = rig.http(rig.request(), length=100)
    answer, reasons = run_in(sent(rig, data, body_patience=SHORT))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"tacit-kind: refusal" in answer
    assert reasons == ["The body did not arrive within 0.05 s: send faster."]


def test_two_gigabytes_are_refused_before_the_first(rig: Any) -> None:
    answer, reasons = asyncio.run(sent(rig, rig.http(rig.request(), length=2**31, body=b"")))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer
    assert "may have 10000 bytes" in reasons[0]


def test_a_body_that_nobody_asked_for_is_not_awaited(rig: Any) -> None:
    data = b"GET /healthz HTTP/1.1\r\nhost: b\r\ncontent-length: 99\r\n\r\nslow"
    answer, _ = asyncio.run(sent(rig, data))
    assert answer.endswith(b"ok")


@pytest.mark.parametrize("path", [b"/v1/share", b"/healthz", b"/nowhere"])
def test_bodies_of_unknown_length_are_refused(rig: Any, path: bytes) -> None:
    message = rig.http(rig.request(body=b""))
    head = message.replace(b"/v1/share", path).replace(
        b"content-length: 0", b"transfer-encoding: chunked"
    )
    answer, reasons = asyncio.run(sent(rig, head + b"4\r\nbody\r\n0\r\ntrailer: x"))
    assert answer.startswith(b"HTTP/1.1 400")
    assert reasons == ["a body without Content-Length"]


@pytest.mark.parametrize("count", [1, 500])
def test_long_headers_are_refused(rig: Any, count: int) -> None:
    """One endless header, and many complete ones."""
    value = b"x" * (2 * guard.HEAD_BYTES // count)
    data = b"POST /v1/share HTTP/1.1\r\n" + (b"more: " + value + b"\r\n") * count
    _, reasons = asyncio.run(sent(rig, data))
    assert reasons == [f"headers longer than {guard.HEAD_BYTES} bytes"]


def test_long_bodies_are_no_long_headers(rig: Any) -> None:
    async def main() -> bytes:
        async with rig.site(insecure=True, limit=2**20) as site, rig.client(insecure=True) as asker:
            body = bytes(range(256)) * 4000
            for _ in range(2):
                reply = await asker.ask(site.peer(), "share", 1, body)
                assert reply.body == body[::-1]
            return bytes(reply.body[:1])

    assert asyncio.run(main()) == b"\xff"


def test_what_is_not_http_is_refused(rig: Any) -> None:
    answer, reasons = asyncio.run(sent(rig, b"\x16\x03\x01\x00\xff hello\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 400")
    assert reasons == ["not HTTP"]


def test_one_connection_too_many_is_closed(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "CONNECTIONS", 2)

    async def main() -> list[str]:
        async with rig.site(insecure=True) as site:
            connections = [await site.connect() for _ in range(3)]
            assert await rig.until_closed(connections[2][0]) == b""
            reader, writer = connections[0]
            writer.write(rig.http(rig.request()))
            await reader.readuntil(b"ydob")
            for _, open_one in connections:
                open_one.close()
            reasons: list[str] = site.journal.reasons
            return reasons

    assert asyncio.run(main()) == ["more than 2 connections at once"]


def test_a_peer_that_leaves_is_noted(rig: Any) -> None:
    async def main() -> list[str]:
        async with rig.site(insecure=True) as site:
            _, writer = await site.connect()
            writer.write(rig.http(rig.request(), length=100))
            await writer.drain()
            writer.close()
            await site.journal.happened.wait()
            reasons: list[str] = site.journal.reasons
            return reasons

    assert asyncio.run(main()) == ["the peer left before its body was complete"]


# ── the end of a connection ──


class OnceOnly:
    """A transport as strict as asyncio's for TLS in Python 3.11.2: closed twice, it is broken."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        assert not self.closing, "closed twice"
        self.closing = True
        self.said.append("close")

    def abort(self) -> None:
        self.closing = True
        self.said.append("abort")

    def write(self, data: bytes) -> None:
        self.said.append("write")

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_extra_info(self, name: str) -> None: ...


@pytest.mark.parametrize("seed", range(40))
def test_a_transport_is_closed_once_whatever_happens(seed: int) -> None:
    strict, random = OnceOnly(), Random(seed)
    transport = ClosedOnce(strict)  # type: ignore[arg-type]
    for _ in range(12):
        random.choice([transport.close, transport.close, transport.abort])()
    transport.abort()
    assert strict.said.count("close") <= 1
    assert strict.said[-1] == "abort"


ENDS = {
    "answered, and the last": b"GET /healthz HTTP/1.1\r\nhost: bob\r\nconnection: close\r\n\r\n",
    "not HTTP": b"hello\r\n\r\n",
    "refused before its body": b"POST /v1/share HTTP/1.1\r\ncontent-length: 9\r\n\r\n",
    "within its head": b"POST /v1/sh",
    "kept alive": b"GET /healthz HTTP/1.1\r\nhost: bob\r\n\r\n",
    "silent": b"",
}


@LOOPS
@pytest.mark.parametrize("insecure", [False, True], ids=["tls", "plain"])
@pytest.mark.parametrize("leaves", [False, True], ids=["stays", "leaves"])
@pytest.mark.parametrize("data", ENDS.values(), ids=ENDS.keys())
def test_stopping_ends_every_connection(
    rig: Any,
    run_in: Callable[..., Any],
    insecure: bool,
    leaves: bool,
    data: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a connection is about, and though the other side does not close its end."""
    made, lost = asyncio.Event(), asyncio.Event()

    class Noting(guard.GuardedProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            made.set()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    monkeypatch.setattr(service, "GuardedProtocol", Noting)

    async def main() -> None:
        async with rig.site(insecure=insecure) as site:
            reader, writer = await site.connect()
            await made.wait()
            writer.write(data)
            await writer.drain()
            if data.startswith((b"GET", b"POST /v1/share")):
                await reader.readuntil(b"\r\n\r\n")  # it has been answered
            if leaves:
                writer.transport.abort()
        await lost.wait()
        writer.transport.abort()

    run_in(main())
