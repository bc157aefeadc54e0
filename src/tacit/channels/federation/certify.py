"""The certificate of a study: what was added by whom, under which trust, and who took part.

A holder believes a certificate that it could have written itself. From the study, how many rounds
there were and who took part, it computes all of it but the subject, the date and the signatures
(`check_result`), and each server signs one subject per study: docs/explain/equivocation.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from tacit.channels.federation.noise_plan import NoisePlan, took_part
from tacit.channels.roles.letters import read
from tacit.channels.studies.study import Study
from tacit.crypto.signing import canonical, digest, signed_by
from tacit.errors import CheckFailed
from tacit.privacy.accounting import cost
from tacit.privacy.certificate import Certificate, Participation, Witness, statement
from tacit.privacy.certificate_parts import release_document
from tacit.privacy.promise import Unit
from tacit.privacy.release import Release
from tacit.programs.files import from_bytes
from tacit.programs.model_file import check_canonical, schema_of
from tacit.programs.range_words import range_remarks, remarks_possible

__all__ = [
    "Attestation",
    "certified",
    "check_certificate",
    "check_model",
    "check_result",
    "checked_attestation",
    "remarks_of",
    "statement_of",
    "trust_of",
]

LIBRARY = re.compile(r"tacit [0-9A-Za-z.+-]{1,40}")


class Attestation(msgspec.Struct, frozen=True):
    """A server's signature of its `statement`, and whether its randomness was secure."""

    signature: str
    secure: bool


def statement_of(
    study: Study, plan: NoisePlan, sets: Sequence[Sequence[str]], secure: bool, subject: str
) -> bytes:
    """What a server signs at the end: its noise, who took part, and the one result."""
    return statement(
        study.digest,
        study.promise,
        plan.releases,
        took_part(sets),
        secure,
        study.contributions,
        subject=subject,
    )


def checked_attestation(
    study: Study,
    plan: NoisePlan,
    sets: Sequence[Sequence[str]],
    subject: str,
    server: str,
    body: bytes,
) -> Attestation:
    """The server's word, if its books agree with ours."""
    said = read(Attestation, body)
    if not signed_by(server, said.signature, statement_of(study, plan, sets, said.secure, subject)):
        raise CheckFailed("its books of rounds, noise and holders differ from the aggregator's.")
    return said


def certified(
    study: Study,
    releases: tuple[Release, ...],
    participation: Participation,
    subject: str,
    witnesses: tuple[Witness, ...],
    secure: bool,
    remarks: tuple[str, ...] = (),
) -> Certificate:
    """All of a certificate but its date and signature. `remarks`: the program's, of the model."""
    program, promise = study.program(), study.promise
    found = cost(releases, promise.delta, promise.adjacency) if releases else None
    return Certificate(
        promise=promise,
        releases=releases,
        trust=trust_of(study),
        accountant=found.accountant if found else "none",
        program=f"{program.written_name} {program.version}",
        program_digest=program.digest,
        schema_digest=study.schema.digest,
        subject=subject,
        secure_randomness=secure,
        promise_holds=program.promise_holds,
        study=study.digest,
        participation=participation,
        witnesses=witnesses,
        conditions=_conditions(study),
        remarks=remarks,
        holders_per_person=study.contributions,
    )


def _conditions(study: Study) -> tuple[str, ...]:
    """What the promise rests on that nobody can check."""
    found = []
    if study.promise.unit is Unit.PERSON:
        many = study.contributions
        holders = "one of the holders" if many == 1 else f"{many} of the holders"
        found.append(f"Nobody is with more than {holders}, as the study states.")
    if study.sampling is not None:
        found.append(
            f"In each round each holder drew a new sample of its own records, each {_unit(study)} "
            f"with probability {study.rate}, and kept it to itself."
        )
    return tuple(found)


def _unit(study: Study) -> str:
    """What is drawn or not as a whole."""
    return "person" if study.promise.unit is Unit.PERSON else "record"


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


# ── what is believed ──


def check_result(study: Study, model: bytes, text: str, rounds: int = 0) -> Certificate:
    """What a holder checks before it believes a result. `rounds` is the newest that it knows of."""
    certificate = check_certificate(study, text, rounds)
    if certificate.subject != digest(model):
        raise CheckFailed("the model is not the one that this certificate was issued for.")
    check_model(study, model, certificate)
    return certificate


def check_model(study: Study, model: bytes, certificate: Certificate) -> None:
    """CheckFailed unless the bytes are a model of this study: of its program, under its schema with
    nothing but the bounds filled in that were to be found; and the certificate remarks on it what
    everyone who has it would."""
    check_canonical(model, study.program(), study.schema)
    if remarks_of(study, model) != certificate.remarks:
        raise CheckFailed("the certificate does not remark on the model what its program does.")


def remarks_of(study: Study, model: bytes) -> tuple[str, ...]:
    """What there is to say of the ranges and of the model: whoever has it finds the same."""
    program = study.program()
    found = range_remarks(study.schema, schema_of(model))
    return (*found, *program.remarks(from_bytes(program.models, model)))


def check_certificate(study: Study, text: str | bytes, rounds: int = 0) -> Certificate:
    """CheckFailed unless the certificate is the one that anybody would write for this study, after
    these rounds with these holders; only subject, date and signatures are its own."""
    certificate = Certificate.from_json(text)
    certificate.verify(study.aggregator.key)
    if certificate.study != study.digest:
        raise CheckFailed("the certificate belongs to another study.")
    part = _checked_participation(study, certificate.participation, rounds)
    _check_witnesses(study, certificate)
    _check_releases(study, certificate.releases, part.rounds)
    _check_date(certificate)
    ours = certified(
        study,
        certificate.releases,
        part,
        certificate.subject,
        certificate.witnesses,
        certificate.secure_randomness,
        _checked_remarks(study, certificate),
    )
    _check_same(certificate, ours)
    return certificate


def _checked_remarks(study: Study, certificate: Certificate) -> tuple[str, ...]:
    """What is true of the model, `check_model` sees; nothing but these is ever remarked."""
    own = study.program().may_remark
    of_ranges = tuple(said for said in certificate.remarks if said not in own)
    of_model = tuple(said for said in own if said in certificate.remarks)
    possible = remarks_possible(study.schema, of_ranges)
    if not possible or certificate.remarks != (*of_ranges, *of_model):
        raise CheckFailed("the certificate has remarks that no run of the study makes.")
    return certificate.remarks


def _checked_participation(study: Study, part: Participation | None, rounds: int) -> Participation:
    limits = study.take_part
    if part is None or not (
        max(1, rounds) <= part.rounds <= study.last_round
        and limits.minimum <= part.fewest <= min(part.holders, limits.maximum)
        and part.holders <= len(study.holders)
        and not (study.plan().windows and not study.plan().ends_window(part.rounds))
    ):
        raise CheckFailed("the certificate does not say who took part as the study allows.")
    return part


def _check_witnesses(study: Study, certificate: Certificate) -> None:
    """Every server, once and in the study's order, for this result and no other."""
    signed = [witness.public_key for witness in certificate.witnesses]
    if signed != [server.key for server in study.servers]:
        raise CheckFailed("not every server of the study has signed what noise it added.")
    said = certificate.statement_of_subject or b""
    for server, witness in zip(study.servers, certificate.witnesses, strict=True):
        if not signed_by(server.key, witness.signature, said):
            raise CheckFailed(f"server {server.name} has not signed that this is the result.")


def _check_releases(study: Study, releases: Sequence[Release], rounds: int) -> None:
    """The planned ones of so many rounds; vectors may be shorter than planned."""
    plan = NoisePlan(study)
    for number in range(1, rounds + 1):
        plan.charge(number, study.plan().stage(number).query)
    ours, found = _counted(plan.releases), _counted(releases)
    same = {kind: count for kind, (count, _) in ours.items()} == {
        kind: count for kind, (count, _) in found.items()
    }
    if not same or any(length > ours[kind][1] for kind, (_, length) in found.items()):
        raise CheckFailed(f"the certificate lists other noise than {rounds} rounds of the study.")


def _counted(releases: Sequence[Release]) -> dict[bytes, tuple[int, int]]:
    """How often each kind of release, whatever its length, and the longest."""
    found: dict[bytes, tuple[int, int]] = {}
    for release in releases:
        kind = canonical(release_document(replace(release, count=1, length=1)))
        count, length = found.get(kind, (0, 0))
        found[kind] = count + release.count, max(length, release.length)
    return found


def _check_date(certificate: Certificate) -> None:
    try:
        moment = datetime.fromisoformat(certificate.issued).astimezone(UTC)
    except (ValueError, OverflowError):
        raise CheckFailed("the certificate has no date.") from None
    if moment.isoformat(timespec="seconds") != certificate.issued:
        raise CheckFailed("the date of the certificate is not in its one form.")
    if not LIBRARY.fullmatch(certificate.library):
        raise CheckFailed("the certificate does not say which tacit wrote it.")


def _check_same(certificate: Certificate, ours: Certificate) -> None:
    own = replace(
        ours,
        issued=certificate.issued,
        library=certificate.library,
        public_key=certificate.public_key,
        signature=certificate.signature,
    )
    if own.to_json() != certificate.to_json():
        raise CheckFailed(
            "the certificate says other things (promise, trust, conditions, remarks or program) "
            "than follow from the study."
        )
