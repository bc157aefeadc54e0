"""What a party and the curator say to one another.

party → curator    turn     "in this attempt I have taken this step": its body, again and again
curator → party    wait | roster | answer | model
"""

from __future__ import annotations

import msgspec

__all__ = ["Answer", "Result", "Roster", "Turn"]


class Turn(msgspec.Struct, frozen=True):
    """A step that the party has taken, and what it says in it; step 0 only asks for the roster.

    again   what the party encodes has changed since the attempt began: it says no more in this one,
            and asks for another
    """

    step: int
    body: bytes = b""
    again: bool = False


class Roster(msgspec.Struct, frozen=True):
    """An attempt begins, among these parties (public keys, sorted)."""

    attempt: int
    parties: list[str]


class Answer(msgspec.Struct, frozen=True):
    """All parties have taken this step: what follows for you."""

    step: int
    body: bytes


class Result(msgspec.Struct, frozen=True):
    """The study is over: its model and the certificate.

    evidence   from which every party of the run recomputes the model, where the protocol has it
    """

    model: bytes
    certificate: str
    evidence: bytes = b""
