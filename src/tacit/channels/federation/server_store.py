"""What a server must not forget: rounds, shares, and what it has answered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import msgspec

from tacit.channels.federation.seals import Question
from tacit.channels.roles.store import Store
from tacit.errors import Refused
from tacit.privacy.bound import Norm
from tacit.programs.program import Block, Query

__all__ = ["Round", "ServerStore"]

BATCH = 256  # shares that are read at a time
SECRET_BYTES = 32
# What the noise of every question follows from.
SECRET = "CREATE TABLE secret (bytes BLOB NOT NULL)"
# The newest seals of its own that others have shown to this server.
SHOWN = "CREATE TABLE shown (round INTEGER PRIMARY KEY, digest BLOB NOT NULL)"
# The results that this server has signed, by after how many rounds: a study has one of each, and
# without windows only one. Of a server before version 4 it is not known after how many: NULL.
ATTESTED = "CREATE TABLE attested (subject TEXT NOT NULL)"
AFTER = "ALTER TABLE attested ADD COLUMN rounds INTEGER"


@dataclass(frozen=True, slots=True)
class Round:
    """A round that was opened.

    sealed    the one question that is answered in it, once that is settled
    holders   of the question, once the round is closed
    answer    likewise; None in a closed round that was recalled after a restore
    """

    number: int
    state: bytes  # its digest
    query: Query
    holders: tuple[str, ...] | None = None
    answer: bytes | None = None
    sealed: Question | None = None


class ServerStore(Store):
    role = "server"
    page_bytes = (
        32768  # half the time of small pages for shares of 80 kB, and no more for short ones
    )
    tables = (
        "CREATE TABLE round (number INTEGER PRIMARY KEY, state BLOB NOT NULL,"
        " query TEXT NOT NULL, holders TEXT, answer BLOB, sealed BLOB)",
        "CREATE TABLE share (round INTEGER, holder TEXT, form TEXT NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (round, holder))",
        "CREATE TABLE finished (yes INTEGER)",
        SECRET,
        SHOWN,
        ATTESTED,
        AFTER,
    )
    version = 4
    upgrades: ClassVar[Mapping[int, tuple[str, ...]]] = {
        1: ("ALTER TABLE round ADD COLUMN sealed BLOB", SECRET, SHOWN),
        2: (ATTESTED,),
        3: (AFTER,),
    }
    goes_on = True  # what it has sealed it can be shown, and the same question has the same noise
    forgets = ("DELETE FROM share",)  # holders send theirs again: none is summed without them

    def __init__(self, path: str | Path, study: str) -> None:
        self._study = study
        super().__init__(path, study)
        with self.transaction():
            if self.database.execute("SELECT 1 FROM secret").fetchone() is None:
                made = (os.urandom(SECRET_BYTES),)
                self.database.execute("INSERT INTO secret VALUES (?)", made)

    @property
    def secret(self) -> bytes:
        """Made once; as much to be kept as the server's key."""
        found: bytes = self.database.execute("SELECT bytes FROM secret").fetchone()[0]
        return found

    def rounds(self) -> list[Round]:
        rows = self.database.execute(
            "SELECT number, state, query, holders, answer, sealed FROM round ORDER BY number"
        )
        return [
            Round(number, state, _query(query), _names(holders), answer, _question(sealed))
            for number, state, query, holders, answer, sealed in rows
        ]

    def open_round(self, number: int, state: bytes, query: Query) -> None:
        self.database.execute(
            "INSERT INTO round (number, state, query) VALUES (?, ?, ?)",
            (number, state, _query_text(query)),
        )

    def seal(self, question: Question) -> None:
        """Settle what the round sums; Refused if it is settled, also by another process."""
        self._settle(
            "UPDATE round SET sealed = ? WHERE number = ? AND sealed IS NULL",
            (msgspec.msgpack.encode(question), question.number),
        )

    def close_round(self, number: int, holders: Sequence[str], answer: bytes | None) -> None:
        """Once; `answer` is None if it was given in a past that the store does not know."""
        self._settle(
            "UPDATE round SET holders = ?, answer = ? WHERE number = ? AND answer IS NULL",
            (json.dumps(list(holders)), answer, number),
        )

    def _settle(self, statement: str, values: tuple[object, ...]) -> None:
        if self.database.execute(statement, values).rowcount != 1:
            raise Refused(f"round {values[-1]} was settled before, in another way.")
        self.step()

    def shown(self) -> dict[int, bytes]:
        """What this server has sealed in each round, as others have shown it."""
        return dict(self.database.execute("SELECT round, digest FROM shown").fetchall())

    def put_shown(self, number: int, digest: bytes) -> None:
        self.database.execute("INSERT OR IGNORE INTO shown VALUES (?, ?)", (number, digest))

    def words(self) -> str:
        """Our newest seal, and the newest result we have signed: what comes back from a backup must
        not seal anything else before the one, nor sign anything but the other."""
        seals = self.shown()
        newest = self.database.execute(
            "SELECT sealed FROM round WHERE sealed IS NOT NULL ORDER BY number DESC LIMIT 1"
        ).fetchone()
        if newest is not None and (question := _question(newest[0])) is not None:
            seals[question.number] = question.digest(self._study)
        last = max(seals, default=0)
        rounds, subject = self.newest_attested
        signed = f" {subject} {rounds}" if subject else ""
        return f"{last} {seals[last].hex()}{signed}" if last else ""

    def remind(self, words: str) -> None:
        if words:
            number, digest, *signed = words.split()
            self.put_shown(int(number), bytes.fromhex(digest))
            rounds = int(signed[1]) if len(signed) > 1 else int(number)
            if signed and self.attested(rounds) is None:
                self.attest(signed[0], rounds)

    def attested(self, rounds: int) -> str | None:
        """The SHA-256 of the one result after so many rounds that this server has signed."""
        found = self.database.execute(
            "SELECT subject FROM attested WHERE rounds = ? OR rounds IS NULL", (rounds,)
        ).fetchone()
        return None if found is None else str(found[0])

    @property
    def newest_attested(self) -> tuple[int, str]:
        """The newest result that this server has signed, and after how many rounds; 0, "" if none.
        Version 3 signed one result, after all rounds that it knew."""
        found: tuple[int, str] | None = self.database.execute(
            "SELECT COALESCE(rounds, (SELECT MAX(number) FROM round), 0), subject FROM attested"
            " ORDER BY 1 DESC"
        ).fetchone()
        return found or (0, "")

    def attest(self, subject: str, rounds: int) -> None:
        self.database.execute("INSERT INTO attested VALUES (?, ?)", (subject, rounds))
        self.step()

    def put_share(self, number: int, holder: str, form: str, body: bytes) -> None:
        self.database.execute("INSERT INTO share VALUES (?, ?, ?, ?)", (number, holder, form, body))

    def share(self, number: int, holder: str) -> tuple[str, bytes]:
        """The form and the body of a share that has arrived."""
        found: tuple[str, bytes] = self.database.execute(
            "SELECT form, body FROM share WHERE round = ? AND holder = ?", (number, holder)
        ).fetchone()
        return found

    def bodies(self, number: int, form: str, holders: set[str]) -> Iterator[list[bytes]]:
        """The shares of these holders that have this form, some at a time."""
        rows = self.database.execute(
            "SELECT holder, body FROM share WHERE round = ? AND form = ?", (number, form)
        )
        while found := rows.fetchmany(BATCH):
            yield [body for holder, body in found if holder in holders]

    def shares_of(self, number: int) -> Iterator[tuple[str, str, bytes]]:
        """Holder, form and body of all that have arrived."""
        return iter(
            self.database.execute(
                "SELECT holder, form, body FROM share WHERE round = ? ORDER BY holder", (number,)
            )
        )

    def drop_shares(self, before: int) -> None:
        """Shares of closed rounds are of no use to anyone but a thief."""
        self.database.execute("DELETE FROM share WHERE round < ?", (before,))

    def finish(self) -> None:
        self.database.execute("INSERT INTO finished VALUES (1)")
        self.database.execute("DELETE FROM share")

    @property
    def is_over(self) -> bool:
        return self.is_finished

    @property
    def is_finished(self) -> bool:
        return self.database.execute("SELECT yes FROM finished").fetchone() is not None


def _query_text(query: Query) -> str:
    return json.dumps(
        [
            [b.name, b.length, b.norm.value, str(b.bound), str(b.step), str(b.weight)]
            + ([b.shift, b.nonnegative] if b.shift or b.nonnegative else [])
            for b in query.blocks
        ]
    )


def _query(text: str) -> Query:
    return Query(
        tuple(
            Block(name, length, Norm(norm), Fraction(bound), step and Fraction(step), *rest)
            for name, length, norm, bound, step, *rest in json.loads(text)
        )
    )


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(json.loads(text))


def _question(body: bytes | None) -> Question | None:
    return None if body is None else msgspec.msgpack.decode(body, type=Question)
