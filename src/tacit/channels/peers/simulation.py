"""A network of peers in one process, on virtual time: the same state machines as in the service."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from itertools import count

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.errands import Errand
from tacit.channels.peers.peer import Peer
from tacit.channels.roles.letters import Letter
from tacit.errors import TacitError, Unreachable

__all__ = ["Simulation"]

LATENCY = 0.05  # of a cycle: the longest that a letter takes
UNANSWERED = 1.0  # cycles after which somebody is taken not to answer


class Simulation:
    """Peers come with `add`, go with `vanish`; `run` lets time pass. From a seed."""

    def __init__(self, seed: int = 0, lose: float = 0.0) -> None:
        self.now, self.lose = 0.0, lose
        self._chance = random.Random(seed)  # noqa: S311  of letters' delays, nothing secret
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._woken: dict[str, float] = {}
        self.peers: dict[str, Peer] = {}

    def add(self, peer: Peer, bootstrap: Descriptor | None = None) -> None:
        """A peer that knows one other, or nobody yet."""
        self.peers[peer.key] = peer
        if bootstrap is not None:
            self._carry(peer, peer.greet(bootstrap, self.now))
        self._wake(peer)

    def vanish(self, key: str) -> None:
        del self.peers[key]
        self._woken.pop(key, None)  # it may come again

    def run(self, until: Callable[[], bool] = lambda: False, most: float = 1e9) -> None:
        """Until something holds, nothing is left to do, or the time is up."""
        while self._queue and not until():
            if self._queue[0][0] > most:
                self.now = most
                return
            self.now, _, do = heapq.heappop(self._queue)
            do()

    # ── time ──

    def _at(self, moment: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (moment, next(self._number), do))

    def _wake(self, peer: Peer) -> None:
        """At its deadline, unless it is to be woken before."""
        moment = max(self.now, peer.deadline)
        if moment < self._woken.get(peer.key, math.inf):
            self._woken[peer.key] = moment
            self._at(moment, lambda: self._tick(peer, moment))

    def _tick(self, peer: Peer, moment: float) -> None:
        if self.peers.get(peer.key) is peer and self._woken.get(peer.key) == moment:
            del self._woken[peer.key]
            self._carried(peer, peer.tick(self.now))
            self._wake(peer)

    def _carried(self, peer: Peer, errands: Sequence[Errand]) -> None:
        for errand in errands:
            self._carry(peer, errand)

    # ── letters ──

    def _carry(self, peer: Peer, errand: Errand) -> None:
        cycle = peer.pact.cycle
        there = self.now + self._chance.random() * LATENCY * cycle
        if self._chance.random() < self.lose:
            self._at(self.now + UNANSWERED * cycle, lambda: self._back(peer, errand, _nobody()))
        else:
            self._at(there, lambda: self._deliver(peer, errand))

    def _deliver(self, peer: Peer, errand: Errand) -> None:
        reply = self._answer(peer, errand)
        back = self.now + self._chance.random() * LATENCY * peer.pact.cycle
        if isinstance(reply, Unreachable) or self._chance.random() < self.lose:
            back, reply = self.now + UNANSWERED * peer.pact.cycle, _nobody()
        self._at(back, lambda: self._back(peer, errand, reply))

    def _answer(self, peer: Peer, errand: Errand) -> Letter | TacitError:
        other = self.peers.get(errand.to.key)
        if other is None:
            return _nobody()
        try:
            if errand.member is None:
                return other.answer(peer.key, errand.letter, self.now)
            assert errand.member.study is not None
            study, party = errand.member.study.digest, errand.member.seat.party
            return other.answer_group(study, party, errand.letter, self.now)
        except TacitError as error:
            return error
        finally:
            self._wake(other)

    def _back(self, peer: Peer, errand: Errand, reply: Letter | TacitError) -> None:
        if self.peers.get(peer.key) is peer:
            self._carried(peer, peer.told(errand, reply, self.now))
            self._wake(peer)


def _nobody() -> Unreachable:
    return Unreachable("nobody answers there.")
