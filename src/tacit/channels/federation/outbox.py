"""What a holder must not forget: which shares it has made for which round, and the result.

Shares are made once. If a holder that crashed made new ones for the same round, one server could
have an old share and another a new one, and the sum would be garbage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from tacit.channels.roles.store import Store

__all__ = ["Outbox"]

# What each server has sealed in the newest round that we were told of.
WITNESSED = (
    "CREATE TABLE witnessed (server TEXT PRIMARY KEY, round INTEGER NOT NULL, digest BLOB NOT NULL)"
)
# The round that was open when we came back from a backup: it may have been answered before.
RETURNED = "CREATE TABLE returned (round INTEGER NOT NULL)"


class Outbox(Store):
    role = "holder"
    tables = (
        "CREATE TABLE share (round INTEGER, server TEXT, state BLOB NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (round, server))",
        "CREATE TABLE used (source TEXT PRIMARY KEY, records INTEGER NOT NULL)",
        "CREATE TABLE result (model BLOB NOT NULL, certificate TEXT NOT NULL)",
        WITNESSED,
        RETURNED,
    )
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {1: (WITNESSED, RETURNED)}
    goes_on = True  # it gives up the round that is open when it comes back
    forgets = ("DELETE FROM share", "DELETE FROM returned")

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
            self.step()

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

    @property
    def is_over(self) -> bool:
        return self.result() is not None

    # ── what others have done ──

    def witnessed(self) -> dict[str, tuple[int, bytes]]:
        """The newest round that each server has sealed, and what."""
        rows = self.database.execute("SELECT server, round, digest FROM witnessed")
        return {server: (number, digest) for server, number, digest in rows}

    def witness(self, number: int, digest: bytes, servers: Iterable[str]) -> None:
        with self.transaction():
            self.database.executemany(
                "INSERT OR REPLACE INTO witnessed VALUES (?, ?, ?)",
                [(server, number, digest) for server in servers],
            )

    # ── after a restore ──

    def given_up(self) -> int | None:
        """The round that was open when we came back from a backup; None if none was seen yet."""
        found = self.database.execute("SELECT round FROM returned").fetchone()
        return None if found is None else int(found[0])

    def give_up(self, number: int) -> None:
        with self.transaction():
            self.database.execute("INSERT INTO returned VALUES (?)", (number,))
