"""What a study asks of a holder's data, as a policy sees it: from the signed file alone."""

from __future__ import annotations

from typing import TypedDict

from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Schema
from tacit.privacy.ledger import Ledger
from tacit.privacy.policy.rules import Asked

__all__ = ["asked_by", "asked_by_holder", "column_names", "whose"]


class _Whose(TypedDict):
    person: str | None
    by_position: bool


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
        **whose(study.schema),
    )


def column_names(schema: Schema) -> tuple[str, ...]:
    """All that are read: features, the label, and whose record it is."""
    return tuple(column.name for column in schema.used)


def whose(schema: Schema) -> _Whose:
    """Which column says whose a record is. Without a header the names are the schema's own, so that
    the column is known by its place: `#1` is the first."""
    by_position = not schema.file.header
    person = schema.person
    if person is None or not by_position:
        return {"person": None if person is None else person.name, "by_position": by_position}
    return {"person": f"#{schema.columns.index(person) + 1}", "by_position": True}


def asked_by_holder(
    ledger: Ledger, program: str, columns: tuple[str, ...] | None, schema: Schema | None = None
) -> Asked:
    """A holder's own run: it has the author's part too, and sends nothing to servers. Without a
    schema, nothing says whose a record is."""
    under_policy = ledger.decisions.policy is not None
    author = SigningKey.of_holder().public_key if under_policy else None
    if schema is None:
        return Asked(program=program, columns=columns, author=author)
    return Asked(program=program, columns=columns, author=author, **whose(schema))
