"""A network that loses letters; and `tacit` itself, in a process that has only such a one.

    python -m crowd_parts.lossy CHANCE tacit's own words …

Each letter with packets is lost with this chance, and so is the answer to one that was not; whoever
sent it hears nothing, and tries again.
"""

from __future__ import annotations

import random
import sys
from functools import partial

from tacit.channels.crowd import relay_service
from tacit.channels.crowd.carrier import Carrier
from tacit.channels.crowd.letters import Packets
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.roles.letters import Letter, read
from tacit.errors import Unreachable
from tacit.wire.client import Client, Peer


class Loss:
    """What one process loses, and how much it was."""

    def __init__(self, chance: float) -> None:
        self._chance, self._source = chance, random.Random(6)
        self.sent = self.lost = 0

    def strikes(self) -> bool:
        lost = self._source.random() < self._chance
        self.lost += lost
        return lost


class LossyCarrier(Carrier):
    """As the real one, over the real network, which loses letters with packets or their answers."""

    def __init__(self, proposal: Proposal, client: Client, loss: Loss) -> None:
        super().__init__(proposal, client)
        self._loss = loss

    async def _asked(self, peer: Peer, letter: Letter, timeout: float | None) -> Letter:
        if letter.kind != "packets":
            return await super()._asked(peer, letter, timeout)
        self._loss.sent += len(read(Packets, letter.body).packets)
        if self._loss.strikes():
            raise Unreachable("the letter was lost.")
        reply = await super()._asked(peer, letter, timeout)
        if self._loss.strikes():
            raise Unreachable("the answer was lost.")
        return reply


if __name__ == "__main__":
    from tacit.cli.main import main

    lossy = partial(LossyCarrier, loss=Loss(float(sys.argv[1])))
    relay_service.Carrier = lossy  # type: ignore[assignment, attr-defined]
    main(sys.argv[2:])
