"""What people, relays and the collector write to one another (kinds and bodies of letters).

to the collector, by                   answered with
register   person                      registered
commit     relay, before the roster    committed
reveal     relay, after it             revealed
bulletin   anyone                      bulletin; "wait" until there is news
roster     anyone                      roster
token      person                      token
receipts   anyone                      receipts: all of them, so that nobody shows which is hers
packets    relay                       taken
batches    relay                       noted

to a relay, by
packets    person, or the relay before taken
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Literal

import msgspec

__all__ = [
    "RECEIPT_BYTES",
    "Batches",
    "Bulletin",
    "Commitment",
    "Drawn",
    "Packets",
    "Receipts",
    "Reveal",
    "Roster",
    "SeenBulletin",
    "TokenAsked",
    "TokenGiven",
    "Wave",
    "is_among",
]

RECEIPT_BYTES = 8  # of a digest: enough to find one's own among millions

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]  # what a context and a store have room for
Place = Annotated[int, msgspec.Meta(ge=0, lt=255)]  # of a relay
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
MaybeDigest = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")]


class SeenBulletin(msgspec.Struct, frozen=True):
    """The mark of the last bulletin that was read; a newer one is asked for."""

    mark: int


class Wave(msgspec.Struct, frozen=True):
    """A window of sending: of which stage, the how manieth, from when on (collector's clock).

    receipts  digest of the receipts that people go by when they send again; "" in the first wave
    """

    stage: Count
    number: Count
    opens: float
    receipts: MaybeDigest = ""


class Reveal(msgspec.Struct, frozen=True):
    """A relay's part of the lot, and its signature that it was revealed for one roster."""

    seed: bytes
    signature: str


class Commitment(msgspec.Struct, frozen=True):
    """To a relay's part of the lot, before the roster is known."""

    commitment: Digest


class Drawn(msgspec.Struct, frozen=True):
    """The drawing of lots, for everyone to check: the collector's part and the relays' by place."""

    seed: bytes
    reveals: dict[int, Reveal]


class Roster(msgspec.Struct, frozen=True):
    """Who takes part, 32 bytes each in rising order, and what the relays had committed to."""

    keys: bytes
    commitments: dict[int, str]


class Bulletin(msgspec.Struct, frozen=True):
    """Everything that is public about the state of a study.

    mark        rises with every change
    now         the collector's clock, in seconds
    roster      digest of the closed roster; "" before
    thresholds  of numbers whose edges are searched for, as they stand in this stage; after the
                last search they are the edges
    silent      relays, by place, from which nothing was heard in the last wave
    arrived     reports of this stage so far, and how many are expected
    """

    mark: int
    phase: Literal["gathering", "drawing", "asking", "over", "failed"]
    now: float
    registered: int = 0
    roster: str = ""
    drawn: Drawn | None = None
    wave: Wave | None = None
    thresholds: dict[str, list[float]] = {}
    silent: list[Place] = []
    arrived: int = 0
    expected: int = 0
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.phase == "asking") != (self.wave is not None):
            raise ValueError("a wave is open while something is asked, and only then")


class TokenAsked(msgspec.Struct, frozen=True):
    question: str
    blinded: bytes


class TokenGiven(msgspec.Struct, frozen=True):
    signature: bytes


class Packets(msgspec.Struct, frozen=True):
    """Packets of one wave on their way to hop `hop` (from 0); to the collector after the last."""

    stage: Count
    wave: Count
    hop: Count
    packets: list[bytes]


class Receipts(msgspec.Struct, frozen=True):
    """The first bytes of the digests of all proofs that arrived in a stage, in rising order.

    wave  while the stage is asked: those of earlier waves than this; −1 when it is over: all
    """

    stage: int
    wave: int
    digests: bytes


class Batches(msgspec.Struct, frozen=True):
    """How many packets a relay passed on in one wave, at each hop."""

    stage: Count
    wave: Count
    sizes: dict[Count, Count]


def is_among(digests: bytes, digest: bytes) -> bool:
    """Whether a digest's first bytes are among the published ones, which are in rising order."""

    def nth(place: int) -> bytes:
        return digests[place * RECEIPT_BYTES : (place + 1) * RECEIPT_BYTES]

    mine = digest[:RECEIPT_BYTES]
    return nth(bisect_left(range(len(digests) // RECEIPT_BYTES), mine, key=nth)) == mine
