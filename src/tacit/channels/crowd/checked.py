"""What everybody who has the proposal can check of a crowd's certificate, whoever signed it."""

from __future__ import annotations

import math
from dataclasses import replace

from tacit.channels.crowd.binning import is_to_be_cut
from tacit.channels.crowd.certify import TRUST, Batch, Evidence, amplified, releases_of, remarks_of
from tacit.channels.crowd.letters import counts_of
from tacit.channels.crowd.person_journal import PersonJournal
from tacit.channels.crowd.proposal import Proposal
from tacit.crypto.signing import digest
from tacit.data.discrete import with_edges
from tacit.data.schema import Schema
from tacit.errors import CheckFailed, TacitError
from tacit.privacy.accounting import cost
from tacit.privacy.amplified import Amplified, Hidden
from tacit.privacy.attested import smallest_batch
from tacit.privacy.certificate import Certificate
from tacit.programs.model_file import check_canonical, model_from_bytes

__all__ = ["check_crowd", "compare"]

SAME = 1e-5  # relatively: searches for epsilon end within 1e-7, and libraries differ in last digits


def check_crowd(proposal: Proposal, model: bytes, text: str | bytes) -> Certificate:
    """The certificate, if it says what follows from the proposal and from what relays have signed.

    What is the collector's word: which edges and which model it made of the answers, how many
    arrived (`compare` sees to that, for people who took part), and when."""
    certificate = Certificate.from_json(text)
    verdict = certificate.verify(proposal.collector.key, digest(model))
    if verdict.superseded is not None:
        raise CheckFailed(f"its promise is not established: {verdict.superseded}.")
    wanted, learner = proposal.local_promise, proposal.learned_by()
    releases = releases_of(proposal.drawn_up)
    said = {
        "study": (certificate.study, proposal.digest),
        "promise": (certificate.promise, wanted),
        "releases": (certificate.releases, releases),
        "trust": (certificate.trust, TRUST),
        "accountant": (
            certificate.accountant,
            cost(releases, wanted.delta, wanted.adjacency).accountant,
        ),
        "program": (certificate.program, f"{learner.written_name} {learner.version}"),
        "program's digest": (certificate.program_digest, learner.digest),
        "promise_holds": (
            certificate.promise_holds,
            learner.promise_holds and certificate.secure_randomness,
        ),
        "conditions": (certificate.conditions, ()),
        "remarks": (certificate.remarks, remarks_of(proposal, _left_out(certificate))),
        "schema": (certificate.schema_digest, _schema_of(proposal, model).digest),
        "holders per person": (certificate.holders_per_person, 1),
        "ledger": (certificate.ledger, None),
        "witnesses": (certificate.witnesses, ()),
    }
    for what, (found, expected) in said.items():
        if found != expected:
            raise CheckFailed(f"its {what} is not what follows from the proposal {proposal.name}.")
    if certificate.amplified is None:
        raise CheckFailed("it does not say how answers were mixed.")
    _check_figure(proposal, certificate.amplified)
    part = certificate.participation
    if part is None or not proposal.group.minimum <= part.holders <= proposal.group.maximum:
        raise CheckFailed("fewer or more people took part than the proposal allows.")
    check_canonical(model, learner, _schema_of(proposal, model))
    return certificate


def _left_out(certificate: Certificate) -> tuple[str, ...]:
    return () if certificate.amplified is None else certificate.amplified.left_out


def _schema_of(proposal: Proposal, model: bytes) -> Schema:
    """The proposal's, with the edges that the crowd has found: those that the model has."""
    try:
        found = model_from_bytes(model).schema
        edges = {
            column.name: found.column(column.name).edges or ()
            for column in proposal.schema.features
            if is_to_be_cut(column)
        }
    except TacitError as error:
        raise CheckFailed(f"the model cannot be read: {error}") from None
    return with_edges(proposal.schema, edges)


def _check_figure(proposal: Proposal, figure: Amplified) -> None:
    """Worked out anew from what relays have signed and from how many answers are said to have come:
    nobody is hidden worse than it says."""
    keys = {relay.key for relay in proposal.relays}
    if not {said.relay for said in figure.statements} <= keys:
        raise CheckFailed("somebody who is no relay of the proposal has signed for its batches.")
    if [hidden.question for hidden in figure.questions] != list(proposal.drawn_up.names):
        raise CheckFailed("its central figure is about other questions than the proposal's.")
    heard = {(said.relay, said.stage, said.wave) for said in figure.statements}
    waves = {(stage, wave) for _, stage, wave in heard}
    for relay in proposal.relays:
        silent = any((relay.key, *wave) not in heard for wave in waves)
        if silent and relay.name not in figure.left_out:
            raise CheckFailed(f"it does not say that it went without relay {relay.name}.")
    batches = {hidden.question: _batch(proposal, figure, hidden) for hidden in figure.questions}
    shown = Evidence(figure.drawing, figure.statements)
    older = all(hidden.randomiser is None for hidden in figure.questions)
    anew = amplified(proposal, batches, shown, by_randomiser=not older)
    same = replace(anew, receipts=figure.receipts, left_out=figure.left_out)
    if math.isclose(figure.epsilon, anew.epsilon, rel_tol=SAME):
        same = replace(same, epsilon=figure.epsilon)
    if figure != same or len(figure.receipts) != proposal.drawn_up.stages:
        raise CheckFailed("its central figure is not what follows from the proposal.")


def _batch(proposal: Proposal, figure: Amplified, hidden: Hidden) -> Batch:
    stage, hops = proposal.questions[hidden.question].stage, proposal.route.hops
    smallest = smallest_batch(figure.statements, stage, hidden.wave, hidden.question, hops)
    return Batch(hidden.reports, smallest, hidden.wave)


def compare(proposal: Proposal, certificate: Certificate, journal: PersonJournal) -> None:
    """CheckFailed if the certificate rests on another roster or lots than this person was shown, or
    on other receipts: then what was counted is not what she saw."""
    figure = certificate.amplified
    assert figure is not None  # since check_crowd
    if journal.pinned("drawing") not in (None, figure.drawing):
        raise CheckFailed("it is about another roster, or other lots, than you were shown.")
    for stage in range(proposal.drawn_up.stages):
        shown, counts = (journal.pinned(f"{w} of stage {stage}") for w in ("receipts", "counts"))
        counted = {h.question: h.reports for h in figure.questions if h.stage == stage}
        if shown is not None and (shown, counts) != (figure.receipts[stage], counts_of(counted)):
            raise CheckFailed(
                "what was counted is not what the receipts said that you were shown: ask others "
                "whether theirs agree."
            )
