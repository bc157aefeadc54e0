"""What a study must satisfy as a whole, beyond the types of its fields."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tacit.channels.studies.options import option_problems
from tacit.crypto.signing import is_public_key
from tacit.privacy.promise import Adjacency, Promise, Unit

if TYPE_CHECKING:
    from tacit.channels.studies.study import Study
    from tacit.channels.studies.tables import Consortium, Party, Service, Signature

__all__ = [
    "KEY",
    "LOOPBACK",
    "name_problems",
    "parallel_problem",
    "party_problems",
    "problems",
    "signature_problems",
]

PUBLISHED_RECORDS = 1 << 31  # shares of them are modulo 2^32
LOOPBACK = ("127.0.0.1", "::1", "localhost")
STUDY_NAME = re.compile(r"[a-z0-9-]{1,64}")
PARTY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KEY = re.compile(r"[0-9a-f]{64}")
SIGNATURE = re.compile(r"[0-9a-f]{128}")


def problems(study: Study) -> Iterable[str]:
    """What is wrong, each with its place and what to do."""
    yield from name_problems(study.name, study.question)
    if study.rounds < 1:
        yield f"rounds = {study.rounds}: a study has at least one round."
    yield from _consortium_problems(study)
    yield from _noise_problems(study)
    yield from _take_part_problems(study)
    yield from _deadline_problems(study)
    yield from _online_problems(study)
    yield from _unit_problems(study)
    yield from option_problems(study)
    yield from party_problems(
        [
            *((f"[[servers]] {i}", s) for i, s in enumerate(study.servers, start=1)),
            ("[aggregator]", study.aggregator),
        ],
        [(f"[[holders]] {i}", h) for i, h in enumerate(study.holders, start=1)],
    )
    yield from signature_problems(study.signature)
    yield from _settings_problems(study.chosen.settings)


def name_problems(name: str, question: str) -> Iterable[str]:
    if not STUDY_NAME.fullmatch(name):
        yield (
            f"name = {name!r}: take 1 to 64 small letters, digits and hyphens; files and "
            "logs are named by it."
        )
    if not question.strip():
        yield "question is empty: say in a sentence what is to be learned; holders decide by it."


def _consortium_problems(study: Study) -> Iterable[str]:
    terms = study.consortium
    if terms is None:
        return
    if study.servers or study.online is not None or study.noise.policy != "every-server":
        yield "[consortium]: goes without [[servers]], [noise] and [online]: take them out."
    if study.rounds != 1:
        yield f"rounds = {study.rounds}: models are averaged once: write rounds = 1."
    if study.promise.unit is Unit.PERSON:
        yield (
            '[promise]: unit = "record" or "holder" is what a consortium can promise: a person may '
            "be with several parties. A whole holder covers everyone who is with one."
        )
    most = study.take_part.minimum - 2
    if not 0 <= terms.colluding <= most:
        yield (
            f"[consortium]: colluding = {terms.colluding}; with minimum = "
            f"{study.take_part.minimum} parties it may be 0 to {most}, since two at least must be "
            "honest."
        )
    if not 1 <= terms.smallest <= study.take_part.records:
        yield f"[consortium]: smallest = {terms.smallest}; give 1 to records of [take_part]."
    if terms.protocol == "as-published":
        yield from _published_problems(study, terms)


def _published_problems(study: Study, terms: Consortium) -> Iterable[str]:
    if study.promise.unit is not Unit.RECORD:
        yield (
            '[promise]: protocol = "as-published" speaks of records alone: write unit = "record", '
            'or protocol = "joint".'
        )
    if terms.colluding:
        yield (
            f'[consortium]: protocol = "as-published" with colluding = {terms.colluding}: one '
            'colluding party opens everything there. Write 0, or protocol = "joint".'
        )
    if study.take_part.records >= PUBLISHED_RECORDS:
        yield (
            f"[take_part]: records = {study.take_part.records}: the protocol as published compares "
            "numbers of records below 2^31."
        )


def _noise_problems(study: Study) -> Iterable[str]:
    if study.consortium is not None:
        return
    honest, servers = study.noise.honest, len(study.servers)
    if servers < 2:
        yield (
            f"[[servers]]: there are {servers}; a single server would see every sum. "
            "Name at least two, run by different people."
        )
    if study.noise.policy == "every-server":
        if honest is not None:
            yield '[noise]: honest goes with policy = "honest" only: take it out.'
    elif honest is None or not 2 <= honest <= servers:
        yield (
            f'[noise]: policy = "honest" needs honest = 2 … {servers} (how many of the {servers} '
            f"servers do not collude), not {honest}."
        )


def _take_part_problems(study: Study) -> Iterable[str]:
    few, many, records = study.take_part.minimum, study.take_part.maximum, study.take_part.records
    if not 1 <= few <= many:
        yield f"[take_part]: minimum = {few}, maximum = {many}; take 1 ≤ minimum ≤ maximum."
    if records < 1:
        yield f"[take_part]: records = {records}; allow each holder at least one."
    if len(study.holders) < few:
        yield (
            f"[[holders]]: {len(study.holders)} are listed, but minimum = {few} must take part: "
            "list more, or lower minimum."
        )


def _deadline_problems(study: Study) -> Iterable[str]:
    for name in ("gather", "round"):
        seconds = getattr(study.deadlines, name)
        if not (math.isfinite(seconds) and seconds > 0):
            yield f"[deadlines]: {name} = {seconds}; give seconds above 0."


def _online_problems(study: Study) -> Iterable[str]:
    if study.online is None:
        return
    if study.online.windows < 1:
        yield f"[online]: windows = {study.online.windows}; have at least one, or drop [online]."
    problem = parallel_problem(study.promise)
    if problem is not None:
        yield f"[online]: {problem} in [promise], or drop [online]."


def parallel_problem(promise: Promise) -> str | None:
    """Why parts of a data set that arrive one after another (windows, new records) may not have the
    whole promise each, and what to set instead; None if they may.

    Parallel composition needs a unit that lies in one part only. That is one record, which is there
    or not. A person or a holder may be in all parts, and a record that is exchanged for another may
    leave one part and appear in another: the cost would be that of all parts, or of two.
    """
    if promise.unit is not Unit.RECORD:
        return (
            f"windows protect records, not a {promise.unit}, who may be in several windows, while "
            'each window is kept to the whole promise: set unit = "record"'
        )
    if promise.adjacency is Adjacency.REPLACE:
        return (
            "windows protect a record that is there or not, not one that is exchanged, which may "
            "leave one window and appear in another, and two windows cost more than the promise: "
            'set adjacency = "add-remove"'
        )
    return None


def _unit_problems(study: Study) -> Iterable[str]:
    many = study.holders_per_person
    if study.promise.unit is not Unit.PERSON:
        if many is not None:
            yield f'[promise]: holders_per_person = {many} goes with unit = "person": take it out.'
        return
    if study.schema.person is None:
        yield (
            '[promise]: unit = "person" needs a column with role = "person" in [schema], which '
            "says whose record it is."
        )
    if many is None:
        yield (
            '[promise]: unit = "person" needs holders_per_person = k: with how many of the holders '
            "one person may be, at most. Each of them adds her contribution, so the noise covers k "
            'of them. Write 1 only if nobody is with two; or take unit = "record".'
        )
    elif many < 1:
        yield f"[promise]: holders_per_person = {many}: a person is with 1 holder at least."


def party_problems(
    services: Sequence[tuple[str, Service]], others: Sequence[tuple[str, Party]] = ()
) -> Iterable[str]:
    """Of everyone who is named, each with the place in the file."""
    places: list[tuple[str, Party | Service]] = [*services, *others]
    seen: dict[tuple[str, str], str] = {}
    for place, party in places:
        if not PARTY_NAME.fullmatch(party.name):
            yield (
                f"{place}: name = {party.name!r}; take 1 to 64 letters, digits, dots, hyphens or "
                "underscores, beginning with a letter or digit."
            )
        if not is_public_key(party.key):
            yield (
                f"{place}: key must be 64 hexadecimal digits in small letters: what "
                f"`tacit keys show` prints for {party.name}."
            )
        for what, value in (("name", party.name), ("key", party.key)):
            if (what, value) in seen:
                yield (
                    f"{place}: has the same {what} as {seen[what, value]}. Each party has a "
                    f"{what} of its own: one who plays two roles would see too much."
                )
            seen[what, value] = place
    for place, service in services:
        yield from _address_problems(place, service)


def _address_problems(place: str, service: Service) -> Iterable[str]:
    try:
        parts = urlsplit(service.address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    extra = host is not None and (
        parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None
    )
    if not host or port is None or extra or parts.scheme not in ("http", "https"):
        yield (
            f"{place}: address = {service.address!r}; write https://host:port, with nothing after "
            "the port."
        )
    elif parts.scheme == "http" and host not in LOOPBACK:
        yield (
            f"{place}: address = {service.address!r}: over a network write https://; http:// is "
            f"for {', '.join(LOOPBACK)} only."
        )


def signature_problems(signature: Signature | None) -> Iterable[str]:
    if signature is None:
        return
    if not KEY.fullmatch(signature.author) or not SIGNATURE.fullmatch(signature.signature):
        yield (
            "[signature]: author has 64 and signature 128 hexadecimal digits in small letters. "
            "`tacit study sign FILE` writes both."
        )


def _settings_problems(settings: dict[str, object]) -> Iterable[str]:
    for name, value in settings.items():
        values = value if isinstance(value, list) else [value]
        if not all(v is None or isinstance(v, (bool, int, float, str)) for v in values):
            yield (
                f"[program.settings]: {name} must be a number, a text, true or false, or a list of "
                "these."
            )
        elif any(isinstance(v, float) and not math.isfinite(v) for v in values):
            yield f"[program.settings]: {name} must be finite."
