"""The certificate of a crowd's model: what her answers cost each person, alone and in the crowd.

The local promise holds whoever sees the answers. The central figure is smaller, and rests on the
relays: it counts only reports that really were mixed together (certify.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from tacit.channels.crowd.collector_store import Stored
from tacit.channels.crowd.letters import receipts_digest
from tacit.channels.crowd.plan import Lot, Plan
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.questions import Question
from tacit.channels.crowd.receipts import receipts_of
from tacit.crypto.signing import digest
from tacit.data.schema import Schema
from tacit.privacy.accounting import cost
from tacit.privacy.amplification import shuffle
from tacit.privacy.amplified import Amplified, Hidden
from tacit.privacy.attested import BatchStatement, smallest_batch
from tacit.privacy.certificate import Certificate, Participation
from tacit.privacy.release import Release
from tacit.privacy.shuffled_response import HOPELESS, shuffled_response

__all__ = [
    "TRUST",
    "Batch",
    "Evidence",
    "amplified",
    "certified",
    "counted",
    "releases_of",
    "remarks_of",
    "undisturbed",
]

TRUST = (
    "Nobody. Every answer was randomised on the person's own device before it left, so the promise "
    "holds whoever sees it, whatever else is known, and whatever relays, collector and all other "
    "people do."
)


class Evidence(NamedTuple):
    """What everybody can see of a study that is over, beside its reports.

    drawing     digest of the roster and of the lots; "" of studies that version 0.1 has held
    statements  what relays have signed of their batches
    left_out    relays, by place, that the study or one of its waves went without
    """

    drawing: str = ""
    statements: tuple[BatchStatement, ...] = ()
    left_out: tuple[int, ...] = ()


def certified(
    proposal: Proposal,
    people: int,
    reports: Sequence[Stored],
    evidence: Evidence,
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
        program=f"{learner.written_name} {learner.version}",
        program_digest=learner.digest,
        schema_digest=schema.digest,
        subject=digest(model),
        secure_randomness=secure,
        promise_holds=learner.promise_holds,
        remarks=remarks_of(proposal, _names(proposal, evidence)),
        study=proposal.digest,
        participation=Participation(people, min(each[name] for name in plan.names), plan.stages),
        amplified=amplified(proposal, counted(proposal, reports, evidence), evidence, reports),
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


class Batch(NamedTuple):
    """Answers to a question in the wave in which everyone sends: how many arrived, and in how small
    a batch they passed a relay at the least."""

    reports: int
    smallest: int
    wave: int = 0


def counted(proposal: Proposal, reports: Sequence[Stored], evidence: Evidence) -> dict[str, Batch]:
    """What was mixed, by question."""
    hops, found = proposal.route.hops, {}
    for question in proposal.drawn_up.questions:
        name = question.name
        waves = Counter(stored.wave for stored in reports if stored.question == name)
        wave = min(waves, default=0)
        passed = smallest_batch(evidence.statements, question.stage, wave, name, hops)
        found[name] = Batch(waves[wave], passed, wave)
    return found


def undisturbed(proposal: Proposal, people: int) -> dict[str, Batch]:
    """If so many people answer, and nothing is lost."""
    expected = proposal.drawn_up.expected(people)
    return {name: Batch(number, number) for name, number in expected.items()}


def amplified(
    proposal: Proposal,
    batches: Mapping[str, Batch],
    evidence: Evidence,
    reports: Sequence[Stored] = (),
    by_randomiser: bool = True,
) -> Amplified:
    """The central figure: of the person who is hidden worst, over all combinations of lots.

    by_randomiser   False: the larger figure of older certificates, which holds for every randomiser
    """
    plan, delta = proposal.drawn_up, proposal.promise.delta
    answers = sum(max(len(lot.questions) for lot in draw) for draw in plan.draws)
    share = delta / answers
    hidden = {q.name: _hidden(proposal, q, batches[q.name], by_randomiser) for q in plan.questions}
    figure = {name: _central(one, share) for name, one in hidden.items()}
    # Of those that cost the same, the one with the fewest reports tells most.
    worst = [
        max(draw, key=lambda lot: (_sum(figure, lot), -_fewest(hidden, lot))) for draw in plan.draws
    ]
    names = [name for lot in worst for name in lot.questions]
    mains = {(q.stage, batches[q.name].wave) for q in plan.questions}
    return Amplified(
        epsilon=math.fsum(figure[name] for name in names),
        delta=delta,
        answers=tuple(hidden[name] for name in names),
        relays=len(proposal.relays),
        hops=proposal.route.hops,
        corrupt=proposal.group.corrupt,
        assumption=_assumption(proposal),
        drawing=evidence.drawing,
        questions=tuple(hidden.values()) if evidence.drawing else (),
        statements=tuple(s for s in evidence.statements if (s.stage, s.wave) in mains),
        receipts=tuple(
            receipts_digest(receipts_of(reports, stage)) for stage in range(plan.stages)
        ),
        left_out=_names(proposal, evidence),
    )


def _names(proposal: Proposal, evidence: Evidence) -> tuple[str, ...]:
    return tuple(proposal.relays[place].name for place in evidence.left_out)


def _hidden(proposal: Proposal, question: Question, batch: Batch, by_randomiser: bool) -> Hidden:
    """Lots are public, so an answer hides among those to the same question only; which of the
    relays of its circuit is the honest one is not known; and cover hides nobody."""
    mixed = max(1, min(batch.reports, batch.smallest) - proposal.group.corrupt)
    (made,) = question.randomiser.spend
    return Hidden(
        question.epsilon,
        batch.reports,
        mixed,
        question.name,
        question.stage,
        batch.wave,
        made if by_randomiser else None,
    )


def _central(hidden: Hidden, delta: float) -> float:
    if hidden.local > HOPELESS:
        return hidden.local
    if hidden.randomiser is None:
        return shuffle(hidden.local, hidden.mixed, delta)
    return shuffled_response(hidden.randomiser, hidden.local, hidden.mixed, delta)


def _sum(figure: dict[str, float], lot: Lot) -> float:
    return math.fsum(figure[name] for name in lot.questions)


def _fewest(hidden: Mapping[str, Hidden], lot: Lot) -> int:
    return min(hidden[name].mixed for name in lot.questions)


def _assumption(proposal: Proposal) -> str:
    relays, hops, corrupt = len(proposal.relays), proposal.route.hops, proposal.group.corrupt
    some = (
        f"no more than {corrupt} of the people belong" if corrupt else "none of the people belong"
    )
    return (
        f"Of the relays that an answer passes ({hops} of {relays}), one at least keeps its key and "
        "its order to itself, and those before it have passed on what they were given and not put "
        f"packets of their own in its place; and {some} to the collector. Where this fails, the "
        "local promise still holds."
    )


# ── what else a reader must know ─────────────────────────────────────────────────────────────────


def remarks_of(proposal: Proposal, left_out: Sequence[str]) -> tuple[str, ...]:
    """`left_out` are names of relays."""
    plan, found = proposal.drawn_up, []
    if plan.attribute_epsilon < plan.person_epsilon:
        found.append(
            "Counted as AnonML counts, by the one attribute (a feature, or the label) that is "
            f"answered for most, the figure would be ε = {plan.attribute_epsilon:g}. It covers a "
            "person only if her attributes have nothing to do with one another, and nothing here "
            "rests on it."
        )
    if left_out:
        found.append(
            f"Relays that the study, or one of its waves, went without: {', '.join(left_out)}. If "
            "they were there and passed on what they were given, the collector has lied."
        )
    return tuple(found)
