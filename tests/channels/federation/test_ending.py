"""Studies end: whoever waits knows for whom and how long, and a refusal reaches everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.channels.federation.aggregator import ODD_ANSWERS, Aggregator
from tacit.channels.federation.aggregator_state import PATIENCE
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.holder import Holder
from tacit.channels.federation.journal import Journal
from tacit.channels.federation.local import local_study
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.phases import Phase
from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.letters import Letter, read, write
from tacit.channels.roles.standing import Refusal, Standing, Statement, stopped_by
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import Deadlines, Study, TakePart
from tacit.crypto.signing import SigningKey
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import (
    CheckFailed,
    InputError,
    Refused,
    StudyStopped,
    TacitError,
    Unreachable,
    UsageError,
)
from tacit.privacy.promise import Promise
from tacit.programs.kmeans import KMeans

SCHEMA = Schema(columns=tuple(Column(name=n, type="number", bounds=(0, 1)) for n in "xy"))
KEYS = [SigningKey.generate() for _ in range(3)]
HOLDERS = 3


class Scene:
    """All roles of a small study, on a clock that is moved by hand."""

    def __init__(self) -> None:
        plain = local_study(KMeans(clusters=2), HOLDERS, SCHEMA, Promise(1.0, 1e-6), KEYS)
        self.study: Study = msgspec.structs.replace(
            plain,
            take_part=TakePart(minimum=2, maximum=HOLDERS, records=100),
            deadlines=Deadlines(gather=60.0, round=30.0),
        )
        self.now = 0.0
        self.journal = Journal(MEMORY, self.study.digest)
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.core = self.aggregator()
        self.servers = {
            key.public_key: Server(self.study, key, ServerStore(MEMORY, self.study.digest))
            for key in KEYS[:2]
        }
        self.holders = [self.holder(place) for place in range(HOLDERS)]
        self.errors: dict[int, TacitError] = {}

    def aggregator(self) -> Aggregator:
        return Aggregator(self.study, KEYS[2], self.journal, self.now)

    def holder(self, place: int) -> Holder:
        records = ArrayRecords(np.random.default_rng(place).random((20, 2)))
        return Holder(
            self.study,
            self.study.holders[place].key,
            Outbox(MEMORY, self.study.digest),
            from_records(self.study, records),
            NoBudget(),
            tell=lambda event, **fields: self.told.append((event, fields)),
        )

    def step(self, seconds: float = 1.0, holders: int = HOLDERS) -> None:
        """Everybody asks and answers once."""
        self.now += seconds
        for server, letter in self.core.tick(self.now):
            (reply,) = self.servers[server].answer_all([(KEYS[2].public_key, letter)])
            self.core.told(server, letter, reply, self.now)
        for place in range(holders):
            if place not in self.errors:
                self.ask(place)

    def ask(self, place: int) -> None:
        holder = self.holders[place]
        for to, letter in holder.tick():
            reply: Letter | TacitError
            if to in self.servers:
                (reply,) = self.servers[to].answer_all([(holder.key, letter)])
            else:
                reply = self.core.answer(holder.key, letter, self.now)
            try:
                holder.told(to, letter, reply)
            except TacitError as error:
                self.errors[place] = error

    def until(self, over: Callable[[], bool]) -> None:
        for _ in range(500):
            if over():
                return
            self.step()
        raise AssertionError("it goes on for ever")


@pytest.fixture
def scene() -> Scene:
    return Scene()


def refuse_round(monkeypatch: pytest.MonkeyPatch, number: int, error: TacitError) -> None:
    """Servers that will not open this round, whoever asks."""
    opened = Server._begin

    def begin(self: Server, asked: int, state: bytes) -> Any:
        if asked == number:
            raise error
        return opened(self, asked, state)

    monkeypatch.setattr(Server, "_begin", begin)


@pytest.mark.parametrize("kind", [Refused, UsageError, InputError, CheckFailed])
def test_a_refusal_ends_the_study_for_everybody(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, kind: type[TacitError]
) -> None:
    """Whatever the server calls it: it was asked for ever, when it did not say Refused."""
    refuse_round(monkeypatch, 3, kind("a sum could reach 2^70."))
    scene.until(lambda: len(scene.errors) == HOLDERS)
    assert isinstance(scene.core.failure, StudyStopped)
    for error in scene.errors.values():
        assert isinstance(error, StudyStopped)
        assert error.exit_code == 4
        assert error.final
        assert "refused to open round 3, and has signed why: a sum could reach 2^70." in str(error)
    scene.step()  # the servers are let go, and nobody is asked anything more
    assert scene.core.tick(scene.now + 1e6) == []
    assert all(server.is_finished for server in scene.servers.values())


def test_all_holders_hear_of_it_at_their_next_question(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_round(monkeypatch, 2, UsageError("no."))
    scene.until(lambda: scene.core.failure is not None)
    scene.errors.clear()
    for place in range(HOLDERS):
        scene.ask(place)
    assert len(scene.errors) == HOLDERS


def test_it_stays_ended_after_a_start(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_round(monkeypatch, 2, UsageError("no."))
    scene.until(lambda: scene.core.failure is not None)
    again = scene.aggregator()
    assert isinstance(again.failure, StudyStopped)
    assert str(again.failure) == str(scene.core.failure)
    holder = scene.study.holders[0].key
    told = again.answer(holder, Letter("ask", 0), scene.now)
    assert told.kind == "stopped"
    assert isinstance(stopped_by(read(Standing, told.body), scene.study), StudyStopped)


def test_an_aggregator_cannot_invent_a_servers_refusal(scene: Scene) -> None:
    study = scene.study
    forged = Refusal(KEYS[0].public_key, 3, "open", "no.").signed(KEYS[2], study.digest)
    other = Refusal(KEYS[2].public_key, 3, "open", "no.").signed(KEYS[2], study.digest)
    elsewhere = Refusal(KEYS[0].public_key, 3, "open", "no.").signed(KEYS[0], "0" * 64)
    for refusal in (forged, other, elsewhere):
        text = msgspec.json.encode(refusal).decode()
        error = stopped_by(Standing("stopped", reason="so.", statement=text), study)
        assert not error.final
    error = stopped_by(Standing("stopped", reason="so.", statement="{}"), study)
    assert isinstance(error, Refused)
    assert not error.final
    true = Statement.of(KEYS[0], study, 3, "open", UsageError("no."))
    assert stopped_by(Standing("stopped", statement=true), study).final


def test_a_change_of_a_statement_shows(scene: Scene) -> None:
    text = Statement.of(KEYS[0], scene.study, 3, "open", UsageError("no."))
    with pytest.raises(CheckFailed, match="has not signed"):
        Statement.read(text.replace("no.", "yes."), scene.study)


def test_useless_answers_are_not_asked_for_without_end(scene: Scene) -> None:
    scene.until(lambda: scene.core.phase is Phase.OPENING)
    asked = 0
    while scene.core.failure is None:
        for server, letter in scene.core.tick(scene.now):
            asked += 1
            scene.core.told(server, letter, InputError("the body did not arrive."), scene.now)
    assert asked <= 2 * ODD_ANSWERS
    assert isinstance(scene.core.failure, CheckFailed)


def test_a_server_that_is_away_is_waited_for_but_not_without_end(scene: Scene) -> None:
    scene.until(lambda: scene.core.phase is Phase.OPENING)
    began, waited = scene.now, 0
    while scene.core.failure is None:
        scene.now += 10.0
        waited += 1
        assert waited < 100
        for server, letter in scene.core.tick(scene.now):
            scene.core.told(server, letter, Unreachable("away"), scene.now)
    assert scene.now - began == pytest.approx(PATIENCE * 60.0, abs=20)
    assert isinstance(scene.core.failure, Unreachable)
    assert scene.study.servers[0].name in str(scene.core.failure)
    again = scene.aggregator()  # it goes on when they are back
    assert again.failure is None
    assert again.phase is Phase.OPENING


def test_whoever_waits_is_told_for_whom_and_how_long(scene: Scene) -> None:
    scene.step(10.0, holders=1)
    names = [holder.name for holder in scene.study.holders]
    event, fields = scene.told[-1]
    assert event == "waiting"
    assert fields["phase"] == "gathering"
    assert fields["awaited"] == ", ".join(names[1:])
    assert "50 s" in fields["limit"]
    count = len(scene.told)
    scene.step(1.0, holders=1)
    assert len(scene.told) == count  # nothing new: it is not told again
    scene.step(1.0, holders=2)
    assert scene.told[-1][1]["awaited"] == names[2]


def test_a_round_waits_for_those_who_have_not_sent(scene: Scene) -> None:
    scene.until(lambda: scene.core.phase is Phase.COLLECTING)
    while not scene.core._holders.sent:
        scene.step(0.1, holders=1)
    standing = scene.core.standing(scene.now)
    names = [holder.name for holder in scene.study.holders]
    assert (standing.phase, standing.round) == ("collecting", 1)
    assert standing.awaited == names[1:]
    assert standing.seconds is not None
    assert 0 < standing.seconds <= 30


def test_who_gave_up_gathering_says_so_at_the_next_question(scene: Scene) -> None:
    scene.step(1.0, holders=1)
    scene.step(60.0, holders=1)
    error = scene.errors[0]
    assert isinstance(error, Unreachable)
    assert not error.final  # what was reserved is kept: started again, it goes on
    assert "1 holder(s) joined within 60 seconds; the study needs 2" in str(error)


def test_every_party_may_ask_where_it_stands_and_nobody_else(scene: Scene) -> None:
    study = scene.study
    parties = [*study.holders, *study.servers, study.aggregator]
    for party in parties:
        reply = scene.core.answer(party.key, Letter("status", 0), 5.0)
        assert reply.kind == "status"
        standing = read(Standing, reply.body)
        assert standing.phase == "gathering"
        assert standing.seconds == 55.0
    assert scene.core.waiting_for == set()  # asking does not join
    with pytest.raises(Refused):
        scene.core.answer("f" * 64, Letter("status", 0), 5.0)


def test_an_old_aggregators_wait_is_understood(scene: Scene) -> None:
    holder = scene.holders[0]
    ((to, letter),) = holder.tick()
    holder.told(to, letter, Letter("wait", 0))
    assert scene.told == []


def test_statements_travel_with_refusals() -> None:
    from tacit.wire.client import Peer, _rebuilt
    from tacit.wire.message import Message
    from tacit.wire.service import _refusal

    error = UsageError("no.")
    error.statement = "signed"
    head = Message("0" * 64, 1, KEYS[0].public_key, KEYS[1].public_key, "open", b"")
    body = _refusal(head, error).body
    peer = Peer("north", "https://north:1", KEYS[0].public_key)
    rebuilt = _rebuilt(peer, body)
    assert isinstance(rebuilt, UsageError)
    assert rebuilt.statement == "signed"
    assert _rebuilt(peer, _refusal(head, Refused("no.")).body).statement == ""
    assert write(Standing("over")) == write(Standing(phase="over"))
