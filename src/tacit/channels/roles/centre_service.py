"""Runs the centre of a study: asks servers what it wants to know, and answers holders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Protocol

from tacit.channels.roles.envelopes import letter_of
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter
from tacit.channels.roles.store import Store
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.errors import Refused, TacitError
from tacit.wire.client import Client, Peer
from tacit.wire.message import Message
from tacit.wire.service import Service, application

__all__ = ["Centre", "CentreService", "Make"]

FAREWELL = 2.0  # seconds that servers have to hear that a study has stopped
HOLD = 15.0  # seconds that a holder's question waits for news before it is answered with "wait"
PAUSE = 0.25  # seconds before a server that failed is asked again, doubled up to …
LONGEST_PAUSE = 5.0


class Centre(Protocol):
    """What stands in the middle of a study: an aggregator, or the curator of a consortium."""

    failure: TacitError | None
    deadline: float | None

    @property
    def is_over(self) -> bool: ...

    @property
    def result(self) -> tuple[bytes, str] | None: ...

    @property
    def waiting_for(self) -> set[str]: ...

    @property
    def mark(self) -> Hashable:
        """Changes whenever there may be news for holders."""

    def answer(self, sender: str, letter: Letter, now: float) -> Letter: ...

    def tick(self, now: float) -> list[tuple[str, Letter]]: ...

    def told(self, server: str, asked: Letter, reply: Letter | TacitError, now: float) -> None: ...

    def limit(self, kind: str) -> int:
        """The longest body of a letter of this kind, in bytes; InputError for unknown kinds."""


Make = Callable[[Study, SigningKey, Path, float, Tell], tuple[Centre, Store]]


class CentreService:
    """The centre of one study on a port; `make` says which."""

    def __init__(
        self,
        study: Study,
        key: SigningKey,
        folder: Path,
        host: str,
        port: int,
        tell: Tell,
        insecure: bool = False,
        patience: float = 30.0,
        *,
        make: Make,
    ) -> None:
        if key.public_key != study.aggregator.key:
            raise Refused(
                f"this key is not that of the aggregator of study {study.name}: see which you have "
                "with `tacit keys show`."
            )
        self._study, self._tell = study, tell
        self._now = asyncio.get_running_loop().time
        self.aggregator, self._journal = make(study, key, folder, self._now(), tell)
        self._mark: Hashable = self.aggregator.mark
        self._client = Client(key, study.digest, insecure, timeout=study.deadlines.round)
        self._peers = {s.key: Peer(s.name, s.address, s.key) for s in study.servers}
        self._pauses = dict.fromkeys(self._peers, PAUSE)
        app = application(key, self._answer, self.aggregator.limit, tell, patience)
        self._service = Service(app, host, port, key, insecure, patience)
        self._moved = asyncio.Event()  # something came in: see what follows
        self._news = asyncio.Event()  # something is there for holders; a new one for each news
        self._asking: set[asyncio.Task[None]] = set()
        self._fetched: set[str] = set()
        self._fault: BaseException | None = None

    @property
    def port(self) -> int:
        return self._service.port

    async def start(self) -> None:
        await self._service.start()
        self._tell("listening", port=self.port)

    async def run(self) -> tuple[bytes, str]:
        """All rounds, to the model and its certificate; raises what stopped the study."""
        core = self.aggregator
        while not core.is_over:
            if core.failure is not None:
                raise core.failure
            if self._fault is not None:
                raise self._fault
            self._move()
            await self._wait()
        assert core.result is not None  # it is over
        return core.result

    async def farewell(self, seconds: float) -> None:
        """Stay until every holder that is still there has fetched the model, or has heard that
        there will be none and why; or for so long."""
        self._move()  # a study that was stopped lets its servers go
        try:
            async with asyncio.timeout(seconds):
                while not self.aggregator.waiting_for <= self._fetched:
                    await self._moved.wait()
                    self._moved.clear()
        except TimeoutError:
            missing = len(self.aggregator.waiting_for - self._fetched)
            self._tell("holders without the model", holders=missing)
        if self._asking and self.aggregator.failure is not None:
            await asyncio.wait(self._asking, timeout=min(FAREWELL, seconds))

    async def stop(self) -> None:
        for task in self._asking:
            task.cancel()
        await self._service.stop()
        await self._client.aclose()
        self._journal.close()

    def _move(self) -> None:
        for server, letter in self.aggregator.tick(self._now()):
            task = asyncio.create_task(self._ask(server, letter))
            self._asking.add(task)
            task.add_done_callback(self._asked)
        self._tell_news()

    def _tell_news(self) -> None:
        """Wake whoever waits, if something has changed."""
        if self.aggregator.mark != self._mark:
            self._mark = self.aggregator.mark
            self._moved.set()
            self._news.set()
            self._news = asyncio.Event()

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._fault = task.exception()
            self._moved.set()

    async def _wait(self) -> None:
        """Until something came in, or a deadline passes."""
        deadline = self.aggregator.deadline
        left = None if deadline is None else max(0.0, deadline - self._now()) + 0.001
        try:
            async with asyncio.timeout(left):
                await self._moved.wait()
        except TimeoutError:
            pass
        self._moved.clear()

    async def _ask(self, server: str, letter: Letter) -> None:
        peer = self._peers[server]
        reply: Letter | TacitError
        try:
            said = await self._client.ask(peer, letter.kind, letter.round, letter.body)
            reply = Letter(said.kind, said.round, said.body)
            self._pauses[server] = PAUSE
        except TacitError as error:
            reply = error
            await asyncio.sleep(self._pauses[server])
            self._pauses[server] = min(2 * self._pauses[server], LONGEST_PAUSE)
        self.aggregator.told(server, letter, reply, self._now())
        self._moved.set()
        self._tell_news()

    # ── holders ──

    async def _answer(self, message: Message) -> Message:
        letter = letter_of(message, self._study)
        reply = self._answered(message.sender, letter)
        if reply.kind == "wait":
            reply = await self._held(message.sender, letter)
        if reply.kind in ("model", "stopped"):
            self._fetched.add(message.sender)
            self._moved.set()
        return message.reply(reply.kind, reply.body)

    def _answered(self, sender: str, letter: Letter) -> Letter:
        reply = self.aggregator.answer(sender, letter, self._now())
        self._moved.set()
        self._tell_news()
        return reply

    async def _held(self, sender: str, letter: Letter) -> Letter:
        """Holders do not ask every second: their question waits here until there is news."""
        until = self._now() + HOLD
        while True:
            news = self._news
            try:
                async with asyncio.timeout_at(until):
                    await news.wait()
            except TimeoutError:
                return self._answered(sender, letter)
            reply = self._answered(sender, letter)
            if reply.kind != "wait":
                return reply
