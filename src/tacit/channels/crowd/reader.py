"""Whoever asks the collector for news: people and relays alike."""

from __future__ import annotations

from tacit.channels.crowd.errands import Errand, Script
from tacit.channels.crowd.letters import Bulletin, SeenBulletin
from tacit.channels.roles.letters import Letter, read, write
from tacit.errors import Unreachable

__all__ = ["Reader"]


class Reader:
    """Keeps the time: our clock at the last answer, and how far the collector's is ahead of it."""

    def __init__(self) -> None:
        self._now = self._ahead = 0.0

    def _asked(self, letter: Letter) -> Script[Letter]:
        """The collector's reply. Whoever carries keeps trying; a refusal ends the script."""
        came = yield Errand(None, letter)
        self._now = came.now
        if isinstance(came.reply, Letter):
            return came.reply
        raise came.reply or Unreachable("the collector did not answer.")

    def _bulletin(self, mark: int) -> Script[Bulletin]:
        """The next one that is newer than this."""
        while True:
            reply = yield from self._asked(Letter("bulletin", 0, write(SeenBulletin(mark))))
            if reply.kind == "bulletin":
                news = read(Bulletin, reply.body)
                self._ahead = news.now - self._now
                return news
