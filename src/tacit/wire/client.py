"""The client's side: ask a peer, and believe only what it signed in answer to this question."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2

from tacit import errors
from tacit.crypto.signing import SigningKey
from tacit.errors import (
    CheckFailed,
    InputError,
    Refused,
    StudyStopped,
    TacitError,
    Unreachable,
    UsageError,
)
from tacit.wire.message import Message
from tacit.wire.tls import WrongKey, is_loopback, pinned_context

__all__ = ["REPLY_BYTES", "Client", "Peer"]

REPLY_BYTES = 2**28  # the longest reply that is read; a sum of ten million words is a third of it

_LIMITS = httpx2.Limits(max_connections=1024, max_keepalive_connections=64, keepalive_expiry=60.0)
_BUSY = {502, 503, 504}  # said by whatever stands before the peer, so not signed
_WORDS = 500  # characters of a refusal that are shown
_STATEMENT = 4096  # characters of what a peer has signed of it
# A peer's refusal becomes one of five errors: their subclasses carry fields that a peer cannot
# fill, except that a study which was stopped is final. A peer with a fault of its own is as good as
# away: asking again may help.
_REBUILT: dict[str, type[TacitError]] = {
    name: kind
    for kind in (Refused, InputError, UsageError, CheckFailed, Unreachable)
    for name in errors.__all__
    if issubclass(getattr(errors, name), kind)
}
_REBUILT |= {
    "StudyStopped": StudyStopped,
    "InternalFault": Unreachable,
    "StorageError": Unreachable,
}

T = TypeVar("T")


@dataclass(frozen=True)
class Peer:
    name: str
    address: str  # https://host:port
    key: str  # public key (hex)


class Client:
    """Asks peers of one study in the name of `key`. Connections are kept, one pool per peer.

    `insecure` permits http:// on this machine, for trials.
    """

    def __init__(
        self, key: SigningKey, study: str, insecure: bool = False, timeout: float = 30.0
    ) -> None:
        self._key, self._public_key, self._study = key, key.public_key, study
        self._insecure, self._timeout = insecure, timeout
        self._pools: dict[str, httpx2.AsyncClient] = {}

    def speaking_as(self, key: SigningKey) -> Client:
        """In the name of another key, over the same connections: many people of one process, in
        trials and measurements."""
        other = Client(key, self._study, self._insecure, self._timeout)
        other._pools = self._pools
        return other

    async def ask(
        self, peer: Peer, kind: str, round: int, body: bytes = b"", timeout: float | None = None
    ) -> Message:
        """The peer's signed answer, or its refusal raised as an error of ours.

        `timeout` covers everything from connecting to the answer's last byte.
        """
        request = Message(self._study, round, "", peer.key, kind, body).signed(self._key)
        patience = self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(patience):
                reply = await self._exchange(peer, request)
        except TimeoutError as error:
            raise Unreachable(
                f"{peer.name} ({peer.address}) did not answer within {patience:g} s. Check that it "
                "is running and that the network lets you reach it, or wait longer."
            ) from error
        except httpx2.HTTPError as error:
            raise _network_failure(peer, error) from error
        if reply.kind == "refusal":
            raise _rebuilt(peer, reply.body)
        return reply

    async def aclose(self) -> None:
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            await pool.aclose()

    async def _exchange(self, peer: Peer, request: Message) -> Message:
        pool = self._pool(peer)
        response = await pool.send(
            pool.build_request(
                "POST",
                f"{peer.address.rstrip('/')}/v1/{request.kind}",
                content=request.body,
                headers=[
                    (b"accept-encoding", b"identity"),
                    (b"content-type", b"application/octet-stream"),
                    *request.to_headers(),
                ],
            ),
            stream=True,
        )
        try:
            body = await _read(peer, response)
        finally:
            await response.aclose()
        return self._believed(peer, request, response, body)

    def _believed(
        self, peer: Peer, request: Message, response: httpx2.Response, body: bytes
    ) -> Message:
        """The reply, if it is this peer's answer to this request. The status proves nothing."""
        try:
            reply = Message.from_headers(response.headers.raw, body)
        except InputError:
            # Whoever can forge this could as well drop the connection: it may say no more.
            if response.status_code in _BUSY:
                raise Unreachable(
                    f"{peer.name} ({peer.address}) takes no requests now "
                    f"(status {response.status_code}). Try again later."
                ) from None
            raise _not_signed(peer) from None
        expected = request.reply(reply.kind, body)
        ours = (reply.study, reply.round, reply.sender, reply.recipient, reply.answering) == (
            expected.study,
            expected.round,
            expected.sender,
            expected.recipient,
            expected.answering,
        )
        if not ours or not reply.is_authentic():
            raise _not_signed(peer)
        return reply

    def _pool(self, peer: Peer) -> httpx2.AsyncClient:
        _check_address(peer, self._insecure)
        if peer.key not in self._pools:
            self._pools[peer.key] = httpx2.AsyncClient(
                verify=pinned_context(peer.key),
                trust_env=False,  # no proxy may come between because of a variable
                timeout=None,  # `ask` times the whole
                limits=_LIMITS,
            )
        return self._pools[peer.key]


def _check_address(peer: Peer, insecure: bool) -> None:
    try:
        parts = urlsplit(peer.address)
        bare = bool(parts.hostname and parts.port) and not (
            parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
        )
    except ValueError:  # a port that is none
        bare = False
    if bare and parts.scheme == "https":
        return
    if not bare or parts.scheme != "http":
        raise UsageError(f"The address of {peer.name} must look like https://host:port.")
    if not insecure or not is_loopback(parts.hostname or ""):
        raise UsageError(
            f"The address of {peer.name} begins with http://, which anybody on the way can read. "
            "Use https://; http:// is for trials on this machine, and there only when asked for."
        )


async def _read(peer: Peer, response: httpx2.Response) -> bytes:
    chunks: list[bytes] = []
    length = 0
    async for chunk in response.aiter_raw():
        length += len(chunk)
        if length > REPLY_BYTES:
            raise CheckFailed(
                f"{peer.name} ({peer.address}) sent a reply longer than {REPLY_BYTES} bytes: "
                "it was not read further. Ask its operator what runs there."
            )
        chunks.append(chunk)
    return b"".join(chunks)


def _not_signed(peer: Peer) -> CheckFailed:
    return CheckFailed(
        f"{peer.name} ({peer.address}) answered with something it did not sign for this request. "
        "Nothing of it was used. Check the address, and that nothing stands between you."
    )


def _network_failure(peer: Peer, error: BaseException) -> TacitError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, WrongKey):
            return CheckFailed(
                f"At {peer.address} somebody else than {peer.name} answers: the key is not the one "
                "in the study. Nothing was sent. Compare fingerprints with its operator."
            )
        cause = cause.__cause__ or cause.__context__
    return Unreachable(
        f"{peer.name} ({peer.address}) cannot be reached ({type(error).__name__}). Check the "
        "address, that it is running, and that the network lets you reach it."
    )


def _rebuilt(peer: Peer, body: bytes) -> TacitError:
    """A peer's refusal, in printable letters and not too many of them."""
    try:
        told = json.loads(body)
        kind = _REBUILT.get(told["kind"], Refused)
        words = "".join(letter for letter in str(told["message"]) if letter.isprintable())
        statement = str(told.get("statement", ""))[:_STATEMENT]
    except (ValueError, TypeError, KeyError, RecursionError):
        kind, words, statement = Refused, "it gave no reason.", ""
    error = kind(f"{peer.name}: {words[:_WORDS]}")
    error.statement = statement
    return error
