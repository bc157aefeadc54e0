"""One attempt of a protocol, as both sides know it: what is signed, and that everybody has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from tacit.channels.consortium.terms import Terms
from tacit.channels.roles.letters import read
from tacit.channels.studies.study import Study
from tacit.crypto.boxes import is_public_key
from tacit.crypto.signing import SigningKey, canonical, digest, signed_by
from tacit.errors import CheckFailed
from tacit.privacy.certificate import statement

__all__ = ["Key", "KeyList", "Run", "Word", "check_new_key"]

AnyTerms = TypeVar("AnyTerms", bound=Terms)

# Of all that is signed. Version 1, of tacit 0.1, did not cover whose keys a party had received.
SIGNED = "tacit consortium 2"


class Key(msgspec.Struct, frozen=True):
    """A party's key for this attempt, signed by its identity.

    secure   whether its draws will be: said here, so that everybody knows before the first vector
             leaves what all will sign of the noise in the last step
    """

    public: str
    signature: str
    secure: bool = True

    @property
    def content(self) -> str:
        return digest([self.public, self.secure])


class Word(msgspec.Struct, frozen=True):
    """What the last body of every protocol ends with: the party's word on its noise, and whether
    all draws were secure, as the keys say."""

    statement: str
    secure: bool


@dataclass(frozen=True)
class KeyList:
    """Everybody's key, checked. Whatever a party signs or derives from here on covers `digest`, so
    that parties who were shown different lists never accept anything of one another."""

    by_party: Mapping[str, Key]

    @cached_property
    def digest(self) -> str:
        return digest([[party, key.content] for party, key in sorted(self.by_party.items())])

    @cached_property
    def context(self) -> bytes:
        return bytes.fromhex(self.digest)

    @property
    def secure(self) -> bool:
        return all(key.secure for key in self.by_party.values())


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
        return canonical([SIGNED, what, self.context.hex(), content])

    # ── keys ──

    def signed_key(self, key: SigningKey, public: str, secure: bool = True) -> Key:
        content = Key(public, "", secure).content
        return Key(public, key.sign(self.said("key", content)), secure)

    def check_key(self, party: str, key: Key) -> None:
        self.check_signed(party, "key", key.signature, key.content)
        if not is_public_key(key.public):
            raise CheckFailed(f"{self.name(party)} has signed a key that is not one of X25519.")

    def checked_keys(self, keys: Mapping[str, Key], own: Key | None = None) -> KeyList:
        """Of everybody on the roster and of nobody else, no two the same; ours (`own`) is ours.

        Who signs another's key as its own cannot use it: but two parties would share what only one
        of them should (joint.md, masks).
        """
        self.check_everybody("key", keys)
        owners: dict[str, str] = {}
        for party, key in keys.items():
            self.check_key(party, key)
            other = owners.setdefault(key.public, party)
            if other != party:
                raise CheckFailed(f"{self.name(party)} has signed the key of {self.name(other)}.")
        if own is not None and own not in keys.values():
            raise CheckFailed("the curator shows others a key of ours that is not this attempt's.")
        return KeyList(dict(keys))

    # ── what everybody signs ──

    def check_everybody(self, what: str, signed: Mapping[str, object]) -> None:
        if set(signed) != set(self.terms.roster):
            raise CheckFailed(f"not every party of the roster has signed its {what}.")

    def check_signed(self, party: str, what: str, signature: str, content: str) -> None:
        if not signed_by(party, signature, self.said(what, content)):
            raise CheckFailed(
                f"the {what} of {self.name(party)} is not signed by it for this attempt, these "
                "parties and these keys: it does not follow the protocol, or the curator has shown "
                "different parties different things. Nothing more is sent in this attempt."
            )

    def name(self, party: str) -> str:
        return self.study.holder_named(party) or "a stranger"

    # ── the end ──

    def statement(self, secure: bool) -> bytes:
        """What each party signs of the noise that was added."""
        terms = self.terms
        return statement(
            self.study.digest, self.study.promise, terms.releases, terms.participation, secure
        )

    def check_word(self, party: str, word: Word, secure: bool) -> None:
        """A party vouches for its noise as all have said that they would (`KeyList.secure`)."""
        vouched = signed_by(party, word.statement, self.statement(secure))
        if word.secure != secure or not vouched:
            raise CheckFailed(
                f"{self.name(party)} does not vouch for the noise that it should have added."
            )


def check_new_key(run: Run[Any], party: str, body: bytes, others: Mapping[str, bytes]) -> None:
    """What a curator asks of the first body of every protocol: the party's own key, and nobody
    else's. A bad one is its sender's trouble alone."""
    key = read(Key, body)
    run.check_key(party, key)
    if any(read(Key, other).public == key.public for other in others.values()):
        raise CheckFailed("another party has signed this key before: make one of your own.")
