"""What the wire's tests share: two keys, a service in this process, and what it logged."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from tacit.crypto.signing import SigningKey
from tacit.wire.client import Client, Peer
from tacit.wire.message import Message
from tacit.wire.service import Service, application
from tacit.wire.tls import pinned_context

STUDY = "5d" * 32
ALICE, BOB, EVE = (SigningKey.generate() for _ in range(3))
Answer = Callable[[Message], Awaitable[Message]]


@pytest.fixture(scope="session")
def rig() -> ModuleType:
    """This file: pytest imports no test's neighbours."""
    return sys.modules[__name__]


@dataclass
class Journal:
    """Events, and a way to wait for the next one instead of for a while."""

    events: list[dict[str, object]] = field(default_factory=list)
    happened: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, event: str, **fields: object) -> None:
        self.events.append({"event": event, **fields})
        self.happened.set()

    @property
    def reasons(self) -> list[str]:
        return [str(entry["reason"]) for entry in self.events if "reason" in entry]


async def echo(message: Message) -> Message:
    return message.reply("echo", message.body[::-1])


@dataclass
class Site:
    service: Service
    journal: Journal
    insecure: bool

    def peer(self, key: SigningKey = BOB) -> Peer:
        scheme = "http" if self.insecure else "https"
        return Peer("Bob", f"{scheme}://127.0.0.1:{self.service.port}", key.public_key)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context: ssl.SSLContext | None = None if self.insecure else pinned_context(BOB.public_key)
        return await asyncio.open_connection("127.0.0.1", self.service.port, ssl=context)


@asynccontextmanager
async def site(
    answer: Answer = echo,
    *,
    limit: int = 10_000,
    insecure: bool = False,
    patience: float = 30.0,
    body_patience: float = 30.0,
) -> AsyncIterator[Site]:
    """Bob's service on a free port."""
    journal = Journal()
    app = application(BOB, answer, lambda kind: limit, journal, body_patience)
    service = Service(app, "127.0.0.1", 0, BOB, insecure=insecure, patience=patience)
    await service.start()
    try:
        yield Site(service, journal, insecure)
    finally:
        await service.stop()


@asynccontextmanager
async def client(key: SigningKey = ALICE, insecure: bool = False) -> AsyncIterator[Client]:
    asker = Client(key, STUDY, insecure=insecure)
    try:
        yield asker
    finally:
        await asker.aclose()


def request(kind: str = "share", body: bytes = b"body", round: int = 3) -> Message:
    return Message(STUDY, round, "", BOB.public_key, kind, body).signed(ALICE)


def http(message: Message, length: int | None = None, body: bytes | None = None) -> bytes:
    """The message as bytes on the connection; `length` and `body` may lie."""
    sent = message.body if body is None else body
    lines = [f"POST /v1/{message.kind} HTTP/1.1".encode(), b"host: bob"]
    lines += [name + b": " + value for name, value in message.to_headers()]
    lines.append(b"content-length: %d" % (len(sent) if length is None else length))
    return b"\r\n".join(lines) + b"\r\n\r\n" + sent


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """All that comes before the other side closes, however it does so."""
    received = b""
    try:
        while piece := await reader.read(65_536):
            received += piece
    except ConnectionError:
        pass
    return received


@asynccontextmanager
async def raw_server(
    respond: Callable[[Message], bytes], context: ssl.SSLContext
) -> AsyncIterator[Peer]:
    """A peer called Bob that answers with whatever bytes `respond` makes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[1:-2]
            pairs = [(line.split(b": ")[0].lower(), line.split(b": ")[1]) for line in head]
            body = await reader.readexactly(int(dict(pairs)[b"content-length"]))
            writer.write(respond(Message.from_headers(pairs, body)))
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Peer("Bob", f"https://127.0.0.1:{port}", BOB.public_key)
    finally:
        server.close()


def response(message: Message, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"content-length: %d" % len(message.body)]
    lines += [name + b": " + value for name, value in message.to_headers()]
    return b"\r\n".join(lines) + b"\r\n\r\n" + message.body


async def call(
    app: Any, path: str, headers: Iterable[tuple[bytes, bytes]], pieces: Iterable[bytes]
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """The application without a network: status, headers and body of its answer."""
    *first, last = pieces
    events = [{"type": "http.request", "body": piece, "more_body": True} for piece in first]
    events.append({"type": "http.request", "body": last, "more_body": False})
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return events.pop(0)

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": list(headers),
    }
    await app(scope, receive, send)
    return sent[0]["status"], sent[0]["headers"], sent[1]["body"]
