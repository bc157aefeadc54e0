"""A small study of each program. What may be promised does not depend on how large a study is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.programs.program import Learner
from tacit.programs.registry import learner_named

__all__ = ["Example", "FewRecords", "example_of"]

RECORDS = 4
NUMBER = {"type": "number", "bounds": [0, 1]}
CUT = {**NUMBER, "edges": [0.5]}
GROUP = {"type": "category", "categories": ["x", "y", "z"]}
YES_NO = {"type": "boolean", "role": "label"}
PERSON = {"type": "integer", "role": "person"}


@dataclass(frozen=True)
class Example:
    """A program with settings that make it small, and a schema that suits it."""

    program: str
    settings: dict[str, Any]
    columns: dict[str, Any]

    @cached_property
    def learner(self) -> Learner:
        return learner_named(self.program, None, self.settings)

    @cached_property
    def schema(self) -> Schema:
        """With a column that says whose record it is."""
        return Schema.from_dict({"columns": {**self.columns, "person": PERSON}})

    @cached_property
    def bare(self) -> Schema:
        """Without it: for people who have one row each, and for models that parties train alone."""
        return Schema.from_dict({"columns": self.columns})


@dataclass(frozen=True)
class FewRecords:
    """Encoded records of different persons; all features 0."""

    width: int
    labelled: bool

    def batches(self) -> Iterator[Encoded]:
        labels = np.zeros(RECORDS, dtype=np.int64) if self.labelled else None
        yield Encoded(np.zeros((RECORDS, self.width)), labels, np.arange(RECORDS))


NUMBERS = {"a": NUMBER, "b": NUMBER}
MIXED = {**NUMBERS, "group": GROUP}
ITEMS = {"group": GROUP, "other": GROUP}
_EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "averaged-logistic": ({"penalty": 0.1}, {**NUMBERS, "ill": YES_NO}),
    "gaussian-mixture": ({"components": 2, "rounds": 2}, NUMBERS),
    "gaussian-mixture-as-published": ({"components": 2, "rounds": 2}, NUMBERS),
    "histogram": ({"bins": 2}, MIXED),
    "frequent-itemsets": ({"max_length": 2}, ITEMS),
    "k-means": ({"clusters": 2, "rounds": 2}, NUMBERS),
    "linear-regression": ({}, {**MIXED, "cost": {**NUMBER, "role": "label"}}),
    "logistic": ({}, {**MIXED, "ill": YES_NO}),
    "naive-bayes": ({}, {**MIXED, "ill": YES_NO}),
    "partition-ensemble": ({}, {"a": CUT, "group": GROUP, "ill": YES_NO}),
    "pca": ({}, NUMBERS),
    "quantiles": ({"probabilities": [0.5]}, NUMBERS),
    "tabulated-bayes": ({}, {"a": CUT, "group": GROUP, "ill": YES_NO}),
}


@lru_cache
def example_of(program: str) -> Example:
    settings, columns = _EXAMPLES[program]
    return Example(program, settings, columns)
