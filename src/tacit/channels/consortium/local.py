"""A whole consortium in one process: the real state machines, spoken to directly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.consortium.local_model import trained
from tacit.channels.consortium.party import Party
from tacit.channels.roles.budget import NoBudget
from tacit.channels.roles.store import MEMORY
from tacit.channels.studies.study import (
    Chosen,
    Consortium,
    Deadlines,
    Service,
    Study,
    TakePart,
)
from tacit.channels.studies.study import Party as Listed
from tacit.crypto.signing import SigningKey
from tacit.data.records import Records
from tacit.data.schema import Schema
from tacit.privacy.certificate import Certificate
from tacit.privacy.promise import Promise
from tacit.programs.averaging import Averaged
from tacit.programs.files import from_bytes
from tacit.programs.settings import plain_settings

__all__ = ["ConsortiumOutcome", "averaged", "consortium_study"]

LARGEST_HOLDING = 10**7
FAR = 10.0**9  # seconds: nobody is late in one process


@dataclass(frozen=True, slots=True)
class ConsortiumOutcome:
    model: Any
    certificate: Certificate


def averaged(
    program: Averaged,
    parties: Sequence[Records],
    schema: Schema,
    promise: Promise,
    smallest: int,
    colluding: int = 0,
    protocol: Literal["joint", "as-published"] = "joint",
    key_bits: Literal[2048, 3072] = 3072,
) -> ConsortiumOutcome:
    """Each of the parties trains alone; the noisy average of their models."""
    keys = [SigningKey.generate() for _ in parties]
    curator_key = SigningKey.generate()
    terms = Consortium(protocol=protocol, colluding=colluding, smallest=smallest, key_bits=key_bits)
    study = consortium_study(program, keys, curator_key, schema, promise, terms)
    curator = Curator(study, curator_key, CuratorJournal(MEMORY, study.digest), 0.0)
    members = [
        Party(study, key, PartyJournal(MEMORY, study.digest), trained(study, records), NoBudget())
        for key, records in zip(keys, parties, strict=True)
    ]
    while not all(member.is_over for member in members):
        curator.tick(0.0)
        if curator.failure is not None:
            raise curator.failure
        for member in members:
            for to, letter in member.tick():
                member.told(to, letter, curator.answer(member.key, letter, 0.0))
    assert curator.result is not None  # every party has it
    model, text = curator.result
    return ConsortiumOutcome(from_bytes(program.models, model), Certificate.from_json(text))


def consortium_study(
    program: Averaged,
    keys: Sequence[SigningKey],
    curator: SigningKey,
    schema: Schema,
    promise: Promise,
    terms: Consortium,
) -> Study:
    """A study among made-up parties."""
    return Study(
        name="local",
        question="-",
        rounds=1,
        chosen=Chosen(name=program.name, version=program.version, settings=plain_settings(program)),
        promise=promise,
        take_part=TakePart(minimum=max(2, len(keys)), maximum=len(keys), records=LARGEST_HOLDING),
        deadlines=Deadlines(gather=FAR, round=FAR),
        aggregator=Service(name="curator", address="http://127.0.0.1:1", key=curator.public_key),
        holders=tuple(Listed(name=f"party-{i}", key=key.public_key) for i, key in enumerate(keys)),
        schema=schema,
        consortium=terms,
    )
