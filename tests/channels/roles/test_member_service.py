"""A holder that is busy with something else hears all the same that its study has stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import Event
from typing import Any, NamedTuple

import pytest

from tacit.channels.federation.local import local_study
from tacit.channels.roles import member_service
from tacit.channels.roles.letters import Letter, write
from tacit.channels.roles.member_service import MemberService, Opened
from tacit.channels.roles.standing import Standing, Statement
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.data import Schema
from tacit.errors import InputError, Refused, StudyStopped, TacitError, Unreachable
from tacit.privacy import Promise
from tacit.programs.registry import program_named

KEYS = [SigningKey.generate() for _ in range(3)]
SCHEMA = Schema.from_dict({"columns": {"x": {"type": "number", "bounds": [0, 1]}}})
STUDY = local_study(program_named("pca"), 2, SCHEMA, Promise(1.0), KEYS)
CENTRE, SERVER = STUDY.aggregator.key, STUDY.servers[0].key
GOES_ON = Standing("collecting", 1, 1, ["holder-1"], 60.0)


class Reply(NamedTuple):
    kind: str
    round: int
    body: bytes


class Client:
    """Gives every kind of question its answers, one after another, the last for ever."""

    def __init__(self, answers: dict[str, list[Letter | TacitError]]) -> None:
        self._answers: dict[str, Iterator[Letter | TacitError]] = {
            kind: iter([*given, *[given[-1]] * 1000]) for kind, given in answers.items()
        }
        self.asked: list[str] = []

    async def ask(self, peer: Any, kind: str, number: int, body: bytes = b"") -> Reply:
        self.asked.append(kind)
        answer = next(self._answers[kind])
        if isinstance(answer, TacitError):
            raise answer
        return Reply(answer.kind, answer.round, answer.body)


class Member:
    """Asks for its round, or sends a share, for ever; what it is told, it raises if it must."""

    result = None

    def __init__(self, to: str = CENTRE, kind: str = "ask") -> None:
        self.to, self.kind, self.told_of = to, kind, list[str]()

    def tick(self) -> list[tuple[str, Letter]]:
        return [(self.to, Letter(self.kind, 1))]

    def told(self, to: str, asked: Letter, reply: Letter | TacitError) -> None:
        self.told_of.append(reply.kind if isinstance(reply, Letter) else "error")

    def give_up(self) -> None: ...

    def opened(self, reply: Letter) -> Opened | None:
        return Opened(1e9, True) if reply.kind == "round" else None


async def for_ever(seconds: float) -> None:
    await asyncio.Event().wait()


def run(
    member: Member, client: Client, monkeypatch: pytest.MonkeyPatch
) -> tuple[TacitError, list[str]]:
    """What it ends with, and what its people were told; no clock is waited for."""
    events: list[str] = []
    sleep = asyncio.sleep

    async def virtual(seconds: float) -> None:
        if seconds == member_service.POLL:
            await sleep(0)
        else:  # whoever pauses between tries does so for as long as the test lasts
            await asyncio.Event().wait()

    async def whole() -> None:
        service = MemberService(
            STUDY, KEYS[0], member, True, for_ever, lambda event, **more: events.append(event)
        )
        await service.aclose()
        service._client = client  # type: ignore[assignment]
        # As if each look at the clock were an interval later.
        times = iter(range(0, 10**9, 20))
        service._now = lambda: float(next(times))
        service._centre_heard = service._heard = service._round_ends = -20.0
        await service.run()

    monkeypatch.setattr(member_service.asyncio, "sleep", virtual)
    with pytest.raises(TacitError) as left:
        asyncio.run(whole())
    return left.value, events


def stopped(study: Study = STUDY) -> Letter:
    error = Refused("the sum could reach 2^63.")
    statement = Statement.of(KEYS[0], study, 1, "open", error)
    body = Standing("stopped", 1, 1, reason="x", kind="StudyStopped", statement=statement)
    return Letter("status", 0, write(body))


def letters(*standings: Standing) -> list[Letter | TacitError]:
    return [Letter("status", 0, write(standing)) for standing in standings]


def test_a_holder_that_waits_for_its_own_records_hears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(
        {"ask": [Letter("round", 1)], "status": [*letters(GOES_ON, GOES_ON), stopped()]}
    )
    member = Member()
    error, _ = run(member, client, monkeypatch)
    assert isinstance(error, StudyStopped)
    assert "could reach 2^63" in str(error)
    assert client.asked.count("status") == 3
    assert member.told_of == []  # the round was never answered


def test_a_holder_that_tries_a_server_in_vain_hears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client({"share": [Unreachable("away.")], "status": [*letters(GOES_ON), stopped()]})
    error, events = run(Member(SERVER, "share"), client, monkeypatch)
    assert isinstance(error, StudyStopped)
    assert events == ["away"]


@pytest.mark.parametrize(
    ("kind", "expected"), [("Unreachable", Unreachable), ("CheckFailed", TacitError)]
)
def test_the_centres_own_word_is_heard_too(
    kind: str, expected: type[TacitError], monkeypatch: pytest.MonkeyPatch
) -> None:
    gave_up = letters(Standing("stopped", 1, 1, reason="too few came.", kind=kind))
    client = Client({"ask": [Letter("round", 1)], "status": gave_up})
    error, _ = run(Member(), client, monkeypatch)
    assert isinstance(error, expected)
    assert "too few came." in str(error)


def test_a_centre_that_is_away_is_told_of_once_and_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client({"ask": [Letter("round", 1)], "status": [Unreachable("nobody answers.")]})
    monkeypatch.setattr(member_service, "PATIENCE", 1000 / STUDY.deadlines.gather)
    error, events = run(Member(), client, monkeypatch)
    assert str(error) == "nobody answers."
    assert events == ["away"]
    assert 3 < client.asked.count("status") < 100


def test_a_centre_that_tells_nothing_is_none_the_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    odd: list[Letter | TacitError] = [
        InputError("an aggregator does not know how to status."),
        Letter("status", 0, b"no standing"),
        stopped(),
    ]
    client = Client({"ask": [Letter("round", 1)], "status": odd})
    error, _ = run(Member(), client, monkeypatch)
    assert isinstance(error, StudyStopped)


def test_what_is_being_made_of_records_is_finished_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares and what they were made of are noted together, also while the study ends."""
    begun, heard, finished = Event(), Event(), list[str]()

    class Late(Client):
        async def ask(self, peer: Any, kind: str, number: int, body: bytes = b"") -> Reply:
            if kind == "status":
                await asyncio.to_thread(begun.wait)
                heard.set()
            return await super().ask(peer, kind, number, body)

    class Slow(Member):
        def told(self, to: str, asked: Letter, reply: Letter | TacitError) -> None:
            begun.set()
            heard.wait()  # the study stops in the midst of this
            finished.append("noted")

    client = Late({"ask": [Letter("wait", 1)], "status": [stopped()]})
    error, _ = run(Slow(), client, monkeypatch)
    assert isinstance(error, StudyStopped)
    assert finished == ["noted"]
