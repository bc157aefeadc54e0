"""A whole study as services in one event loop, TLS and all: for peers that break the rules.

A round can be held half done (h3's share is missing) for as long as a test wants to attack it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from federation_processes import (
    HOLDERS,
    SERVERS,
    Event,
    expected_model,
    made_up_records,
    matches,
    reserved,
    seed_of,
    written,
)

from tacit.channels.federation.aggregator_service import aggregator
from tacit.channels.federation.contribution import Sum, from_records
from tacit.channels.federation.holder import Contribute, Holder
from tacit.channels.federation.outbox import Outbox
from tacit.channels.federation.server_service import ServerService
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.centre_service import CentreService
from tacit.channels.roles.events import Events
from tacit.channels.roles.member_service import MemberService
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.data.records import TableRecords
from tacit.errors import TacitError, Unreachable
from tacit.privacy.certificate import Certificate
from tacit.programs.program import Query
from tacit.wire.client import Client, Peer
from tacit.wire.message import Message
from tacit.wire.tls import pinned_context

PATIENCE = 120.0  # seconds until a test gives up
SHORT = 2.0  # seconds that services here give a stranger to say what it wants
TRIES = 20  # to reach a service that cuts slow strangers off
ROUNDS = 5
HELD = 3  # the round that waits for h3
EVE = SigningKey.generate()

Made = dict[tuple[str, int], dict[str, bytes]]


class Told:
    """What a role told, in its events file as always and in a list that can be waited on."""

    def __init__(self, folder: Path, role: str) -> None:
        self.events: list[Event] = []
        self._loop, self._new = asyncio.get_running_loop(), asyncio.Event()
        self.file = folder / "events.jsonl"
        self._events = Events(folder, role, "faults", self._add)

    def __call__(self, event: str, **fields: object) -> None:
        self._events(event, **fields)

    def _add(self, line: Event) -> None:
        self.events.append(line)
        self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._new.set()
        self._new = asyncio.Event()

    def found(self, event: str, reason: str = "", **fields: object) -> list[Event]:
        chosen = [e for e in list(self.events) if matches(e, event, fields)]
        return [e for e in chosen if reason in str(e.get("reason", ""))]

    async def until(
        self, event: str, reason: str = "", count: int = 1, **fields: object
    ) -> list[Event]:
        """Wait until such an event, whose reason has these words, was told `count` times."""
        async with asyncio.timeout(PATIENCE):
            while len(found := self.found(event, reason, **fields)) < count:
                new = self._new
                if len(self.found(event, reason, **fields)) < count:
                    await new.wait()
        return found

    async def next(self) -> None:
        await self._new.wait()

    def close(self) -> None:
        self._events.close()


class KeptOutbox(Outbox):
    """The real outbox; the test remembers every share that was ever in it."""

    holder: str
    made: Made

    def keep(self, number: int, state: bytes, bodies: Any, *more: Any, **named: Any) -> None:
        self.made[self.holder, number] = dict(bodies)
        super().keep(number, state, bodies, *more, **named)


class Scene:
    """The roles, what they told, and keys for whoever wants to pretend."""

    def __init__(self, root: Path, kinds: dict[str, type[ServerService]]) -> None:
        self.root = root
        names = (*SERVERS, "aggregator", *HOLDERS)
        self.keys = {name: SigningKey.generate() for name in names}
        self._ports = [reserved() for _ in range(3)]
        self.study: Study = written(self.keys, self._ports, ROUNDS, 60.0, 2, None)
        self.told = {name: Told(root / name, name) for name in names}
        self.release = threading.Event()
        self.made: Made = {}
        self.servers = {name: self._server(name, kinds) for name in SERVERS}
        port = self._ports[2].getsockname()[1]
        self.aggregator = CentreService(
            self.study,
            self.keys["aggregator"],
            root / "aggregator",
            "127.0.0.1",
            port,
            self.told["aggregator"],
            make=aggregator,
        )
        self._holders: dict[str, MemberService] = {}
        self._outboxes: list[Outbox] = []
        self._tasks: list[asyncio.Task[Any]] = []

    def _server(self, name: str, kinds: dict[str, type[ServerService]]) -> ServerService:
        return kinds.get(name, ServerService)(
            self.study,
            self.keys[name],
            self.root / name,
            "127.0.0.1",
            self._ports[SERVERS.index(name)].getsockname()[1],
            self.told[name],
            unsafe_seed=seed_of(1),
            patience=SHORT,
        )

    def _holder(self, name: str, hold: bool) -> MemberService:
        outbox = KeptOutbox(self.root / name / "outbox.db", self.study.digest)
        outbox.holder, outbox.made = name, self.made
        contribute = self._contribution(name)
        if hold:
            contribute = held_back(contribute, self.release)
        key = self.keys[name]
        holder = Holder(
            self.study, key.public_key, outbox, contribute, NoBudget(), tell=self.told[name]
        )
        self._outboxes.append(outbox)
        return MemberService(self.study, key, holder)

    def _contribution(self, name: str) -> Contribute:
        columns = dict(zip("xy", made_up_records(name).T, strict=True))
        encoder = self.study.program().encoder(self.study.schema)
        return from_records(self.study, TableRecords(pyarrow.table(columns), encoder))

    # ── running ──

    async def start_servers(self) -> None:
        for server in self.servers.values():
            await server.start()

    async def start(self, hold: bool) -> None:
        await self.start_servers()
        await self.aggregator.start()
        self._tasks.append(asyncio.create_task(self.aggregator.run()))
        for name in HOLDERS:
            self._holders[name] = self._holder(name, hold and name == "h3")
            self._tasks.append(asyncio.create_task(self._holders[name].run()))
        if hold:
            for server in SERVERS:
                await self.told[server].until("share received", count=2, round=HELD)

    async def finish(self) -> None:
        """The study goes on, and everybody ends with the right model."""
        self.release.set()
        async with asyncio.timeout(PATIENCE):
            (model, text), *others = await asyncio.gather(*self._tasks)
        everything = np.concatenate([made_up_records(holder) for holder in HOLDERS])
        assert model == expected_model(self.study, [everything] * ROUNDS)
        certificate = Certificate.from_json(text)
        assert [other == (model, certificate) for other in others] == [True] * 3
        assert certificate.participation is not None
        assert certificate.participation.fewest == 3

    async def outcome(self) -> tuple[bytes, str]:
        """What the aggregator came to, or what stopped it."""
        async with asyncio.timeout(PATIENCE):
            found: tuple[bytes, str] = await self._tasks[0]
        return found

    async def close(self) -> None:
        self.release.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for holder in self._holders.values():
            await holder.aclose()
        await self.aggregator.stop()
        for server in self.servers.values():
            await server.stop()
        for outbox in self._outboxes:
            outbox.close()
        for told in self.told.values():
            told.close()
        for port in self._ports:
            port.close()

    # ── pretending ──

    def peer(self, server: str) -> Peer:
        found = self.study.servers[SERVERS.index(server)]
        return Peer(found.name, found.address, found.key)

    async def ask(
        self,
        server: str,
        key: SigningKey,
        kind: str,
        number: int,
        body: bytes = b"",
        study: str | None = None,
    ) -> Message | TacitError:
        """One message, signed with any key; its answer, or the refusal.

        A server that gives strangers `SHORT` cuts an honest one off as well when the machine is
        busy: like every role, we then ask again, a bounded number of times.
        """
        reply: Message | TacitError = Unreachable(f"{server} was not asked.")
        for _ in range(TRIES):
            client = Client(key, study or self.study.digest)
            try:
                return await client.ask(self.peer(server), kind, number, body)
            except TacitError as error:
                reply = error
            finally:
                await client.aclose()
            if not isinstance(reply, Unreachable):
                break
        return reply

    async def connect(self, server: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = self._ports[SERVERS.index(server)].getsockname()
        context = pinned_context(self.keys[server].public_key)
        return await asyncio.open_connection(*address, ssl=context)


def held_back(contribute: Contribute, release: threading.Event) -> Contribute:
    """The same sums; that of the held round waits."""

    def later(number: int, state: Any, query: Query) -> Sum:
        if number == HELD:
            assert release.wait(PATIENCE)
        return Sum(contribute(number, state, query).total)

    return later


@asynccontextmanager
async def scene(root: Path, **kinds: type[ServerService]) -> AsyncIterator[Scene]:
    """Roles that are made, and not started."""
    made = Scene(root, kinds)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def half_done(root: Path, **kinds: type[ServerService]) -> AsyncIterator[Scene]:
    """A running study whose round 3 lacks one share; after the attack it must end well."""
    async with scene(root, **kinds) as made:
        await made.start(hold=True)
        yield made
        await made.finish()


def lines(message: Message, extra: Iterable[bytes]) -> bytes:
    """A request's head as it goes over the connection."""
    head = [f"POST /v1/{message.kind} HTTP/1.1".encode(), b"host: server"]
    head += [name + b": " + value for name, value in message.to_headers()]
    return b"\r\n".join([*head, *extra]) + b"\r\n\r\n"


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """All that comes before the other side closes, however it does so."""
    received = b""
    try:
        async with asyncio.timeout(PATIENCE):
            while piece := await reader.read(65_536):
                received += piece
    except ConnectionError:
        pass
    return received
