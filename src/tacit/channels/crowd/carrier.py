"""Carries the errands of a script over the network, until the script ends."""

from __future__ import annotations

import asyncio
import time

from tacit.channels.crowd.errands import Came, Errand, Script
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.terms import Collector, RelayCard
from tacit.channels.roles.letters import Letter
from tacit.errors import CheckFailed, TacitError, Unreachable
from tacit.wire.client import Client, Peer

__all__ = ["Carrier"]

PAUSE = 0.2  # seconds before the collector is tried again, doubled up to …
LONGEST_PAUSE = 5.0
TRIES_IN_A_WINDOW = 4
PATIENCE = 120.0  # seconds at least without a word from the collector before we give up


class Carrier:
    """Runs scripts of one study in the name of a client's key."""

    def __init__(self, proposal: Proposal, client: Client) -> None:
        self._client = client
        self._collector = _peer(proposal.collector)
        self._relays = [_peer(relay) for relay in proposal.relays]
        self._patience = max(PATIENCE, 3 * proposal.wave_seconds)
        self._window = proposal.windows.send
        # What a relay was not told within its window is told in vain.
        self._brief = max(5.0, proposal.windows.release)

    async def run(self, script: Script[None]) -> None:
        """To the end; raises what the script raises."""
        try:
            errand = next(script)
            while True:
                reply = await self._carried(errand)
                errand = script.send(Came(reply, time.time()))
        except StopIteration:
            return

    async def _carried(self, errand: Errand) -> Letter | TacitError | None:
        await asyncio.sleep(max(0.0, errand.at - time.time()))
        if errand.letter is None:
            return None
        if errand.to is None:
            return await self._to_collector(errand.letter)
        try:
            return await self._asked(self._relays[errand.to], errand.letter, self._brief)
        except CheckFailed as error:  # somebody else answers there: as good as away
            return Unreachable(str(error))
        except TacitError as error:
            return error

    async def _to_collector(self, letter: Letter) -> Letter | TacitError:
        """Tried again as long as there is hope; a refusal is an answer."""
        heard, pause = time.time(), PAUSE
        while True:
            try:
                return await self._asked(self._collector, letter, None)
            except (Unreachable, CheckFailed) as error:
                if time.time() - heard > self._patience:
                    return error
            except TacitError as error:
                return error
            await asyncio.sleep(pause)
            # A collector that returns gives relays a window to reveal their lots, and no longer.
            pause = min(2 * pause, LONGEST_PAUSE, self._window / TRIES_IN_A_WINDOW)

    async def _asked(self, peer: Peer, letter: Letter, timeout: float | None) -> Letter:
        said = await self._client.ask(peer, letter.kind, letter.round, letter.body, timeout)
        return Letter(said.kind, said.round, said.body)


def _peer(party: Collector | RelayCard) -> Peer:
    return Peer(party.name, party.address, party.key)
