"""A client for a thousand people in one process: what it says and believes is the real one's.

Only the carrying differs. The real one's pools are made for a few peers of one person, and would be
most of what a measurement of relays and collector measures.
"""

from __future__ import annotations

import asyncio
import ssl
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from tacit.crypto.signing import SigningKey
from tacit.errors import Unreachable
from tacit.wire.client import Client, Peer
from tacit.wire.message import Message
from tacit.wire.tls import pinned_context

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LIMIT = 2**22  # bytes of a reply, such as a roster


class Connections:
    """Kept ones, by peer, for all people: each carries one request at a time."""

    def __init__(self) -> None:
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._idle: dict[str, list[Stream]] = {}

    async def take(self, peer: Peer) -> tuple[Stream, bool]:
        """A connection, and whether it was used before."""
        idle = self._idle.setdefault(peer.key, [])
        while idle:
            stream = idle.pop()
            if not stream[0].at_eof():
                return stream, True
            drop(stream)
        if peer.key not in self._contexts:
            self._contexts[peer.key] = pinned_context(peer.key)
        host, port = urlsplit(peer.address).netloc.split(":")
        context = self._contexts[peer.key]
        return await asyncio.open_connection(host, int(port), ssl=context, limit=LIMIT), False

    def give_back(self, peer: Peer, stream: Stream) -> None:
        self._idle[peer.key].append(stream)

    def close(self) -> None:
        for idle in self._idle.values():
            for stream in idle:
                drop(stream)
        self._idle.clear()


class LeanClient(Client):
    def __init__(self, key: SigningKey, study: str, connections: Connections) -> None:
        super().__init__(key, study)
        self._connections = connections

    async def _exchange(self, peer: Peer, request: Message) -> Message:
        try:
            kept = True
            while kept:
                stream, kept = await self._connections.take(peer)
                try:
                    head, body = await _carried(stream, request)
                except asyncio.IncompleteReadError as error:
                    drop(stream)
                    if not kept or error.partial:
                        raise
                except BaseException:  # or somebody else would read our answer
                    drop(stream)
                    raise
                else:
                    break
        except (OSError, EOFError) as error:
            raise Unreachable(f"{peer.name} cannot be reached ({type(error).__name__}).") from error
        self._connections.give_back(peer, stream)
        return self._believed(peer, request, head, body)


async def _carried(stream: Stream, request: Message) -> tuple[Any, bytes]:
    reader, writer = stream
    lines = [
        b"POST /v1/%s HTTP/1.1" % request.kind.encode(),
        b"host: localhost",
        b"content-length: %d" % len(request.body),
        *(name + b": " + value for name, value in request.to_headers()),
    ]
    writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + request.body)
    first, *rest = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
    parts = (line.partition(b": ") for line in rest)
    headers = [(name.lower(), value) for name, _, value in parts]
    body = await reader.readexactly(int(dict(headers)[b"content-length"]))
    status = int(first.split(b" ", 2)[1])
    return SimpleNamespace(headers=SimpleNamespace(raw=headers), status_code=status), body


def drop(stream: Stream) -> None:
    stream[1].transport.abort()
