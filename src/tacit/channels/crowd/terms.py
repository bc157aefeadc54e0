"""The tables of a crowd's file. An unknown name in one is a slip, and must not go unnoticed."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Collector", "CrowdTerms", "Group", "Head", "RelayCard", "Route", "Windows"]


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands above the first table."""

    format: Literal["tacit crowd 1", "tacit crowd 2"]
    name: str
    question: str
    bundle: str = ""


class CrowdTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each person is promised.

    epsilon  of everything that she sends, added up, whoever sees it (local, pure)
    delta    for the smaller figure that holds besides because nobody knows who sent what
    """

    epsilon: float
    delta: float = 1e-6


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may take part.

    members  their public keys; none are listed where whoever comes first may register
    corrupt  so many of them may belong to the collector, and hide nobody, or lie
    proof    tokens: the collector signs one answer of each person without seeing it; ring: each
             answer proves that its sender is one of the group, and nobody issues anything
    """

    minimum: int
    maximum: int
    members: tuple[str, ...] = ()
    corrupt: int = 0
    proof: Literal["tokens", "ring"] = "tokens"


class Windows(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds: to register, to send, and for each relay to pass on.

    A wave is one window of sending and the relays' windows after it. With waves = 2 a question of
    which nothing has left any relay is asked once more. Nothing else is ever sent again.
    """

    register: float
    send: float
    release: float
    waves: int = 2


class Route(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How reports travel: through so many relays, each of which takes one layer off.

    batch  a relay passes no answers to a question on before so many people have handed theirs in,
           nor before half of all who are asked it have
    """

    hops: int = 3
    kem: Literal["x25519", "hybrid"] = "x25519"
    batch: int = 2


class RelayCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody who passes packets on. `onion` is the key that packets are wrapped for."""

    name: str
    address: str
    key: str
    onion: str


class Collector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who asks. `lot` commits to the seed of the drawing of lots; `tokens` are public keys of
    blind signatures, one for each question."""

    name: str
    address: str
    key: str
    onion: str
    lot: str
    tokens: dict[str, str] = {}
