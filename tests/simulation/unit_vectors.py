"""A program made for the simulator: each holder contributes a unit vector of its own.

So each coordinate of a noiseless sum is 1 if its holder was summed and 0 if not, and every mistake
(a share lost, counted twice, or mixed with another round's) shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.program import Block, Program, Query, Stage, norm_for

SCHEMA = Schema(columns=(Column(name="place", type="number", bounds=(0.0, 1e6)),))


@dataclass(frozen=True, slots=True)
class Seen:
    varies: ClassVar[tuple[str, ...]] = ("round", "totals")

    norm: str
    round: int
    totals: NDArray[np.float64]


class UnitVectors(Program[Seen, Seen]):
    name = "unit-vectors"
    states = (Seen,)
    models = (Seen,)

    def __init__(self, holders: int, rounds: int) -> None:
        self.holders, self.rounds = holders, rounds

    def init(self, schema: Schema, promise: Promise) -> Seen:
        return Seen(norm_for(promise).value, 0, np.zeros((self.rounds, self.holders)))

    def plan(self, first: Seen) -> Sequence[Stage]:
        # Noise in whole steps is exact in a float, so totals can be checked to the last bit.
        block = Block("unit", self.holders, Norm(first.norm), Fraction(1), Fraction(1, 2**10))
        return [Stage(Query((block,)), self.rounds)]

    def map(self, batch: Encoded, state: Seen, query: Query) -> np.ndarray:
        rows = np.zeros((len(batch.X), self.holders))
        rows[np.arange(len(batch.X)), batch.X[:, 0].astype(int)] = 1.0
        return rows

    def reduce(self, total: np.ndarray, state: Seen) -> Seen:
        totals = state.totals.copy()
        totals[state.round] = total
        return replace(state, round=state.round + 1, totals=totals)

    def result(self, state: Seen) -> Seen:
        return state
