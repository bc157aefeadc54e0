"""A certificate says what its reader computes: all of it, but for its subject and its date."""

from __future__ import annotations

import re
from dataclasses import fields, replace

from tacit.channels.consortium.protocols import terms_of
from tacit.channels.consortium.terms import Terms
from tacit.channels.studies.study import Study
from tacit.crypto.signing import digest
from tacit.errors import CheckFailed
from tacit.privacy.certificate import Certificate

__all__ = ["check_group", "require_recomputed"]

# Whose software wrote it: versions may differ among peers, and it is text that people read.
LIBRARY = re.compile(r"tacit [0-9A-Za-z.+-]{1,32}")
# Checked by `verify`, with the signer and the subject that the reader expects.
SIGNED = ("public_key", "signature", "issued", "subject", "witnesses", "library")


def require_recomputed(found: Certificate, wanted: Certificate) -> None:
    """CheckFailed if they differ in more than who signed when, and for which model."""
    if not LIBRARY.fullmatch(found.library):
        raise CheckFailed("the certificate does not say which tacit wrote it.")
    for field in fields(Certificate):
        if field.name not in SIGNED and getattr(found, field.name) != getattr(wanted, field.name):
            raise CheckFailed(
                f"the certificate's {field.name} is not what follows from the pact and the group."
            )


def check_group(study: Study, model: bytes, text: str) -> Terms:
    """The terms of a group's release; CheckFailed unless the certificate is what follows from the
    study and from those who have signed."""
    found = Certificate.from_json(text)
    found.verify(study.aggregator.key, digest(model))
    signed = tuple(witness.public_key for witness in found.witnesses)
    allowed = {holder.key for holder in study.holders}
    limits = study.take_part
    if list(signed) != sorted(set(signed)) or not allowed.issuperset(signed):
        raise CheckFailed("the certificate is not signed by different members of the group.")
    if not limits.minimum <= len(signed) <= limits.maximum:
        raise CheckFailed("fewer or more have signed the certificate than the pact allows.")
    terms = terms_of(study, signed)
    require_recomputed(found, replace(_wanted(study, terms, found), witnesses=found.witnesses))
    return terms


def _wanted(study: Study, terms: Terms, found: Certificate) -> Certificate:
    """Whether randomness was secure is the word of the witnesses, who have signed it."""
    averaged = terms.averaged
    return Certificate(
        promise=study.promise,
        releases=terms.releases,
        trust=terms.trust,
        accountant=terms.accountant,
        program=f"{averaged.name} {averaged.version}",
        program_digest=averaged.digest,
        schema_digest=study.schema.digest,
        subject=found.subject,
        secure_randomness=found.secure_randomness,
        promise_holds=terms.promise_holds,
        remarks=terms.remarks,
        study=study.digest,
        participation=terms.participation,
    )
