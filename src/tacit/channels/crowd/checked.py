"""What everybody who has the proposal can check of a crowd's certificate, whoever signed it."""

from __future__ import annotations

from dataclasses import replace

from tacit.channels.crowd.certify import TRUST, Batch, Evidence, amplified, releases_of
from tacit.channels.crowd.letters import counts_of
from tacit.channels.crowd.person_journal import PersonJournal
from tacit.channels.crowd.proposal import Proposal
from tacit.crypto.signing import digest
from tacit.errors import CheckFailed
from tacit.privacy.accounting import cost
from tacit.privacy.amplified import Amplified, Hidden
from tacit.privacy.attested import smallest_batch
from tacit.privacy.certificate import Certificate
from tacit.programs.model_file import model_from_bytes

__all__ = ["check_crowd", "compare"]


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
        "program": (certificate.program, f"{learner.name} {learner.version}"),
        "program's digest": (certificate.program_digest, learner.digest),
        "promise_holds": (
            certificate.promise_holds,
            learner.promise_holds and certificate.secure_randomness,
        ),
        "conditions": (certificate.conditions, ()),
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
    model_from_bytes(model)
    return certificate


def _check_figure(proposal: Proposal, figure: Amplified) -> None:
    """Worked out anew from what relays have signed and from how many answers are said to have come:
    nobody is hidden worse than it says."""
    keys = {relay.key for relay in proposal.relays}
    if not {said.relay for said in figure.statements} <= keys:
        raise CheckFailed("somebody who is no relay of the proposal has signed for its batches.")
    if [hidden.question for hidden in figure.questions] != list(proposal.drawn_up.names):
        raise CheckFailed("its central figure is about other questions than the proposal's.")
    batches = {hidden.question: _batch(proposal, figure, hidden) for hidden in figure.questions}
    anew = amplified(proposal, batches, Evidence(figure.drawing, figure.statements))
    same = replace(anew, receipts=figure.receipts, left_out=figure.left_out)
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
