"""What a peer wants carried to another."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.membership import Membership
from tacit.channels.roles.letters import Letter

__all__ = ["Errand"]


@dataclass(frozen=True, slots=True)
class Errand:
    """A letter to carry. `member`: to the curator of this group, under its study and party key.
    `group`: that it brings together."""

    to: Descriptor
    letter: Letter
    member: Membership | None = None
    group: str = ""
