"""The server's side: what it takes, what it refuses, and what it tells of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from tacit.crypto.signing import fingerprint
from tacit.errors import (
    BudgetExceeded,
    CheckFailed,
    InputError,
    InternalFault,
    LedgerTampered,
    Refused,
    TableError,
    Unreachable,
    UsageError,
)
from tacit.wire.message import Message
from tacit.wire.service import Service, application


def app_of(
    rig: Any, answer: Callable[[Message], Awaitable[Message]] | None = None, limit: int = 100
) -> tuple[Starlette, Any]:
    journal = rig.Journal()
    return application(rig.BOB, answer or rig.echo, lambda kind: limit, journal), journal


async def post(rig: Any, app: Starlette, message: Message, *pieces: bytes) -> tuple[int, Message]:
    status, headers, body = await rig.call(
        app, f"/v1/{message.kind}", message.to_headers(), pieces or (message.body,)
    )
    return status, Message.from_headers(headers, body)


def test_a_good_message_is_answered_and_signed(rig: Any) -> None:
    app, journal = app_of(rig)
    request = rig.request(body=b"abc")
    status, reply = asyncio.run(post(rig, app, request, b"a", b"", b"bc"))
    assert status == 200
    assert reply.is_authentic()
    assert reply == request.reply("echo", b"cba").signed(rig.BOB)
    assert journal.events == []


def test_answers_choose_kind_and_body_only(rig: Any) -> None:
    async def confused(message: Message) -> Message:
        return Message("00" * 32, 9, "", "11" * 32, "echo", b"x", "22" * 64)

    app, _ = app_of(rig, confused)
    request = rig.request()
    _, reply = asyncio.run(post(rig, app, request))
    assert reply == request.reply("echo", b"x").signed(rig.BOB)


CHANGES: list[dict[str, Any]] = [
    {"study": "00" * 32},
    {"round": 4},
    {"sender": "ab" * 32},
    {"recipient": "ab" * 32},
    {"kind": "shard"},
    {"body": b"b0dy"},
    {"answering": "00" * 64},
    {"signature": "00" * 64},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_tampered_messages_never_reach_the_answer(rig: Any, change: dict[str, Any]) -> None:
    asked: list[Message] = []

    async def remember(message: Message) -> Message:
        asked.append(message)
        return message.reply("ok")

    app, journal = app_of(rig, remember)
    status, reply = asyncio.run(post(rig, app, replace(rig.request(), **change)))
    assert (status, reply.kind) == (401, "refusal")
    assert asked == []
    assert "not signed by its sender" in journal.reasons[0]


def test_a_message_for_another_server_is_refused(rig: Any) -> None:
    """Signed well, but passed on by the server that it was meant for."""
    other = Message(rig.STUDY, 3, "", rig.EVE.public_key, "share", b"").signed(rig.ALICE)
    app, journal = app_of(rig)
    assert asyncio.run(post(rig, app, other))[0] == 401
    assert journal.events[0]["sender"] == fingerprint(rig.ALICE.public_key)


def test_the_address_must_name_the_kind(rig: Any) -> None:
    app, _ = app_of(rig)
    request = rig.request()
    status, _, body = asyncio.run(rig.call(app, "/v1/other", request.to_headers(), [b"body"]))
    assert status == 422
    assert json.loads(body)["kind"] == "InputError"


def test_a_body_over_the_limit_is_not_read_on(rig: Any) -> None:
    """The length is checked again while reading: another server may not keep to what it said."""
    app, journal = app_of(rig, limit=8)
    status, reply = asyncio.run(post(rig, app, rig.request(), b"12345678", b"9", b"never read"))
    assert (status, reply.kind) == (413, "refusal")
    assert reply.is_authentic()
    assert "may have 8 bytes" in journal.reasons[0]
    assert asyncio.run(post(rig, app, rig.request(body=b"12345678")))[0] == 200


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Refused("no"), 409),
        (BudgetExceeded("no", asked=1, left=0, shortfall=1), 409),
        (InputError("no"), 422),
        (TableError("no"), 422),
        (UsageError("no"), 400),
        (CheckFailed("no"), 409),
        (LedgerTampered("no"), 409),
        (Unreachable("no"), 503),
        (InternalFault("no"), 500),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_errors_have_a_status_and_a_signed_reason(rig: Any, error: Exception, status: int) -> None:
    async def refuse(message: Message) -> Message:
        raise error

    app, journal = app_of(rig, refuse)
    got, reply = asyncio.run(post(rig, app, rig.request()))
    assert got == status
    assert reply.is_authentic()
    assert reply.kind == "refusal"
    assert json.loads(reply.body) == {"kind": type(error).__name__, "message": str(error)}
    assert journal.events == [
        {
            "event": "refused",
            "kind": "share",
            "sender": fingerprint(rig.ALICE.public_key),
            "reason": str(error),
            "status": status,
        }
    ]


def test_a_limit_may_refuse_a_kind(rig: Any) -> None:
    def limit(kind: str) -> int:
        raise UsageError(f"There is no message of kind {kind}.")

    app = application(rig.BOB, rig.echo, limit, rig.Journal())
    assert asyncio.run(post(rig, app, rig.request()))[0] == 400


def test_faults_are_opaque_and_logged_without_their_words(rig: Any) -> None:
    async def leak(message: Message) -> Message:
        raise RuntimeError("the share is 0xdeadbeef")

    app, journal = app_of(rig, leak)
    status, reply = asyncio.run(post(rig, app, rig.request()))
    assert status == 500
    assert json.loads(reply.body)["message"].startswith("An internal fault")
    assert journal.events[0]["error"] == "RuntimeError"
    assert str(journal.events[0]["at"]).startswith("leak:")
    assert "deadbeef" not in f"{journal.events}{reply.body!r}"


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from([b"study", b"round", b"sender", b"recipient", b"kind", b"signature"]),
        st.binary(max_size=140),
        min_size=1,
    )
)
def test_odd_headers_are_refused_and_nothing_breaks(rig: Any, odd: dict[bytes, bytes]) -> None:
    request = rig.request()
    headers = {**dict(request.to_headers()), **{b"tacit-" + name: odd[name] for name in odd}}
    app, journal = app_of(rig)
    status, _, _ = asyncio.run(rig.call(app, "/v1/share", headers.items(), [b"body"]))
    assert status in {400, 401, 422}
    assert journal.events[0]["event"] == "refused"


def test_insecure_is_for_this_machine_only(rig: Any) -> None:
    app, _ = app_of(rig)
    for host in ("0.0.0.0", "192.0.2.1", "tacit.example"):
        with pytest.raises(UsageError, match="leave insecure out"):
            Service(app, host, 0, rig.BOB, insecure=True)


def test_a_taken_port_is_an_error_and_not_the_end(rig: Any) -> None:
    async def main() -> None:
        async with rig.site() as site:
            app, _ = app_of(rig)
            second = Service(app, "127.0.0.1", site.service.port, rig.BOB)
            with pytest.raises(UsageError, match="cannot be listened on"):
                await second.start()
            await second.stop()

    asyncio.run(main())


def test_health(rig: Any) -> None:
    async def main() -> bytes:
        async with rig.site() as site:
            reader, writer = await site.connect()
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: bob\r\nconnection: close\r\n\r\n")
            answer: bytes = await rig.until_closed(reader)
            writer.close()
            return answer

    head, _, body = asyncio.run(main()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == b"ok"


def test_stopping_lets_answers_finish(rig: Any) -> None:
    async def main() -> Message:
        begun, finish = asyncio.Event(), asyncio.Event()

        async def slow(message: Message) -> Message:
            begun.set()
            await finish.wait()
            return message.reply("late")

        async with rig.site(slow) as site, rig.client() as client:
            asking = asyncio.create_task(client.ask(site.peer(), "share", 1))
            await begun.wait()
            stopping = asyncio.create_task(site.service.stop())
            finish.set()
            reply: Message = await asking
            await stopping
            return reply

    assert asyncio.run(main()).kind == "late"


def test_there_is_no_port_before_the_start(rig: Any) -> None:
    app, _ = app_of(rig)
    with pytest.raises(UsageError, match=r"before start\(\)"):
        _ = Service(app, "127.0.0.1", 0, rig.BOB, insecure=True).port
