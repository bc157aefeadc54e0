"""The parts of a certificate as documents: promises, releases, and what a server signs of its own
work.

Formats 2 and 3 are those of version 0.1. They know no samples, conditions or holders per person,
and are written back byte for byte as they were.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from tacit.crypto.signing import canonical
from tacit.privacy.bound import Bound
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = [
    "FORMAT",
    "FORMAT_2",
    "FORMAT_3",
    "OLD_FORMATS",
    "Participation",
    "Witness",
    "promise_document",
    "promise_of",
    "release_document",
    "release_of",
    "statement",
]

FORMAT = "tacit certificate 4"
FORMAT_2 = "tacit certificate 2"
# With a central figure beside the local promise; who does not know of it must not overlook it.
FORMAT_3 = "tacit certificate 3"
OLD_FORMATS = (FORMAT_2, FORMAT_3)

# As `str` writes it. No exponents: Fraction("1e999999999") would take hours and fill the memory.
_FRACTION = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?", re.ASCII)

_STATEMENT = "tacit statement 2"
_STATEMENT_OF_SUBJECT = "tacit statement 3"
_OLD_STATEMENT = "tacit statement 1"


@dataclass(frozen=True, slots=True)
class Participation:
    """Who really took part in a study: how many holders in all, and in its smallest round."""

    holders: int
    fewest: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Witness:
    """Somebody who added noise, and signs what it was: see `statement`."""

    public_key: str
    signature: str


def statement(
    study: str,
    promise: Promise,
    releases: tuple[Release, ...],
    participation: Participation,
    secure_randomness: bool,
    holders_per_person: int = 1,
    certificate_format: str = FORMAT,
    subject: str | None = None,
) -> bytes:
    """What each server of a study signs of its own work, from its own books.

    A certificate repeats all of it, so whoever verifies the certificate checks the servers' word
    too, and no aggregator can claim noise that was not added. What a server of version 0.1 signed
    (an old `certificate_format`) has a name of its own: it cannot vouch for a new certificate.

    `subject` is the SHA-256 of the one result that the witness vouches for, where it knows it: a
    server signs one subject per study, so an aggregator cannot have two models certified.
    """
    old = certificate_format in OLD_FORMATS
    document: dict[str, Any] = {
        "format": _OLD_STATEMENT if old else _STATEMENT,
        "study": study,
        "promise": promise_document(promise),
        "releases": [release_document(release, old) for release in releases],
        "participation": asdict(participation),
        "secure_randomness": secure_randomness,
    }
    if not old:
        document["holders_per_person"] = holders_per_person
        if subject is not None:
            document |= {"format": _STATEMENT_OF_SUBJECT, "subject": subject}
    return canonical(document)


def promise_document(promise: Promise) -> dict[str, str]:
    return {
        "epsilon": repr(promise.epsilon),
        "delta": repr(promise.delta),
        "unit": promise.unit.value,
        "adjacency": promise.adjacency.value,
    }


def promise_of(document: Mapping[str, Any]) -> Promise:
    return Promise(
        float(document["epsilon"]),
        float(document["delta"]),
        document["unit"],
        document["adjacency"],
    )


def release_document(release: Release, old: bool = False) -> dict[str, Any]:
    bound = release.bound
    document = {
        "mechanism": release.mechanism,
        "bound": None if bound is None else {"norm": bound.norm.value, "value": str(bound.value)},
        "scale": None if release.scale is None else str(release.scale),
        "step": str(release.step),
        "length": release.length,
        "count": release.count,
        "sampling": str(release.sampling),
        "parameters": {name: str(value) for name, value in release.parameters.items()},
        "part": release.part,
    }
    return document if old else {**document, "sample": release.sample}


def release_of(document: Mapping[str, Any], old: bool = False) -> Release:
    bound = document["bound"]
    return Release(
        mechanism=str(document["mechanism"]),
        bound=None if bound is None else Bound(bound["norm"], _fraction(bound["value"])),
        scale=None if document["scale"] is None else _fraction(document["scale"]),
        step=_fraction(document["step"]),
        length=int(document["length"]),
        count=int(document["count"]),
        sampling=_fraction(document["sampling"]),
        parameters={name: _fraction(value) for name, value in document["parameters"].items()},
        part=_text_or_none(document["part"]),
        sample=None if old else _text_or_none(document["sample"]),
    )


def _fraction(text: object) -> Fraction:
    """ValueError for anything but its text."""
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise ValueError("not a fraction")
    return Fraction(text)


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
