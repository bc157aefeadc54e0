"""What a server must not forget: rounds, shares, and what it has answered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.channels.roles.store import Store
from tacit.privacy.bound import Norm
from tacit.programs.program import Block, Query

__all__ = ["Round", "ServerStore"]

BATCH = 256  # shares that are read at a time


@dataclass(frozen=True, slots=True)
class Round:
    """A round that was opened; `holders` and `answer` once it is closed."""

    number: int
    state: bytes  # its digest
    query: Query
    holders: tuple[str, ...] | None = None
    answer: bytes | None = None


class ServerStore(Store):
    role = "server"
    page_bytes = (
        32768  # half the time of small pages for shares of 80 kB, and no more for short ones
    )
    tables = (
        "CREATE TABLE round (number INTEGER PRIMARY KEY, state BLOB NOT NULL,"
        " query TEXT NOT NULL, holders TEXT, answer BLOB)",
        "CREATE TABLE share (round INTEGER, holder TEXT, form TEXT NOT NULL, body BLOB NOT NULL,"
        " PRIMARY KEY (round, holder))",
        "CREATE TABLE finished (yes INTEGER)",
    )

    def rounds(self) -> list[Round]:
        rows = self.database.execute("SELECT * FROM round ORDER BY number")
        return [
            Round(number, state, _query(query), _names(holders), answer)
            for number, state, query, holders, answer in rows
        ]

    def open_round(self, number: int, state: bytes, query: Query) -> None:
        self.database.execute(
            "INSERT INTO round (number, state, query) VALUES (?, ?, ?)",
            (number, state, _query_text(query)),
        )

    def close_round(self, number: int, holders: Sequence[str], answer: bytes) -> None:
        self.database.execute(
            "UPDATE round SET holders = ?, answer = ? WHERE number = ?",
            (json.dumps(list(holders)), answer, number),
        )

    def put_share(self, number: int, holder: str, form: str, body: bytes) -> None:
        self.database.execute("INSERT INTO share VALUES (?, ?, ?, ?)", (number, holder, form, body))

    def share(self, number: int, holder: str) -> tuple[str, bytes]:
        """The form and the body of a share that has arrived."""
        found: tuple[str, bytes] = self.database.execute(
            "SELECT form, body FROM share WHERE round = ? AND holder = ?", (number, holder)
        ).fetchone()
        return found

    def arrived(self, number: int) -> set[str]:
        """Whose shares are here for this round."""
        rows = self.database.execute("SELECT holder FROM share WHERE round = ?", (number,))
        return {holder for (holder,) in rows}

    def bodies(self, number: int, form: str, holders: set[str]) -> Iterator[list[bytes]]:
        """The shares of these holders that have this form, some at a time."""
        rows = self.database.execute(
            "SELECT holder, body FROM share WHERE round = ? AND form = ?", (number, form)
        )
        while found := rows.fetchmany(BATCH):
            yield [body for holder, body in found if holder in holders]

    def drop_shares(self, before: int) -> None:
        """Shares of closed rounds are of no use to anyone but a thief."""
        self.database.execute("DELETE FROM share WHERE round < ?", (before,))

    def finish(self) -> None:
        self.database.execute("INSERT INTO finished VALUES (1)")
        self.database.execute("DELETE FROM share")

    @property
    def is_finished(self) -> bool:
        return self.database.execute("SELECT yes FROM finished").fetchone() is not None


def _query_text(query: Query) -> str:
    return json.dumps(
        [
            [b.name, b.length, b.norm.value, str(b.bound), str(b.step), str(b.weight)]
            for b in query.blocks
        ]
    )


def _query(text: str) -> Query:
    return Query(
        tuple(
            Block(name, length, Norm(norm), Fraction(bound), step and Fraction(step), *weight)
            for name, length, norm, bound, step, *weight in json.loads(text)
        )
    )


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(json.loads(text))
