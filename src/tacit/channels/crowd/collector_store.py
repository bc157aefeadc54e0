"""What a collector must not forget: who registered, which tokens it signed, what arrived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from tacit.channels.crowd.letters import Reveal, Wave
from tacit.channels.roles.store import Store

__all__ = ["CollectorStore", "Phase", "Progress", "Stored"]

Phase = Literal["gathering", "drawing", "asking", "over", "failed"]


class Progress(msgspec.Struct, frozen=True):
    """How far the study is.

    number  of the step, rising
    closes  when the phase ends at the latest, by the collector's clock (for "asking": see wave)
    silent  relays, by place, that said nothing in the last wave
    """

    number: int
    phase: Phase
    closes: float
    wave: Wave | None = None
    silent: tuple[int, ...] = ()
    reason: str = ""


class Stored(NamedTuple):
    """A verified report, and the wave in which it first arrived."""

    mark: bytes
    question: str
    stage: int
    wave: int
    report: bytes


class CollectorStore(Store):
    role = "collector"
    tables = (
        "CREATE TABLE member (key TEXT PRIMARY KEY) WITHOUT ROWID",
        "CREATE TABLE lot (place INTEGER PRIMARY KEY, commitment TEXT NOT NULL, reveal BLOB)",
        "CREATE TABLE issued (member TEXT NOT NULL, question TEXT NOT NULL, blinded BLOB NOT NULL,"
        " signature BLOB NOT NULL, PRIMARY KEY (member, question)) WITHOUT ROWID",
        "CREATE TABLE report (mark BLOB PRIMARY KEY, question TEXT NOT NULL, stage INTEGER NOT"
        " NULL, wave INTEGER NOT NULL, report BLOB NOT NULL) WITHOUT ROWID",
        "CREATE TABLE batch (relay INTEGER NOT NULL, stage INTEGER NOT NULL, wave INTEGER NOT NULL,"
        " hop INTEGER NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (relay, stage, wave, hop))",
        "CREATE TABLE refused (reason TEXT PRIMARY KEY, count INTEGER NOT NULL)",
        "CREATE TABLE progress (one INTEGER PRIMARY KEY CHECK (one = 1), body BLOB NOT NULL)",
    )

    def progress(self) -> Progress | None:
        row = self.database.execute("SELECT body FROM progress").fetchone()
        return None if row is None else msgspec.msgpack.decode(row[0], type=Progress)

    def put_progress(self, progress: Progress) -> None:
        body = msgspec.msgpack.encode(progress)
        self.database.execute("INSERT OR REPLACE INTO progress VALUES (1, ?)", (body,))
        self.step()

    @property
    def is_over(self) -> bool:
        progress = self.progress()
        return progress is not None and progress.phase in ("over", "failed")

    # ── the roster and the lots ──

    def members(self) -> list[str]:
        return [key for (key,) in self.database.execute("SELECT key FROM member ORDER BY key")]

    def put_member(self, key: str) -> None:
        self.database.execute("INSERT OR IGNORE INTO member VALUES (?)", (key,))

    def lots(self) -> tuple[dict[int, str], dict[int, Reveal]]:
        """What the relays committed to, and what they have revealed, by place."""
        rows = self.database.execute("SELECT place, commitment, reveal FROM lot ORDER BY place")
        commitments, reveals = {}, {}
        for place, commitment, reveal in rows:
            commitments[place] = commitment
            if reveal is not None:
                reveals[place] = msgspec.msgpack.decode(reveal, type=Reveal)
        return commitments, reveals

    def put_commitment(self, place: int, commitment: str) -> None:
        self.database.execute("INSERT INTO lot VALUES (?, ?, NULL)", (place, commitment))

    def put_reveal(self, place: int, reveal: Reveal) -> None:
        body = msgspec.msgpack.encode(reveal)
        self.database.execute("UPDATE lot SET reveal = ? WHERE place = ?", (body, place))

    # ── tokens ──

    def issued(self, member: str, question: str) -> tuple[bytes, bytes] | None:
        """What this member had signed for this question, blinded, and the signature."""
        found: tuple[bytes, bytes] | None = self.database.execute(
            "SELECT blinded, signature FROM issued WHERE member = ? AND question = ?",
            (member, question),
        ).fetchone()
        return found

    def put_issued(self, member: str, question: str, blinded: bytes, signature: bytes) -> None:
        self.database.execute(
            "INSERT INTO issued VALUES (?, ?, ?, ?)", (member, question, blinded, signature)
        )

    def tokens(self) -> int:
        return int(self.database.execute("SELECT count(*) FROM issued").fetchone()[0])

    # ── reports ──

    def reports(self) -> list[Stored]:
        """All of them, in an order that says nothing about when they came."""
        return [
            Stored(*row)
            for row in self.database.execute(
                "SELECT mark, question, stage, wave, report FROM report ORDER BY mark"
            )
        ]

    def put_reports(self, reports: Iterable[Stored], refused: Mapping[str, int]) -> None:
        """What one delivery brought, all or nothing."""
        with self.transaction():
            self.database.executemany("INSERT INTO report VALUES (?, ?, ?, ?, ?)", reports)
            self.database.executemany(
                "INSERT INTO refused VALUES (?, ?)"
                " ON CONFLICT (reason) DO UPDATE SET count = count + excluded.count",
                refused.items(),
            )

    def refused(self) -> Counter[str]:
        return Counter(dict(self.database.execute("SELECT reason, count FROM refused")))

    # ── batches ──

    def put_batches(self, relay: int, stage: int, wave: int, sizes: Mapping[int, int]) -> None:
        with self.transaction():
            self.database.executemany(
                "INSERT OR REPLACE INTO batch VALUES (?, ?, ?, ?, ?)",
                # A relay without a batch is heard of too.
                [(relay, stage, wave, hop, size) for hop, size in (sizes or {-1: 0}).items()],
            )

    def heard(self, stage: int, wave: int) -> set[int]:
        """The relays that told of a batch of this wave."""
        rows = self.database.execute(
            "SELECT DISTINCT relay FROM batch WHERE stage = ? AND wave = ?", (stage, wave)
        )
        return {relay for (relay,) in rows}
