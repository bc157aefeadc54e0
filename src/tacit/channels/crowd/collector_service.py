"""Runs a collector on a port: answers people and relays, and lets time pass."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tacit.channels.crowd.collector import Collector
from tacit.channels.crowd.collector_store import CollectorStore
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.secrets import Secrets
from tacit.channels.roles.envelopes import letter_of
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter
from tacit.crypto.signing import SigningKey
from tacit.errors import Refused
from tacit.wire.message import Message
from tacit.wire.service import Service, application

__all__ = ["CollectorService"]

STOPPED = 2.0  # seconds that a study which was stopped can still be asked about
HOLD = 20.0  # seconds that a question for news waits before it is answered with "wait"


class CollectorService:
    """The collector of one study. Its times are the system's, since a study outlives a process."""

    def __init__(
        self,
        proposal: Proposal,
        key: SigningKey,
        secrets: Secrets,
        folder: Path,
        host: str,
        port: int,
        tell: Tell,
        insecure: bool = False,
    ) -> None:
        if key.public_key != proposal.collector.key:
            raise Refused(
                f"this key is not that of the collector of {proposal.name}: see which you have "
                "with `tacit keys show`."
            )
        self._proposal, self._tell = proposal, tell
        self._store = CollectorStore(folder / "collector.db", proposal.digest)
        self.collector = Collector(proposal, secrets, self._store, time.time(), tell)
        app = application(key, self._answer, self.collector.limit, tell)
        self._service = Service(app, host, port, key, insecure)
        self._mark = self.collector.mark
        self._moved = asyncio.Event()  # something came in: see whether time does something
        self._news = asyncio.Event()  # for whoever waits; a new one for each news
        self._following: dict[str, int] = {}  # the mark of the last bulletin that each has read
        self._done: set[str] = set()  # who knows that it is over, and how

    @property
    def port(self) -> int:
        return self._service.port

    async def start(self) -> None:
        await self._service.start()
        self._tell("listening", port=self.port)

    async def run(self) -> int:
        """To the end of the study: how many reports were verified. Refused if it cannot be held."""
        collector = self.collector
        while not collector.is_over:
            collector.tick(time.time())
            self._spread()
            if collector.failure:
                await asyncio.sleep(STOPPED)  # everybody who asks meanwhile hears why
                raise Refused(f"the study was stopped: {collector.failure}.")
            if not collector.is_over:
                await self._wait(collector.deadline)
        return len(self._store.reports())

    async def farewell(self) -> None:
        """Stay until all people could see that their answers arrived, and the relays of the last
        wave that there is nothing left to pass on; or for one wave."""
        relays = {relay.key for relay in self._proposal.relays}
        last = {key for key in relays if self._following.get(key, 0) >= self.collector.mark - 1}
        everyone = last.union(self._store.members())
        try:
            async with asyncio.timeout(self._proposal.wave_seconds):
                while not everyone <= self._done:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            return

    async def stop(self) -> None:
        await self._service.stop()
        self._store.close()

    async def _wait(self, deadline: float | None) -> None:
        left = None if deadline is None else max(0.0, deadline - time.time()) + 0.001
        try:
            async with asyncio.timeout(left):
                await self._moved.wait()
        except TimeoutError:
            pass
        self._moved.clear()

    def _spread(self) -> None:
        """Wake whoever waits for news, if there is some."""
        if self.collector.mark != self._mark:
            self._mark = self.collector.mark
            self._moved.set()
            self._news.set()
            self._news = asyncio.Event()

    async def _answer(self, message: Message) -> Message:
        letter = letter_of(message, self._proposal)
        reply = self._answered(message.sender, letter)
        if reply.kind == "wait":
            try:
                async with asyncio.timeout(HOLD):
                    await self._news.wait()
            except TimeoutError:
                pass
            reply = self._answered(message.sender, letter)
        if reply.kind == "bulletin":
            self._following[message.sender] = self.collector.mark
        if self.collector.is_last(message.sender, letter):
            self._done.add(message.sender)
            self._moved.set()
        return message.reply(reply.kind, reply.body)

    def _answered(self, sender: str, letter: Letter) -> Letter:
        reply = self.collector.answer(sender, letter, time.time())
        self._spread()
        return reply
