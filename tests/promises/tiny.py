"""A program so small that every outcome of a whole run can be enumerated.

Two blocks, asked in one query, in each of two rounds, on grids as coarse as the noise allows.
Record (a, b) adds a to the first block and b to the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.program import Block, Program, Query, Stage, norm_for
from tacit.programs.windows import over

__all__ = ["SCHEMA", "Tiny", "TinyState"]

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "a": {"type": "number", "bounds": [-1, 1]},
            "b": {"type": "number", "bounds": [-1, 1]},
            "person": {"type": "integer", "role": "person"},
        }
    }
)


@dataclass(frozen=True, slots=True)
class TinyState:
    norm: Norm
    total: np.ndarray[Any, Any]

    varies: ClassVar[tuple[str, ...]] = ("total",)


@dataclass(frozen=True, slots=True)
class TinyModel:
    total: np.ndarray[Any, Any]


class Tiny(Program[TinyState, TinyModel]):
    """`mixed`: Laplace noise on the first block, Gaussian on the second. `fine`: steps in a bound,
    a power of two."""

    name = "tiny"
    states = (TinyState,)
    models = (TinyModel,)

    def __init__(self, rounds: int = 2, fine: int = 1, mixed: bool = False) -> None:
        self.rounds, self.fine, self.mixed = rounds, fine, mixed

    def init(self, schema: Schema, promise: Promise) -> TinyState:
        return TinyState(norm_for(promise), np.zeros(2))

    def plan(self, first: TinyState) -> Sequence[Stage]:
        step = Fraction(1, self.fine)
        norms = (Norm.L1 if self.mixed else first.norm, first.norm)
        # With weight 8 the Laplace block costs about what the Gaussian one does.
        weights = (Fraction(8 if self.mixed else 1), Fraction(1))
        blocks = [
            Block(name, 1, norm, Fraction(1), step, weight)
            for name, norm, weight in zip("ab", norms, weights, strict=True)
        ]
        windows = range(min(1, self._windows), self._windows + 1)
        return [Stage(Query(tuple(blocks)), self.rounds, window=number) for number in windows]

    def windowed(self, windows: int) -> Tiny:
        """All rounds in every window."""
        return over(self, windows)

    def map(self, batch: Encoded, state: TinyState, query: Query) -> np.ndarray[Any, Any]:
        return batch.X

    def reduce(self, total: np.ndarray[Any, Any], state: TinyState) -> TinyState:
        return replace(state, total=np.asarray(total, dtype=np.float64))

    def result(self, state: TinyState) -> TinyModel:
        return TinyModel(state.total)
