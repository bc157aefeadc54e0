"""When a peer has come to rest: it cannot take part, or finds nobody to take part with."""

from __future__ import annotations

from tacit.channels.peers.initiation import Initiation
from tacit.channels.roles.events import Tell

__all__ = ["Rest"]

QUIET = 12  # attempts in a row that found nobody before a peer says it has come to rest


class Rest:
    def __init__(self, tell: Tell) -> None:
        self._tell, self._in_vain, self.is_on = tell, 0, False

    def begin(self, reason: str) -> None:
        """Said once."""
        if not self.is_on:
            self.is_on = True
            self._tell("at rest", reason=reason)

    def end(self) -> None:
        self.is_on, self._in_vain = False, 0

    def succeeded(self) -> None:
        self._in_vain = 0

    def failed(self, attempt: Initiation) -> None:
        """An attempt at a group came to nothing. Who is busy may accept another time."""
        if attempt.busy:
            self._in_vain = 0
            return
        self._in_vain += 1
        if self._in_vain >= QUIET:
            self.begin("too few others are able to form a group")
