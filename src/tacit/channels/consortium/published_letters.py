"""What is said in the steps of the protocol as published. Boxes are closed to who carries them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tacit.channels.consortium.run import Key, KeyList
from tacit.crypto.signing import digest
from tacit.errors import InputError

__all__ = [
    "SHARE_BITS",
    "SHARE_BYTES",
    "Boxes",
    "Dealt",
    "Element",
    "Indicator",
    "Opening",
    "Placed",
    "Published",
    "Question",
    "Reply",
    "Secret",
    "Shared",
    "Shares",
    "box_label",
    "carried",
    "shown",
]

SHARE_BITS = 32  # of shares of numbers of records, which are below 2^31
SHARE_BYTES = SHARE_BITS // 8


class Opening(msgspec.Struct, frozen=True):
    """Curator, after step 1: everybody's key, and its own two public keys."""

    keys: dict[str, Key]
    paillier: bytes
    comparison: bytes


class Dealt(msgspec.Struct, frozen=True):
    """Step 2: the parties' public key, and boxes with its secret; empty from all but the first."""

    public: bytes = b""
    boxes: dict[str, bytes] = {}


class Secret(msgspec.Struct, frozen=True):
    """In a box of step 2: what the parties know and the curator does not."""

    primes: tuple[bytes, bytes]
    order: list[int]


class Boxes(msgspec.Struct, frozen=True):
    """Boxes by addressee on the way to the curator, by sender on the way from it."""

    boxes: dict[str, bytes] = {}


class Placed(msgspec.Struct, frozen=True):
    """Step 4: both shares of the number in this party's place, each encrypted."""

    ours: bytes
    curators: bytes


class Element(msgspec.Struct, frozen=True):
    """After step 4: one blinded share, from a place that the curator alone knows."""

    element: bytes


class Question(msgspec.Struct, frozen=True):
    """After step 5: the blinded shares to compare with, and the curator's side of that."""

    boxes: dict[str, bytes]
    question: bytes


class Reply(msgspec.Struct, frozen=True):
    """Step 6: the parties' side of the comparisons."""

    reply: bytes


class Indicator(msgspec.Struct, frozen=True):
    """After step 6: 1 in the place of the smallest, 0 elsewhere, under the curator's key."""

    elements: bytes


class Shared(msgspec.Struct, frozen=True):
    """Step 8: shares of this party's vector; from the first also the noise, encrypted, masked."""

    seed: bytes
    boxes: dict[str, bytes]
    masked: bytes = b""


class Shares(msgspec.Struct, frozen=True):
    """After step 8: a share of what everybody has, the curator included."""

    seed: bytes
    boxes: dict[str, bytes]


class Published(msgspec.Struct, frozen=True):
    """Step 9: a share of K times the model, and the party's word on the noise."""

    share: bytes
    statement: str
    secure: bool


def shown(opening: Opening) -> bytes:
    """A digest of all keys that a party received, the curator's included. It is part of every box's
    derivation: between parties who were shown different keys, none opens."""
    curators = [digest(opening.paillier), digest(opening.comparison)]
    return bytes.fromhex(digest([KeyList(opening.keys).digest, *curators]))


def box_label(label: str, sender: str, receiver: str) -> str:
    """Of a box: for these two identities alone, whatever keys they have signed."""
    return f"{label} by {sender} for {receiver}"


def carried(sent: Mapping[str, Mapping[str, bytes]]) -> dict[str, dict[str, bytes]]:
    """What everybody gets, by sender, of what everybody sent, by addressee."""
    received: dict[str, dict[str, bytes]] = {party: {} for party in sent}
    for sender, boxes in sent.items():
        for addressee, box in boxes.items():
            if addressee not in received or addressee == sender:
                raise InputError("a box is addressed to nobody else of the roster.")
            received[addressee][sender] = box
    return received
