"""That an answer comes from one of the group, once, without saying from whom.

Either with tokens that the collector signed blindly, one key for each question, or with ring
signatures, which nobody issues. Both prove exactly one message: the answer itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from tacit.channels.crowd.payload import signed_message
from tacit.channels.crowd.proposal import Proposal
from tacit.crypto.blind_signatures import PREFIX_BYTES, Token
from tacit.crypto.ring_signatures import RingSignature
from tacit.crypto.signing import canonical
from tacit.errors import TacitError

__all__ = ["Proofs", "RingProofs", "TokenProofs", "proofs_of", "ring_event"]


class Proofs(Protocol):
    """Checks proofs of one study."""

    @property
    def size(self) -> int:
        """Bytes of a proof."""

    def mark(self, question: str, report: bytes, proof: bytes) -> bytes | None:
        """The same for two uses of one right to answer, of whatever content; None if forged."""


class TokenProofs:
    def __init__(self, proposal: Proposal) -> None:
        self._study, self._keys = proposal.digest, proposal.token_keys
        self.size = proposal.proof_bytes(0)

    def mark(self, question: str, report: bytes, proof: bytes) -> bytes | None:
        key = self._keys[question]
        token, rest = proof[: key.token_bytes], proof[key.token_bytes :]
        message = signed_message(self._study, question, report)
        if any(rest) or not key.verify(message, Token.from_bytes(token)):
            return None
        return hashlib.sha256(token[:PREFIX_BYTES] + message).digest()


class RingProofs:
    def __init__(self, proposal: Proposal, ring: Sequence[str]) -> None:
        self._study, self._ring = proposal.digest, ring
        self.size = proposal.proof_bytes(len(ring))

    def mark(self, question: str, report: bytes, proof: bytes) -> bytes | None:
        try:
            signature = RingSignature.from_bytes(proof)
        except TacitError:
            return None
        message = signed_message(self._study, question, report)
        if not signature.verify(self._ring, ring_event(self._study, question), message):
            return None
        return hashlib.sha256(question.encode() + signature.tag).digest()


def ring_event(study: str, question: str) -> bytes:
    """One tag per key and event: one answer of each member to each question."""
    return canonical(["tacit crowd question", study, question])


def proofs_of(proposal: Proposal, members: Sequence[str]) -> Proofs:
    """As the proposal says."""
    if proposal.group.proof == "ring":
        return RingProofs(proposal, members)
    return TokenProofs(proposal)
