"""Runs a peer: answers others on a port, carries its errands, and lets time pass."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.errands import Errand
from tacit.channels.peers.letters import MOST_BYTES
from tacit.channels.peers.membership import Membership
from tacit.channels.peers.pact import Pact, pact_from_bytes
from tacit.channels.peers.peer import Peer
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, InputError, TacitError, Unreachable
from tacit.wire.client import Client
from tacit.wire.client import Peer as Contact
from tacit.wire.message import Message
from tacit.wire.service import Service, application

__all__ = ["INTRODUCTION", "PeerService", "fetched_pact"]

INTRODUCTION = "0" * 64  # what letters are about before one knows the network: its pact
KINDS = {"pact", "gossip", "models", "invite", "form", "begin", "off", "turn", "leave"}


async def fetched_pact(key: SigningKey, bootstrap: Contact, insecure: bool = False) -> Pact:
    """The pact of the network that this peer belongs to."""
    client = Client(key, INTRODUCTION, insecure)
    try:
        said = await client.ask(bootstrap, "pact", 0)
    finally:
        await client.aclose()
    return pact_from_bytes(said.body)


class PeerService:
    """One peer on a port. `make` builds it once the port, and so its address, is known."""

    def __init__(
        self,
        pact: Pact,
        key: SigningKey,
        host: str,
        port: int,
        tell: Tell,
        insecure: bool = False,
    ) -> None:
        self._pact, self._key, self._tell, self._insecure = pact, key, tell, insecure
        app = application(key, self._answer, _limit, tell)
        self._service = Service(app, host, port, key, insecure)
        self._client = Client(key, pact.digest, insecure, timeout=pact.patience)
        self._groups: dict[Membership, Client] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()
        self._knocks = 0.0
        self._peer: Peer | None = None

    @property
    def port(self) -> int:
        return self._service.port

    async def start(self) -> None:
        await self._service.start()
        self._tell("listening", port=self.port)

    async def run(
        self,
        peer: Peer,
        bootstrap: Descriptor | None,
        each: Callable[[float], bool],
    ) -> None:
        """Until `each`, which is called whenever something may have changed, says so."""
        self._peer = peer
        while not each(time.time()):
            self._knock(bootstrap, time.time())
            for errand in peer.tick(time.time()):
                self._carry(errand)
            await self._drop_clients()
            try:
                async with asyncio.timeout(max(0.01, peer.deadline - time.time())):
                    await self._moved.wait()
            except TimeoutError:
                pass
            self._moved.clear()

    def _knock(self, bootstrap: Descriptor | None, now: float) -> None:
        """Greet the peer that we were told of, until somebody is known: it may not be ready, or
        the letter may be lost, and nobody else could find us."""
        assert self._peer is not None
        if bootstrap is None or self._peer.view.descriptors or now < self._knocks:
            return
        self._knocks = now + self._pact.cycle
        self._carry(self._peer.greet(bootstrap, now))

    async def stop(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._service.stop()
        for client in (self._client, *self._groups.values()):
            await client.aclose()

    # ── errands ──

    def _carry(self, errand: Errand) -> None:
        task = asyncio.create_task(self._carried(errand))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _carried(self, errand: Errand) -> None:
        to = Contact(errand.to.key[:12], errand.to.address, errand.to.key)
        letter = errand.letter
        reply: Letter | TacitError
        try:
            said = await self._client_of(errand).ask(to, letter.kind, letter.round, letter.body)
            reply = Letter(said.kind, said.round, said.body)
        except CheckFailed as error:  # somebody else answers there: as good as away
            reply = Unreachable(str(error))
        except TacitError as error:
            reply = error
        for further in self._told(errand, reply):
            self._carry(further)
        self._moved.set()

    def _told(self, errand: Errand, reply: Letter | TacitError) -> list[Errand]:
        """What follows. Whatever others write, it ends one errand, and not the peer."""
        assert self._peer is not None
        try:
            return self._peer.told(errand, reply, time.time())
        except TacitError as error:
            self._tell("refused", kind=errand.letter.kind, reason=str(error))
        except Exception as error:  # a defect: said as the service says its own
            self._tell("fault", kind=errand.letter.kind, error=type(error).__name__)
        return []

    def _client_of(self, errand: Errand) -> Client:
        member = errand.member
        if member is None or member.study is None:
            return self._client
        if member not in self._groups:
            if member.party_key is None:
                raise Unreachable("the group is over.")
            timeout = self._pact.patience
            made = Client(member.party_key, member.study.digest, self._insecure, timeout)
            self._groups[member] = made
        return self._groups[member]

    async def _drop_clients(self) -> None:
        assert self._peer is not None
        for member in [m for m in self._groups if m.over and m is not self._peer.membership]:
            await self._groups.pop(member).aclose()

    # ── others ──

    async def _answer(self, message: Message) -> Message:
        letter = Letter(message.kind, message.round, message.body)
        if message.study == INTRODUCTION:
            return message.reply("pact", self._pact.to_bytes())
        if self._peer is None:
            raise Unreachable("this peer is not ready yet: try again.")
        now = time.time()
        if message.study == self._pact.digest:
            reply = self._peer.answer(message.sender, letter, now)
        else:
            reply = self._peer.answer_group(message.study, message.sender, letter, now)
        self._moved.set()
        return message.reply(reply.kind, reply.body)


def _limit(kind: str) -> int:
    if kind not in KINDS:
        raise InputError(f"a peer does not answer letters of kind {kind[:32]}.")
    return MOST_BYTES
