"""The drawing of lots: who is asked what, such that nobody can have chosen it.

The collector commits to a seed in the proposal; relays commit to theirs, and sign that, before the
roster is closed. After it is closed they reveal, each for this one roster. Everyone can check every
step (crypto/lots.md), and that one honest relay at least has taken part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

from tacit.channels.crowd.letters import Commitment, Drawn, Reveal, Roster
from tacit.channels.crowd.proposal import Proposal
from tacit.crypto.lots import commitment, joint_seed, opens
from tacit.crypto.signing import SigningKey, canonical, digest, signed_by
from tacit.errors import CheckFailed

__all__ = [
    "checked_seed",
    "commits",
    "committed",
    "drawing_digest",
    "keys_of",
    "members_of",
    "reveal",
    "reveals",
    "roster_digest",
    "roster_of",
]

KEY_BYTES = 32


def committed(key: SigningKey, study: str, seed: bytes) -> Commitment:
    """A relay's commitment to its part of the lot, in its own name."""
    hidden = commitment(seed)
    return Commitment(hidden, key.sign(_committed(study, hidden)))


def commits(proposal: Proposal, place: int, said: Commitment) -> bool:
    """Whether the relay at this place has signed this commitment for this study."""
    if not 0 <= place < len(proposal.relays):
        return False
    message = _committed(proposal.digest, said.commitment)
    return signed_by(proposal.relays[place].key, said.signature, message)


def roster_of(keys: Iterable[str], commitments: Mapping[int, Commitment]) -> Roster:
    """The roster: the keys in rising order, each once."""
    return Roster(b"".join(sorted(bytes.fromhex(key) for key in set(keys))), dict(commitments))


def roster_digest(study: str, roster: Roster) -> str:
    """What relays reveal for, and people compare."""
    commitments = {
        str(place): [said.commitment, said.signature] for place, said in roster.commitments.items()
    }
    return digest(["tacit crowd roster, version 2", study, digest(roster.keys), commitments])


def keys_of(roster: Roster) -> tuple[str, ...]:
    """The members' public keys, in the order of their places."""
    return _keys(roster.keys)


@lru_cache(maxsize=4)  # in a simulation everyone reads the same roster
def _keys(data: bytes) -> tuple[str, ...]:
    if len(data) % KEY_BYTES:
        raise CheckFailed("the roster is damaged.")
    keys = tuple(data[i : i + KEY_BYTES].hex() for i in range(0, len(data), KEY_BYTES))
    if any(a >= b for a, b in pairwise(keys)):
        raise CheckFailed("the roster is not in order: somebody may be in it twice.")
    return keys


def members_of(proposal: Proposal, roster: Roster) -> tuple[str, ...]:
    """The members, if they are a group that the proposal allows: a collector must not fill it up
    with keys of its own."""
    keys, group = keys_of(roster), proposal.group
    if not group.minimum <= len(keys) <= group.maximum:
        raise CheckFailed(
            f"{len(keys)} people are in the roster; the proposal asks for {group.minimum} to "
            f"{group.maximum}: do not take part."
        )
    if group.members and not set(keys) <= set(group.members):
        raise CheckFailed(
            "somebody is in the roster who is not among those that may take part: do not take part."
        )
    return keys


def reveal(key: SigningKey, study: str, roster: str, seed: bytes) -> Reveal:
    """A relay's part of the lot, bound to one roster by its signature."""
    return Reveal(seed, key.sign(_revealed(study, roster, seed)))


def reveals(proposal: Proposal, roster: Roster, place: int, said: Reveal) -> bool:
    """Whether this is what the relay at this place had committed to, and for this roster."""
    return _reveals(proposal, roster, roster_digest(proposal.digest, roster), place, said)


def _reveals(proposal: Proposal, roster: Roster, found: str, place: int, said: Reveal) -> bool:
    promised = roster.commitments.get(place)
    if promised is None or not opens(promised.commitment, said.seed):
        return False
    message = _revealed(proposal.digest, found, said.seed)
    return signed_by(proposal.relays[place].key, said.signature, message)


def checked_seed(proposal: Proposal, roster: Roster, drawn: Drawn) -> bytes:
    """The seed of all lots, if every part of it was committed to before the roster was closed, and
    so many relays have a part that one of them is honest: fewer than a circuit has hops are not,
    or nothing hides anybody (relay.md)."""
    if not opens(proposal.collector.lot, drawn.seed):
        raise CheckFailed("the collector's part of the lot is not the one it committed to.")
    places, found = sorted(drawn.reveals), roster_digest(proposal.digest, roster)
    for place, said in roster.commitments.items():
        if not commits(proposal, place, said):
            raise CheckFailed(f"relay {place} has not signed the commitment in its name.")
    if len(places) < proposal.route.hops:
        raise CheckFailed(
            f"{len(places)} relays took part in the drawing of lots, and {proposal.route.hops} are "
            "needed for one of them to be honest: the collector may have steered it."
        )
    for place in places:
        if not 0 <= place < len(proposal.relays) or not _reveals(
            proposal, roster, found, place, drawn.reveals[place]
        ):
            raise CheckFailed(f"relay {place}'s part of the lot is not the one it committed to.")
    seeds = [drawn.seed, *(drawn.reveals[place].seed for place in places)]
    context = canonical([found, places])
    return joint_seed(seeds, context)


def drawing_digest(proposal: Proposal, roster: Roster, drawn: Drawn) -> str:
    """What everybody who was shown the same roster and the same lots has in common. It is in every
    packet's context, with the keys of the tokens, which stand in the proposal."""
    parts = {str(place): [r.seed.hex(), r.signature] for place, r in drawn.reveals.items()}
    found = roster_digest(proposal.digest, roster)
    return digest(["tacit crowd drawing", proposal.digest, found, drawn.seed.hex(), parts])


def _committed(study: str, hidden: str) -> bytes:
    return canonical(["tacit crowd commitment", study, hidden])


def _revealed(study: str, roster: str, seed: bytes) -> bytes:
    return canonical(["tacit crowd reveal", study, roster, seed.hex()])
