"""Which holders an aggregator counts on: who joined, who was missed, who has sent all shares."""

from __future__ import annotations

from tacit.channels.federation.journal import Journal
from tacit.channels.roles.events import Tell
from tacit.channels.studies.study import Study

__all__ = ["Attendance"]


class Attendance:
    """absent    missed a deadline, and not heard of since
    sent      say that all their shares of this round are sent
    changes   how often somebody has joined or left
    """

    def __init__(self, study: Study, journal: Journal, tell: Tell) -> None:
        self._journal, self._tell = journal, tell
        self.names = {holder.key: holder.name for holder in study.holders}
        self._members = journal.members()
        self.absent: set[str] = set()
        self.sent: set[str] = set()
        self.changes = 0

    @property
    def waiting_for(self) -> set[str]:
        """Holders that joined, have not left, and were heard of since the last deadline."""
        return {holder for holder, here in self._members.items() if here} - self.absent

    @property
    def not_joined(self) -> list[str]:
        """The names of those who have not, or have left."""
        return [name for key, name in self.names.items() if not self._members.get(key)]

    def named(self, holders: set[str]) -> list[str]:
        return [name for key, name in self.names.items() if key in holders]

    def note(self, holder: str, here: bool) -> None:
        """That a holder is here, or has left; in the journal if that is new."""
        if here:
            self.absent.discard(holder)
        if self._members.get(holder) is here:
            return
        with self._journal.transaction():
            self._journal.put_member(holder, here)
        self._members[holder] = here
        self.changes += 1
        self._tell("holder joined" if here else "holder left", holder=self.names[holder])
