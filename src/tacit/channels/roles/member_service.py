"""Runs a holder: carries its letters, with patience, until the model is here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from tacit.channels.roles.letters import Letter
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, TacitError, Unreachable
from tacit.privacy.certificate import Certificate
from tacit.wire.client import Client, Peer

__all__ = ["Member", "MemberService", "Ready"]

PAUSE = 0.2  # seconds before somebody who was not reached is tried again, doubled up to …
LONGEST_PAUSE = 5.0
PATIENCE = 3  # gathering deadlines without a word from the aggregator before we give up

Ready = Callable[[float], Awaitable[None]]


class Opened(NamedTuple):
    """A round that a reply tells of: how long it lasts, and whether we have not answered it yet."""

    seconds: float
    is_new: bool


class Member(Protocol):
    """A holder of a federation, or a party of a consortium."""

    @property
    def result(self) -> tuple[bytes, Certificate] | None: ...

    def tick(self) -> list[tuple[str, Letter]]: ...

    def told(self, to: str, asked: Letter, reply: Letter | TacitError) -> None: ...

    def give_up(self) -> None: ...

    def opened(self, reply: Letter) -> Opened | None: ...


class MemberService:
    """One holder in one study. `ready` waits for new records in an online study."""

    def __init__(
        self,
        study: Study,
        key: SigningKey,
        holder: Member,
        insecure: bool = False,
        ready: Ready | None = None,
    ) -> None:
        self._study, self._holder, self._ready = study, holder, ready
        self._client = Client(key, study.digest, insecure)
        parties = (*study.servers, study.aggregator)
        self._peers = {p.key: Peer(p.name, p.address, p.key) for p in parties}
        self._now = asyncio.get_running_loop().time
        self._round_ends = self._heard = self._now()
        self._pause = PAUSE

    async def run(self) -> tuple[bytes, Certificate]:
        """Take part in every round; the model and its certificate, checked."""
        while self._holder.result is None:
            letters = self._holder.tick()
            replies = await asyncio.gather(*(self._carried(to, letter) for to, letter in letters))
            for (to, letter), reply in zip(letters, replies, strict=True):
                # Mapping takes a while: connections are kept alive meanwhile.
                await asyncio.to_thread(self._holder.told, to, letter, reply)
        return self._holder.result

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _carried(self, to: str, letter: Letter) -> Letter | TacitError:
        try:
            said = await self._client.ask(self._peers[to], letter.kind, letter.round, letter.body)
            reply = Letter(said.kind, said.round, said.body)
            self._pause, self._heard = PAUSE, self._now()
        except (Unreachable, CheckFailed) as error:
            await self._bear(error)
            return error
        except TacitError as error:
            return error
        opened = self._holder.opened(reply)
        if opened is not None:
            self._round_ends = self._now() + opened.seconds
            if self._ready is not None and opened.is_new:
                await self._ready(opened.seconds)
        return reply

    async def _bear(self, error: TacitError) -> None:
        """Wait a little before the next try; a lost round is given up, a lost study ends."""
        if self._now() > self._round_ends:
            self._holder.give_up()
        if self._now() - self._heard > PATIENCE * self._study.deadlines.gather:
            raise error
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


async def say_goodbye(study: Study, key: SigningKey, insecure: bool = False) -> None:
    """Tell the centre of the study that we leave for good."""
    client = Client(key, study.digest, insecure)
    centre = study.aggregator
    try:
        await client.ask(Peer(centre.name, centre.address, centre.key), "leave", 0)
    finally:
        await client.aclose()
