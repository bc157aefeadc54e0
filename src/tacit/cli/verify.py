"""`tacit verify MODEL`: recompute a certificate, check its signature and its model."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.output import fail, json_option, people, print_document
from tacit.errors import CertificateInvalid, InputError, UsageError
from tacit.program_names import shown_program

if TYPE_CHECKING:
    from tacit.privacy.certificate import Certificate, Participation, Verdict

__all__ = ["certificate_beside", "verify"]

SUFFIX = ".certificate.json"
SUPERSEDED = "superseded: promise not established"
NOT_HELD = "certificate is genuine, its promise does NOT hold"


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--signer", help="Public key (hex) that must have signed.")
@click.option(
    "--study",
    "study_file",
    type=click.Path(path_type=Path),
    help="Study file: the certificate must say what follows from it, and nothing else.",
)
@json_option
def verify(model: Path, signer: str | None, study_file: Path | None, as_json: bool) -> None:
    """Verify MODEL: a released file with its certificate beside it, or a certificate.

    The certificate of `model.json` is `model.json.certificate.json`. Its epsilon is recomputed
    from the releases by other code than made it. Exit code 6, with the reason, if anything does
    not hold, or if the certificate is superseded: written by a version with a fault that may have
    broken its promise.
    """
    from tacit.crypto.signing import digest
    from tacit.privacy.certificate import Certificate

    subject, path = _pair(model)
    certificate = Certificate.from_json(_read(path))
    verdict = certificate.verify(signer, None if subject is None else digest(_read(subject)))
    if study_file is not None:
        _check_study(certificate, study_file, subject)
    document = {
        **_document(certificate, verdict, subject),
        "study_checked": study_file is not None,
    }
    if as_json:
        print_document(document)
    else:
        _explain(certificate, verdict, subject, study_file)
    if verdict.superseded is not None:
        fail(CertificateInvalid(f"{SUPERSEDED}: {verdict.superseded}."))


def _check_study(certificate: Certificate, path: Path, model: Path | None) -> None:
    """What a holder of the study checks before it believes the result; CheckFailed otherwise."""
    from tacit.channels.consortium.protocols import check_consortium
    from tacit.channels.federation.certify import check_certificate, check_model
    from tacit.channels.studies.study import Study

    study = Study.load(path)
    if study.consortium is None:
        check_certificate(study, certificate.to_json())
        if model is not None:
            check_model(study, _read(model), certificate)
    elif model is None:
        raise UsageError("a consortium's certificate is checked with its model: put it beside.")
    else:
        check_consortium(study, _read(model), certificate.to_json())


def _pair(model: Path) -> tuple[Path | None, Path]:
    """The released file and its certificate, from the name of either."""
    if model.name.endswith(SUFFIX):
        subject = model.with_name(model.name.removesuffix(SUFFIX))
        return (subject if subject.exists() else None), model
    beside = model.with_name(model.name + SUFFIX)
    if model.exists() and not beside.exists():
        raise CertificateInvalid(f"{model} has no certificate: {beside.name} is not beside it.")
    return model, beside


def certificate_beside(model: Path) -> bytes:
    """The certificate of a released file."""
    return _read(_pair(model)[1])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def _document(certificate: Certificate, verdict: Verdict, subject: Path | None) -> dict[str, Any]:
    promise = certificate.promise
    return {
        "valid": verdict.superseded is None,
        "superseded": verdict.superseded,
        "promise": {
            "epsilon": promise.epsilon if promise.is_private else None,
            "delta": promise.delta,
            "unit": promise.unit.value,
            "adjacency": promise.adjacency.value,
        },
        "promise_holds": certificate.promise_holds,
        "recomputed_epsilon": None if math.isinf(verdict.epsilon) else verdict.epsilon,
        "central": _central(certificate, verdict),
        "signer": verdict.signer,
        "public_key": certificate.public_key,
        "model_checked": subject is not None,
        "study": certificate.study,
        "participation": None
        if certificate.participation is None
        else asdict(certificate.participation),
        "witnesses": [witness.public_key for witness in certificate.witnesses],
        "holders_per_person": certificate.holders_per_person,
        "conditions": list(verdict.conditions),
        "warnings": list(verdict.warnings),
    }


def _central(certificate: Certificate, verdict: Verdict) -> dict[str, Any] | None:
    """The smaller figure of what was mixed, with what it rests on."""
    if certificate.amplified is None:
        return None
    central = asdict(certificate.amplified)
    for hidden in (*central["answers"], *central["questions"]):
        made = hidden["randomiser"]  # exact fractions, as text
        if made is not None:
            parameters = {name: str(value) for name, value in made["parameters"].items()}
            hidden["randomiser"] = {"mechanism": made["mechanism"], "parameters": parameters}
    return {**central, "recomputed_epsilon": verdict.central}


def _explain(
    certificate: Certificate, verdict: Verdict, subject: Path | None, study_file: Path | None
) -> None:
    from rich.table import Table

    from tacit.crypto.signing import fingerprint

    title = "certificate holds" if certificate.promise_holds else NOT_HELD
    if verdict.superseded is not None:
        title = SUPERSEDED
    table = Table(title=title, show_header=False)
    central = certificate.amplified
    table.add_row("promise" if central is None else "local promise", str(certificate.promise))
    table.add_row(
        "recomputed", f"ε = {verdict.epsilon:.6g} from {len(certificate.releases)} kinds of release"
    )
    table.add_row("trust", certificate.trust)
    if central is not None:
        mixed = f"mixed with {central.mixed - 1} others' at the least"
        table.add_row("in the crowd", f"ε = {central.epsilon:.4g}, δ = {central.delta:g}: {mixed}")
        answers = _count(len(central.answers), "answer")
        table.add_row("recomputed", f"ε = {verdict.central:.6g} from {answers} of each person")
        table.add_row("only if", central.assumption)
    table.add_row("program", shown_program(certificate.program))
    if certificate.participation is not None:
        table.add_row("took part", _took_part(certificate, certificate.participation))
    if certificate.witnesses:
        keys = ", ".join(fingerprint(witness.public_key) for witness in certificate.witnesses)
        table.add_row("noise attested by", f"{len(certificate.witnesses)} servers: {keys}")
    if study_file is not None:
        table.add_row("study", f"says what follows from {study_file}, and nothing else")
    table.add_row("signed by", f"{verdict.signer} on {certificate.issued}")
    table.add_row("model", "the one it was issued for" if subject else "not here, so not checked")
    for condition in verdict.conditions:
        table.add_row("provided that", condition)
    for warning in verdict.warnings:
        table.add_row("[yellow]note[/]", warning)
    people().print(table)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _took_part(certificate: Certificate, part: Participation) -> str:
    if certificate.amplified is not None:
        stages = _count(part.rounds, "stage")
        return f"{part.holders} people in {stages}; each question has {part.fewest} answers or more"
    fewest = f", {part.fewest} in the smallest round" if part.fewest < part.holders else ""
    return f"{part.holders} holders in {part.rounds} rounds{fewest}"
