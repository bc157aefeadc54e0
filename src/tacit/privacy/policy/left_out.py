"""People who asked to be left out, known by keyed digests of their identifiers and never by these.

Nobody without this machine's secret can test a guess against the digests, which stand in the
ledger's chain. An identifier is a text (blanks at its ends taken off, Unicode in composed form,
UAX #15), and where it is spelt like a whole number also that number: `007` and ` 7` are both the
person 7 of a column of integers, and two persons in a column of texts.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.local_secret import local_secret
from tacit.errors import CheckFailed, InputError, Refused

__all__ = [
    "MAX_IDS",
    "LeftOut",
    "digests_of",
    "identifiers_in",
    "key_check",
    "never_whole",
    "secret_of",
]

MAX_IDS = 100_000  # in one request
MAX_ID = 200  # characters
DIGEST_BYTES = 16
WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
NUMERIC = re.compile(r"[+-]?[\d.,_' ]*\d[\d.,_' ]*([eE][+-]?\d+)?|0[xX][0-9a-fA-F]+")


def secret_of() -> bytes:
    return local_secret("left out")


def key_check(secret: bytes) -> str:
    """Says whether a secret is the one that digests were made with."""
    return _digest(secret, "check", "")


def digests_of(secret: bytes, identifier: str) -> tuple[str, ...]:
    """That of the text, which names the person, and that of the number, if it is spelt like one."""
    text = _canonical(identifier)
    if not text or len(text) > MAX_ID:
        raise InputError(f"an identifier has 1 to {MAX_ID} characters.")
    found = [_digest(secret, "text", text)]
    if WHOLE.fullmatch(text):
        found.append(_digest(secret, "number", str(int(text))))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Those of one data set. `secret` never leaves this machine, nor is it shown."""

    dataset: str
    digests: frozenset[str] = frozenset()
    secret: bytes = b""

    def __repr__(self) -> str:
        return f"<LeftOut of {self.dataset}>"

    def __bool__(self) -> bool:
        return bool(self.digests)

    @classmethod
    def known(cls, dataset: str, digests: frozenset[str], check: str | None) -> LeftOut:
        """CheckFailed if this machine has another secret than the one they were made with: then
        nobody would be found."""
        if not digests:
            return cls(dataset)
        secret = secret_of()
        if key_check(secret) != check:
            raise CheckFailed(
                f"people of data set {dataset!r} are left out by digests under another secret than "
                "this machine's: put back keys/records.key of your home, from the same backup as "
                "the ledger. Until then nothing is read for a study."
            )
        return cls(dataset, digests, secret)

    def keep(self, persons: NDArray[Any] | None) -> NDArray[np.bool_]:
        """Which records stay: one answer for each, from its own identifier alone."""
        if persons is None:
            raise Refused(
                f"people of data set {self.dataset!r} asked to be left out, and these records do "
                'not say whose they are. Give a schema with a column of role = "person".'
            )
        kind = "number" if persons.dtype.kind in "iu" else "text"
        values, places = np.unique(persons.astype(object).astype(str), return_inverse=True)
        stays = [_digest(self.secret, kind, _canonical(v)) not in self.digests for v in values]
        return np.asarray(stays, dtype=np.bool_)[places]


def _canonical(identifier: str) -> str:
    return unicodedata.normalize("NFC", identifier.strip())


def _digest(secret: bytes, kind: str, text: str) -> str:
    message = f"{kind}:{text}".encode()
    return hmac.new(secret, message, hashlib.sha256).digest()[:DIGEST_BYTES].hex()


def never_whole(identifiers: Iterable[str]) -> int:
    """How many look like a number but not like a whole one as integers are spelt: in a column of
    integers they match nobody."""
    texts = [_canonical(identifier) for identifier in identifiers]
    return sum(not WHOLE.fullmatch(t) and bool(NUMERIC.fullmatch(t)) for t in texts)


def identifiers_in(lines: Iterable[str]) -> list[str]:
    """One a line; empty lines are none."""
    found = [line.strip() for line in lines if line.strip()]
    if len(found) > MAX_IDS:
        raise InputError(f"there are {len(found)} identifiers; give {MAX_IDS} at a time.")
    return found
