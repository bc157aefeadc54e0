"""What the innermost layer of a packet holds: an answer with its proof, or nothing (cover)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from tacit.channels.crowd.questions import Question
from tacit.crypto.signing import canonical
from tacit.errors import InputError

__all__ = ["COVER", "Answer", "payload_bytes", "read_payload", "receipt_of", "signed_message"]

STUDY_BYTES = 8  # tells a stray packet of another study from a forged one
HEAD = 1 + STUDY_BYTES + 2
COVER = b"\x00"
ANSWER = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """One report: to which question (its place in the plan), and the proof of membership."""

    study: str
    question: int
    report: bytes
    proof: bytes

    def to_bytes(self) -> bytes:
        return b"".join(
            (
                bytes([ANSWER]),
                bytes.fromhex(self.study)[:STUDY_BYTES],
                self.question.to_bytes(2, "big"),
                self.report,
                self.proof,
            )
        )


def read_payload(
    payload: bytes, study: str, questions: list[Question], proof: int
) -> Answer | None:
    """The answer in a payload, or None for cover; InputError says what is wrong, in one word."""
    if payload[:1] == COVER:
        return None
    if payload[:1] != bytes([ANSWER]) or len(payload) < HEAD:
        raise InputError("malformed")
    if payload[1 : 1 + STUDY_BYTES] != bytes.fromhex(study)[:STUDY_BYTES]:
        raise InputError("another study")
    number = int.from_bytes(payload[1 + STUDY_BYTES : HEAD], "big")
    if number >= len(questions):
        raise InputError("malformed")
    size = questions[number].randomiser.report_bytes
    report, rest = payload[HEAD : HEAD + size], payload[HEAD + size : HEAD + size + proof]
    if len(rest) != proof or any(payload[HEAD + size + proof :]):
        raise InputError("malformed")
    return Answer(study, number, report, rest)


def payload_bytes(questions: Iterable[Question], proof: int) -> int:
    """The longest answer with a proof of this length; all packets are padded to it."""
    return HEAD + max(q.randomiser.report_bytes for q in questions) + proof


def signed_message(study: str, question: str, report: bytes) -> bytes:
    """What a proof is about: this answer to this question of this study, and no other."""
    return canonical(["tacit crowd answer, version 1", study, question, report.hex()])


def receipt_of(mark: bytes) -> bytes:
    """What is published of a proof's mark."""
    return hashlib.sha256(b"tacit crowd receipt" + mark).digest()
