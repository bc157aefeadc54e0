"""The thesis's data: folds, peers with their records, and records scaled in either way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.data import load_dataset
from tacit.data.schema import Schema
from tacit.programs.averaging import AveragedLogistic

Reals = NDArray[np.float64]
Places = NDArray[np.intp]
FOLDS = 10
PEERS = {"spambase": 50, "australian": 30}
RECORDS = {"spambase": 66, "australian": 20}
TITLES = {"spambase": "Spambase", "australian": "Australian credit"}


@dataclass(frozen=True)
class Fold:
    """`unused`: records of the training part that no peer has."""

    peers: Places
    unused: Places
    test: Places


class Problem:
    """One data set; rows of features are kept for both ways, with a constant at the end.

    published   the thesis's: each column from its least to its largest value *in the data* to
                [0, 1], and a constant of 1. That looks at everybody's records, and leads into a box
                that is not in the unit ball.
    prepared    tacit's: public bounds of the schema, records rooted (AveragedLogistic)
    """

    def __init__(self, name: str) -> None:
        self.name, data = name, load_dataset(name)
        self.schema: Schema = data.schema
        self.X, labels = data.arrays(interval="unit")
        self.y = np.asarray(labels).astype(np.int64)

    @property
    def title(self) -> str:
        return TITLES[self.name]

    @cached_property
    def prepared(self) -> Reals:
        return AveragedLogistic(records="rooted").prepared(self.X, self.schema)

    @cached_property
    def published(self) -> Reals:
        low, high = self._raw.min(axis=0), self._raw.max(axis=0)
        scaled = (self._raw - low) / np.where(high > low, high - low, 1.0)
        return np.column_stack([scaled, np.ones(len(scaled))])

    @cached_property
    def _raw(self) -> Reals:
        table = load_dataset(self.name).train
        names = [column.name for column in self.schema.features]
        return np.column_stack([np.asarray(table[n], dtype=np.float64) for n in names])

    def fold(self, number: int, peers: int, records: int) -> Fold:
        """One of ten: a tenth is the test, of the others each peer gets some at random."""
        order = np.random.default_rng(0).permutation(len(self.y))
        parts = np.array_split(order, FOLDS)
        test = parts[number]
        rest = np.concatenate([part for place, part in enumerate(parts) if place != number])
        rest = np.random.default_rng([1, number]).permutation(rest)
        wanted = peers * records
        assert wanted <= len(rest), "there are not so many records"
        return Fold(rest[:wanted].reshape(peers, records), rest[wanted:], test)
