"""The certificate of a study: what was added by whom, under which trust, and who took part."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tacit.channels.federation.noise_plan import NoisePlan, took_part
from tacit.channels.roles.letters import read
from tacit.channels.studies.study import Study
from tacit.crypto.signing import digest, signed_by
from tacit.errors import CheckFailed
from tacit.privacy.accounting import cost
from tacit.privacy.certificate import Certificate, Witness, statement
from tacit.privacy.promise import Unit

__all__ = ["Attestation", "certified", "check_result", "checked_attestation", "trust_of"]


class Attestation(msgspec.Struct, frozen=True):
    """A server's signature of its `statement`, and whether its randomness was secure."""

    signature: str
    secure: bool


def checked_attestation(
    study: Study, plan: NoisePlan, sets: Sequence[Sequence[str]], server: str, body: bytes
) -> Attestation:
    """The server's word, if its books agree with ours."""
    said = read(Attestation, body)
    ours = statement(
        study.digest,
        study.promise,
        plan.releases,
        took_part(sets),
        said.secure,
        study.contributions,
    )
    if not signed_by(server, said.signature, ours):
        raise CheckFailed("its books of rounds, noise and holders differ from the aggregator's.")
    return said


def certified(
    study: Study,
    plan: NoisePlan,
    sets: Sequence[Sequence[str]],
    model: bytes,
    witnesses: tuple[Witness, ...],
    secure: bool,
) -> Certificate:
    program, promise, releases = study.program(), study.promise, plan.releases
    found = cost(releases, promise.delta, promise.adjacency) if releases else None
    return Certificate(
        promise=promise,
        releases=releases,
        trust=trust_of(study),
        accountant=found.accountant if found else "none",
        program=f"{program.name} {program.version}",
        program_digest=program.digest,
        schema_digest=study.schema.digest,
        subject=digest(model),
        secure_randomness=secure,
        promise_holds=program.promise_holds,
        study=study.digest,
        participation=took_part(sets),
        witnesses=witnesses,
        conditions=_conditions(study),
        holders_per_person=study.contributions,
    )


def _conditions(study: Study) -> tuple[str, ...]:
    """What the promise rests on that nobody can check."""
    if study.promise.unit is not Unit.PERSON:
        return ()
    many = study.contributions
    holders = "one of the holders" if many == 1 else f"{many} of the holders"
    return (f"Nobody is with more than {holders}, as the study states.",)


def trust_of(study: Study) -> str:
    """Who must be honest for the promise to hold, in words."""
    count = len(study.servers)
    if study.noise.policy == "every-server":
        return (
            f"Any one of the {count} servers. Each added the full noise to sums of random shares, "
            "so the promise holds even if all others and the aggregator work together. " + _REMAINS
        )
    return (
        f"At least {study.noise.honest} of the {count} servers, each of which added one part of "
        "the noise, follow the protocol and do not work together with anyone. " + _REMAINS
    )


# server.md, *nobody answers twice*.
_REMAINS = (
    "Each round was summed in the one way that all servers have sealed. Only a server that is put "
    "back to an earlier state, unnoticed, could be made to sum a round in a second way, and only "
    "if all who remember the round (the aggregator and all other servers) work together."
)


def check_result(study: Study, model: bytes, text: str) -> Certificate:
    """What a holder checks before it believes a result: model, signers, every server's word."""
    certificate = Certificate.from_json(text)
    certificate.verify(study.aggregator.key, digest(model))
    if certificate.study != study.digest:
        raise CheckFailed("the certificate belongs to another study.")
    stated = (study.promise, study.contributions)
    if (certificate.promise, certificate.holders_per_person) != stated:
        raise CheckFailed("the certificate does not keep the study's promise.")
    signed = {witness.public_key for witness in certificate.witnesses}
    if signed != {server.key for server in study.servers}:
        raise CheckFailed("not every server of the study has signed what noise it added.")
    return certificate
