"""A server's protocol that strangers cannot exhaust by being slow, talkative or many.

Everything here happens before a request has an owner, so it can only be answered by closing the
connection. Bodies have owners' limits: see service.py.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

__all__ = ["CONNECTIONS", "HEAD_BYTES", "ClosedOnce", "GuardedProtocol", "Log"]

CONNECTIONS = 4096  # at once; an idle one costs about 30 kB with TLS
HEAD_BYTES = 16_384  # request line and headers; a message's own take about 700 bytes


class Log(Protocol):
    """Where events go. Fields hold reasons and fingerprints, never bodies or keys."""

    def __call__(self, event: str, **fields: object) -> None: ...


class _Unacceptable(Exception):
    """Raised inside the parser to make it stop."""


class ClosedOnce:
    """A transport that everybody may close, and that is closed once.

    A connection has several reasons to end (its answer was the last one, its body will not be read,
    the other side has left, the service stops), and each closes it. A TLS transport of asyncio that
    is closed while it is closing already forgets its own protocol, and can never be aborted: later
    releases of Python do nothing then, 3.11.2 raises AttributeError.
    """

    __slots__ = (
        "_transport", "abort", "get_extra_info", "is_closing", "pause_reading", "resume_reading",
        "write",
    )  # fmt: skip

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.abort, self.is_closing = transport.abort, transport.is_closing
        self.write, self.get_extra_info = transport.write, transport.get_extra_info
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def close(self) -> None:
        if not self.is_closing():
            self._transport.close()


class GuardedProtocol(HttpToolsProtocol):
    """Closes a connection whose request head is late or long, and one connection too many.

    The head's clock starts when the connection is made and, on one kept alive, with the first byte
    after an answer. (Between answers, uvicorn's own keep-alive clock runs.)
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        patience: float,
        log: Log,
    ) -> None:
        super().__init__(config, server_state, app_state, asyncio.get_running_loop())
        self._patience, self._log = patience, log
        self._in_head, self._room = True, HEAD_BYTES
        self._reason = "not HTTP"
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(ClosedOnce(transport))  # type: ignore[arg-type]  # all that is used
        if len(self.connections) > CONNECTIONS:
            self._refuse(f"more than {CONNECTIONS} connections at once")
        else:
            self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feeds the parser no more of a head than HEAD_BYTES, however the bytes arrive."""
        if self._in_head:
            self._start_clock()
        while data and not self.transport.is_closing():
            cut = self._room if self._in_head else len(data)
            piece, data = data[:cut], data[cut:]
            if self._in_head:
                self._room -= len(piece)
            super().data_received(piece)
            if self._room <= 0:
                self._refuse(f"headers longer than {HEAD_BYTES} bytes")

    def send_400_response(self, msg: str) -> None:
        self._tell(self._reason)
        super().send_400_response(msg)

    def on_message_begin(self) -> None:
        self._start_clock()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if any(name == b"transfer-encoding" for name, _ in self.headers):
            # Its length would be unknown, and its trailers are kept by the parser without limit.
            self._reason = "a body without Content-Length"
            raise _Unacceptable  # uvicorn answers with status 400 and closes
        self._in_head, self._room = False, HEAD_BYTES
        self._stop_clock()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self._in_head and not self.pipeline:
            self.transport.close()  # answered before its body had arrived: nobody waits for that
        super().on_response_complete()

    def _start_clock(self) -> None:
        if self._clock is None:
            self._clock = self.loop.call_later(self._patience, self._late)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        self._refuse(f"headers not complete within {self._patience:g} s")

    def _refuse(self, reason: str) -> None:
        self._stop_clock()
        if not self.transport.is_closing():
            self._tell(reason)
            self.transport.abort()

    def _tell(self, reason: str) -> None:
        self._log("refused", kind="", sender="", reason=reason)
