"""What an aggregator must not forget: who joined, each round's state and holders, the result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.channels.roles.store import Store

__all__ = ["Journal", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """A round: the state it opens with and, once chosen, whose sum it is."""

    number: int
    state: bytes
    holders: tuple[str, ...] | None = None


class Journal(Store):
    role = "aggregator"
    tables = (
        "CREATE TABLE member (holder TEXT PRIMARY KEY, gone INTEGER NOT NULL)",
        "CREATE TABLE step (number INTEGER PRIMARY KEY, state BLOB NOT NULL, holders TEXT)",
        "CREATE TABLE result (model BLOB NOT NULL, certificate TEXT NOT NULL)",
    )

    def members(self) -> dict[str, bool]:
        """Every holder that ever joined, and whether it is still there."""
        rows = self.database.execute("SELECT holder, gone FROM member")
        return {holder: not gone for holder, gone in rows}

    def put_member(self, holder: str, here: bool) -> None:
        self.database.execute(
            "INSERT INTO member VALUES (?, ?) ON CONFLICT (holder) DO UPDATE SET gone = ?",
            (holder, not here, not here),
        )

    def steps(self) -> list[Step]:
        rows = self.database.execute("SELECT number, state, holders FROM step ORDER BY number")
        return [
            Step(number, state, None if holders is None else tuple(json.loads(holders)))
            for number, state, holders in rows
        ]

    def put_step(self, number: int, state: bytes) -> None:
        self.database.execute("INSERT INTO step VALUES (?, ?, NULL)", (number, state))

    def choose(self, number: int, holders: Sequence[str]) -> None:
        self.database.execute(
            "UPDATE step SET holders = ? WHERE number = ?", (json.dumps(list(holders)), number)
        )

    def put_result(self, model: bytes, certificate: str) -> None:
        self.database.execute("INSERT INTO result VALUES (?, ?)", (model, certificate))

    def result(self) -> tuple[bytes, str] | None:
        found: tuple[bytes, str] | None = self.database.execute("SELECT * FROM result").fetchone()
        return found
