"""Runs a server: feeds its state machine from the network, and nothing else."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tacit.channels.federation.server import Server
from tacit.channels.federation.server_store import ServerStore
from tacit.channels.roles.envelopes import letter_of
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter
from tacit.channels.studies.study import Study
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.errors import InputError, TacitError
from tacit.programs.states import state_bytes
from tacit.wire.message import Message
from tacit.wire.service import Service, application

__all__ = ["Desk", "ServerService"]

SMALL = 4096  # bytes of a message that carries next to nothing
GROWTH = 4  # states may grow from round to round, but not without end


class Desk:
    """One thread answers all letters, as many at a time as are waiting.

    They are durable together: while one batch waits for the disk, the next one gathers.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tacit-server")
        self._waiting: list[tuple[str, Letter, asyncio.Future[Letter]]] = []
        self._working: asyncio.Task[None] | None = None

    async def answer(self, sender: str, letter: Letter) -> Letter:
        future: asyncio.Future[Letter] = asyncio.get_running_loop().create_future()
        self._waiting.append((sender, letter, future))
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            asked = [(sender, letter) for sender, letter, _ in batch]
            try:
                replies = await loop.run_in_executor(self._thread, self._server.answer_all, asked)
            except Exception as error:  # the disk is full, say: nobody is told yes
                for _, _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, _, future), reply in zip(batch, replies, strict=True):
                if future.done():
                    continue
                if isinstance(reply, TacitError):
                    future.set_exception(reply)
                else:
                    future.set_result(reply)
        self._working = None

    def close(self) -> None:
        self._thread.shutdown()


class ServerService:
    """A server of one study on a port."""

    def __init__(
        self,
        study: Study,
        key: SigningKey,
        folder: Path,
        host: str,
        port: int,
        tell: Tell,
        insecure: bool = False,
        unsafe_seed: str | None = None,
        patience: float = 30.0,
    ) -> None:
        place = study.server_place(key.public_key)
        self._study, self._tell = study, tell

        def seeded(number: int) -> Randomness:
            return SeededRandomness(f"{unsafe_seed} server {place} round {number}")

        self._store = ServerStore(folder / "server.db", study.digest)
        randomness = None if unsafe_seed is None else seeded
        self.server = Server(study, key, self._store, randomness, tell)
        self._desk = Desk(self.server)
        self._question_bytes = SMALL + 80 * len(study.holders) + 256 * len(study.servers)
        self._state_bytes = len(state_bytes(study.first_state()))
        app = application(key, self._answer, self._limit, tell, patience)
        self._service = Service(app, host, port, key, insecure, patience)
        self._finished = asyncio.Event()

    @property
    def port(self) -> int:
        return self._service.port

    async def start(self) -> None:
        await self._service.start()
        self._tell("listening", port=self.port)

    async def until_finished(self) -> None:
        """Until the aggregator says that the certificate is out."""
        if self.server.is_finished:
            self._finished.set()
        await self._finished.wait()

    async def stop(self) -> None:
        await self._service.stop()
        self._desk.close()
        self._store.close()

    async def _answer(self, message: Message) -> Message:
        letter = letter_of(message, self._study)
        reply = await self._desk.answer(message.sender, letter)
        if reply.kind == "finished":
            self._finished.set()
        return message.reply(reply.kind, reply.body)

    def _limit(self, kind: str) -> int:
        match kind:
            case "share":
                return SMALL + 8 * self.server.length
            case "open":
                return SMALL**2 + GROWTH * self._state_bytes
            case "seal" | "close":
                return self._question_bytes
            case "recall":
                return SMALL**2 + GROWTH * self._state_bytes + self._question_bytes
            case "present" | "attest" | "finish":
                return SMALL
        raise InputError(f"a server does not know how to {kind[:20]}.")
