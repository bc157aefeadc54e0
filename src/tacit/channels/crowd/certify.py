"""The certificate of a crowd's model: what her answers cost each person, alone and in the crowd.

The local promise holds whoever sees the answers. The central figure is smaller, and rests on the
relays: it counts only reports that really were mixed together (certify.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from tacit.channels.crowd.collector_store import Stored
from tacit.channels.crowd.mixing import mixed_at_least
from tacit.channels.crowd.plan import Lot, Plan
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.questions import Question
from tacit.crypto.signing import digest
from tacit.data.schema import Schema
from tacit.privacy.accounting import cost
from tacit.privacy.amplification import shuffle
from tacit.privacy.amplified import Amplified, Hidden
from tacit.privacy.certificate import Certificate, Participation
from tacit.privacy.release import Release

__all__ = ["amplified", "certified", "main_wave", "releases_of"]

MAIN = 0  # the wave in which everyone sends; later ones are for what was lost
HOPELESS = 100.0  # a local epsilon so large that nobody hides anybody

TRUST = (
    "Nobody. Every answer was randomised on the person's own device before it left, so the promise "
    "holds whoever sees it, whatever else is known, and whatever relays, collector and all other "
    "people do."
)


def certified(
    proposal: Proposal,
    people: int,
    reports: Sequence[Stored],
    model: bytes,
    schema: Schema,
    secure: bool = True,
) -> Certificate:
    """Unsigned, for a study that is over.

    people   in the roster
    reports  all that were counted, each of another person or to another question
    schema   the proposal's, with the edges that the crowd has found
    secure   whether people drew from secure randomness: False in a simulation from a seed
    """
    plan, learner = proposal.drawn_up, proposal.learned_by()
    promise, releases = proposal.local_promise, releases_of(plan)
    each = Counter(stored.question for stored in reports)
    return Certificate(
        promise=promise,
        releases=releases,
        trust=TRUST,
        accountant=cost(releases, promise.delta, promise.adjacency).accountant,
        program=f"{learner.name} {learner.version}",
        program_digest=learner.digest,
        schema_digest=schema.digest,
        subject=digest(model),
        secure_randomness=secure,
        promise_holds=learner.promise_holds,
        remarks=_remarks(plan, reports),
        study=proposal.digest,
        participation=Participation(people, min(each[name] for name in plan.names), plan.stages),
        amplified=amplified(proposal, main_wave(reports)),
    )


# ── what a person's answers cost, whoever sees them ──────────────────────────────────────────────


def releases_of(plan: Plan) -> tuple[Release, ...]:
    """What one person can have released: a part for each combination of lots, one of each draw.

    A person has one lot of each draw, so she is in one of the parts. Lots whose answers are
    randomised alike cost the same and make one part, which has the name of the first.
    """
    found: list[Release] = []
    for chosen in product(*(_kinds(plan, draw) for draw in plan.draws)):
        part = " + ".join(name for kind in chosen for name in kind.lot.questions)
        found += [replace(release, part=part) for kind in chosen for release in kind.spend]
    return tuple(found)


class _Kind(NamedTuple):
    lot: Lot
    spend: list[Release]


def _kinds(plan: Plan, draw: Sequence[Lot]) -> list[_Kind]:
    """The lots of a draw, without those that cost exactly what an earlier one does."""
    kinds: list[_Kind] = []
    for lot in draw:
        spend = [r for name in lot.questions for r in plan.question(name).randomiser.spend]
        if all(spend != kind.spend for kind in kinds):
            kinds.append(_Kind(lot, spend))
    return kinds


# ── what they show when nobody knows who sent which ──────────────────────────────────────────────


def main_wave(reports: Sequence[Stored]) -> Counter[str]:
    """How many answers to each question arrived in the wave in which everyone sends."""
    return Counter(stored.question for stored in reports if stored.wave == MAIN)


def amplified(proposal: Proposal, main: Counter[str]) -> Amplified:
    """The central figure: of the person who is hidden worst, over all combinations of lots."""
    plan, delta = proposal.drawn_up, proposal.promise.delta
    answers = sum(max(len(lot.questions) for lot in draw) for draw in plan.draws)
    share = delta / (2 * answers)  # half for too few that meet, half for what those do not hide
    hidden = {q.name: _hidden(proposal, q, main[q.name], share) for q in plan.questions}
    figure = {name: _central(one, share) for name, one in hidden.items()}
    # Of those that cost the same, the one with the fewest reports tells most.
    worst = [
        max(draw, key=lambda lot: (_sum(figure, lot), -_fewest(main, lot))) for draw in plan.draws
    ]
    names = [name for lot in worst for name in lot.questions]
    return Amplified(
        epsilon=math.fsum(figure[name] for name in names),
        delta=delta,
        answers=tuple(hidden[name] for name in names),
        relays=len(proposal.relays),
        hops=proposal.route.hops,
        corrupt=proposal.group.corrupt,
        assumption=_assumption(proposal),
    )


def _hidden(proposal: Proposal, question: Question, reports: int, failure: float) -> Hidden:
    """Lots are public, so an answer hides among those to the same question only."""
    honest = max(1, reports - proposal.group.corrupt)
    mixed = mixed_at_least(honest, len(proposal.relays), proposal.route.hops, failure)
    return Hidden(question.epsilon, reports, mixed)


def _central(hidden: Hidden, delta: float) -> float:
    if hidden.local > HOPELESS:
        return hidden.local
    return shuffle(hidden.local, hidden.mixed, delta)


def _sum(figure: dict[str, float], lot: Lot) -> float:
    return math.fsum(figure[name] for name in lot.questions)


def _fewest(main: Counter[str], lot: Lot) -> int:
    return min(main[name] for name in lot.questions)


def _assumption(proposal: Proposal) -> str:
    relays, hops, corrupt = len(proposal.relays), proposal.route.hops, proposal.group.corrupt
    some = (
        f"no more than {corrupt} of the people belong" if corrupt else "none of the people belong"
    )
    return (
        f"Of the relays that an answer passes ({hops} of {relays}), one at least keeps its key and "
        "its order to itself; all relays are named to everybody, are within everybody's reach and "
        f"pass on what they are given; {some} to the collector; and the answer arrived in the wave "
        "in which all were sent. Where this fails, the local promise still holds."
    )


# ── what else a reader must know ─────────────────────────────────────────────────────────────────


def _remarks(plan: Plan, reports: Sequence[Stored]) -> tuple[str, ...]:
    found = []
    if plan.attribute_epsilon < plan.person_epsilon:
        found.append(
            "Counted as AnonML counts, by the one attribute (a feature, or the label) that is "
            f"answered for most, the figure would be ε = {plan.attribute_epsilon:g}. It covers a "
            "person only if her attributes have nothing to do with one another, and nothing here "
            "rests on it."
        )
    again = sum(stored.wave != MAIN for stored in reports)
    if again:
        found.append(
            f"{again} of {len(reports)} answers arrived only when they were sent again: for the "
            "people who gave them the local promise holds, and not the central figure."
        )
    return tuple(found)
