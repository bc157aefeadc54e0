"""The client's side: what it believes, and how failures reach the caller."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tacit import errors
from tacit.errors import (
    CheckFailed,
    InputError,
    Refused,
    TacitError,
    Unreachable,
    UsageError,
)
from tacit.wire import client as client_module
from tacit.wire.client import Client, Peer
from tacit.wire.loop import run
from tacit.wire.message import Message
from tacit.wire.tls import server_context

LOOPS = pytest.mark.parametrize("run_in", [asyncio.run, run], ids=["asyncio", "uvloop"])


@LOOPS
def test_round_trip(rig: Any, run_in: Callable[..., Any]) -> None:
    async def main() -> None:
        async with rig.site() as site, rig.client() as client:
            for body in (b"", b"hello", bytes(10_000)):
                reply = await client.ask(site.peer(), "share", 3, body)
                assert (reply.kind, reply.body) == ("echo", body[::-1])
                assert reply.sender == rig.BOB.public_key
            assert site.journal.events == []

    run_in(main())


@LOOPS
def test_two_hundred_uploads_at_once(rig: Any, run_in: Callable[..., Any]) -> None:
    received: set[bytes] = set()

    async def collect(message: Message) -> Message:
        received.add(message.body)
        return message.reply("taken", message.body)

    async def main() -> None:
        async with rig.site(collect) as site, rig.client() as client:
            bodies = [b"%d" % number for number in range(200)]
            asks = (client.ask(site.peer(), "share", 1, body) for body in bodies)
            replies = await asyncio.gather(*asks)
            assert [reply.body for reply in replies] == bodies
            assert received == set(bodies)

    run_in(main())


def answered(rig: Any, respond: Callable[[Message], bytes]) -> Message:
    """What the client makes of a Bob who answers with these bytes."""

    async def main() -> Message:
        async with (
            rig.raw_server(respond, server_context(rig.BOB)) as peer,
            rig.client() as client,
        ):
            reply: Message = await client.ask(peer, "share", 3, b"body")
            return reply

    return asyncio.run(main())


def test_the_forger_can_be_honest(rig: Any) -> None:
    """Otherwise the tests below could pass for another reason."""
    reply = answered(rig, lambda m: rig.response(m.reply("done", b"x").signed(rig.BOB)))
    assert (reply.kind, reply.body) == ("done", b"x")


FORGERIES: dict[str, Callable[[Any, Message], Message]] = {
    "body": lambda rig, m: replace(m.reply("done", b"x").signed(rig.BOB), body=b"y"),
    "kind": lambda rig, m: replace(m.reply("done").signed(rig.BOB), kind="dune"),
    "signature": lambda rig, m: replace(m.reply("done").signed(rig.BOB), signature="00" * 64),
    "signed by another": lambda rig, m: m.reply("done").signed(rig.EVE),
    "refusal by another": lambda rig, m: m.reply("refusal", b"{}").signed(rig.EVE),
    "another's in the name": lambda rig, m: replace(
        m.reply("done").signed(rig.EVE), sender=rig.BOB.public_key
    ),
    "answers another request": lambda rig, m: replace(
        m.reply("done"), answering=rig.request(body=b"other").signature
    ).signed(rig.BOB),
    "answers no request": lambda rig, m: replace(m.reply("done"), answering="").signed(rig.BOB),
    "another study": lambda rig, m: replace(m.reply("done"), study="00" * 32).signed(rig.BOB),
    "another round": lambda rig, m: replace(m.reply("done"), round=4).signed(rig.BOB),
    "for another": lambda rig, m: replace(m.reply("done"), recipient=rig.EVE.public_key).signed(
        rig.BOB
    ),
    "the request itself": lambda rig, m: m,
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_answers_are_not_believed(rig: Any, name: str) -> None:
    with pytest.raises(CheckFailed, match="did not sign for this request"):
        answered(rig, lambda m: rig.response(FORGERIES[name](rig, m)))


def test_unsigned_answers_are_not_believed(rig: Any) -> None:
    plain = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    with pytest.raises(CheckFailed, match="did not sign"):
        answered(rig, lambda m: plain)
    with pytest.raises(Unreachable, match="takes no requests now"):
        answered(rig, lambda m: plain.replace(b"200 OK", b"503 Busy"))


def test_the_status_line_proves_nothing(rig: Any) -> None:
    reply = answered(rig, lambda m: rig.response(m.reply("done").signed(rig.BOB), b"500 Error"))
    assert reply.kind == "done"


def test_redirects_are_not_followed(rig: Any) -> None:
    with pytest.raises(CheckFailed):
        answered(
            rig,
            lambda m: (
                b"HTTP/1.1 307 Away\r\nlocation: https://192.0.2.1/\r\ncontent-length: 0\r\n\r\n"
            ),
        )


def test_endless_answers_are_cut(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "REPLY_BYTES", 100)
    with pytest.raises(CheckFailed, match="longer than 100 bytes"):
        answered(rig, lambda m: rig.response(m.reply("done", bytes(101)).signed(rig.BOB)))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("Refused", Refused),
        ("BudgetExceeded", Refused),
        ("InputError", InputError),
        ("TableError", InputError),
        ("UsageError", UsageError),
        ("PromiseError", UsageError),
        ("CheckFailed", CheckFailed),
        ("LedgerTampered", CheckFailed),
        ("Unreachable", Unreachable),
        ("InternalFault", Unreachable),
        ("PromiseWarning", Refused),
        ("SystemExit", Refused),
        ("__all__", Refused),
    ],
    ids=str,
)
def test_refusals_come_back_as_errors(rig: Any, told: Any, expected: type[TacitError]) -> None:
    body = json.dumps({"kind": told, "message": "Ask for\x1b[2J less.\n" + "x" * 1000}).encode()
    with pytest.raises(TacitError) as caught:
        answered(rig, lambda m: rig.response(m.reply("refusal", body).signed(rig.BOB)))
    assert type(caught.value) is expected
    words = str(caught.value)
    assert words.startswith("Bob: ")
    assert words.isprintable()
    assert len(words) == len("Bob: ") + 500


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"kind": "x"}', b'{"kind": []}']
)
def test_garbled_refusals_are_refusals(rig: Any, body: bytes) -> None:
    with pytest.raises(Refused, match="it gave no reason"):
        answered(rig, lambda m: rig.response(m.reply("refusal", body).signed(rig.BOB)))


def test_every_error_of_an_answer_arrives_over_the_wire(rig: Any) -> None:
    async def refuse(message: Message) -> Message:
        raise errors.SchemaError("Column age is missing.")

    async def main() -> None:
        async with rig.site(refuse) as site, rig.client() as client:
            with pytest.raises(InputError, match=r"Bob: Column age is missing\."):
                await client.ask(site.peer(), "share", 1)

    asyncio.run(main())


def test_a_body_that_is_too_large_is_explained(rig: Any) -> None:
    async def main() -> None:
        async with rig.site(limit=10) as site, rig.client() as client:
            with pytest.raises(InputError, match="may have 10 bytes"):
                await client.ask(site.peer(), "share", 1, bytes(11))

    asyncio.run(main())


def test_nobody_there(rig: Any) -> None:
    async def main() -> None:
        async with rig.site() as site:
            peer = site.peer()
        async with rig.client() as client:
            with pytest.raises(Unreachable, match=r"Bob .* cannot be reached .* Check the address"):
                await client.ask(peer, "share", 1)

    asyncio.run(main())


def test_no_answer_in_time(rig: Any) -> None:
    async def main() -> None:
        finish = asyncio.Event()

        async def never(message: Message) -> Message:
            await finish.wait()
            return message.reply("late")

        async with rig.site(never) as site, rig.client() as client:
            with pytest.raises(Unreachable, match=r"did not answer within 0\.05 s"):
                await client.ask(site.peer(), "share", 1, timeout=0.05)
            finish.set()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("address", "insecure", "words"),
    [
        ("http://127.0.0.1:1", False, "only when asked for"),
        ("http://192.0.2.1:1", True, "anybody on the way"),
        ("http://localhost.example.org:1", True, "anybody on the way"),
        ("https://127.0.0.1", False, "https://host:port"),
        ("https://127.0.0.1:99999", False, "https://host:port"),
        ("https://127.0.0.1:1/path", False, "https://host:port"),
        ("https://user@127.0.0.1:1", False, "https://host:port"),
        ("ftp://127.0.0.1:1", True, "https://host:port"),
        ("127.0.0.1:1", False, "https://host:port"),
    ],
)
def test_addresses(rig: Any, address: str, insecure: bool, words: str) -> None:
    async def main() -> None:
        async with rig.client(insecure=insecure) as client:
            with pytest.raises(UsageError, match=words):
                await client.ask(Peer("Bob", address, rig.BOB.public_key), "share", 1)

    asyncio.run(main())


def test_proxies_of_the_environment_are_ignored(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    async def main() -> None:
        async with rig.site() as site, rig.client() as client:
            assert (await client.ask(site.peer(), "share", 1)).kind == "echo"

    asyncio.run(main())


def test_malformed_questions_are_not_sent(rig: Any) -> None:
    async def main() -> None:
        async with rig.site() as site, rig.client() as client:
            with pytest.raises(InputError, match="kind"):
                await client.ask(site.peer(), "../share", 1)
            with pytest.raises(InputError, match="round"):
                await client.ask(site.peer(), "share", -1)
            assert site.journal.events == []
        with pytest.raises(InputError, match="study"):
            await Client(rig.ALICE, "heart").ask(site_less(rig), "share", 1)

    asyncio.run(main())


def site_less(rig: Any) -> Peer:
    return Peer("Bob", "https://127.0.0.1:1", rig.BOB.public_key)
