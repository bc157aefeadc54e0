"""A study that adds up one vector of each holder: a round with nothing but the federation in it.

Keys are made from names, so that processes which must agree on the study need not exchange it.
They guard nothing but a benchmark.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

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
from tacit.programs.contribute import clipped_sum
from tacit.programs.program import Block, Program, Query, Share, norm_for

Reals = NDArray[np.float64]

SCHEMA = Schema(columns=(Column(name="nothing", type="number", bounds=(0.0, 1.0)),))
PROMISE = Promise(1.0, 1e-6)
RADIUS = 1  # holders' vectors are clipped to this length
FAR = 10.0**9  # seconds: nobody is late
PLACE = "https://127.0.0.1:1"  # in the study; benchmarks bind any free port


@dataclass(frozen=True, slots=True)
class Total:
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

    def plan(self, state: Total) -> Sequence[Share]:
        return [Share("sum", Fraction(1))]

    def query(self, state: Total) -> Query | None:
        if len(state.total):
            return None
        return Query((Block("sum", state.length, Norm(state.norm), Fraction(RADIUS)),))

    def map(self, batch: Encoded, state: Total) -> Reals:
        raise NotImplementedError("holders of a benchmark give their vector as it is: `giving`")

    def reduce(self, total: Reals, state: Total) -> Total:
        return replace(state, total=total)

    def result(self, state: Total) -> Total:
        return state


def giving(vector: Reals) -> Contribute:
    """A holder's part in the round: its one vector, clipped and rounded."""

    def contribute(state: object, query: Query) -> Sum:
        return Sum(clipped_sum(vector[None, :], query))

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
