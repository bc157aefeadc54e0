"""The server's side: one route that takes signed messages and answers with signed messages.

The order is from cheap to dear, and a stranger gets no further than a step allows: form of the
headers, length of the body, its arrival, its signature, and only then whoever gives the answer.
"""

from __future__ import annotations

import asyncio
import functools
import json
import socket
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from tacit.crypto.signing import SigningKey, fingerprint
from tacit.errors import (
    CheckFailed,
    InputError,
    InternalFault,
    Refused,
    StorageError,
    TacitError,
    Unreachable,
    UsageError,
)
from tacit.wire.guard import GuardedProtocol, Log
from tacit.wire.message import Message
from tacit.wire.tls import is_loopback, server_context

__all__ = ["Service", "application"]

KEEP_ALIVE = 75  # seconds; longer than the client's, so that the client is the one to close
GRACE = 5.0  # seconds that answers under way have when the service stops

_STATUS: list[tuple[type[TacitError], HTTPStatus]] = [
    (Refused, HTTPStatus.CONFLICT),
    (InputError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (UsageError, HTTPStatus.BAD_REQUEST),
    (CheckFailed, HTTPStatus.CONFLICT),
    (Unreachable, HTTPStatus.SERVICE_UNAVAILABLE),
]


def application(
    key: SigningKey,
    answer: Callable[[Message], Awaitable[Message]],
    limit: Callable[[str], int],
    log: Log,
    patience: float = 30.0,
) -> Starlette:
    """`POST /v1/{kind}` for messages to `key`, and `GET /healthz`.

    `answer` gives a reply of which kind and body are used (`message.reply(kind, body)`), or raises.
    `limit(kind)` is the longest body in bytes; it may raise for kinds that do not exist. The body
    has `patience` seconds to arrive.
    """
    endpoint = _Endpoint(key, answer, limit, log, patience)
    app = Starlette(
        routes=[
            Route("/v1/{kind}", endpoint, methods=["POST"]),
            Route("/healthz", _healthy),
        ]
    )
    app.state.log = log  # the service below tells of connections that never became a request
    return app


async def _healthy(_: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


class _Stop(Exception):
    """A request that ends here, with a status and the error that the peer is told."""

    def __init__(self, status: HTTPStatus, error: TacitError, close: bool = False) -> None:
        super().__init__(status)
        self.status, self.error, self.close = status, error, close


class _Left(Exception):
    """The peer went away in the middle of its request."""


class _Endpoint:
    def __init__(
        self,
        key: SigningKey,
        answer: Callable[[Message], Awaitable[Message]],
        limit: Callable[[str], int],
        log: Log,
        patience: float,
    ) -> None:
        self._key, self._public_key = key, key.public_key
        self._answer, self._limit, self._log, self._patience = answer, limit, log, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            head = Message.from_headers(scope["headers"])
        except InputError as error:  # nobody to address a signed refusal to
            self._log("refused", kind="", sender="", reason=str(error))
            response = PlainTextResponse(str(error), HTTPStatus.BAD_REQUEST, _CLOSE)
            return await response(scope, receive, send)
        try:
            message = await self._read(head, scope, receive)
            given = await self._answer(message)
            reply = message.reply(given.kind, given.body).signed(self._key)
            await _send(reply, HTTPStatus.OK, False, send)
        except _Left:
            self._note(head, "the peer left before its body was complete")
        except Exception as error:
            stop = self._stop(head, error)
            self._note(head, str(stop.error), status=int(stop.status))
            reply = _refusal(head, stop.error).signed(self._key)
            await _send(reply, stop.status, stop.close, send)

    async def _read(self, head: Message, scope: Scope, receive: Receive) -> Message:
        """The whole message, if it is of an allowed length, arrives in time and is authentic."""
        if head.kind != scope["path_params"]["kind"]:
            error = InputError("The kind in the address is not the kind in the message.")
            raise _Stop(HTTPStatus.UNPROCESSABLE_ENTITY, error, close=True)
        allowed = self._limit(head.kind)
        if _announced(scope) > allowed:
            raise _too_large(head.kind, allowed)
        try:
            async with asyncio.timeout(self._patience):
                body = await _read_body(receive, head.kind, allowed)
        except TimeoutError:
            error = InputError(f"The body did not arrive within {self._patience:g} s: send faster.")
            raise _Stop(HTTPStatus.REQUEST_TIMEOUT, error, close=True) from None
        message = replace(head, body=body)
        if message.recipient != self._public_key or not message.is_authentic():
            raise _Stop(
                HTTPStatus.UNAUTHORIZED,
                CheckFailed("The message is not signed by its sender for this recipient."),
            )
        return message

    def _stop(self, head: Message, error: Exception) -> _Stop:
        if isinstance(error, _Stop):
            return error
        # Where our files are is our own business.
        if isinstance(error, TacitError) and not isinstance(error, StorageError):
            return _Stop(_status(error), error)
        self._log("fault", kind=head.kind, error=type(error).__name__, at=_place(error))
        opaque = InternalFault("An internal fault: its operator finds it in the log.")
        return _Stop(HTTPStatus.INTERNAL_SERVER_ERROR, opaque)

    def _note(self, head: Message, reason: str, **fields: object) -> None:
        sender = fingerprint(head.sender)  # as claimed: it may not have been verified
        self._log("refused", kind=head.kind, sender=sender, reason=reason, **fields)


_CLOSE = {"connection": "close"}


def _announced(scope: Scope) -> int:
    """Content-Length, which the parser has found to be a number; 0 without a body."""
    return next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)


async def _read_body(receive: Receive, kind: str, allowed: int) -> bytes:
    chunks: list[bytes] = []
    length, more = 0, True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise _Left
        chunks.append(event.get("body", b""))
        length += len(chunks[-1])
        if length > allowed:
            raise _too_large(kind, allowed)
        more = event.get("more_body", False)
    return b"".join(chunks)


def _too_large(kind: str, allowed: int) -> _Stop:
    error = InputError(f"The body of a message of kind {kind} may have {allowed} bytes, not more.")
    return _Stop(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error, close=True)


def _status(error: TacitError) -> HTTPStatus:
    return next(
        (status for kind, status in _STATUS if isinstance(error, kind)),
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )


def _refusal(head: Message, error: TacitError) -> Message:
    told = {"kind": type(error).__name__, "message": str(error)}
    if error.statement:
        told["statement"] = error.statement
    return head.reply("refusal", json.dumps(told).encode())


def _place(error: Exception) -> str:
    """Where it happened; not what it says, which could be a private value."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.name}:{frame.lineno}"


async def _send(reply: Message, status: HTTPStatus, close: bool, send: Send) -> None:
    headers = [
        (b"content-type", b"application/octet-stream"),
        (b"content-length", str(len(reply.body)).encode()),
        *reply.to_headers(),
    ]
    if close:  # what is left of the request would be read as the next one
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


class Service:
    """An application on a port, inside the running event loop. Start it with `await start()`."""

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        key: SigningKey,
        insecure: bool = False,
        patience: float = 30.0,
    ) -> None:
        if insecure and not is_loopback(host):
            raise UsageError(
                f"insecure=True on {host!r} would send messages in the clear over a network. It is "
                "allowed on 127.0.0.1, ::1 and localhost only: leave insecure out for TLS."
            )
        self._address, self._patience = (host, port), patience
        self._ssl = None if insecure else server_context(key)
        self._log: Log = app.state.log
        # Only uvicorn's protocol is used, not its server: that one installs signal handlers, ends
        # the process when a port is taken, and gives no limit for the handshake.
        self._config = Config(
            app,
            http=GuardedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE,
        )
        self._config.load()
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port in use, also where 0 asked for any free one."""
        if self._server is None:
            raise UsageError("The service has no port before start().")
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        host, port = self._address
        protocol = functools.partial(
            GuardedProtocol, self._config, self._state, {}, patience=self._patience, log=self._log
        )
        try:
            self._server = await asyncio.get_running_loop().create_server(
                protocol,
                host,
                port,
                ssl=self._ssl,
                ssl_handshake_timeout=self._patience if self._ssl else None,
                backlog=2048,
            )
        except (OSError, socket.gaierror) as error:
            raise UsageError(
                f"{host}:{port} cannot be listened on ({error.strerror}): choose another port, or "
                "0 for any free one, and an address of this machine."
            ) from error

    async def stop(self) -> None:
        """Takes no more connections, lets answers under way finish, then closes the rest."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            _, late = await asyncio.wait(self._state.tasks, timeout=GRACE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for connection in list(self._state.connections):
            connection.transport.abort()
        self._server = None
