"""What a round sums, as one digest that every server signs once: server.md, *nobody answers twice*.

A question names the round, its state, the holders, and what each server has of them. A server signs
(seals) one question of a round, and answers only a question that all servers have sealed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from tacit.channels.federation.letters import Sealed
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey, canonical, signed_by
from tacit.errors import CheckFailed, InputError

__all__ = ["MARK_BYTES", "Question", "check_seals", "is_seal", "mark_of", "marks_of", "seal"]

MARK_BYTES = 32


class Question(msgspec.Struct, frozen=True):
    """What a round sums.

    state   digest of the state that the round was opened with
    keys    the holders, in sorted order
    marks   one digest for each server, in the study's order, of the shares it has of them
    """

    number: int
    state: bytes
    keys: tuple[str, ...]
    marks: tuple[bytes, ...]

    @classmethod
    def of(cls, number: int, state: bytes, said: Sealed, study: Study) -> Question:
        """The question of a letter, if it has the form of one."""
        if list(said.keys) != sorted(set(said.keys)):
            raise InputError("the holders of a sum are listed once each, in order.")
        if [len(mark) for mark in said.marks] != [MARK_BYTES] * len(study.servers):
            raise InputError(
                f"a sum is named with one digest of {MARK_BYTES} bytes for each of the "
                f"{len(study.servers)} servers, of the shares that it has."
            )
        return cls(number, state, tuple(said.keys), tuple(said.marks))

    def digest(self, study: str) -> bytes:
        said = [self.number, self.state.hex(), self.keys, [mark.hex() for mark in self.marks]]
        return hashlib.sha256(canonical(["tacit question, version 1", study, *said])).digest()


def mark_of(form: str, body: bytes) -> bytes:
    """One share."""
    return hashlib.sha256(b"tacit share " + form.encode() + b" " + body).digest()


def marks_of(marks: Iterable[bytes]) -> bytes:
    """The shares that one server has of the holders of a sum, in the holders' order."""
    whole = hashlib.sha256(b"tacit shares of a sum")
    for mark in marks:
        whole.update(mark)
    return whole.digest()


def _said(study: str, number: int, digest: bytes) -> bytes:
    return canonical(["tacit seal, version 1", study, number, digest.hex()])


def seal(key: SigningKey, study: str, number: int, digest: bytes) -> str:
    """A server's word that it answers this question in round `number`, and no other."""
    return key.sign(_said(study, number, digest))


def is_seal(server: str, signature: str, study: str, number: int, digest: bytes) -> bool:
    return signed_by(server, signature, _said(study, number, digest))


def check_seals(study: Study, number: int, digest: bytes, seals: Sequence[str]) -> None:
    """CheckFailed unless every server of the study has sealed this question."""
    if len(seals) != len(study.servers):
        raise CheckFailed(
            f"round {number} comes with {len(seals)} seals, not with those of all "
            f"{len(study.servers)} servers."
        )
    for server, signature in zip(study.servers, seals, strict=True):
        if not is_seal(server.key, signature, study.digest, number, digest):
            raise CheckFailed(f"server {server.name} has not sealed this sum of round {number}.")
