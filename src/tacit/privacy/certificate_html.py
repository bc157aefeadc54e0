"""A certificate, and what its verification found, in a line or as a notebook shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit import notebook
from tacit.crypto.signing import fingerprint
from tacit.program_names import shown_program

if TYPE_CHECKING:
    from tacit.privacy.certificate import Certificate, Verdict

__all__ = ["certificate_html", "certificate_text", "verdict_html", "verdict_text"]


def certificate_text(certificate: Certificate) -> str:
    state = "" if certificate.promise_holds else ", the promise does NOT hold"
    return (
        f"<Certificate of {shown_program(certificate.program)!r}: {certificate.promise}, "
        f"{_releases(certificate)}{state}, {_signed(certificate)}>"
    )


def certificate_html(certificate: Certificate) -> str:
    holds = "yes" if certificate.promise_holds else "NO"
    if not certificate.promise.is_private:
        holds = "nothing is promised"
    rows = [
        ("promise", str(certificate.promise)),
        ("does it hold?", holds),
        ("of", shown_program(certificate.program)),
        ("who is trusted", certificate.trust),
        ("releases", f"{_releases(certificate)}, counted by {certificate.accountant}"),
        ("signed", _signed(certificate)),
    ]
    if certificate.amplified is not None:
        central = certificate.amplified
        rows.insert(1, ("central figure", f"ε = {central.epsilon:.3g}, δ = {central.delta:g}"))
    return (
        notebook.table("Certificate", rows)
        + notebook.listed("The promise holds if", certificate.conditions)
        + notebook.listed("To keep in mind", certificate.warnings)
    )


def verdict_text(verdict: Verdict) -> str:
    delta = f", δ = {verdict.delta:g}" if verdict.delta else ""
    state = "superseded" if verdict.superseded else "verified"
    notes = f"{len(verdict.conditions)} condition(s), {len(verdict.warnings)} warning(s)"
    return f"<Verdict: {state}, ε = {verdict.epsilon:.4g}{delta}, by {verdict.signer}, {notes}>"


def verdict_html(verdict: Verdict) -> str:
    rows = [
        ("recomputed", f"ε = {verdict.epsilon:.4g}, δ = {verdict.delta:g}"),
        ("signer", verdict.signer),
    ]
    if verdict.superseded:
        rows.append(("not established", verdict.superseded))
    return (
        notebook.table("Verified certificate", rows)
        + notebook.listed("The promise holds if", verdict.conditions)
        + notebook.listed("To keep in mind", verdict.warnings)
    )


def _releases(certificate: Certificate) -> str:
    count = sum(release.count for release in certificate.releases)
    return f"{count} release{'' if count == 1 else 's'}"


def _signed(certificate: Certificate) -> str:
    if not certificate.signature:
        return "not signed"
    try:
        signer = fingerprint(certificate.public_key)
    except ValueError:  # whatever came from a file is shown, not checked
        signer = "an impossible key"
    return f"{certificate.issued} by {signer}"
