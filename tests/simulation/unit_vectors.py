"""A program made for the simulator: each holder contributes a unit vector of its own.

So each coordinate of a noiseless sum is 1 if its holder was summed and 0 if not, and every mistake
(a share lost, counted twice, or mixed with another round's) shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.privacy.promise import Promise
from tacit.programs.program import Block, Program, Query, Share, norm_for

SCHEMA = Schema(columns=(Column(name="place", type="number", bounds=(0.0, 1e6)),))


@dataclass(frozen=True, slots=True)
class Seen:
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

    def plan(self, state: Seen) -> Sequence[Share]:
        return [Share("unit", Fraction(1), self.rounds)]

    def query(self, state: Seen) -> Query | None:
        if state.round == self.rounds:
            return None
        # Noise in whole steps is exact in a float, so totals can be checked to the last bit.
        step = Fraction(1, 2**10)
        return Query((Block("unit", self.holders, state.norm, Fraction(1), step),))  # type: ignore[arg-type]

    def map(self, batch: Encoded, state: Seen) -> np.ndarray:
        rows = np.zeros((len(batch.X), self.holders))
        rows[np.arange(len(batch.X)), batch.X[:, 0].astype(int)] = 1.0
        return rows

    def reduce(self, total: np.ndarray, state: Seen) -> Seen:
        totals = state.totals.copy()
        totals[state.round] = total
        return replace(state, round=state.round + 1, totals=totals)

    def result(self, state: Seen) -> Seen:
        return state
