"""One attempt of a protocol, as both sides know it: what is signed, and that everybody has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import msgspec

from tacit.channels.consortium.terms import Terms
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey, canonical, digest, signed_by
from tacit.errors import CheckFailed
from tacit.privacy.certificate import statement

__all__ = ["Key", "Run", "Word"]

AnyTerms = TypeVar("AnyTerms", bound=Terms)


class Key(msgspec.Struct, frozen=True):
    """A party's key for this attempt, signed by its identity."""

    public: str
    signature: str


class Word(msgspec.Struct, frozen=True):
    """What the last body of every protocol ends with: the party's word on its noise."""

    statement: str
    secure: bool


@dataclass(frozen=True)
class Run(Generic[AnyTerms]):
    """Study, terms and the number of the attempt."""

    study: Study
    terms: AnyTerms
    attempt: int

    @cached_property
    def context(self) -> bytes:
        """Public bytes that no other attempt of any study has."""
        return bytes.fromhex(digest([self.study.digest, self.attempt, list(self.terms.roster)]))

    def said(self, what: str, content: str = "") -> bytes:
        """What is signed: for this study, this attempt, this roster."""
        return canonical(["tacit consortium", what, self.context.hex(), content])

    def signed_key(self, key: SigningKey, public: str) -> Key:
        return Key(public, key.sign(self.said("key", public)))

    def check_keys(self, keys: Mapping[str, Key]) -> None:
        signed = {party: (key.signature, key.public) for party, key in keys.items()}
        self.check_all("key", signed)

    def check_all(self, what: str, signed: Mapping[str, tuple[str, str]]) -> None:
        """Everybody of the roster, and nobody else, has signed (signature, content)."""
        if set(signed) != set(self.terms.roster):
            raise CheckFailed(f"not every party of the roster has signed its {what}.")
        for party, (signature, content) in signed.items():
            if not signed_by(party, signature, self.said(what, content)):
                raise CheckFailed(f"a party's {what} is not signed by it for this attempt.")

    def statement(self, secure: bool) -> bytes:
        """What each party signs of the noise that was added."""
        terms = self.terms
        return statement(
            self.study.digest, self.study.promise, terms.releases, terms.participation, secure
        )
