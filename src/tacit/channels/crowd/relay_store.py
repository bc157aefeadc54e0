"""What a relay must not forget: its roster, which batches it passed on, how large they were.

Not the packets. What a crash takes with it is missed by its owners, who send it again; and a packet
on a disk could be seized there.
"""

from __future__ import annotations

from tacit.channels.roles.store import Store
from tacit.errors import Refused

__all__ = ["RelayStore"]


class RelayStore(Store):
    role = "relay"
    tables = (
        "CREATE TABLE batch (stage INTEGER, wave INTEGER, hop INTEGER, packets INTEGER NOT NULL,"
        " PRIMARY KEY (stage, wave, hop))",
        "CREATE TABLE roster (digest TEXT NOT NULL)",
    )

    def passed_on(self) -> dict[tuple[int, int, int], int]:
        """The size of every batch that was released, by stage, wave and hop."""
        rows = self.database.execute("SELECT stage, wave, hop, packets FROM batch")
        return {(stage, wave, hop): packets for stage, wave, hop, packets in rows}

    def put(self, stage: int, wave: int, hop: int, packets: int) -> None:
        with self.transaction():
            self.database.execute(
                "INSERT INTO batch VALUES (?, ?, ?, ?)", (stage, wave, hop, packets)
            )
            self.step()

    def keep_roster(self, digest: str) -> None:
        """Remember the one roster that our part of the lot is revealed for.

        Revealed for a second one, it would let the collector choose among rosters.
        """
        with self.transaction():
            known = self.database.execute("SELECT digest FROM roster").fetchone()
            if known is None:
                self.database.execute("INSERT INTO roster VALUES (?)", (digest,))
                self.step()
            elif known[0] != digest:
                raise Refused("the collector shows another roster than before: that is a fraud.")
