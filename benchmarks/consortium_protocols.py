"""Whole runs of both consortium protocols: K parties and the curator in one process, on one core.

Processor time of everybody together, keys made in it, at 3072 bits and d = 124 (a9a with an
intercept); the peer is the time it may take. Traffic is that of the busiest party.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from tacit.channels.consortium.local import consortium_study
from tacit.channels.consortium.local_model import Local
from tacit.channels.consortium.protocols import curator_side, party_side, terms_of
from tacit.channels.studies.study import Consortium
from tacit.cli.bench import Row
from tacit.crypto.prg import SYSTEM
from tacit.crypto.signing import SigningKey
from tacit.data.schema import Column, Schema
from tacit.privacy.promise import Promise
from tacit.programs.averaging import AveragedLogistic

SIZE = 124
SMALLEST = 100
# protocol, parties, seconds that it may take, turns
CASES: tuple[tuple[Literal["joint", "as-published"], int, float, int], ...] = (
    ("as-published", 5, 10.0, 3),
    ("as-published", 50, 120.0, 1),
    ("joint", 50, 5.0, 3),
)


@dataclass(frozen=True, slots=True)
class Spent:
    seconds: float
    sent: int
    received: int


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    for protocol, parties, allowed, turns in CASES:
        say(f"{protocol}, {parties} parties …")
        spent = [_run(protocol, parties) for _ in range(turns)]
        sent, received = spent[0].sent / 1e3, spent[0].received / 1e3
        say(f"the busiest party sends {sent:,.0f} kB and receives {received:,.0f} kB.")
        seconds = median(one.seconds for one in spent)
        key = "" if protocol == "joint" else ", 3072 bits"  # joint encrypts nothing
        what = f"{protocol}, K = {parties}, d = {SIZE}{key}: s"
        yield Row(what, seconds, allowed, f"{allowed:g} s", 1.0, at_most=True)


def _run(protocol: Literal["joint", "as-published"], parties: int) -> Spent:
    columns = [Column(name=f"x{i}", type="number", bounds=(0.0, 1.0)) for i in range(SIZE - 1)]
    label = Column(name="y", type="category", role="label", categories=("no", "yes"))
    keys = sorted((SigningKey.generate() for _ in range(parties)), key=lambda key: key.public_key)
    study = consortium_study(
        AveragedLogistic(),
        keys,
        SigningKey.generate(),
        Schema(columns=(*columns, label)),
        Promise(1.0),
        Consortium(protocol=protocol, colluding=0, smallest=SMALLEST),
    )
    chance = np.random.default_rng(1)
    held = [Local(chance.normal(0, 0.1, SIZE), 200 + 100 * i) for i in range(parties)]
    start = time.process_time()
    terms = terms_of(study, tuple(key.public_key for key in keys))
    curator = curator_side(study, terms, 1, SYSTEM)
    sides = {
        key.public_key: party_side(study, terms, 1, key, local, SYSTEM)
        for key, local in zip(keys, held, strict=True)
    }
    answers = dict.fromkeys(sides, b"")
    sent, received = dict.fromkeys(sides, 0), dict.fromkeys(sides, 0)
    for step in range(1, terms.steps + 1):
        bodies = {party: side.send(step, answers[party]) for party, side in sides.items()}
        if step < terms.steps:
            answers = curator.answer(step, bodies)
        else:
            curator.result(bodies)
            answers = dict.fromkeys(sides, b"")
        for party in sides:
            sent[party] += len(bodies[party])
            received[party] += len(answers[party])
    return Spent(time.process_time() - start, max(sent.values()), max(received.values()))
