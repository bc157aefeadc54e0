"""The edges of bins, as far as the answers of earlier stages have shown them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.channels.crowd.binning import searches
from tacit.channels.crowd.quantiles import QuantileSearch
from tacit.channels.crowd.questions import Question
from tacit.data.schema import Schema

__all__ = ["Searches"]


@dataclass(frozen=True, slots=True)
class Searches:
    """One search for each number whose edges are not public, by feature."""

    by_feature: Mapping[str, QuantileSearch]

    @classmethod
    def start(cls, schema: Schema, bins: int) -> Searches:
        return cls(searches(schema, bins))

    def learned(self, questions: Mapping[Question, list[bytes]]) -> Searches:
        """After a stage whose questions got these reports; without a report nothing is learned."""
        found = dict(self.by_feature)
        for question, reports in questions.items():
            if question.kind == "quantiles" and reports:
                name, randomiser = question.features[0], question.randomiser
                counts = randomiser.estimate(question.rows(reports))
                spread = float(np.mean(randomiser.variance(len(reports))))
                found[name] = found[name].learn(counts, len(reports), spread)
        return Searches(found)

    @property
    def thresholds(self) -> dict[str, list[float]]:
        """What the next step asks about."""
        return {name: list(search.thresholds) for name, search in self.by_feature.items()}

    @property
    def edges(self) -> dict[str, list[float]]:
        """What the search has come to."""
        return {name: list(search.edges) for name, search in self.by_feature.items()}
