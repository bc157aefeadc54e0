"""What relays sign of the batches that they shuffled: among how many an answer was hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.crypto.signing import SigningKey, canonical, signed_by

__all__ = ["BatchStatement", "smallest_batch"]


@dataclass(frozen=True, slots=True)
class BatchStatement:
    """One relay's account of one wave.

    relay    its public key
    drawing  digest of the roster and of the lots that it went by
    hop      at which it stood, from 0; −1 if it was left out
    batches  by question: packets received (at the first hop from different people), and passed on
             together, in an order that it has forgotten; 0 if it held them back
    """

    relay: str
    drawing: str
    stage: int
    wave: int
    hop: int
    batches: dict[str, tuple[int, int]]
    signature: str = ""

    def signed(self, key: SigningKey) -> BatchStatement:
        return replace(self, signature=key.sign(self._message))

    @property
    def holds(self) -> bool:
        """Whether the relay has signed it."""
        return signed_by(self.relay, self.signature, self._message)

    def passed_on(self, question: str) -> int:
        return self.batches.get(question, (0, 0))[1]

    def received(self, question: str) -> int:
        return self.batches.get(question, (0, 0))[0]

    @property
    def _message(self) -> bytes:
        batches = {question: list(sizes) for question, sizes in self.batches.items()}
        about = [self.relay, self.drawing, self.stage, self.wave, self.hop, batches]
        return canonical(["tacit crowd batches, version 1", *about])

    def document(self) -> dict[str, Any]:
        """For a certificate, which says once which drawing it is about."""
        return {
            "relay": self.relay,
            "stage": self.stage,
            "wave": self.wave,
            "hop": self.hop,
            "batches": {question: list(sizes) for question, sizes in self.batches.items()},
            "signature": self.signature,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any], drawing: str) -> BatchStatement:
        return cls(
            relay=str(document["relay"]),
            drawing=drawing,
            stage=int(document["stage"]),
            wave=int(document["wave"]),
            hop=int(document["hop"]),
            batches={str(q): (int(a), int(b)) for q, (a, b) in document["batches"].items()},
            signature=str(document["signature"]),
        )


def smallest_batch(
    statements: Sequence[BatchStatement], stage: int, wave: int, question: str, hops: int
) -> int:
    """The fewest answers to a question that any relay of its circuit passed on together in a wave;
    0 if not every hop has said so. Which of the relays is the honest one is not known."""
    here = [
        (one.hop, one.passed_on(question))
        for one in statements
        if (one.stage, one.wave) == (stage, wave) and question in one.batches
    ]
    if sorted(hop for hop, _ in here) != list(range(hops)):
        return 0
    return min(passed for _, passed in here)
