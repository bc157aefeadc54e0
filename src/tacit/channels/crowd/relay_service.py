"""Runs a relay: takes packets in on a port, and carries out its script."""

from __future__ import annotations

from pathlib import Path

from tacit.channels.crowd.carrier import Carrier
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.relay_role import RelayRole
from tacit.channels.crowd.relay_store import RelayStore
from tacit.channels.roles.envelopes import letter_of
from tacit.channels.roles.events import Tell
from tacit.crypto.onion import OnionKey
from tacit.crypto.signing import SigningKey
from tacit.wire.client import Client
from tacit.wire.message import Message
from tacit.wire.service import Service, application

__all__ = ["RelayService"]


class RelayService:
    """One relay of one study."""

    def __init__(
        self,
        proposal: Proposal,
        key: SigningKey,
        onion: OnionKey,
        folder: Path,
        host: str,
        port: int,
        tell: Tell,
        insecure: bool = False,
    ) -> None:
        self._proposal, self._tell = proposal, tell
        self._store = RelayStore(folder / "relay.db", proposal.digest)
        self._role = RelayRole(proposal, key, onion, self._store, tell=tell)
        self._client = Client(key, proposal.digest, insecure)
        app = application(key, self._answer, self._role.limit, tell)
        self._service = Service(app, host, port, key, insecure)

    @property
    def port(self) -> int:
        return self._service.port

    async def start(self) -> None:
        await self._service.start()
        self._tell("listening", port=self.port)

    async def run(self) -> None:
        """To the end of the study."""
        await Carrier(self._proposal, self._client).run(self._role.serve())

    async def stop(self) -> None:
        await self._service.stop()
        await self._client.aclose()
        self._store.close()

    async def _answer(self, message: Message) -> Message:
        reply = self._role.answer(message.sender, letter_of(message, self._proposal))
        return message.reply(reply.kind, reply.body)
