"""What the roles of a federation say to one another, without who carries it and how.

holder      → aggregator   ask      "I am done with round r": join, take part, fetch the model
aggregator  → holder       round | wait | model
holder      → server       share    one share of this round's sum; the server says: stored
aggregator  → server       open     a round, with its state
                           present  which holders' shares are here?
                           close    sum these holders, add noise: the server says: partial
                           attest   sign what noise you added in all
                           finish   the certificate is out, you may forget the shares
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from tacit.errors import InputError

__all__ = ["Holders", "News", "Share", "context_of", "digest_of"]

SEED_BYTES = 32


class News(msgspec.Struct, frozen=True):
    """A round is open: its public state, and how many seconds are left for it."""

    number: int
    seconds: float
    state: bytes


class Holders(msgspec.Struct, frozen=True):
    """A set of holders by public key, in sorted order."""

    keys: list[str]


class Share(msgspec.Struct, frozen=True):
    """One holder's share for one server: a seed that stretches to it, or the share itself.

    `state` is the digest of the state that the holder answered to. The server's noise fits the
    bound in *its* copy of that state, so it takes no share that was made for another.
    """

    state: bytes
    form: Literal["seed", "full"]
    body: bytes

    def check(self, length: int) -> None:
        size = SEED_BYTES if self.form == "seed" else 8 * length
        if len(self.body) != size:
            raise InputError(
                f"a {self.form} share of {length} numbers has {size} bytes, not {len(self.body)}."
            )


def digest_of(state: bytes) -> bytes:
    return hashlib.sha256(state).digest()


def context_of(study: str, number: int) -> bytes:
    """Public bytes that keep the keystreams of studies and rounds apart."""
    return hashlib.sha256(f"tacit shares {study} {number}".encode()).digest()
