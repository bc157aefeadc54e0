"""What peers write to one another (kinds and bodies of letters).

    gossip   views, and which publications each side has      answered with the same
    models   which publications are wanted                    publications
    invite   to a group                                       accept, or decline
    form     who takes part                                   reveal
    begin    what everyone revealed                           begun
    off      the group does not come together                 noted

A group's aggregation is a consortium's: its letters ("turn") are signed with keys of that group.
"""

from __future__ import annotations

import msgspec

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.view import Sighting

__all__ = [
    "MOST_BYTES",
    "Accept",
    "Begin",
    "Decline",
    "Form",
    "Gossip",
    "Invite",
    "Models",
    "Off",
    "Reveal",
    "Seat",
    "Want",
]


MOST_BYTES = 2**24  # of any letter


class Gossip(msgspec.Struct, frozen=True):
    """`has`: the publications that may be asked for, each with its tag ("" for all). `contents`:
    the beginning of the digest of each, so that two of one name are noticed."""

    view: list[Sighting]
    has: dict[str, str]
    contents: dict[str, str] = {}


class Want(msgspec.Struct, frozen=True):
    ids: list[str]


class Models(msgspec.Struct, frozen=True):
    publications: list[bytes]


class Invite(msgspec.Struct, frozen=True):
    """To the group of this name; `tag` is what its members have in common, or ""."""

    group: str
    tag: str
    initiator: Descriptor


class Seat(msgspec.Struct, frozen=True):
    """A member of a group: who, with which key for this group alone, and the commitment to its
    part of the drawing of the curator. Signed by the member's identity."""

    descriptor: Descriptor
    party: str
    commitment: str
    signature: str


class Accept(msgspec.Struct, frozen=True):
    seat: Seat


class Decline(msgspec.Struct, frozen=True):
    """busy: ask again later; unable: no budget, no data or another tag."""

    reason: str


class Form(msgspec.Struct, frozen=True):
    group: str
    seats: list[Seat]


class Reveal(msgspec.Struct, frozen=True):
    """Signed with the party key, for one list of seats: others are shown the signature."""

    group: str
    seed: bytes
    signature: str = ""


class Off(msgspec.Struct, frozen=True):
    """So that whoever has accepted is free at once."""

    group: str


class Begin(msgspec.Struct, frozen=True):
    """What everyone has revealed, in the order of the seats."""

    group: str
    seeds: list[bytes]
    signatures: list[str] = []
