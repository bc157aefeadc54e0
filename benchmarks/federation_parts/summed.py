"""A federation's model from one sum over all records: the same to the last bit, and far sooner."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.channels.federation.local import Federation
from tacit.crypto.prg import Randomness, SeededRandomness
from tacit.data import Schema
from tacit.data.partitions import partition
from tacit.data.records import ArrayRecords
from tacit.engines import Serial
from tacit.errors import CheckFailed
from tacit.privacy import Promise
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.programs.contribute import decoded
from tacit.programs.files import to_bytes
from tacit.programs.holding import Holding
from tacit.programs.levels import Levels
from tacit.programs.program import Plan, Program
from tacit.programs.reckoned import reckoned

__all__ = ["Integers", "Mechanisms", "Noise", "by_servers", "check_federated", "summed"]

Integers = NDArray[np.int64]
Mechanisms = Sequence[Laplace | Gaussian]
# What is added to one round's sum: from its blocks' mechanisms, and its number from 1.
Noise = Callable[[Mechanisms, int], Integers]


def summed(
    program: Program[Any, Any],
    data: tuple[Any, ...],
    schema: Schema,
    promise: Promise,
    noise: Noise,
    adders: int = 1,
) -> Any:
    """The model of (X, y), or (X,), however many hold it; the program reckons with so many adders
    of noise."""
    state = first = program.init(schema, reckoned(promise, math.sqrt(adders)))
    holding = Holding(program, first, ArrayRecords(*data), promise, Serial().map_sum)
    plan = Plan(tuple(program.plan(first)))
    levels = Levels.planned(promise, plan)
    for number in range(1, plan.rounds + 1):
        query = program.asked(state, plan.stage(number).query)
        if query is None:
            break
        total, mechanisms = holding.sum(state, query), levels.charge(number, query)
        if mechanisms:  # none without privacy
            total = total + noise(mechanisms, number)
        state = program.reduce(decoded(total, query), state)
    return program.result(state)


def by_servers(servers: int, run: int) -> Noise:
    """What the servers of `check_federated` draw."""

    def noise(mechanisms: Mechanisms, number: int) -> Integers:
        total = np.zeros(sum(m.length for m in mechanisms), dtype=np.int64)
        for server in range(servers):
            source, place = _source(run, server, number), 0
            for m in mechanisms:
                part = slice(place, place := place + m.length)
                total[part] = m.perturb(total[part], source)
        return total

    return noise


def check_federated(
    program: Program[Any, Any],
    data: tuple[Any, ...],
    schema: Schema,
    promise: Promise,
    parties: tuple[int, int],
    expected: Any,
) -> None:
    """All state machines of so many (holders, servers) must learn what run 0 of `summed` has."""
    holders, servers = parties
    federation = Federation(servers, randomness=lambda *place: _source(0, *place))
    parts = [ArrayRecords(*part) for part in partition(data, holders)]
    model = federation.run(program, parts, schema, promise).model
    if to_bytes(model) != to_bytes(expected):
        raise CheckFailed(
            f"{program.name}: {holders} holders and {servers} servers learn another model than one "
            "sum over all records with the same noise: figures made from sums are not theirs."
        )


def _source(run: int, server: int, number: int) -> Randomness:
    return SeededRandomness(f"federation {run} {server} {number}")
