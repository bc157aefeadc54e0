"""Every publication that a peer has, once each, and which of its own records are in models.

The ledger charges parts of one partition side by side, since no record is in two of them. It is
this store that knows where one part ends and the next begins, so it names the partition. Put back
from a backup, it may count records as new that were in a part since: it names another partition
then, which is charged beside the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tacit.channels.roles.store import Store

__all__ = ["Library", "UsedPart", "content_of"]

AT_ONCE = 16  # publications in one letter
PARTS = (
    "CREATE TABLE used (first INTEGER NOT NULL, used INTEGER NOT NULL, mark TEXT NOT NULL)",
    "CREATE TABLE partition (name TEXT NOT NULL)",
)
# What cannot be read, or does not pass the check: it stays to be looked at, and is not offered.
ASIDE = "CREATE TABLE aside (id TEXT PRIMARY KEY, body BLOB NOT NULL, reason TEXT NOT NULL)"
# A name for a partition that the ledger knows no part of yet.
ANEW = (
    "DELETE FROM partition",
    "INSERT INTO partition VALUES (lower(hex(randomblob(16))))",
)


def content_of(body: bytes) -> str:
    """Enough of a digest to notice that two bodies differ."""
    return hashlib.sha256(body).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class UsedPart:
    """The newest part: rows from `first` up to `used`; those before are in earlier parts. `mark`
    stands for all that were used; empty where version 0.1 noted none."""

    first: int
    used: int
    mark: str = ""


class Library(Store):
    role = "peer"
    page_bytes = 16384
    goes_on = True  # what is lost is public, and fetched again; parts are counted anew
    forgets = ANEW
    version = 4
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {2: PARTS, 3: (ASIDE,)}
    tables = (
        "CREATE TABLE publication (id TEXT PRIMARY KEY, tag TEXT NOT NULL, mine INTEGER NOT NULL,"
        " body BLOB NOT NULL, at REAL NOT NULL)",
        *PARTS,
        ASIDE,
    )

    def __init__(self, path: str | Path, study: str, at_work: bool = False) -> None:
        """`at_work`: for a peer that takes part, one at a time. Others read it beside that one."""
        self.alone = at_work
        self._contents: dict[str, str] = {}
        super().__init__(path, study)

    @property
    def identity(self) -> str:
        """Of the partition that this store knows the parts of: another one after a restore."""
        found = self.database.execute("SELECT name FROM partition").fetchone()
        return super().identity if found is None else str(found[0])

    def used(self) -> UsedPart | None:
        """The newest part of the peer's own records; None before the first."""
        found = self.database.execute("SELECT first, used, mark FROM used").fetchone()
        return None if found is None else UsedPart(*found)

    def count_anew(self) -> None:
        """Begin a partition: which records were in parts before, nobody knows here."""
        with self.transaction():
            for statement in ANEW:
                self.database.execute(statement)

    def use(self, part: UsedPart) -> None:
        """Note a part, before anything is said of its records."""
        with self.transaction():
            self.database.execute("DELETE FROM used")
            row = (part.first, part.used, part.mark)
            self.database.execute("INSERT INTO used VALUES (?, ?, ?)", row)
            self.step()

    def add(self, id: str, tag: str, mine: bool, body: bytes, now: float) -> bool:
        """Keep a publication; False if it is here already."""
        found = self.database.execute(
            "INSERT OR IGNORE INTO publication VALUES (?, ?, ?, ?, ?)", (id, tag, mine, body, now)
        )
        if mine:  # it may have come from another member before
            self.database.execute("UPDATE publication SET mine = 1 WHERE id = ?", (id,))
        return found.rowcount > 0

    def set_aside(self, id: str, reason: str) -> None:
        """Keep it no longer as a publication."""
        with self.transaction():
            self.database.execute(
                "INSERT OR REPLACE INTO aside SELECT id, body, ? FROM publication WHERE id = ?",
                (reason, id),
            )
            self.database.execute("DELETE FROM publication WHERE id = ?", (id,))
        self._contents.pop(id, None)

    def aside(self) -> list[tuple[bytes, str]]:
        """What was set aside, and why."""
        return self.database.execute("SELECT body, reason FROM aside ORDER BY id").fetchall()

    def ids(self) -> dict[str, str]:
        """All, with their tags."""
        rows = self.database.execute("SELECT id, tag FROM publication ORDER BY id")
        return dict(rows.fetchall())

    def bodies(self, wanted: Iterable[str]) -> list[bytes]:
        """Those of the wanted ones that are here, so many as fit one letter."""
        found = []
        for id in list(wanted)[:AT_ONCE]:
            body = self.body(id)
            found += [] if body is None else [body]
        return found

    def contents(self) -> dict[str, str]:
        """The beginning of a digest of each body, by id."""
        known = self.ids()
        for id in known.keys() - self._contents.keys():
            self._contents[id] = content_of(self.body(id) or b"")
        return {id: self._contents[id] for id in known}

    def body(self, id: str) -> bytes | None:
        row = self.database.execute("SELECT body FROM publication WHERE id = ?", (id,)).fetchone()
        return None if row is None else bytes(row[0])

    def all(self) -> list[tuple[bytes, bool, float]]:
        """Bodies in the order in which they came, whether we took part, and when they came."""
        rows = self.database.execute("SELECT body, mine, at FROM publication ORDER BY at, id")
        return [(body, bool(mine), at) for body, mine, at in rows]

    def lacking(self, ids: Collection[str]) -> list[str]:
        known = self.ids()
        return sorted(id for id in ids if id not in known)
