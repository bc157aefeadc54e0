"""What an aggregator must not forget: who joined, each round's state and holders, the result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tacit.channels.roles.store import Store

__all__ = ["Journal", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """A round: the state it opens with and, once chosen, whose sum it is.

    marks     what each server has of these holders' shares (seals.Question)
    seals     each server's word that it answers this question, once all have given it
    attempt   how often shares of the round were asked for again
    """

    number: int
    state: bytes
    holders: tuple[str, ...] | None = None
    marks: tuple[bytes, ...] = ()
    seals: tuple[str, ...] = ()
    attempt: int = 0


class Journal(Store):
    role = "aggregator"
    tables = (
        "CREATE TABLE member (holder TEXT PRIMARY KEY, gone INTEGER NOT NULL)",
        "CREATE TABLE step (number INTEGER PRIMARY KEY, state BLOB NOT NULL, holders TEXT,"
        " marks TEXT, seals TEXT, attempt INTEGER NOT NULL DEFAULT 0)",
        "CREATE TABLE result (model BLOB NOT NULL, certificate TEXT NOT NULL)",
    )
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {
        1: (
            "ALTER TABLE step ADD COLUMN marks TEXT",
            "ALTER TABLE step ADD COLUMN seals TEXT",
            "ALTER TABLE step ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0",
        )
    }
    goes_on = True  # the servers repeat what they have answered

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
        rows = self.database.execute(
            "SELECT number, state, holders, marks, seals, attempt FROM step ORDER BY number"
        )
        return [
            Step(
                number,
                state,
                None if holders is None else tuple(json.loads(holders)),
                tuple(bytes.fromhex(mark) for mark in json.loads(marks or "[]")),
                tuple(json.loads(seals or "[]")),
                attempt,
            )
            for number, state, holders, marks, seals, attempt in rows
        ]

    def put_step(self, number: int, state: bytes) -> None:
        self.database.execute("INSERT INTO step (number, state) VALUES (?, ?)", (number, state))
        self.step()

    def choose(self, number: int, holders: Sequence[str], marks: Sequence[bytes]) -> None:
        self.database.execute(
            "UPDATE step SET holders = ?, marks = ? WHERE number = ?",
            (json.dumps(list(holders)), json.dumps([mark.hex() for mark in marks]), number),
        )
        self.step()

    def keep_seals(self, number: int, seals: Sequence[str]) -> None:
        self.database.execute(
            "UPDATE step SET seals = ? WHERE number = ?", (json.dumps(list(seals)), number)
        )

    def ask_again(self, number: int, attempt: int) -> None:
        self.database.execute("UPDATE step SET attempt = ? WHERE number = ?", (attempt, number))

    @property
    def is_over(self) -> bool:
        return self.result() is not None

    def put_result(self, model: bytes, certificate: str) -> None:
        self.database.execute("INSERT INTO result VALUES (?, ?)", (model, certificate))

    def result(self) -> tuple[bytes, str] | None:
        found: tuple[bytes, str] | None = self.database.execute("SELECT * FROM result").fetchone()
        return found
