"""Which protocol a study runs, and the certificate that it ends with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.channels.consortium.joint import JointCurator, JointParty, check_released
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.protocol import CuratorSide, PartySide
from tacit.channels.consortium.published_curator import PublishedCurator
from tacit.channels.consortium.published_party import PublishedParty
from tacit.channels.consortium.published_terms import PublishedTerms
from tacit.channels.consortium.recomputed import check_recomputed
from tacit.channels.consortium.run import Run, Word
from tacit.channels.consortium.terms import JointTerms, Terms, joint_cost
from tacit.channels.consortium.validity import check_model
from tacit.channels.roles.letters import read
from tacit.channels.studies.study import Study
from tacit.crypto.prg import Randomness
from tacit.crypto.signing import SigningKey, digest
from tacit.errors import CheckFailed
from tacit.privacy.accounting import SpendCost
from tacit.privacy.certificate import Certificate, Witness
from tacit.privacy.certificate_parts import FORMAT

__all__ = [
    "certified",
    "check_consortium",
    "check_own_run",
    "curator_side",
    "party_side",
    "planned_cost",
    "roster_is_allowed",
    "terms_of",
]


@dataclass(frozen=True)
class _Sides:
    """What a protocol is made of."""

    terms: type[Terms]
    party: Callable[[Run[Any], SigningKey, Local, Randomness], PartySide]
    curator: Callable[[Run[Any], Randomness], CuratorSide]
    check_released: Callable[[Run[Any], Sequence[bytes], bytes, bytes], None]


_PROTOCOLS = {
    "joint": _Sides(
        JointTerms, JointParty, lambda run, randomness: JointCurator(run), check_released
    ),
    "as-published": _Sides(
        PublishedTerms,
        PublishedParty,
        PublishedCurator,
        lambda run, answers, model, evidence: None,  # nobody can: published.md
    ),
}


def terms_of(study: Study, roster: tuple[str, ...]) -> Terms:
    return _sides(study).terms(study, roster)


def planned_cost(study: Study) -> SpendCost | None:
    """What a run costs each party, whoever takes part; None where no proof stands behind it."""
    if not _sides(study).terms.promise_holds:
        return None
    smallest = study.agreed_consortium.smallest
    return joint_cost(study.averaged(), study.schema, study.promise, smallest)


def party_side(
    study: Study,
    terms: Terms,
    attempt: int,
    key: SigningKey,
    local: Local,
    randomness: Randomness,
) -> PartySide:
    return _sides(study).party(Run(study, terms, attempt), key, local, randomness)


def curator_side(study: Study, terms: Terms, attempt: int, randomness: Randomness) -> CuratorSide:
    return _sides(study).curator(Run(study, terms, attempt), randomness)


def check_own_run(
    study: Study,
    terms: Terms,
    attempt: int,
    answers: Sequence[bytes],
    model: bytes,
    evidence: bytes,
) -> None:
    """What a party checks of the result of a run that it was in, from what it was told there."""
    _sides(study).check_released(Run(study, terms, attempt), answers, model, evidence)


def _sides(study: Study) -> _Sides:
    return _PROTOCOLS[study.agreed_consortium.protocol]


def roster_is_allowed(study: Study, roster: Sequence[str]) -> bool:
    """Whether an attempt may be among these parties: of the study, each once, in their order, and
    neither too few nor too many."""
    limits, known = study.take_part, {holder.key for holder in study.holders}
    in_order = list(roster) == sorted(set(roster) & known)
    return in_order and max(2, limits.minimum) <= len(roster) <= limits.maximum


def certified(study: Study, terms: Terms, model: bytes, last: Mapping[str, bytes]) -> Certificate:
    """What all parties together vouch for; CheckFailed if one of them does not."""
    words = {party: read(Word, body) for party, body in last.items()}
    secure = all(word.secure for word in words.values())
    run = Run(study, terms, 0)
    for party, word in words.items():
        run.check_word(party, word, secure)
    witnesses = tuple(Witness(party, words[party].statement) for party in terms.roster)
    return _certificate(terms, digest(model), secure, witnesses)


def _certificate(
    terms: Terms,
    subject: str,
    secure: bool,
    witnesses: tuple[Witness, ...],
    certificate_format: str = FORMAT,
) -> Certificate:
    """All that a certificate says but who signed it when: it follows from study and roster."""
    study, averaged = terms.study, terms.averaged
    return Certificate(
        promise=study.promise,
        releases=terms.releases,
        trust=terms.trust if certificate_format == FORMAT else terms.trust_before,
        accountant=terms.accountant,
        program=f"{averaged.written_name} {averaged.version}",
        program_digest=averaged.digest,
        schema_digest=study.schema.digest,
        subject=subject,
        secure_randomness=secure,
        promise_holds=terms.promise_holds,
        remarks=terms.remarks,
        study=study.digest,
        participation=terms.participation,
        witnesses=witnesses,
        format=certificate_format,
    )


def check_consortium(
    study: Study, model: bytes, text: str, roster: tuple[str, ...] | None = None
) -> Certificate:
    """What anybody who has the study checks before believing a result: all but the date and the
    model follows from the study and who took part, and the model is one that they can have made.

    `roster` is that of the run, if the one who checks was in it.
    """
    certificate = Certificate.from_json(text)
    found = tuple(witness.public_key for witness in certificate.witnesses)
    if not roster_is_allowed(study, found):
        raise CheckFailed("not every party has signed what noise it added, or somebody else has.")
    if roster is not None and found != roster:
        raise CheckFailed("the certificate is of another run than the one that we were in.")
    terms = terms_of(study, found)
    secure = certificate.secure_randomness  # which the witnesses have signed
    subject, witnesses = certificate.subject, certificate.witnesses
    check_recomputed(
        certificate, _certificate(terms, subject, secure, witnesses, certificate.format)
    )
    certificate.verify(study.aggregator.key, digest(model))
    check_model(model, terms.averaged, study.schema, terms.validity_bound)
    return certificate
