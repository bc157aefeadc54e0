"""A study that adds up one vector of each holder: a round with nothing but the federation in it.

Keys are made from names, so that processes which must agree on the study need not exchange it.
They guard nothing but a benchmark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from tacit.channels.federation.contribution import Sum
from tacit.channels.federation.holder import Contribute
from tacit.channels.studies.study import (
    Chosen,
    Deadlines,
    Party,
    Service,
    Study,
    TakePart,
    planned_rounds,
)
from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.contribute import Prepared, record_sum
from tacit.programs.program import Block, Program, Query, Stage, norm_for

Reals = NDArray[np.float64]

SCHEMA = Schema(columns=(Column(name="nothing", type="number", bounds=(0.0, 1.0)),))
PROMISE = Promise(1.0, 1e-6)
RADIUS = 1  # holders' vectors are clipped to this length
FAR = 10.0**9  # seconds: nobody is late
PLACE = "https://127.0.0.1:1"  # in the study; benchmarks bind any free port


@dataclass(frozen=True, slots=True)
class Total:
    grows: ClassVar[tuple[str, ...]] = ("total",)
    varies: ClassVar[tuple[str, ...]] = ()

    norm: str
    length: int
    total: Reals  # empty before the round


class VectorSum(Program[Total, Total]):
    """Σ of vectors of `length`, in one round."""

    name = "vector-sum"
    states = (Total,)
    models = (Total,)

    def __init__(self, length: int) -> None:
        self.length = length

    def init(self, schema: Schema, promise: Promise) -> Total:
        return Total(norm_for(promise).value, self.length, np.zeros(0))

    def plan(self, first: Total) -> Sequence[Stage]:
        block = Block("sum", first.length, Norm(first.norm), Fraction(RADIUS))
        return [Stage(Query((block,)))]

    def map(self, batch: Encoded, state: Total, query: Query) -> Reals:
        return batch.X

    def reduce(self, total: Reals, state: Total) -> Total:
        return replace(state, total=total)

    def result(self, state: Total) -> Total:
        return state


def clipped(vector: Reals, query: Query) -> NDArray[np.int64]:
    """One vector as a holder adds it: shortened to the bound, in whole steps."""
    batch = Prepared(Encoded(vector[None, :], None, None))
    return record_sum(VectorSum(query.length), batch, None, query)


def giving(vector: Reals) -> Contribute:
    """A holder's part in the round: its one vector, clipped and rounded."""

    def contribute(number: int, state: object, query: Query) -> Sum:
        return Sum(clipped(vector, query))

    return contribute


def vector_of(place: int, length: int) -> Reals:
    """What the holder at this place gives: a unit vector times two, so that clipping has work."""
    drawn = np.random.default_rng(place).normal(size=length)
    found: Reals = drawn * (2.0 / np.linalg.norm(drawn))
    return found


def key_of(role: str) -> SigningKey:
    secret = hashlib.sha256(f"benchmark {role}".encode()).digest()
    return SigningKey(Ed25519PrivateKey.from_private_bytes(secret))


def study_of(holders: int, length: int, servers: int = 2) -> Study:
    program = VectorSum(length)
    study = Study(
        name="vectors",
        question="-",
        rounds=planned_rounds(program, SCHEMA, PROMISE),
        chosen=Chosen(name=program.name, version=program.version, settings={"length": length}),
        promise=PROMISE,
        take_part=TakePart(minimum=1, maximum=holders, records=1),
        deadlines=Deadlines(gather=FAR, round=FAR),
        servers=tuple(_service(f"server-{i}") for i in range(servers)),
        aggregator=_service("aggregator"),
        holders=tuple(
            Party(name=f"holder-{i}", key=key_of(f"holder-{i}").public_key) for i in range(holders)
        ),
        schema=SCHEMA,
    )
    return study.running(program)


def _service(name: str) -> Service:
    return Service(name=name, address=PLACE, key=key_of(name).public_key)
