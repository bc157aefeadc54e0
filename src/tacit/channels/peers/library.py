"""Every publication that a peer has, once each."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tacit.channels.roles.store import Store

__all__ = ["Library"]

AT_ONCE = 16  # publications in one letter


class Library(Store):
    role = "peer"
    page_bytes = 16384
    alone = False  # `tacit peer predict` reads it beside a peer at work, which holds a lock itself
    goes_on = True  # what is lost is public, and fetched again
    tables = (
        "CREATE TABLE publication (id TEXT PRIMARY KEY, tag TEXT NOT NULL, mine INTEGER NOT NULL,"
        " body BLOB NOT NULL, at REAL NOT NULL)",
    )

    def add(self, id: str, tag: str, mine: bool, body: bytes, now: float) -> bool:
        """Keep a publication; False if it is here already."""
        found = self.database.execute(
            "INSERT OR IGNORE INTO publication VALUES (?, ?, ?, ?, ?)", (id, tag, mine, body, now)
        )
        if mine:  # it may have come from another member before
            self.database.execute("UPDATE publication SET mine = 1 WHERE id = ?", (id,))
        return found.rowcount > 0

    def ids(self) -> dict[str, str]:
        """All, with their tags."""
        rows = self.database.execute("SELECT id, tag FROM publication ORDER BY id")
        return dict(rows.fetchall())

    def bodies(self, wanted: Iterable[str]) -> list[bytes]:
        """Those of the wanted ones that are here, so many as fit one letter."""
        found = []
        for id in list(wanted)[:AT_ONCE]:
            row = self.database.execute("SELECT body FROM publication WHERE id = ?", (id,))
            found += [body for (body,) in row]
        return found

    def all(self) -> list[tuple[bytes, bool, float]]:
        """Bodies in the order in which they came, whether we took part, and when they came."""
        rows = self.database.execute("SELECT body, mine, at FROM publication ORDER BY at, id")
        return [(body, bool(mine), at) for body, mine, at in rows]

    def lacking(self, ids: Collection[str]) -> list[str]:
        known = self.ids()
        return sorted(id for id in ids if id not in known)
