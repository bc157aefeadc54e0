"""Who sits in a group, who is drawn as its curator, and the study that its members run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.letters import Seat
from tacit.channels.peers.pact import Pact
from tacit.channels.studies.file import FIRST_FORMAT
from tacit.channels.studies.study import Consortium, Deadlines, Party, Service, Study, TakePart
from tacit.crypto.lots import commitment, joint_seed, opens, order
from tacit.crypto.signing import SigningKey, canonical, digest, is_public_key, signed_by
from tacit.errors import CheckFailed

__all__ = [
    "NAME",
    "check_reveals",
    "checked_seats",
    "curator_of",
    "group_study",
    "reveal_signature",
    "said_by_its_owner",
    "seated",
    "seats_digest",
]

GATHER = 3  # times the patience of a step
NAME = re.compile(r"[0-9a-f]{64}")  # of a group, or a digest: it is shown, and stands in ledgers
NAMED = 56  # hexadecimal digits of the digest of the seats in the name of a study
Rules = Literal[1, 2]  # 1: of tacit 0.1, for what it has left on a disk; nothing new is made by it


def seated(
    pact: Pact, group: str, tag: str, key: SigningKey, own: Descriptor, party: str, seed: bytes
) -> Seat:
    """Our seat in a group: a fresh party key, and a commitment to our part of the drawing."""
    committed = commitment(seed)
    said = _said(pact, group, tag, own, party, committed, 2)
    return Seat(own, party, committed, key.sign(said))


def checked_seats(
    pact: Pact, group: str, tag: str, seats: Sequence[Seat], rules: Rules = 2
) -> None:
    """CheckFailed unless these are as many different peers as the pact says, each by its word."""
    if not NAME.fullmatch(group):
        raise CheckFailed("a group is named by 64 hexadecimal digits.")
    if bool(tag) != (pact.publish == "tags"):
        raise CheckFailed("a group has a tag where the pact publishes by tags, and only there.")
    keys = [seat.descriptor.key for seat in seats]
    parties = {seat.party for seat in seats} - set(keys)  # nobody's identity is anybody's party key
    if len(seats) != pact.group_size or keys != sorted(set(keys)) or len(parties) < len(seats):
        raise CheckFailed("a group has as many different members as the pact says, in order.")
    for seat in seats:
        if not (is_public_key(seat.party) and NAME.fullmatch(seat.commitment)):
            raise CheckFailed("a seat has a key or a commitment that is none.")
        own = seat.descriptor
        if tag and tag not in own.tags:
            raise CheckFailed("a group has a tag that not all of its members have.")
        said = _said(pact, group, tag, own, seat.party, seat.commitment, rules)
        if not (
            pact.admits(own.key)
            and said_by_its_owner(own, pact.digest)
            and signed_by(own.key, seat.signature, said)
        ):
            raise CheckFailed("somebody is said to be in the group who did not say so.")


@lru_cache(maxsize=1 << 14)
def said_by_its_owner(descriptor: Descriptor, network: str) -> bool:
    """Whether a descriptor holds. Found out once: it comes by views, invitations and seats."""
    return descriptor.holds(network)


def seats_digest(pact: Pact, group: str, seats: Sequence[Seat], rules: Rules = 2) -> str:
    """What is revealed for, and what the study is named by: one list of seats of one group.

    All that a seat says goes in, not its signature alone: for a key that its owner has chosen badly
    on purpose one signature can fit several messages.
    """
    if rules == 1:
        signed = [seat.signature for seat in seats]
        return digest(["tacit peers seats", pact.digest, group, signed])
    whole = [msgspec.to_builtins(seat) for seat in seats]
    return digest(["tacit peers seats 2", pact.digest, group, whole])


def reveal_signature(key: SigningKey, seats: str, seed: bytes) -> str:
    """A member's word, by its party key, that it reveals this seed for the list of this digest."""
    return key.sign(_revealed(seats, seed))


def check_reveals(
    seats: Sequence[Seat], listed: str, seeds: Sequence[bytes], signatures: Sequence[str]
) -> None:
    """CheckFailed unless everybody has revealed for the list that we have: an initiator that shows
    different lists to different members cannot begin with any of them."""
    if not len(seats) == len(seeds) == len(signatures):
        raise CheckFailed("not everybody's part of the drawing is there.")
    for seat, seed, signature in zip(seats, seeds, signatures, strict=True):
        if not signed_by(seat.party, signature, _revealed(listed, seed)):
            raise CheckFailed("somebody has not revealed its part for this list of members.")


def curator_of(
    pact: Pact, group: str, seats: Sequence[Seat], seeds: Sequence[bytes], rules: Rules = 2
) -> int:
    """The place of the curator, by everyone's seeds; CheckFailed if one was not committed to."""
    if len(seeds) != len(seats):
        raise CheckFailed("not everybody's part of the drawing is there.")
    for seat, seed in zip(seats, seeds, strict=True):
        if not opens(seat.commitment, seed):
            raise CheckFailed("somebody's part of the drawing is not what it committed to.")
    context = bytes.fromhex(seats_digest(pact, group, seats, rules))
    return int(order(joint_seed(seeds, context), "curator", len(seats))[0])


def group_study(
    pact: Pact, group: str, seats: Sequence[Seat], curator: int, rules: Rules = 2
) -> Study:
    """The consortium's study that follows: every member computes the same.

    It is named by the list of seats. So whatever a party key signs in it, down to its word on the
    noise, is bound to the identities that sit here, all of which were fixed before anybody revealed
    anything: a curator cannot have the same words vouch for other members.
    """
    chosen = seats[curator].descriptor
    named = group[:32] if rules == 1 else seats_digest(pact, group, seats)[:NAMED]
    return Study(
        format=FIRST_FORMAT,  # as peers of all versions have it: they must find the same digest
        name=f"group-{named}",
        question=pact.question,
        rounds=1,
        chosen=pact.chosen,
        promise=pact.promise,
        # Whoever vanishes before anything is revealed is left out, as long as enough are left.
        take_part=TakePart(
            minimum=pact.colluding + 2, maximum=pact.group_size, records=pact.records
        ),
        deadlines=Deadlines(gather=GATHER * pact.patience, round=pact.patience),
        aggregator=Service(name="curator", address=chosen.address, key=chosen.key),
        holders=tuple(
            Party(name=f"peer-{place}", key=seat.party) for place, seat in enumerate(seats)
        ),
        schema=pact.schema,
        consortium=Consortium(
            protocol=pact.protocol,
            colluding=0 if pact.protocol == "as-published" else pact.colluding,
            smallest=pact.smallest,
        ),
    )


def _said(
    pact: Pact, group: str, tag: str, own: Descriptor, party: str, committed: str, rules: Rules
) -> bytes:
    """What is signed of a seat. Since rules 2 with the descriptor, by its signature: otherwise an
    initiator could show the same seat with different addresses of its owner."""
    if rules == 1:
        return canonical(["tacit peers seat", pact.digest, group, tag, own.key, party, committed])
    words = ["tacit peers seat 2", pact.digest, group, tag, own.key, party, committed]
    return canonical([*words, own.signature])


def _revealed(seats: str, seed: bytes) -> bytes:
    return canonical(["tacit peers reveal", seats, seed.hex()])
