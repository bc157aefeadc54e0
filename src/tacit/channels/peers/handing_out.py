"""Results that a curator still gives to members whose answer was lost, and nothing else of a group.

Of the aggregation itself (journal, masked vectors, seeds) nothing is kept.
"""

from __future__ import annotations

from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.letters import Turn
from tacit.channels.roles.letters import Letter, write
from tacit.errors import InputError, Refused, Unreachable

__all__ = ["HandingOut"]

GROUPS = 4  # the latest so many


class HandingOut:
    def __init__(self) -> None:
        self._results: dict[str, tuple[set[str], bytes]] = {}  # by the study, oldest first

    def keep(self, curator: Curator, now: float) -> None:
        """What this curator has ended with, if it has."""
        if curator.study.digest in self._results or curator.result is None:
            return
        parties = {holder.key for holder in curator.study.holders}
        somebody, asked = min(curator.waiting_for), Letter("turn", 0, write(Turn(0, b"")))
        told = curator.answer(somebody, asked, now)  # the same for all who took part
        self._results[curator.study.digest] = parties, told.body
        while len(self._results) > GROUPS:
            self._results.pop(next(iter(self._results)))

    def answer(self, study: str, sender: str, letter: Letter) -> Letter:
        if study not in self._results:
            raise Unreachable("no such group is here, or not yet: ask again.")
        parties, body = self._results[study]
        if sender not in parties:
            raise Refused("this party is not in the study.")
        if letter.kind == "leave":
            return Letter("left", letter.round)
        if letter.kind != "turn":
            raise InputError(f"a curator does not know how to {letter.kind[:20]}.")
        return Letter("model", letter.round, body)
