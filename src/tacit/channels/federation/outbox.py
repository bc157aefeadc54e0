"""What a holder must not forget: which shares it has made for which round, and the result.

Shares are made once. If a holder that crashed made new ones for the same round, one server could
have an old share and another a new one, and the sum would be garbage.
"""

from __future__ import annotations

from collections.abc import Mapping

from tacit.channels.roles.store import Store

__all__ = ["Outbox"]


class Outbox(Store):
    role = "holder"
    tables = (
        "CREATE TABLE share (round INTEGER, server TEXT, state BLOB NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (round, server))",
        "CREATE TABLE used (source TEXT PRIMARY KEY, records INTEGER NOT NULL)",
        "CREATE TABLE result (model BLOB NOT NULL, certificate TEXT NOT NULL)",
    )

    def shares(self, number: int, state: bytes) -> dict[str, bytes]:
        """The bodies for each server that were made for this round and state, if they were."""
        rows = self.database.execute(
            "SELECT server, body FROM share WHERE round = ? AND state = ?", (number, state)
        )
        return dict(rows.fetchall())

    def has_round(self, number: int) -> bool:
        rows = self.database.execute("SELECT 1 FROM share WHERE round = ?", (number,))
        return rows.fetchone() is not None

    def last(self) -> int:
        """The newest round that shares were made for; 0 if none."""
        found = self.database.execute("SELECT MAX(round) FROM share").fetchone()[0]
        return int(found or 0)

    def keep(
        self,
        number: int,
        state: bytes,
        bodies: Mapping[str, bytes],
        used: Mapping[str, int] | None = None,
    ) -> None:
        """Keep this round's shares, forget earlier ones, and note what records they were made of.

        In one step: a record is marked as used exactly if a share was made of it.
        """
        with self.transaction():
            self.database.execute("DELETE FROM share")
            self.database.executemany(
                "INSERT INTO share VALUES (?, ?, ?, ?)",
                [(number, server, state, body) for server, body in bodies.items()],
            )
            self.database.executemany(
                "INSERT INTO used VALUES (?, ?) ON CONFLICT DO UPDATE SET records = ?",
                [(source, count, count) for source, count in (used or {}).items()],
            )

    def used(self) -> dict[str, int]:
        """How many records of each source have gone into a window already."""
        return dict(self.database.execute("SELECT source, records FROM used").fetchall())

    def keep_result(self, model: bytes, certificate: str) -> None:
        with self.transaction():
            self.database.execute("INSERT INTO result VALUES (?, ?)", (model, certificate))

    def result(self) -> tuple[bytes, str] | None:
        """The model and its certificate, once they are here."""
        found: tuple[bytes, str] | None = self.database.execute("SELECT * FROM result").fetchone()
        return found
