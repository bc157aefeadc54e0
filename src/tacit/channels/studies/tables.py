"""The tables of a study file. An unknown name in one is a slip, and must not go unnoticed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import msgspec

from tacit.privacy.promise import Adjacency, Unit

__all__ = [
    "Chosen",
    "Consortium",
    "Deadlines",
    "Head",
    "Noise",
    "Online",
    "Party",
    "PromiseTable",
    "Sampling",
    "Selection",
    "Service",
    "Signature",
    "TakePart",
    "Terms",
]


class Chosen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which program, in which version, with which settings.

    source   of a program that is not tacit's: the SHA-256 of each source file of its package
    """

    name: str
    version: int
    settings: dict[str, Any] = {}
    source: dict[str, str] | None = None


class Noise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much noise each server adds.

    every-server   the whole promise's: it holds even if all other servers collude (PEM)
    honest         with h servers that do not collude, 1/(h − 1) of the variance is enough, since
                   each of them can take away only its own
    """

    policy: Literal["every-server", "honest"] = "every-server"
    honest: int | None = None


class TakePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How few and how many holders make a study, and the most records one of them may bring."""

    minimum: int
    maximum: int
    records: int


class Deadlines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds: for holders to gather, and for each round."""

    gather: float
    round: float


class Consortium(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parties average models that each has trained alone, instead of summing over records.

    protocol    joint: tacit's; as-published: Pathak, Rane & Raj, whose promise does not hold
    colluding   so many parties may work together with the curator (the aggregator)
    smallest    every party has at least so many records: public, and the noise rests on it
    key_bits    as-published alone encrypts: how long its keys are
    """

    protocol: Literal["joint", "as-published"] = "joint"
    colluding: int
    smallest: int
    key_bits: Literal[2048, 3072] = 3072


class Online(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Records arrive in windows, each of which is kept to the whole promise.

    How many rounds a window has, the program says (`Program.windowed`).
    """

    windows: int


class Sampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In each round each unit takes part with this probability; its holder draws, secretly."""

    rate: float

    @property
    def exact(self) -> Fraction:
        """The decimal number that stands in the file: 0.1 is 1/10, for everyone."""
        return Fraction(repr(self.rate))


class Selection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a program that selects by its sums (frequent sets) does it.

    noisy-counts    by the noisy sums that everyone sees: it costs nothing more
    sparse-vector   by comparisons of sums that nobody sees: in one place only (selection.md)
    """

    kind: Literal["noisy-counts", "sparse-vector"]


class Party(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody, known by a public key."""

    name: str
    key: str


class Service(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server or the aggregator: somebody who can be reached."""

    name: str
    address: str
    key: str


class Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who wrote the study, and that key's signature of its canonical form."""

    author: str
    signature: str


class Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The promise as it stands in the file."""

    epsilon: float
    delta: float = 0.0
    unit: Unit = Unit.RECORD
    adjacency: Adjacency = Adjacency.ADD_REMOVE


class PromiseTable(Terms, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The promise as it stands in a study.

    holders_per_person   with unit = "person": with so many of the holders one person may be
    """

    holders_per_person: int | None = None


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands above the first table."""

    format: Literal["tacit study 1", "tacit study 2"]
    name: str
    question: str
    rounds: int
