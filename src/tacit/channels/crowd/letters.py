"""What people, relays and the collector write to one another (kinds and bodies of letters).

to the collector, by                   answered with
register   person                      registered
commit     relay, before the roster    committed
reveal     relay, after it             revealed
bulletin   anyone                      bulletin; "wait" until there is news
roster     anyone                      roster
token      person, before the stage    token
receipts   anyone                      receipts: all of them, so that nobody shows which is hers
packets    relay                       taken
batches    relay                       noted

to a relay, by
packets    person, or the relay before taken
ready      relay before                ready, if it takes packets of this wave
left-out   relay                       agreed, or objected: whether it was up when it was left out
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from tacit.privacy.attested import BatchStatement

__all__ = [
    "IDLE",
    "RECEIPT_BYTES",
    "Batches",
    "Bulletin",
    "Commitment",
    "Drawn",
    "LeftOut",
    "Packets",
    "Receipts",
    "Reveal",
    "Roster",
    "SeenBulletin",
    "TokenAsked",
    "TokenGiven",
    "Wave",
    "counts_of",
    "is_among",
    "receipts_digest",
    "thresholds_digest",
]

RECEIPT_BYTES = 8  # of a digest: enough to find one's own among millions
IDLE = ""  # instead of a question: the batch of people who are asked nothing in a stage

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]  # what a context and a store have room for
Place = Annotated[int, msgspec.Meta(ge=0, lt=255)]  # of a relay
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
MaybeDigest = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")]


class SeenBulletin(msgspec.Struct, frozen=True):
    """The mark of the last bulletin that was read; a newer one is asked for."""

    mark: int


class Wave(msgspec.Struct, frozen=True):
    """A window of sending: of which stage, the how manieth, from when on (collector's clock), and
    everything that people and relays act on in it. A digest of all of it is in every packet's
    context (`context_of`), so that people who were shown different things are not mixed.

    thresholds  of numbers whose edges are searched for, as this stage asks about them; after the
                last search they are the edges
    statements  what relays have signed of the wave before, by their places: who was not heard is
                left out of this one, and questions of which nothing has left a relay are asked
                again. None in the first wave
    delivered   packets of each question that the collector has received in the wave before
    before      digest of the wave before: whoever was shown another one notices it here
    """

    stage: Count
    number: Count
    opens: float
    thresholds: dict[str, list[float]] = {}
    statements: dict[Place, BatchStatement] = {}
    delivered: dict[str, Count] = {}
    before: MaybeDigest = ""

    def __post_init__(self) -> None:
        if self.number == 0 and any((self.statements, self.delivered, self.before)):
            raise ValueError("before the first wave of a stage nothing was sent")
        if self.number > 0 and not self.before:
            raise ValueError("a later wave says which one it follows")


class Reveal(msgspec.Struct, frozen=True):
    """A relay's part of the lot, and its signature that it was revealed for one roster."""

    seed: bytes
    signature: str


class Commitment(msgspec.Struct, frozen=True):
    """To a relay's part of the lot, before the roster is known; with the relay's signature, so that
    nobody can say another in its name."""

    commitment: Digest
    signature: str


class Drawn(msgspec.Struct, frozen=True):
    """The drawing of lots, for everyone to check: the collector's part and the relays' by place."""

    seed: bytes
    reveals: dict[int, Reveal]


class Roster(msgspec.Struct, frozen=True):
    """Who takes part, 32 bytes each in rising order, and what the relays had committed to."""

    keys: bytes
    commitments: dict[int, Commitment]


class Bulletin(msgspec.Struct, frozen=True):
    """Everything that is public about the state of a study.

    mark        rises with every change
    now         the collector's clock, in seconds
    roster      digest of the closed roster; "" before
    stage       whose tokens are issued, or whose wave is open
    thresholds  of that stage (Wave), for answers that are made before its first wave
    arrived     reports of this stage so far, and how many are expected
    """

    mark: int
    phase: Literal["gathering", "drawing", "issuing", "asking", "over", "failed"]
    now: float
    registered: int = 0
    roster: str = ""
    drawn: Drawn | None = None
    stage: Count = 0
    wave: Wave | None = None
    thresholds: dict[str, list[float]] = {}
    arrived: int = 0
    expected: int = 0
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.phase == "asking") != (self.wave is not None):
            raise ValueError("a wave is open while something is asked, and only then")
        if self.wave is not None and (self.wave.stage, self.wave.thresholds) != (
            self.stage,
            self.thresholds,
        ):
            raise ValueError("a wave asks what its stage asks")


class Batches(msgspec.Struct, frozen=True):
    """A relay's account of a wave."""

    statement: BatchStatement


class LeftOut(msgspec.Struct, frozen=True):
    """The wave that one relay asks another about: whether it was there, if it was left out because
    of it (−1: of the drawing of lots); or whether it is ready for it."""

    stage: int
    wave: int


class TokenAsked(msgspec.Struct, frozen=True):
    question: str
    blinded: bytes


class TokenGiven(msgspec.Struct, frozen=True):
    signature: bytes


class Packets(msgspec.Struct, frozen=True):
    """Packets of one batch on their way to hop `hop` (from 0); to the collector after the last.

    question  whose answers they may hold: lots are public, so it tells nothing. IDLE: of people who
              have no question of this stage
    """

    stage: Count
    wave: Count
    hop: Count
    question: str
    packets: list[bytes]


class Receipts(msgspec.Struct, frozen=True):
    """The first bytes of the digests of all proofs that arrived in a stage, by question and in
    rising order, once it is over; so everybody can count them, and find her own."""

    stage: int
    digests: dict[str, bytes]


def receipts_digest(receipts: Receipts) -> str:
    """What stands in the certificate, and everybody keeps."""
    return hashlib.sha256(b"tacit crowd receipts" + msgspec.msgpack.encode(receipts)).hexdigest()


def counts_of(counts: Mapping[str, int]) -> str:
    """How many answers to each question came, as a text to compare."""
    return " ".join(f"{name}:{number}" for name, number in sorted(counts.items()) if number)


def thresholds_digest(thresholds: dict[str, list[float]]) -> str:
    encoded = msgspec.msgpack.encode(thresholds)
    return hashlib.sha256(b"tacit crowd thresholds" + encoded).hexdigest()


def is_among(digests: bytes, digest: bytes) -> bool:
    """Whether a digest's first bytes are among the published ones, which are in rising order."""

    def nth(place: int) -> bytes:
        return digests[place * RECEIPT_BYTES : (place + 1) * RECEIPT_BYTES]

    mine = digest[:RECEIPT_BYTES]
    return nth(bisect_left(range(len(digests) // RECEIPT_BYTES), mine, key=nth)) == mine
