"""What a collector must not forget: who registered, which tokens it signed, what arrived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal, NamedTuple

import msgspec

from tacit.channels.crowd.letters import Commitment, Reveal, Wave
from tacit.channels.roles.store import Store
from tacit.privacy.attested import BatchStatement

__all__ = ["CollectorStore", "Phase", "Progress", "Stored"]

Phase = Literal["gathering", "drawing", "issuing", "asking", "over", "failed"]


class Progress(msgspec.Struct, frozen=True):
    """How far the study is.

    number  of the step, rising
    closes  when the phase ends at the latest, by the collector's clock (for "asking": see wave)
    stage   whose tokens are issued, or whose wave is open
    """

    number: int
    phase: Phase
    closes: float
    wave: Wave | None = None
    stage: int = 0
    reason: str = ""


class Stored(NamedTuple):
    """A verified report, and the wave in which it first arrived."""

    mark: bytes
    question: str
    stage: int
    wave: int
    report: bytes


STATEMENTS = (
    "CREATE TABLE statement (relay INTEGER NOT NULL, stage INTEGER NOT NULL, wave INTEGER NOT NULL,"
    " body BLOB NOT NULL, PRIMARY KEY (relay, stage, wave))",
    "CREATE TABLE delivered (stage INTEGER NOT NULL, wave INTEGER NOT NULL, question TEXT NOT NULL,"
    " packets INTEGER NOT NULL, PRIMARY KEY (stage, wave, question))",
    "CREATE TABLE drawing (one INTEGER PRIMARY KEY CHECK (one = 1), digest TEXT NOT NULL, relays"
    " BLOB NOT NULL)",
)


class CollectorStore(Store):
    role = "collector"
    version = 3
    tables = (
        "CREATE TABLE member (key TEXT PRIMARY KEY) WITHOUT ROWID",
        "CREATE TABLE lot (place INTEGER PRIMARY KEY, commitment TEXT NOT NULL, reveal BLOB)",
        "CREATE TABLE issued (member TEXT NOT NULL, question TEXT NOT NULL, blinded BLOB NOT NULL,"
        " signature BLOB NOT NULL, PRIMARY KEY (member, question)) WITHOUT ROWID",
        "CREATE TABLE report (mark BLOB PRIMARY KEY, question TEXT NOT NULL, stage INTEGER NOT"
        " NULL, wave INTEGER NOT NULL, report BLOB NOT NULL) WITHOUT ROWID",
        "CREATE TABLE refused (reason TEXT PRIMARY KEY, count INTEGER NOT NULL)",
        "CREATE TABLE progress (one INTEGER PRIMARY KEY CHECK (one = 1), body BLOB NOT NULL)",
        *STATEMENTS,
    )
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {2: STATEMENTS}

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

    def lots(self) -> tuple[dict[int, Commitment], dict[int, Reveal]]:
        """What the relays committed to, and what they have revealed, by place."""
        rows = self.database.execute("SELECT place, commitment, reveal FROM lot ORDER BY place")
        commitments, reveals = {}, {}
        for place, said, reveal in rows:
            commitments[place] = _commitment(said)
            if reveal is not None:
                reveals[place] = msgspec.msgpack.decode(reveal, type=Reveal)
        return commitments, reveals

    def put_commitment(self, place: int, said: Commitment) -> None:
        text = msgspec.json.encode(said).decode()
        self.database.execute("INSERT INTO lot VALUES (?, ?, NULL)", (place, text))

    def put_reveal(self, place: int, reveal: Reveal) -> None:
        body = msgspec.msgpack.encode(reveal)
        self.database.execute("UPDATE lot SET reveal = ? WHERE place = ?", (body, place))

    def put_drawing(self, digest: str, relays: tuple[int, ...]) -> None:
        """What everybody goes by from now on, and which relays are in play."""
        body = msgspec.msgpack.encode(relays)
        self.database.execute("INSERT OR REPLACE INTO drawing VALUES (1, ?, ?)", (digest, body))

    def drawing(self) -> tuple[str, tuple[int, ...]] | None:
        """None before the drawing, and for studies that version 0.1 has held."""
        found = self.database.execute("SELECT digest, relays FROM drawing").fetchone()
        if found is None:
            return None
        return found[0], msgspec.msgpack.decode(found[1], type=tuple[int, ...])

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

    def tokens(self) -> Counter[str]:
        """How many were signed, by question."""
        rows = self.database.execute("SELECT question, count(*) FROM issued GROUP BY question")
        return Counter(dict(rows))

    # ── reports ──

    def reports(self) -> list[Stored]:
        """All of them, in an order that says nothing about when they came."""
        return [
            Stored(*row)
            for row in self.database.execute(
                "SELECT mark, question, stage, wave, report FROM report ORDER BY mark"
            )
        ]

    def put_reports(
        self,
        reports: Iterable[Stored],
        refused: Mapping[str, int],
        delivered: tuple[int, int, str, int],
    ) -> None:
        """What one delivery brought, all or nothing; `delivered` is its stage, wave and question,
        and how many packets were new."""
        with self.transaction():
            self.database.execute(
                "INSERT INTO delivered VALUES (?, ?, ?, ?) ON CONFLICT (stage, wave, question)"
                " DO UPDATE SET packets = packets + excluded.packets",
                delivered,
            )
            self.database.executemany("INSERT INTO report VALUES (?, ?, ?, ?, ?)", reports)
            self.database.executemany(
                "INSERT INTO refused VALUES (?, ?)"
                " ON CONFLICT (reason) DO UPDATE SET count = count + excluded.count",
                refused.items(),
            )

    def refused(self) -> Counter[str]:
        return Counter(dict(self.database.execute("SELECT reason, count FROM refused")))

    # ── what relays say of their batches ──

    def put_statement(self, relay: int, said: BatchStatement) -> bool:
        """Keep the first; whether this is it."""
        with self.transaction():
            body = msgspec.msgpack.encode(said)
            about = (relay, said.stage, said.wave)
            self.database.execute(
                "INSERT OR IGNORE INTO statement VALUES (?, ?, ?, ?)", (*about, body)
            )
            (kept,) = self.database.execute(
                "SELECT body FROM statement WHERE relay = ? AND stage = ? AND wave = ?", about
            ).fetchone()
        return bool(kept == body)

    def statements(self, stage: int, wave: int) -> dict[int, BatchStatement]:
        """Of one wave, by the relays' places."""
        rows = self.database.execute(
            "SELECT relay, body FROM statement WHERE stage = ? AND wave = ? ORDER BY relay",
            (stage, wave),
        )
        return {relay: msgspec.msgpack.decode(body, type=BatchStatement) for relay, body in rows}

    def all_statements(self) -> tuple[BatchStatement, ...]:
        """Of all waves, in their order."""
        rows = self.database.execute("SELECT body FROM statement ORDER BY stage, wave, relay")
        return tuple(msgspec.msgpack.decode(body, type=BatchStatement) for (body,) in rows)

    def delivered(self, stage: int, wave: int) -> dict[str, int]:
        """Packets of each question that have come here in a wave."""
        rows = self.database.execute(
            "SELECT question, packets FROM delivered WHERE stage = ? AND wave = ?"
            " ORDER BY question",
            (stage, wave),
        )
        return dict(rows)


def _commitment(text: str) -> Commitment:
    """Version 0.1 kept it without a signature."""
    if text.startswith("{"):
        return msgspec.json.decode(text, type=Commitment)
    return Commitment(text, "")
