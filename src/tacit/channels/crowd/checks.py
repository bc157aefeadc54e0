"""What a proposal must satisfy as a whole, beyond the types of its fields."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tacit.channels.crowd.proposal_file import FORMAT
from tacit.channels.studies.checks import name_problems, party_problems, signature_problems
from tacit.channels.studies.tables import Service
from tacit.crypto.onion import Shape, wrap
from tacit.errors import TacitError
from tacit.programs.tabulated import Tabulated

if TYPE_CHECKING:
    from tacit.channels.crowd.proposal import Proposal
    from tacit.channels.crowd.terms import Collector, RelayCard

__all__ = ["RING", "problems"]

RING = 1000  # people at most whose proofs name the whole group
MOST = 10_000_000
MOST_WAVES = 2  # of a stage: what has left a relay is never sent again
MOST_WAVES_1 = 1000  # in proposals of version 0.1, which sent again what was lost
COMMITMENT = re.compile(r"[0-9a-f]{64}")


def problems(proposal: Proposal) -> Iterable[str]:
    """What is wrong, each with its place and what to do."""
    yield from name_problems(proposal.name, proposal.question)
    if proposal.bundle and not COMMITMENT.fullmatch(proposal.bundle):
        yield "bundle is a digest, 64 hexadecimal digits in small letters."
    yield from _promise_problems(proposal)
    yield from _group_problems(proposal)
    yield from _window_problems(proposal)
    yield from _route_problems(proposal)
    yield from _party_problems(proposal)
    yield from signature_problems(proposal.signature)
    yield from _learner_problems(proposal)
    yield from _plan_problems(proposal)


def _learner_problems(proposal: Proposal) -> Iterable[str]:
    """Before anybody answers: what cannot learn from tables would make all answers useless. One
    that is not installed here is the collector's affair."""
    try:
        learner = proposal.learned_by()
    except TacitError:
        return
    if not isinstance(learner, Tabulated):
        yield (
            f"[learner]: {learner.name!r} learns from records, and a crowd has none to show: take "
            "a learner of tables, such as tabulated-bayes."
        )


def _promise_problems(proposal: Proposal) -> Iterable[str]:
    epsilon, delta = proposal.promise.epsilon, proposal.promise.delta
    if not (math.isfinite(epsilon) and epsilon > 0):
        yield f"[promise]: epsilon = {epsilon}; give a number above 0, such as 1.0."
    if not 0 < delta < 1:
        yield f"[promise]: delta = {delta}; give a number between 0 and 1, such as 1e-6."


def _group_problems(proposal: Proposal) -> Iterable[str]:
    group = proposal.group
    if not 2 <= group.minimum <= group.maximum <= MOST:
        yield (
            f"[group]: minimum = {group.minimum}, maximum = {group.maximum}; take 2 ≤ minimum ≤ "
            f"maximum ≤ {MOST}: nobody hides alone."
        )
    if group.members and len(group.members) < group.minimum:
        yield f"[group]: {len(group.members)} members are listed, fewer than minimum."
    if len(set(group.members)) < len(group.members):
        yield "[group]: a member is listed twice."
    if not all(COMMITMENT.fullmatch(key) for key in group.members):
        yield "[group]: members are public keys, 64 hexadecimal digits in small letters each."
    if not 0 <= group.corrupt < group.minimum:
        yield f"[group]: corrupt = {group.corrupt}; give 0 to minimum − 1."
    if group.proof == "ring" and group.maximum > RING:
        yield f'[group]: proof = "ring" is for groups of at most {RING}: take proof = "tokens".'


def _window_problems(proposal: Proposal) -> Iterable[str]:
    for name in ("register", "send", "release"):
        seconds = getattr(proposal.windows, name)
        if not (math.isfinite(seconds) and seconds > 0):
            yield f"[windows]: {name} = {seconds}; give seconds above 0."
    most = MOST_WAVES if proposal.format == FORMAT else MOST_WAVES_1
    if not 1 <= proposal.windows.waves <= most:
        yield f"[windows]: waves = {proposal.windows.waves}; give 1 to {most}."


def _route_problems(proposal: Proposal) -> Iterable[str]:
    hops, relays = proposal.route.hops, len(proposal.relays)
    if not 1 <= hops <= relays <= 255:
        yield (
            f"[route]: hops = {hops} with {relays} relays; take 1 ≤ hops ≤ relays ≤ 255: a circuit "
            "has different relays."
        )
    if not 1 <= proposal.route.batch <= proposal.group.minimum:
        yield f"[route]: batch = {proposal.route.batch}; give 1 to the group's minimum."


def _party_problems(proposal: Proposal) -> Iterable[str]:
    collector = proposal.collector
    named = [
        *((f"[[relays]] {i}", _service(r)) for i, r in enumerate(proposal.relays, start=1)),
        ("[collector]", _service(collector)),
    ]
    yield from party_problems(named)
    if not COMMITMENT.fullmatch(collector.lot):
        yield "[collector]: lot is a commitment, 64 hexadecimal digits in small letters."
    keys = [proposal.relays[i].onion for i in range(len(proposal.relays))] + [collector.onion]
    if len(set(keys)) < len(keys):
        yield "[[relays]], [collector]: two have the same onion key: each has one of its own."
    listed = set(proposal.group.members)
    if listed & {service.key for _, service in named}:
        yield "[group]: a relay or the collector is listed as a member: that is another role."


def _service(party: RelayCard | Collector) -> Service:
    return Service(name=party.name, address=party.address, key=party.key)


def _plan_problems(proposal: Proposal) -> Iterable[str]:
    """By trying: what cannot be drawn up or read says itself why."""
    try:
        names = set(proposal.questions)
        tokens = set(proposal.token_keys)
        proposal.shape(proposal.group.maximum)
        layer = Shape(proposal.route.kem, 1, 1)
        for stop in proposal.stops:  # a key of another kind seals nothing
            wrap(layer, b"", [stop], proposal.collector.onion, b"")
    except TacitError as error:
        yield str(error)
        return
    wanted = names if proposal.group.proof == "tokens" else set()
    if tokens != wanted:
        yield (
            "[collector.tokens]: has keys for other questions than the plan's: write the file with "
            "`tacit crowd propose`."
        )
