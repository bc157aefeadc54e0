"""Who has invited us in vain: what a peer remembers of initiators, for as long as it runs.

Whoever brings groups together can let them dissolve after it has heard everybody's seed, until the
lot falls on one of its own (groups.md). That cannot be prevented, but it can be counted: it happens
in front of every member. And invitations to groups that never form keep a peer from others.
"""

from __future__ import annotations

from tacit.channels.peers.membership import Membership

__all__ = ["Inviters"]

DISSOLVED = 3  # groups of one initiator that end between our reveal and their beginning
IDLE = 0.5  # of the patience: a seat that was held for longer, and for nothing, is remembered
PAUSE, LONGEST_PAUSE = 32, 1024  # cycles that such an initiator waits; twice as many each time
REMEMBERED = 4096  # initiators


class _Record:
    __slots__ = ("dissolved", "unformed", "until")

    def __init__(self) -> None:
        self.dissolved, self.unformed, self.until = 0, 0, 0.0


class Inviters:
    """By the initiators' keys. `cycle` and `patience` are in seconds."""

    def __init__(self, cycle: float, patience: float) -> None:
        self._cycle, self._patience = cycle, patience
        self._records: dict[str, _Record] = {}

    def welcome(self, key: str, now: float) -> bool:
        """Whether an invitation of this initiator is considered."""
        found = self._records.get(key)
        return found is None or (found.dissolved < DISSOLVED and now >= found.until)

    def left(self, member: Membership, now: float) -> None:
        """We have left a group that somebody had invited us to. One that has begun is no fault of
        its initiator, unless it was its curator too, and let it come to nothing."""
        study, own = member.study, member.initiator
        begun = study is not None and (member.result is not None or study.aggregator.key != own)
        revealed = member.has_revealed and study is None
        self.ended(own, now - member.since, revealed=revealed, begun=begun, now=now)

    def ended(self, key: str, held: float, *, revealed: bool, begun: bool, now: float) -> None:
        """A group of this initiator is over for us, after `held` seconds. One that is called off
        at once is no harm: the initiator did not find enough others."""
        record = self._records.pop(key, None) or _Record()
        self._records[key] = record  # the latest at the end
        while len(self._records) > REMEMBERED:
            self._records.pop(next(iter(self._records)))
        if begun:
            record.unformed = 0
        elif revealed:
            record.dissolved += 1
        elif held > IDLE * self._patience:
            pause = min(PAUSE * 2 ** min(record.unformed, 16), LONGEST_PAUSE)
            record.unformed += 1
            record.until = now + pause * self._cycle
