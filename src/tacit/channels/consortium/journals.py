"""What the curator and a party must not forget, so that a crash only costs time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.channels.roles.store import Store

__all__ = ["Attempt", "CuratorJournal", "PartyJournal"]

RESULT = "CREATE TABLE result (model BLOB NOT NULL, certificate TEXT NOT NULL)"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of the protocol: who is in it, and the secret seed that our draws follow from."""

    number: int
    roster: tuple[str, ...]
    seed: bytes


class _Journal(Store):
    def begin(self, attempt: Attempt) -> None:
        with self.transaction():
            self.database.execute("DELETE FROM attempt")
            self.database.execute("DELETE FROM body")
            self.database.execute(
                "INSERT INTO attempt VALUES (?, ?, ?)",
                (attempt.number, json.dumps(attempt.roster), attempt.seed),
            )

    def attempt(self) -> Attempt | None:
        found = self.database.execute("SELECT * FROM attempt").fetchone()
        return None if found is None else Attempt(found[0], tuple(json.loads(found[1])), found[2])

    def put_result(self, model: bytes, certificate: str) -> None:
        with self.transaction():
            self.database.execute("INSERT INTO result VALUES (?, ?)", (model, certificate))

    def result(self) -> tuple[bytes, str] | None:
        found: tuple[bytes, str] | None = self.database.execute("SELECT * FROM result").fetchone()
        return found


class CuratorJournal(_Journal):
    role = "curator"
    tables = (
        "CREATE TABLE attempt (number INTEGER, roster TEXT NOT NULL, seed BLOB NOT NULL)",
        "CREATE TABLE body (step INTEGER, party TEXT, body BLOB NOT NULL,"
        " PRIMARY KEY (step, party))",
        RESULT,
    )

    def put(self, step: int, party: str, body: bytes) -> None:
        with self.transaction():
            self.database.execute("INSERT INTO body VALUES (?, ?, ?)", (step, party, body))

    def bodies(self, step: int) -> dict[str, bytes]:
        rows = self.database.execute("SELECT party, body FROM body WHERE step = ?", (step,))
        return dict(rows.fetchall())


class PartyJournal(_Journal):
    role = "party"
    tables = (
        "CREATE TABLE attempt (number INTEGER, roster TEXT NOT NULL, seed BLOB NOT NULL)",
        "CREATE TABLE body (step INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE TABLE revealed (attempt INTEGER)",
        RESULT,
    )

    def put(self, step: int, body: bytes) -> None:
        """What the curator answered to this step."""
        with self.transaction():
            self.database.execute("INSERT INTO body VALUES (?, ?)", (step, body))

    def answers(self) -> Sequence[bytes]:
        return [b for (b,) in self.database.execute("SELECT body FROM body ORDER BY step")]

    def reveal(self, attempt: int) -> None:
        with self.transaction():
            self.database.execute("INSERT INTO revealed VALUES (?)", (attempt,))

    def revealed(self) -> int | None:
        """The attempt in which we have given away what makes a release possible: at most one."""
        found = self.database.execute("SELECT attempt FROM revealed").fetchone()
        return None if found is None else int(found[0])
