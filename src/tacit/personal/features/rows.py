"""The values of expressions over the rows of a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.personal.dataset import Dataset
from tacit.personal.durations import SECOND
from tacit.personal.features.expressions import valued
from tacit.personal.features.nodes import Column, Feature
from tacit.personal.features.values import Values, categories

__all__ = ["column_values", "row_truths", "row_values"]


def column_values(column: Column, dataset: Dataset) -> Values:
    """A field of every event of a type, in the order of its table."""
    table = dataset.of(column.type)
    if column.field == "time" and not table.kind.static:
        return Values("time", table.times / SECOND)
    kind = table.kind_of(column.field)
    if kind in ("category", "text"):
        return categories(*table.codes(column.field))
    return Values(kind, table.numbers(column.field))


def row_values(node: Feature, type_: str, dataset: Dataset) -> Values:
    """Of every event of the type, in the order of its table."""

    def leaf(at: Feature) -> Values:
        assert isinstance(at, Column)
        return column_values(at, dataset)

    made = valued(node, leaf, dataset)
    return Values(made.kind, np.broadcast_to(made.data, (dataset.of(type_).rows,)), made.words)


def row_truths(condition: Feature, type_: str, dataset: Dataset) -> NDArray[np.bool_]:
    """Where a condition holds; where it is missing, it does not."""
    holds: NDArray[np.bool_] = row_values(condition, type_, dataset).data == 1.0
    return holds
