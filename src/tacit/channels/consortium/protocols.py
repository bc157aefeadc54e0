"""Which protocol a study runs, and the certificate that it ends with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tacit.channels.consortium.joint import JointCurator, JointParty
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.protocol import CuratorSide, PartySide
from tacit.channels.consortium.published_curator import PublishedCurator
from tacit.channels.consortium.published_party import PublishedParty
from tacit.channels.consortium.published_terms import PublishedTerms
from tacit.channels.consortium.run import Run, Word
from tacit.channels.consortium.terms import JointTerms, Terms, joint_cost
from tacit.channels.roles.letters import read
from tacit.channels.studies.study import Study
from tacit.crypto.prg import Randomness
from tacit.crypto.signing import SigningKey, digest, signed_by
from tacit.errors import CheckFailed
from tacit.privacy.accounting import SpendCost
from tacit.privacy.certificate import Certificate, Witness

__all__ = [
    "certified",
    "check_consortium",
    "curator_side",
    "party_side",
    "planned_cost",
    "terms_of",
]


@dataclass(frozen=True)
class _Sides:
    """What a protocol is made of."""

    terms: type[Terms]
    party: Callable[[Run[Any], SigningKey, Local, Randomness], PartySide]
    curator: Callable[[Run[Any], Randomness], CuratorSide]


_PROTOCOLS = {
    "joint": _Sides(JointTerms, JointParty, lambda run, randomness: JointCurator(run)),
    "as-published": _Sides(PublishedTerms, PublishedParty, PublishedCurator),
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


def _sides(study: Study) -> _Sides:
    return _PROTOCOLS[study.agreed_consortium.protocol]


def certified(study: Study, terms: Terms, model: bytes, last: Mapping[str, bytes]) -> Certificate:
    """What all parties together vouch for; CheckFailed if one of them does not."""
    words = {party: read(Word, body) for party, body in last.items()}
    secure = all(word.secure for word in words.values())
    run = Run(study, terms, 0)
    for party, word in words.items():
        if not signed_by(party, word.statement, run.statement(word.secure)):
            raise CheckFailed("a party does not vouch for the noise that it should have added.")
    averaged = terms.averaged
    return Certificate(
        promise=study.promise,
        releases=terms.releases,
        trust=terms.trust,
        accountant=terms.accountant,
        program=f"{averaged.name} {averaged.version}",
        program_digest=averaged.digest,
        schema_digest=study.schema.digest,
        subject=digest(model),
        secure_randomness=secure,
        promise_holds=terms.promise_holds,
        remarks=terms.remarks,
        study=study.digest,
        participation=terms.participation,
        witnesses=tuple(Witness(party, words[party].statement) for party in terms.roster),
    )


def check_consortium(study: Study, model: bytes, text: str) -> Certificate:
    """What a party checks before it believes a result."""
    certificate = Certificate.from_json(text)
    certificate.verify(study.aggregator.key, digest(model))
    if (certificate.study, certificate.promise) != (study.digest, study.promise):
        raise CheckFailed("the certificate does not keep the promise of this study.")
    signed = {witness.public_key for witness in certificate.witnesses}
    part = certificate.participation
    if part is None or len(signed) != part.holders or part.holders < study.take_part.minimum:
        raise CheckFailed("not every party has signed what noise it added.")
    if not signed <= {holder.key for holder in study.holders}:
        raise CheckFailed("somebody who is not in the study has signed the certificate.")
    return certificate
