"""Invariants of a consortium after thousands of accidents. `SEED=n` replays one run."""

from __future__ import annotations

import math
import os
import random
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from simulator import (
    AggregatorNode,
    Chances,
    HolderNode,
    Network,
    Node,
    Purse,
    World,
    crashing,
)

from tacit.channels.consortium.curator import Curator
from tacit.channels.consortium.journals import CuratorJournal, PartyJournal
from tacit.channels.consortium.local import consortium_study
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.party import Party
from tacit.channels.studies.study import Consortium, Deadlines, Study, TakePart
from tacit.crypto.signing import SigningKey
from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.errors import Unreachable
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.certificate import Certificate
from tacit.privacy.promise import Promise, Unit
from tacit.programs.averaging import Averaged
from tacit.programs.files import from_bytes

SCHEMA = Schema(columns=(Column(name="place", type="number", bounds=(0.0, 1e6)),))
KEYS = sorted((SigningKey.generate() for _ in range(8)), key=lambda key: key.public_key)
CURATOR = SigningKey.generate()
PROMISES = (Promise(math.inf), Promise(1.0, 1e-6), Promise(1.0))


@dataclass(frozen=True, slots=True)
class Mean:
    values: NDArray[np.float64]


class UnitAverage(Averaged):
    """Each party's vector is a unit vector of its own, so the average shows who was in it."""

    name = "unit-average"
    models = (Mean,)

    def __init__(self, parties: int) -> None:
        self.parties = parties

    def length(self, schema: Schema) -> int:
        return self.parties

    def largest(self, schema: Schema) -> float:
        return 1.0

    def train(self, records: Encoded, schema: Schema) -> NDArray[np.float64]:
        return unit(self.parties, int(records.X[0, 0]))

    def bound(self, smallest: int, unit: Unit = Unit.RECORD) -> Bound:
        return Bound(Norm.L2, Fraction(2 if unit is Unit.HOLDER else 1))

    def model(self, average: NDArray[np.float64], schema: Schema) -> Mean:
        return Mean(average)

    def vector(self, model: Mean, schema: Schema) -> NDArray[np.float64]:
        return model.values


def unit(length: int, place: int) -> NDArray[np.float64]:
    return np.eye(length)[place]


@dataclass
class Run:
    study: Study
    curator: AggregatorNode
    parties: list[HolderNode]
    purses: list[Purse]
    stores: list[PartyJournal]


def simulate(seed: int) -> Run:
    chance = random.Random(f"consortium {seed}")
    count = chance.choice([2, 3, 5, 8])
    minimum = chance.randint(2, count)
    world = World(
        seed,
        Chances(
            lose=chance.choice([0.0, 0.05, 0.2]),
            double=chance.choice([0.0, 0.3]),
            crash=chance.choice([0.0, 0.01, 0.05]),
            silence=chance.choice([0.0, 0.02, 0.1]),
            leave=chance.choice([0.0, 0.0, 0.01]),
            delay=chance.choice([0.2, 1.0, 10.0]),
        ),
        storm=200.0,
    )
    study = _study(count, minimum, chance.choice(PROMISES), chance.randint(0, minimum - 2))
    AggregatorNode.network = HolderNode.network = network = Network(world)
    journal = crashing(CuratorJournal, world)(study.digest)

    def seeds() -> bytes:
        return world.chance.randbytes(32)

    curator = AggregatorNode(world, lambda: Curator(study, CURATOR, journal, world.now, seed=seeds))
    network.nodes = {study.aggregator.key: curator}
    purses = [Purse() for _ in range(count)]
    stores = [crashing(PartyJournal, world)(study.digest) for _ in range(count)]
    parties = [_party(study, world, i, purses[i], stores[i], seeds) for i in range(count)]
    run = Run(study, curator, parties, purses, stores)
    world.run(lambda: _over(run), limit=400_000)
    return run


def _study(count: int, minimum: int, promise: Promise, colluding: int) -> Study:
    program = UnitAverage(count)
    terms = Consortium(colluding=colluding, smallest=1)
    start = Consortium(colluding=0, smallest=1)
    plain = consortium_study(program, KEYS[:count], CURATOR, SCHEMA, promise, start)
    study = msgspec.structs.replace(
        plain,
        consortium=terms,
        take_part=TakePart(minimum=minimum, maximum=count, records=1),
        deadlines=Deadlines(gather=40.0, round=25.0),
    )
    study.__dict__["_averaged"] = program
    return study


def _party(
    study: Study, world: World, place: int, purse: Purse, store: PartyJournal, seeds: Any
) -> HolderNode:
    local = Local(unit(len(study.holders), place), 1)
    node = HolderNode.__new__(HolderNode)
    node.key = KEYS[place].public_key
    Node.__init__(node, world, lambda: Party(study, KEYS[place], store, local, purse, seed=seeds))
    return node


def _over(run: Run) -> bool:
    core = run.curator.core
    if core is None:
        return False
    if core.failure is not None:
        return True
    roster = core.waiting_for
    return core.is_over and all(
        node.left or node.key not in roster or (node.core and node.core.is_over)
        for node in run.parties
    )


def check(run: Run) -> None:
    core, study = run.curator.core, run.study
    if core.failure is not None:
        assert isinstance(core.failure, Unreachable), core.failure
        return
    model, text = core.result
    certificate = Certificate.from_json(text)
    certificate.verify(study.aggregator.key)
    assert certificate.participation is not None
    roster = {witness.public_key for witness in certificate.witnesses}
    assert len(roster) == certificate.participation.holders >= study.take_part.minimum
    mean = from_bytes((Mean,), model).values
    if not study.promise.is_private:
        wanted = [float(party.key in roster) / len(roster) for party in study.holders]
        np.testing.assert_allclose(mean, wanted, atol=1e-6)
    for node, purse, store in zip(run.parties, run.purses, run.stores, strict=True):
        assert purse.spent == (node.key in roster), "who pays is who was averaged"
        assert (store.revealed() is not None) == purse.spent
        if node.core is not None and node.core.is_over and purse.spent:
            assert purse.charged == [text]


@pytest.mark.parametrize("chunk", range(10))
def test_five_hundred_seeds(chunk: int) -> None:
    for seed in range(chunk * 50, chunk * 50 + 50):
        try:
            check(simulate(seed))
        except BaseException:
            print(f"replay with: SEED={seed} python -m pytest {__file__} -k replay")
            raise


@pytest.mark.skipif("SEED" not in os.environ, reason="for replaying one seed")
def test_replay() -> None:
    check(simulate(int(os.environ["SEED"])))
