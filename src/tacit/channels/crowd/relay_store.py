"""What a relay must not forget: what it was shown first, what the collector has acknowledged, which
batches it passed on, and how large they were.

Not the packets. What a crash takes with it is missed by its owners, who send it again; and a packet
on a disk could be seized there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tacit.channels.crowd.pins import PINS, PinningStore

__all__ = ["RelayStore"]

PASSED = (
    "CREATE TABLE passed (stage INTEGER, wave INTEGER, question TEXT, received INTEGER NOT NULL,"
    " packets INTEGER NOT NULL, PRIMARY KEY (stage, wave, question))"
)


class RelayStore(PinningStore):
    role = "relay"
    version = 3
    tables = (PASSED, PINS)
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {2: (PASSED, PINS)}

    def passed_on(self) -> dict[tuple[int, int, str], tuple[int, int]]:
        """Packets received and released of every batch that was released, by stage, wave and
        question."""
        rows = self.database.execute("SELECT stage, wave, question, received, packets FROM passed")
        return {(stage, wave, name): (taken, gone) for stage, wave, name, taken, gone in rows}

    def put(self, stage: int, wave: int, batches: Mapping[str, tuple[int, int]]) -> None:
        """All batches of a wave, before any of them leaves."""
        with self.transaction():
            self.database.executemany(
                "INSERT INTO passed VALUES (?, ?, ?, ?, ?)",
                [(stage, wave, name, *sizes) for name, sizes in batches.items()],
            )
            self.step()
