"""What the roles of a federation say to one another, without who carries it and how.

holder      → aggregator   ask      "I am done with round r": join, take part, fetch the model
aggregator  → holder       round | wait | window | model | stopped
anybody     → aggregator   status   where does the study stand?
holder      → server       share    one share of this round's sum; the server says: stored
aggregator  → server       open     a round, with its state
                           present  which holders' shares are here?
                           seal     promise to sum these holders, and no others: sealed
                           close    do so and add noise, now that all have sealed: partial
                           recall   what you sealed before your store was put back: recalled
                           attest   sign what noise you added in all, and that this is the result
                           finish   the certificate is out, you may forget the shares
server      → aggregator   behind   instead of an answer: I do not know that round yet
                           lacking  instead of an answer: shares of this sum are not here
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

import msgspec

from tacit.errors import InputError

__all__ = [
    "Asked",
    "Holders",
    "News",
    "Past",
    "Sealed",
    "Share",
    "Subject",
    "Wanted",
    "Witnessed",
    "context_of",
    "digest_of",
]

SEED_BYTES = 32
HASH = re.compile(r"[0-9a-f]{64}")


class Witnessed(msgspec.Struct, frozen=True):
    """The digest of what a round has summed, and the seals of all servers, in the study's order."""

    digest: bytes
    seals: list[str]


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """A round is open: its public state, and how many seconds are left for it.

    attempt   rises when shares of the round are wanted again, since a server has lost them
    before    what the round before has summed; None in the first
    """

    number: int
    seconds: float
    state: bytes
    attempt: int = 0
    before: Witnessed | None = None


class Asked(msgspec.Struct, frozen=True, omit_defaults=True):
    """A holder's question for news, where there is more to say than which round it is done with.

    attempt   that it has answered, once shares were wanted again
    model     of a study in windows: after how many rounds the newest model is that it has
    """

    attempt: int
    model: int = 0


class Holders(msgspec.Struct, frozen=True, omit_defaults=True):
    """A set of holders by public key, in sorted order, and a digest of each one's share."""

    keys: list[str]
    marks: list[bytes] = []


class Sealed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a round sums (see seals.Question), and the seals that are known, in the study's order.

    To seal it there are none yet; to close it, those of all servers; from a server, its own.
    """

    keys: list[str]
    marks: list[bytes] = []
    seals: list[str] = []


class Wanted(msgspec.Struct, frozen=True):
    """The round that a server must be told of before it can answer: its store was put back."""

    number: int


class Past(msgspec.Struct, frozen=True):
    """A round that is over, for a server whose store was put back to before it."""

    state: bytes
    sealed: Sealed


class Share(msgspec.Struct, frozen=True, omit_defaults=True):
    """One holder's share for one server: a seed that stretches to it, or the share itself.

    `state` is the digest of the state that the holder answered to. The server's noise fits the
    bound in *its* copy of that state, so it takes no share that was made for another.
    `before` is what the holder has seen this server seal in the round before, with its seal alone.
    """

    state: bytes
    form: Literal["seed", "full"]
    body: bytes
    before: Witnessed | None = None

    def check(self, length: int) -> None:
        size = SEED_BYTES if self.form == "seed" else 8 * length
        if len(self.body) != size:
            raise InputError(
                f"a {self.form} share of {length} numbers has {size} bytes, not {len(self.body)}."
            )


class Subject(msgspec.Struct, frozen=True):
    """The one result of the study, by the SHA-256 (hex) of its file."""

    digest: str

    def check(self) -> None:
        if not HASH.fullmatch(self.digest):
            raise InputError("a result is named by its SHA-256: 64 hexadecimal digits.")


def digest_of(state: bytes) -> bytes:
    return hashlib.sha256(state).digest()


def context_of(study: str, number: int) -> bytes:
    """Public bytes that keep the keystreams of studies and rounds apart."""
    return hashlib.sha256(f"tacit shares {study} {number}".encode()).digest()
