"""What a person must not forget: her answers as randomised, once and for all, and their proofs;
and the last wave that she sent in.

Randomised anew after a crash, an answer would cost a second time. Sent twice in one wave, it would
join two circuits.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.channels.roles.store import Store

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


class PersonJournal(Store):
    role = "person"
    tables = (
        "CREATE TABLE answer (question TEXT PRIMARY KEY, report BLOB NOT NULL, blinded BLOB NOT"
        " NULL, proof BLOB NOT NULL, mark BLOB NOT NULL, arrived INTEGER NOT NULL)",
        "CREATE TABLE sent (one INTEGER PRIMARY KEY CHECK (one = 1), stage INTEGER NOT NULL, wave"
        " INTEGER NOT NULL)",
    )

    def answers(self) -> dict[str, Given]:
        rows = self.database.execute("SELECT * FROM answer")
        return {
            q: Given(q, report, blinded, proof, mark, bool(a))
            for q, report, blinded, proof, mark, a in rows
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
