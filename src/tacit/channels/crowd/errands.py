"""Scripts of people and relays: without input, output or clock, they yield errands one at a time.

Whoever runs a script carries each errand and sends back what came of it: the network in a service,
virtual time in a simulation.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeVar

from tacit.channels.roles.letters import Letter
from tacit.errors import TacitError

__all__ = ["Came", "Errand", "Script"]

T = TypeVar("T")


class Errand(NamedTuple):
    """A letter to carry: to the relay at this place, or to the collector (None); not before `at`,
    by the clock of whoever carries. Without a letter: wait until then."""

    to: int | None
    letter: Letter | None
    at: float = 0.0


class Came(NamedTuple):
    """What came of an errand, and when, by the same clock."""

    reply: Letter | TacitError | None
    now: float


Script = Generator[Errand, Came, T]
