"""Exchanges with others: views, and which publications each side has."""

from __future__ import annotations

from collections.abc import Callable

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.errands import Errand
from tacit.channels.peers.fetching import Fetching
from tacit.channels.peers.letters import Gossip
from tacit.channels.peers.view import View
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.errors import TacitError, Unreachable

__all__ = ["Gossiping"]

RECALL = 8  # one exchange of so many goes to somebody met at any time


class Gossiping:
    """One peer's. `own` is its descriptor at a moment."""

    def __init__(
        self, view: View, fetching: Fetching, own: Callable[[float], Descriptor], tell: Tell
    ) -> None:
        self._view, self._fetching, self._own, self._tell = view, fetching, own, tell
        self._exchanges = 0
        self._entrance: Descriptor | None = None

    def exchange(self, now: float) -> list[Errand]:
        """Once a cycle, with a random neighbour."""
        self._exchanges += 1
        recalled = self._view.recall() if self._exchanges % RECALL == 0 else None
        to = recalled or self._view.pick() or self._view.recall() or self._entrance
        return [] if to is None else [self.greet(to, now)]

    def greet(self, to: Descriptor, now: float) -> Errand:
        """An exchange with somebody. The first one, of whom we were told to begin with, is greeted
        again as long as nobody else is known: a lost letter must not keep us out."""
        self._entrance = self._entrance or to
        return Errand(to, Letter("gossip", 0, write(self._offer(now))))

    def _offer(self, now: float) -> Gossip:
        view = self._view.offer(round(1000 * now), self._own(now))
        return Gossip(view, self._fetching.has, self._fetching.contents)

    def answer(self, sender: str, letter: Letter, now: float) -> Letter:
        said, own = read(Gossip, letter.body), self._offer(now)
        self._view.merge(said.view, sender, round(1000 * now))  # models we fetch when we greet
        return Letter("gossip", 0, write(own))

    def told(self, to: Descriptor, reply: Letter | TacitError, now: float) -> list[Errand]:
        """What the other has shown; then we ask for what we lack."""
        if not isinstance(reply, Letter):
            if isinstance(reply, Unreachable):
                self._view.forget(to.key)
            return []
        try:
            said = read(Gossip, reply.body)
            self._view.merge(said.view, to.key, round(1000 * now))
        except TacitError as error:
            self._tell("refused", kind="gossip", reason=str(error))
            return []
        request = self._fetching.request(said, to.key)
        return [] if request is None else [Errand(to, request)]
