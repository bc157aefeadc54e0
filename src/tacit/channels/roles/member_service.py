"""Runs a holder: carries its letters, with patience, until the model is here.

Whatever the holder waits for (its own new records, a server that is away), the centre is asked now
and then where the study stands: that it has stopped is heard within one interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, Protocol

from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read
from tacit.channels.roles.standing import Standing, stopped_by
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, TacitError, Unreachable
from tacit.privacy.certificate import Certificate
from tacit.wire.client import Client, Peer

__all__ = ["Member", "MemberService", "Ready"]

PAUSE = 0.2  # seconds before somebody who was not reached is tried again, doubled up to …
LONGEST_PAUSE = 5.0
POLL = 15.0  # seconds without a word from the centre before it is asked where the study stands
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
        tell: Tell = lambda event, **fields: None,
    ) -> None:
        self._study, self._holder, self._ready, self._tell = study, holder, ready, tell
        self._away: set[str] = set()  # whom we could not reach when we tried last
        self._client = Client(key, study.digest, insecure)
        parties = (*study.servers, study.aggregator)
        self._peers = {p.key: Peer(p.name, p.address, p.key) for p in parties}
        self._now = asyncio.get_running_loop().time
        self._round_ends = self._heard = self._centre_heard = self._now()
        self._pause = PAUSE

    async def run(self) -> tuple[bytes, Certificate]:
        """Take part in every round; the model and its certificate, checked."""
        listening = asyncio.ensure_future(self._listen())
        try:
            while self._holder.result is None:
                letters = self._holder.tick()
                replies = await self._all_carried(letters, listening)
                for (to, letter), reply in zip(letters, replies, strict=True):
                    # Mapping takes a while: connections are kept alive meanwhile.
                    await asyncio.to_thread(self._holder.told, to, letter, reply)
        finally:
            listening.cancel()
        return self._holder.result

    async def _all_carried(
        self, letters: list[tuple[str, Letter]], listening: asyncio.Future[NoReturn]
    ) -> list[Letter | TacitError]:
        """The replies; or what `_listen` raises, if it does so before. Nothing else is cut short:
        what is being made of records and noted is always finished."""
        carrying = asyncio.gather(*(self._carried(to, letter) for to, letter in letters))
        both: set[asyncio.Future[Any]] = {carrying, listening}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return await (listening if listening.done() else carrying)
        finally:
            carrying.cancel()  # if it goes on: nobody waits for it any more
            with suppress(asyncio.CancelledError, TacitError):
                await carrying

    async def _listen(self) -> NoReturn:
        """Raise what the study was stopped with, within one interval, whatever we wait for."""
        centre = self._study.aggregator.key
        while True:
            await asyncio.sleep(POLL)
            if self._now() - self._centre_heard < POLL:
                continue
            try:
                said = await self._client.ask(self._peers[centre], "status", 0)
                standing = read(Standing, said.body)
            except Unreachable as error:
                self._is_away(centre, error)
                self._check_patience(error)
                continue
            except TacitError:
                continue  # a centre that tells nobody: we ask it for rounds as ever
            self._hear(centre)
            if standing.phase == "stopped":
                raise stopped_by(standing, self._study)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _carried(self, to: str, letter: Letter) -> Letter | TacitError:
        try:
            said = await self._client.ask(self._peers[to], letter.kind, letter.round, letter.body)
            reply = Letter(said.kind, said.round, said.body)
            self._pause = PAUSE
            self._hear(to)
        except (Unreachable, CheckFailed) as error:
            self._is_away(to, error)
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

    def _is_away(self, to: str, error: TacitError) -> None:
        """Say at once that somebody cannot be reached, and how long we go on trying; but once."""
        if to not in self._away:
            self._away.add(to)
            left = PATIENCE * self._study.deadlines.gather - (self._now() - self._heard)
            name, left = self._peers[to].name, max(0.0, left)
            self._tell("away", name=name, reason=str(error), seconds=round(left))

    def _hear(self, to: str) -> None:
        self._heard = self._now()
        if to == self._study.aggregator.key:
            self._centre_heard = self._heard
        if to in self._away:
            self._away.discard(to)
            self._tell("back", name=self._peers[to].name)

    async def _bear(self, error: TacitError) -> None:
        """Wait a little before the next try; a lost round is given up, a lost study ends."""
        if self._now() > self._round_ends:
            self._holder.give_up()
        self._check_patience(error)
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _check_patience(self, error: TacitError) -> None:
        if self._now() - self._heard > PATIENCE * self._study.deadlines.gather:
            raise error


async def say_goodbye(study: Study, key: SigningKey, insecure: bool = False) -> None:
    """Tell the centre of the study that we leave for good."""
    client = Client(key, study.digest, insecure)
    centre = study.aggregator
    try:
        await client.ask(Peer(centre.name, centre.address, centre.key), "leave", 0)
    finally:
        await client.aclose()
