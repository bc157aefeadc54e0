"""A certificate says what its reader computes: all of it, but for its subject and its date; and a
model is the one spelling of what the pact's program makes."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import numpy as np

from tacit.channels.consortium.protocols import terms_of
from tacit.channels.consortium.terms import Terms
from tacit.channels.studies.study import Study
from tacit.crypto.signing import digest
from tacit.data.schema import Schema
from tacit.errors import CheckFailed
from tacit.privacy.certificate import Certificate
from tacit.programs.averaging import Averaged
from tacit.programs.model_file import model_bytes, model_from_bytes

__all__ = ["canonical_model", "check_group", "require_recomputed"]

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


def canonical_model(data: bytes, averaged: Averaged, schema: Schema) -> Any:
    """The model in the bytes; CheckFailed unless they are the one spelling of a model of this
    program and schema, with its classes and as many numbers as it must have."""
    saved = model_from_bytes(data, "a published model")
    if saved.schema.digest != schema.digest or saved.program.digest != averaged.digest:
        raise CheckFailed("a model of another program or schema was published.")
    if not _alike(saved.model, averaged.model(np.zeros(averaged.length(schema)), schema)):
        raise CheckFailed("a model was published with other classes or numbers than it must have.")
    if model_bytes(saved.model, averaged, schema) != data:
        raise CheckFailed("a model was published that is not in its canonical form.")
    return saved.model


def _alike(model: Any, pattern: Any) -> bool:
    """Whether they differ in finite numbers alone: same kind, same arrays, same names."""
    if type(model) is not type(pattern):
        return False
    pairs = [(getattr(model, f.name), getattr(pattern, f.name)) for f in fields(pattern)]
    return all(_same_form(one, other) for one, other in pairs)


def _same_form(one: Any, other: Any) -> bool:
    if not isinstance(other, np.ndarray):
        return type(one) is type(other) and bool(one == other)
    if not isinstance(one, np.ndarray) or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return bool(np.isfinite(one).all())
