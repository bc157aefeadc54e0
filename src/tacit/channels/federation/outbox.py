"""What a holder must not forget: which shares it has made for which round, and the result.

Shares are made once. If a holder that crashed made new ones for the same round, one server could
have an old share and another a new one, and the sum would be garbage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from tacit.channels.roles.growing import FileNote, Noted, UsedFile
from tacit.channels.roles.row_chain import Links
from tacit.channels.roles.store import Store

__all__ = ["Outbox"]

# What each server has sealed in the newest round that we were told of.
WITNESSED = (
    "CREATE TABLE witnessed (server TEXT PRIMARY KEY, round INTEGER NOT NULL, digest BLOB NOT NULL)"
)
# The round that was open when we came back from a backup: it may have been answered before.
RETURNED = "CREATE TABLE returned (round INTEGER NOT NULL)"
# Files that records were used of in windows, and the links of those records (roles/growing.py).
# Until version 2 only their number was noted, in `used`, which is not written to any more.
FOLLOWED = (
    "CREATE TABLE followed (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    "CREATE TABLE link (file INTEGER NOT NULL, start INTEGER NOT NULL, links BLOB NOT NULL,"
    " PRIMARY KEY (file, start))",
)
# Digests of the used records by themselves, and a value that tells the key of all digests.
ROWS = (
    "CREATE TABLE used_row (digests BLOB NOT NULL)",
    "CREATE TABLE digest_key (value BLOB NOT NULL)",
)
# The records of the window that is open: all of its rounds are about the same ones.
WINDOW = (
    "CREATE TABLE window (number INTEGER NOT NULL, file INTEGER NOT NULL, start INTEGER NOT NULL,"
    " stop INTEGER NOT NULL)"
)
# The newest model of a study in windows, after so many rounds.
NEWEST = (
    "CREATE TABLE newest (rounds INTEGER NOT NULL, model BLOB NOT NULL, certificate TEXT NOT NULL)"
)


class Outbox(Store):
    role = "holder"
    tables = (
        "CREATE TABLE share (round INTEGER, server TEXT, state BLOB NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (round, server))",
        "CREATE TABLE used (source TEXT PRIMARY KEY, records INTEGER NOT NULL)",
        "CREATE TABLE result (model BLOB NOT NULL, certificate TEXT NOT NULL)",
        WITNESSED,
        RETURNED,
        *FOLLOWED,
        *ROWS,
        WINDOW,
        NEWEST,
    )
    version = 5
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {
        1: (WITNESSED, RETURNED),
        2: FOLLOWED,
        3: ROWS,
        4: (WINDOW, NEWEST),
    }
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
        used: Sequence[FileNote] = (),
        window: int = 0,
    ) -> None:
        """Keep this round's shares, forget earlier ones, and note what records they were made of.

        In one step: a record is marked as used exactly if a share was made of it. `used` are those
        that no earlier round was about; they are all that further rounds of `window` are about.
        """
        with self.transaction():
            self.database.execute("DELETE FROM share")
            self.database.executemany(
                "INSERT INTO share VALUES (?, ?, ?, ?)",
                [(number, server, state, body) for server, body in bodies.items()],
            )
            for note in used:
                file, stop = self._put_note(note), note.start + len(note.links)
                if note.fresh < stop:
                    self.database.execute("DELETE FROM window WHERE number < ?", (window,))
                    part = (window, file, note.fresh, stop)
                    self.database.execute("INSERT INTO window VALUES (?, ?, ?, ?)", part)
            self.step()

    def window(self, number: int) -> list[tuple[UsedFile, int]]:
        """The records that this window's rounds are about: those of each file from a place on to
        the end of what is given of it. Empty before the first round that had any."""
        rows = self.database.execute(
            "SELECT file, start, stop FROM window WHERE number = ?", (number,)
        ).fetchall()
        if not rows:
            return []
        files = {one.id: one for one in self._followed()}
        return [
            (UsedFile(file, files[file].name, files[file].links[:stop]), start)
            for file, start, stop in rows
        ]

    def _put_note(self, note: FileNote) -> int:
        run, number = self.database.execute, note.id
        if number is None:
            run("DELETE FROM used WHERE source = ?", (note.name,))
            number = run("INSERT INTO followed (name) VALUES (?)", (note.name,)).lastrowid
        else:
            run("UPDATE followed SET name = ? WHERE id = ?", (note.name, number))
        if len(note.links):
            links = note.links.astype("<u8").tobytes()
            run("INSERT INTO link VALUES (?, ?, ?)", (number, note.start, links))
        if len(note.rows):
            run("INSERT INTO used_row VALUES (?)", (note.rows.astype("<u8").tobytes(),))
        assert number is not None  # a row that was inserted has one
        return number

    def check_key(self, value: bytes) -> bool:
        """Whether all digests here were made with the key of this value; the first one is noted."""
        with self.transaction():
            found = self.database.execute("SELECT value FROM digest_key").fetchone()
            if found is None:
                self.database.execute("INSERT INTO digest_key VALUES (?)", (value,))
        return found is None or bool(found[0] == value)

    def noted(self) -> Noted:
        """The records that have gone into a window already."""
        rows = b"".join(part for (part,) in self.database.execute("SELECT digests FROM used_row"))
        return Noted(self._followed(), self.counted(), _links(rows))

    def _followed(self) -> list[UsedFile]:
        run = self.database.execute
        links: dict[int, bytes] = {}
        for number, part in run("SELECT file, links FROM link ORDER BY file, start"):
            links[number] = links.get(number, b"") + part
        return [
            UsedFile(number, name, _links(links[number]))
            for number, name in run("SELECT id, name FROM followed ORDER BY id")
        ]

    def counted(self) -> dict[str, int]:
        """Files of which earlier versions have noted nothing but how many records were used."""
        return dict(self.database.execute("SELECT source, records FROM used").fetchall())

    def keep_newest(self, rounds: int, model: bytes, certificate: str) -> None:
        with self.transaction():
            self.database.execute("DELETE FROM newest")
            self.database.execute(
                "INSERT INTO newest VALUES (?, ?, ?)", (rounds, model, certificate)
            )

    def newest(self) -> tuple[int, bytes, str]:
        """The newest model of a study in windows, and after how many rounds it is: 0 if none."""
        found: tuple[int, bytes, str] | None
        found = self.database.execute("SELECT * FROM newest").fetchone()
        return found or (0, b"", "")

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


def _links(data: bytes) -> Links:
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)
