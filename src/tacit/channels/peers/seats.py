"""Who sits in a group, who is drawn as its curator, and the study that its members run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.letters import Seat
from tacit.channels.peers.pact import Pact
from tacit.channels.studies.study import Consortium, Deadlines, Party, Service, Study, TakePart
from tacit.crypto.lots import commitment, joint_seed, opens, order
from tacit.crypto.signing import SigningKey, canonical, digest, signed_by
from tacit.errors import CheckFailed

__all__ = [
    "checked_seats",
    "curator_of",
    "group_study",
    "said_by_its_owner",
    "seated",
    "seats_digest",
]

GATHER = 3  # times the patience of a step


def seated(
    pact: Pact, group: str, tag: str, key: SigningKey, own: Descriptor, party: str, seed: bytes
) -> Seat:
    """Our seat in a group: a fresh party key, and a commitment to our part of the drawing."""
    committed = commitment(seed)
    said = _said(pact, group, tag, own.key, party, committed)
    return Seat(own, party, committed, key.sign(said))


def checked_seats(pact: Pact, group: str, tag: str, seats: Sequence[Seat]) -> None:
    """CheckFailed unless these are as many different peers as the pact says, each by its word."""
    if bool(tag) != (pact.publish == "tags"):
        raise CheckFailed("a group has a tag where the pact publishes by tags, and only there.")
    keys = [seat.descriptor.key for seat in seats]
    parties = {seat.party for seat in seats}
    if len(seats) != pact.group_size or keys != sorted(set(keys)) or len(parties) < len(seats):
        raise CheckFailed("a group has as many different members as the pact says, in order.")
    for seat in seats:
        own = seat.descriptor
        if tag and tag not in own.tags:
            raise CheckFailed("a group has a tag that not all of its members have.")
        said = _said(pact, group, tag, own.key, seat.party, seat.commitment)
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


def seats_digest(pact: Pact, group: str, seats: Sequence[Seat]) -> str:
    """What is revealed for: one list of seats of one group."""
    signed = [seat.signature for seat in seats]
    return digest(["tacit peers seats", pact.digest, group, signed])


def curator_of(pact: Pact, group: str, seats: Sequence[Seat], seeds: Sequence[bytes]) -> int:
    """The place of the curator, by everyone's seeds; CheckFailed if one was not committed to."""
    if len(seeds) != len(seats):
        raise CheckFailed("not everybody's part of the drawing is there.")
    for seat, seed in zip(seats, seeds, strict=True):
        if not opens(seat.commitment, seed):
            raise CheckFailed("somebody's part of the drawing is not what it committed to.")
    context = bytes.fromhex(seats_digest(pact, group, seats))
    return int(order(joint_seed(seeds, context), "curator", len(seats))[0])


def group_study(pact: Pact, group: str, seats: Sequence[Seat], curator: int) -> Study:
    """The consortium's study that follows: every member computes the same."""
    chosen = seats[curator].descriptor
    return Study(
        name=f"group-{group[:32]}",
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


def _said(pact: Pact, group: str, tag: str, key: str, party: str, committed: str) -> bytes:
    return canonical(["tacit peers seat", pact.digest, group, tag, key, party, committed])
