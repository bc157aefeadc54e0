"""How many records have which score, where a score is a weighted sum of the features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tacit.errors import UsageError
from tacit.programs import Block, Program, Query, Stage, norm_for

__all__ = ["ScoreHistogram", "ScoreModel", "Scores"]


@dataclass(frozen=True)
class Scores:
    """What is known between rounds. `varies` is what rounds change, and all that is ever sent."""

    varies: ClassVar[tuple[str, ...]] = ("counts",)

    norm: str
    counts: np.ndarray


@dataclass(frozen=True)
class ScoreModel:
    """`counts[i]` records have a score from `edges[i]` to `edges[i + 1]`: noisy."""

    edges: np.ndarray
    counts: np.ndarray


class ScoreHistogram(Program[Scores, ScoreModel]):
    """Scores are averages of the encoded features with these weights, so they lie in [−1, 1].

    What stands in the brackets is declared by that: the state and the model that may be sent.
    """

    name = "score-histogram"

    def __init__(self, weights: tuple[float, ...] = (), bins: int = 10) -> None:
        if not 1 <= bins <= 1000:
            raise UsageError(f"bins = {bins}: take 1 to 1,000.")
        self.weights, self.bins = tuple(weights), bins

    def init(self, schema, promise):
        """The state before any data."""
        if self.weights and len(self.weights) != self.encoder(schema).width:
            width = self.encoder(schema).width
            raise UsageError(f"{len(self.weights)} weights for {width} encoded features.")
        return Scores(norm_for(promise).value, np.zeros(self.bins))

    def plan(self, first):
        """One round; one record moves one of its sums by 1."""
        counts = Block("scores", self.bins, first.norm, Fraction(1))
        return [Stage(Query((counts,)))]

    def map(self, batch, state, query):
        """One row for each record: a 1 in the cell of its score."""
        weights = np.array(self.weights or np.ones(batch.X.shape[1]))
        weights = weights / max(np.abs(weights).sum(), 1e-9)
        # Feature by feature: the last bits of a record's score must not depend on its batch.
        score = np.zeros(len(batch.X))
        for feature, weight in zip(batch.X.T, weights, strict=True):
            score = score + np.clip(feature, -1, 1) * weight
        cell = np.clip((score + 1) / 2 * self.bins, 0, self.bins - 1).astype(int)
        return np.equal.outer(cell, np.arange(self.bins)).astype(float)

    def reduce(self, total, state):
        """The next state, from the noisy sum."""
        return replace(state, counts=total)

    def result(self, state):
        return ScoreModel(np.linspace(-1, 1, self.bins + 1), state.counts)
