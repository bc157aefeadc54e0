"""A network that loses packets; and `tacit` itself, in a process that has only such a one.

    python -m crowd_parts.lossy CHANCE tacit's own words …

Each packet is left out of its letter with this chance, on its own; whoever sent it never hears.
"""

from __future__ import annotations

import random
import sys
from functools import partial

from msgspec.structs import replace

from tacit.channels.crowd import relay_service
from tacit.channels.crowd.carrier import Carrier
from tacit.channels.crowd.letters import Packets
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.roles.letters import Letter, read, write
from tacit.wire.client import Client, Peer


class Loss:
    """What one process loses, and how much it was."""

    def __init__(self, chance: float) -> None:
        self._chance, self._source = chance, random.Random(6)
        self.sent = self.lost = 0

    def thinned(self, letter: Letter) -> Letter:
        whole = read(Packets, letter.body)
        kept = [packet for packet in whole.packets if self._source.random() >= self._chance]
        self.sent += len(whole.packets)
        self.lost += len(whole.packets) - len(kept)
        body = write(replace(whole, packets=kept))
        return Letter(letter.kind, letter.round, body)


class LossyCarrier(Carrier):
    """As the real one, over the real network, with fewer packets in what is sent."""

    def __init__(self, proposal: Proposal, client: Client, loss: Loss) -> None:
        super().__init__(proposal, client)
        self._loss = loss

    async def _asked(self, peer: Peer, letter: Letter, timeout: float | None) -> Letter:
        sent = self._loss.thinned(letter) if letter.kind == "packets" else letter
        return await super()._asked(peer, sent, timeout)


if __name__ == "__main__":
    from tacit.cli.main import main

    lossy = partial(LossyCarrier, loss=Loss(float(sys.argv[1])))
    relay_service.Carrier = lossy  # type: ignore[assignment, attr-defined]
    main(sys.argv[2:])
