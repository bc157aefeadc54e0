"""What a person must not forget: her answers as randomised, once and for all, and their proofs;
what she was shown first; and the last wave that she sent in.

Randomised anew after a crash, an answer would cost a second time. Sent twice in one wave, it would
join two circuits. Shown other lots, she would answer other questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tacit.channels.crowd.pins import PINS, PinningStore
from tacit.errors import Refused

__all__ = ["Given", "PersonJournal"]


@dataclass(frozen=True, slots=True)
class Given:
    """An answer: the report, what is needed to make its proof, and the proof once it is there.

    mark     that its receipt follows from
    arrived  whether the collector has published the receipt
    """

    question: str
    report: bytes
    blinded: bytes
    proof: bytes = b""
    mark: bytes = b""
    arrived: bool = False


class PersonJournal(PinningStore):
    role = "person"
    version = 3
    tables = (
        "CREATE TABLE answer (question TEXT PRIMARY KEY, report BLOB NOT NULL, blinded BLOB NOT"
        " NULL, proof BLOB NOT NULL, mark BLOB NOT NULL, arrived INTEGER NOT NULL)",
        "CREATE TABLE sent (one INTEGER PRIMARY KEY CHECK (one = 1), stage INTEGER NOT NULL, wave"
        " INTEGER NOT NULL)",
        PINS,
    )
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {2: (PINS,)}

    def belong_to(self, member: str) -> None:
        """Refused if another key has answered from this journal: each has one of its own."""
        known = self.pinned("key")
        if known is None:
            self.pin("key", member)
        elif known != member:
            raise Refused(
                f"{self.path} is the journal of another key of yours: what it has answered was "
                "paid for that one. Start with that key, or with another folder."
            )

    def answers(self) -> dict[str, Given]:
        rows = self.database.execute("SELECT * FROM answer")
        return {
            question: Given(question, report, blinded, proof, mark, bool(arrived))
            for question, report, blinded, proof, mark, arrived in rows
        }

    def put(self, given: Given) -> None:
        """Keep an answer, or more of it; the report itself never changes."""
        self.database.execute(
            "INSERT INTO answer VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (question) DO UPDATE SET"
            " proof = excluded.proof, mark = excluded.mark, arrived = excluded.arrived",
            (
                given.question,
                given.report,
                given.blinded,
                given.proof,
                given.mark,
                given.arrived,
            ),
        )
        self.step()

    def last_wave(self) -> tuple[int, int]:
        """Stage and number of the last wave that anything was sent in; none is (−1, −1)."""
        found: tuple[int, int] | None = self.database.execute(
            "SELECT stage, wave FROM sent"
        ).fetchone()
        return found or (-1, -1)

    def put_wave(self, stage: int, wave: int) -> None:
        self.database.execute("INSERT OR REPLACE INTO sent VALUES (1, ?, ?)", (stage, wave))
