"""What a study asks of a holder's data, as a policy sees it: from the signed file alone."""

from __future__ import annotations

from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Schema
from tacit.privacy.ledger import Ledger
from tacit.privacy.policy.rules import Asked

__all__ = ["asked_by", "asked_by_holder", "column_names"]


def asked_by(study: Study) -> Asked:
    """A federation's servers hold shares and add the noise; a consortium has its curator alone, and
    the parties add the noise."""
    author = None if study.signature is None else study.signature.author
    apart = study.consortium is None
    centre = study.servers if apart else (study.aggregator,)
    return Asked(
        program=study.chosen.name,
        columns=column_names(study.schema),
        author=author,
        servers=tuple(service.key for service in centre),
        parts=study.parts if apart else None,
        study=study.digest,
    )


def column_names(schema: Schema) -> tuple[str, ...]:
    """All that are read: features, the label, and whose record it is."""
    return tuple(column.name for column in schema.used)


def asked_by_holder(ledger: Ledger, program: str, columns: tuple[str, ...] | None) -> Asked | None:
    """A holder's own run: it has the author's part too, and sends nothing to servers. None where
    there is no policy to ask."""
    if ledger.decisions.policy is None:
        return None
    author = SigningKey.of_holder().public_key
    return Asked(program=program, columns=columns, author=author)
