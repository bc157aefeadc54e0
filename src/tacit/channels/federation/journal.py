"""What an aggregator must not forget: who joined, each round's state and holders, the result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tacit.channels.roles.store import Store

__all__ = ["Journal", "Step"]

# The newest model of a study in windows, after so many rounds.
NEWEST = (
    "CREATE TABLE newest (rounds INTEGER NOT NULL, model BLOB NOT NULL, certificate TEXT NOT NULL)"
)


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


# Why the study has ended without a result, and what a server has signed of it.
STOPPED = "CREATE TABLE stopped (reason TEXT NOT NULL, statement TEXT NOT NULL)"


class Journal(Store):
    role = "aggregator"
    version = 3
    tables = (
        "CREATE TABLE member (holder TEXT PRIMARY KEY, gone INTEGER NOT NULL)",
        "CREATE TABLE step (number INTEGER PRIMARY KEY, state BLOB NOT NULL, holders TEXT,"
        " marks TEXT, seals TEXT, attempt INTEGER NOT NULL DEFAULT 0)",
        "CREATE TABLE result (model BLOB NOT NULL, certificate TEXT NOT NULL)",
        STOPPED,
        NEWEST,
    )
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {
        1: (
            "ALTER TABLE step ADD COLUMN marks TEXT",
            "ALTER TABLE step ADD COLUMN seals TEXT",
            "ALTER TABLE step ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0",
        ),
        2: (STOPPED, NEWEST),
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
        return self.result() is not None or self.stopped() is not None

    def stop(self, reason: str, statement: str) -> None:
        self.database.execute("INSERT INTO stopped VALUES (?, ?)", (reason, statement))

    def stopped(self) -> tuple[str, str] | None:
        """Why the study ended without a result, if it did, and what a server has signed of it."""
        found: tuple[str, str] | None = self.database.execute("SELECT * FROM stopped").fetchone()
        return found

    def put_newest(self, rounds: int, model: bytes, certificate: str) -> None:
        self.database.execute("DELETE FROM newest")
        self.database.execute("INSERT INTO newest VALUES (?, ?, ?)", (rounds, model, certificate))

    def newest(self) -> tuple[int, bytes, str]:
        """The newest model of a study in windows, and after how many rounds it is: 0 if none."""
        found: tuple[int, bytes, str] | None
        found = self.database.execute("SELECT * FROM newest").fetchone()
        return found or (0, b"", "")

    def put_result(self, model: bytes, certificate: str) -> None:
        self.database.execute("INSERT INTO result VALUES (?, ?)", (model, certificate))

    def result(self) -> tuple[bytes, str] | None:
        found: tuple[bytes, str] | None = self.database.execute("SELECT * FROM result").fetchone()
        return found
