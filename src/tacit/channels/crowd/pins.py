"""What somebody was shown first, and goes by for good: a second version of it is a fraud.

A collector may show different things to different people, or to one of them after a restart. Each
keeps a digest of what she was shown, on her disk, and binds what she sends to it.
"""

from __future__ import annotations

from tacit.channels.crowd.assignment import wave_digest
from tacit.channels.crowd.letters import Wave
from tacit.channels.roles.store import Store
from tacit.errors import CheckFailed

__all__ = ["PINS", "PinningStore"]

PINS = "CREATE TABLE pin (what TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID"


class PinningStore(Store):
    """A store with the table PINS."""

    def pin(self, what: str, digest: str) -> None:
        """Keep the first; CheckFailed for another."""
        with self.transaction():
            known = self.database.execute(
                "SELECT digest FROM pin WHERE what = ?", (what,)
            ).fetchone()
            if known is None:
                self.database.execute("INSERT INTO pin VALUES (?, ?)", (what, digest))
                self.step()
        if known is not None and known[0] != digest:
            raise CheckFailed(
                f"the collector shows another {what} than before: that is a fraud. Nothing more is "
                "sent; tell the others."
            )

    def pin_wave(self, drawing: str, wave: Wave) -> None:
        """The same for a wave, which also has to follow the one before as it was shown here."""
        before = self.pinned(_named(wave.stage, wave.number - 1))
        if before is not None and before != wave.before:
            raise CheckFailed(
                "the collector has shown another wave to others than to us: that is a fraud. "
                "Nothing more is sent; tell the others."
            )
        self.pin(_named(wave.stage, wave.number), wave_digest(drawing, wave))

    def pinned(self, what: str) -> str | None:
        found = self.database.execute("SELECT digest FROM pin WHERE what = ?", (what,)).fetchone()
        return None if found is None else str(found[0])


def _named(stage: int, number: int) -> str:
    return f"wave {number} of stage {stage}"
