"""What the curator and a party must not forget, so that a crash only costs time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.channels.roles.store import MEMORY, Store
from tacit.crypto.signing import fingerprint
from tacit.errors import Refused

__all__ = ["Attempt", "CuratorJournal", "PartyJournal"]

# What a party needs no more when it has its result, or leaves.
ERASED = ("DELETE FROM attempt", "DELETE FROM body", "DELETE FROM encoding", "DELETE FROM said")
RESULT = "CREATE TABLE result (model BLOB NOT NULL, certificate TEXT NOT NULL)"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of the protocol: who is in it, and the secret seed that our draws follow from.

    encoding   a party's: a keyed digest of what the draws are made around (encoding.py)
    """

    number: int
    roster: tuple[str, ...]
    seed: bytes
    encoding: bytes = b""


class _Journal(Store):
    added: tuple[str, ...] = ()

    def __init__(self, path: str | Path, study: str) -> None:
        super().__init__(path, study)
        with self.transaction():
            for table in self.added:
                self.database.execute(table)

    def begin(self, attempt: Attempt) -> None:
        """From here on what is known of an earlier attempt, its seed above all, is erased."""
        with self.transaction():
            self.database.execute("DELETE FROM attempt")
            self.database.execute("DELETE FROM body")
            self.database.execute(
                "INSERT INTO attempt VALUES (?, ?, ?)",
                (attempt.number, json.dumps(attempt.roster), attempt.seed),
            )
            self._note_of(attempt)
            self.step()
        self._wipe_log()

    def _wipe_log(self) -> None:
        """What was deleted is overwritten in the database (secure_delete), but stays in the log
        until that is written back."""
        if self.path != MEMORY:
            self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _note_of(self, attempt: Attempt) -> None:
        """What else is kept of an attempt, in the same transaction."""

    def attempt(self) -> Attempt | None:
        found = self.database.execute("SELECT number, roster, seed FROM attempt").fetchone()
        return None if found is None else Attempt(found[0], tuple(json.loads(found[1])), found[2])

    @property
    def is_over(self) -> bool:
        return self.result() is not None

    def put_result(self, model: bytes, certificate: str, evidence: bytes = b"") -> None:
        """The end: nothing is said any more, so no secret is kept."""
        with self.transaction():
            self.database.execute("INSERT INTO result VALUES (?, ?)", (model, certificate))
            self._erase()
            self._put_evidence(evidence)
        self._wipe_log()

    def _put_evidence(self, evidence: bytes) -> None:
        """What the result can be recomputed from, where it is kept."""

    def _erase(self) -> None:
        """What nobody needs after the end. Who took part stays known."""
        self.database.execute("UPDATE attempt SET seed = x''")
        self.database.execute("DELETE FROM body")

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
    # Added after the first version.
    added = ("CREATE TABLE IF NOT EXISTS evidence (body BLOB NOT NULL)",)

    def _put_evidence(self, evidence: bytes) -> None:
        self.database.execute("INSERT INTO evidence VALUES (?)", (evidence,))

    def evidence(self) -> bytes:
        found = self.database.execute("SELECT body FROM evidence").fetchone()
        return b"" if found is None else bytes(found[0])

    def put(self, step: int, party: str, body: bytes) -> None:
        with self.transaction():
            self.database.execute("INSERT INTO body VALUES (?, ?, ?)", (step, party, body))

    def bodies(self, step: int) -> dict[str, bytes]:
        rows = self.database.execute("SELECT party, body FROM body WHERE step = ?", (step,))
        return dict(rows.fetchall())

    def delivered(self, step: int) -> set[str]:
        """Whose bodies are here: they themselves may be long."""
        rows = self.database.execute("SELECT party FROM body WHERE step = ?", (step,))
        return {party for (party,) in rows}


class PartyJournal(_Journal):
    role = "party"
    tables = (
        "CREATE TABLE attempt (number INTEGER, roster TEXT NOT NULL, seed BLOB NOT NULL)",
        "CREATE TABLE body (step INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE TABLE revealed (attempt INTEGER)",
        RESULT,
    )
    # Added after the first version: its journals have no such tables, and say nothing in them.
    added = (
        "CREATE TABLE IF NOT EXISTS encoding (attempt INTEGER, digest BLOB NOT NULL)",
        "CREATE TABLE IF NOT EXISTS said (step INTEGER, body BLOB NOT NULL)",
        "CREATE TABLE IF NOT EXISTS owner (key TEXT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS paid (attempt INTEGER)",
    )

    def belongs_to(self, key: str) -> None:
        """A journal is one key's: what was drawn under it is nobody else's to go on with."""
        with self.transaction():
            found = self.database.execute("SELECT key FROM owner").fetchone()
            if found is None:
                self.database.execute("INSERT INTO owner VALUES (?)", (key,))
        if found is not None and found[0] != key:
            raise Refused(
                f"{self.path} is the journal of another key, {fingerprint(found[0])}. Start with "
                "that key (--key), or name another folder."
            )

    def _note_of(self, attempt: Attempt) -> None:
        self.database.execute("DELETE FROM encoding")
        self.database.execute("DELETE FROM said")
        self.database.execute(
            "INSERT INTO encoding VALUES (?, ?)", (attempt.number, attempt.encoding)
        )

    def attempt(self) -> Attempt | None:
        """With what it encoded; b"" if that was not noted, which no encoding matches."""
        found = super().attempt()
        if found is None:
            return None
        noted = self.database.execute(
            "SELECT digest FROM encoding WHERE attempt = ?", (found.number,)
        ).fetchone()
        return found if noted is None else replace(found, encoding=noted[0])

    def put(self, step: int, answer: bytes, body: bytes) -> None:
        """What the curator answered to this step, and what we say in the next."""
        with self.transaction():
            self.database.execute("INSERT INTO body VALUES (?, ?)", (step, answer))
            self._say(step + 1, body)

    def say(self, step: int, body: bytes) -> None:
        """What we say in this step: on the disk before it leaves."""
        with self.transaction():
            self._say(step, body)

    def _say(self, step: int, body: bytes) -> None:
        self.database.execute("DELETE FROM said")
        self.database.execute("INSERT INTO said VALUES (?, ?)", (step, body))
        self.step()

    def said(self) -> tuple[int, bytes] | None:
        """The last step of this attempt in which we may have said something, and what."""
        found: tuple[int, bytes] | None = self.database.execute("SELECT * FROM said").fetchone()
        return found

    def answers(self) -> Sequence[bytes]:
        return [b for (b,) in self.database.execute("SELECT body FROM body ORDER BY step")]

    def reveal(self, attempt: int) -> None:
        """Noted before anything is paid or leaves. All that is ever said from here on has been
        written down (`said`), so the seed, which could take our masks off, is erased."""
        with self.transaction():
            self.database.execute("INSERT INTO revealed VALUES (?)", (attempt,))
            self.database.execute("UPDATE attempt SET seed = x''")
            self.step()
        self._wipe_log()

    def pay(self, attempt: int) -> None:
        """The ledger knows of it: what was revealed may leave, now and again."""
        with self.transaction():
            self.database.execute("INSERT INTO paid VALUES (?)", (attempt,))

    @property
    def paid(self) -> bool:
        return self.database.execute("SELECT attempt FROM paid").fetchone() is not None

    def leave(self) -> None:
        """For good: nothing more is said, so no secret is kept."""
        with self.transaction():
            self._erase()
        self._wipe_log()

    def _erase(self) -> None:
        for statement in ERASED:
            self.database.execute(statement)

    def revealed(self) -> int | None:
        """The attempt in which we have given away what makes a release possible: at most one."""
        found = self.database.execute("SELECT attempt FROM revealed").fetchone()
        return None if found is None else int(found[0])
