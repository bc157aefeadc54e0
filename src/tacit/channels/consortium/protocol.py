"""What a protocol of K parties and a curator is: a few steps, each a letter from every party.

In each step every party sends one body, and the curator, when it has all of them, answers each
party with one. `curator.py` and `party.py` carry the bodies, wait, restart and resume; a protocol
is two objects without input, output, clock or memory of crashes. They are made from a seed, so that
going through the same bodies again gives the same bodies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

__all__ = ["CuratorSide", "PartySide"]


class PartySide(Protocol):
    """One party's side. `step` counts from 1."""

    def send(self, step: int, received: bytes) -> bytes:
        """The body of this step, from what the curator answered to the step before (b"" first)."""


class CuratorSide(Protocol):
    """The curator's side."""

    def check(self, step: int, party: str, body: bytes, others: Mapping[str, bytes]) -> None:
        """TacitError for a body that the party must not send in this step, beside those of the
        `others` that have taken it: it is refused, and the others do not suffer."""

    def answer(self, step: int, bodies: Mapping[str, bytes]) -> dict[str, bytes]:
        """What each party of the roster is told after all of them have taken the step."""

    def result(self, bodies: Mapping[str, bytes]) -> bytes:
        """The model file, from the bodies of the last step."""

    def evidence(self, bodies: Mapping[str, bytes]) -> bytes:
        """From which every party of the roster recomputes that file, after `result`; b"" where the
        protocol has none."""
