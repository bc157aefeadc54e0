"""Ranges against the data's own extremes, to the next power of two."""

from __future__ import annotations

import numpy as np

from tacit.data import Schema
from tacit.programs.ranges import Range, Ranges

X = np.random.default_rng(1).normal(3, [0.01, 1, 1e4], (500, 3))


def textbook(model: Range) -> None:
    assert (model.low <= X.min(axis=0)).all()
    assert (model.high >= X.max(axis=0)).all()
    assert (model.high <= 2 * np.abs(X).max(axis=0)).all()
    assert (model.low >= -2 * np.abs(X).max(axis=0)).all()


SCHEMA = Schema.from_dict({"columns": {"x": {"type": "number", "bounds": [0, 1]}}})
CASES = [
    {
        "name": "ranges",
        "program": Ranges(3),
        "schema": SCHEMA,
        "X": X,
        "y": None,
        "textbook": textbook,
    }
]
