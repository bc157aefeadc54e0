"""What was collected: from the collector's store to tables, a model and its certificate."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.channels.crowd.certify import Evidence, certified
from tacit.channels.crowd.collector_store import CollectorStore, Stored
from tacit.channels.crowd.learning import learn
from tacit.channels.crowd.liars import widened
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.searches import Searches
from tacit.channels.crowd.tables import Table, estimated_tables
from tacit.crypto.signing import SigningKey
from tacit.data.discrete import with_edges
from tacit.data.schema import Schema
from tacit.errors import Refused
from tacit.privacy.certificate import Certificate
from tacit.programs.model_file import model_bytes

__all__ = ["Harvest", "harvested"]


@dataclass(frozen=True, slots=True)
class Harvest:
    """A study's tables as estimated, the schema with the edges that were found, and the model."""

    tables: list[Table]
    schema: Schema
    model: bytes
    certificate: Certificate


def harvested(proposal: Proposal, store: CollectorStore, key: SigningKey) -> Harvest:
    """Learn from what arrived. As often as one likes: it costs nobody anything more."""
    progress = store.progress()
    if progress is None or progress.phase != "over":
        phase = "nothing has begun" if progress is None else f"it is {progress.phase}"
        raise Refused(
            f"study {proposal.name} is not over: {phase}. Run `tacit serve collector` to its end."
        )
    reports = store.reports()
    searches, tables = _read(proposal, reports)
    schema = with_edges(proposal.schema, searches.edges)
    learner = proposal.learned_by()
    model = model_bytes(learn(learner, schema, tables), learner, schema)
    people = len(store.members())
    evidence = _evidence(proposal, store)
    certificate = certified(proposal, people, reports, evidence, model, schema).signed(key)
    shown = widened(tables, proposal.drawn_up, people, proposal.group.corrupt)
    return Harvest(shown, schema, model, certificate)


def _evidence(proposal: Proposal, store: CollectorStore) -> Evidence:
    """Relays that were left out are those without a part in the drawing, or in some wave."""
    drawing = store.drawing()
    if drawing is None:
        return Evidence()
    digest, relays = drawing
    statements = store.all_statements()
    waves = {(said.stage, said.wave) for said in statements}
    took_part = {(said.relay, said.stage, said.wave) for said in statements if said.hop >= 0}
    left_out = {
        place
        for place, relay in enumerate(proposal.relays)
        if place not in relays or any((relay.key, *wave) not in took_part for wave in waves)
    }
    return Evidence(digest, statements, tuple(sorted(left_out)))


def _read(proposal: Proposal, reports: list[Stored]) -> tuple[Searches, list[Table]]:
    by_question: dict[str, list[bytes]] = {}
    for stored in reports:
        by_question.setdefault(stored.question, []).append(stored.report)
    plan = proposal.drawn_up
    searches = Searches.start(proposal.schema, proposal.plan.bins)
    for stage in range(plan.stages):
        searches = searches.learned({q: by_question.get(q.name, []) for q in plan.in_stage(stage)})
    return searches, estimated_tables(
        {q: q.rows(by_question.get(q.name, [])) for q in plan.questions}
    )
