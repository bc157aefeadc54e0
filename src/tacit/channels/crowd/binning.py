"""From a row to an answer: which of a question's cells it lies in.

Numbers whose schema gives bounds but no edges are cut where the crowd says (quantiles.py). The
cuts are public by then: thresholds while the search goes on, edges when it has ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tacit.channels.crowd.halves import in_half
from tacit.channels.crowd.quantiles import QuantileSearch, intervals
from tacit.channels.crowd.questions import Question
from tacit.data.batch import Batch
from tacit.data.schema import Column, Schema
from tacit.errors import InputError, SchemaError

__all__ = ["bins_of", "cells", "check_cuts", "distinct", "is_to_be_cut", "searches"]

Cuts = Mapping[str, Sequence[float]]


def is_to_be_cut(column: Column) -> bool:
    """Whether it is a number whose edges are not known beforehand."""
    return column.is_number and column.edges is None


def distinct(column: Column) -> float:
    """How many values a number can have."""
    low, high = _bounds(column)
    return high - low + 1 if column.type == "integer" else math.inf


def bins_of(column: Column, bins: int) -> int:
    """How many bins a number is cut into: no more than it has values."""
    return int(min(bins, distinct(column)))


def searches(schema: Schema, bins: int) -> dict[str, QuantileSearch]:
    """The start of the search in every number that is to be cut. One that has no more values than
    bins needs no questions: its edges are its values from the start."""
    return {
        column.name: QuantileSearch.start(
            *_bounds(column), bins_of(column, bins), whole=column.type == "integer"
        )
        for column in schema.features
        if is_to_be_cut(column)
    }


def cells(question: Question, schema: Schema, cuts: Cuts, batch: Batch) -> NDArray[np.int64]:
    """The cell of each row; a person's batch has one. `cuts` are for the numbers to be cut.

    A table's cell is the place of its codes in C order, the label's last (Question). Where a half
    of the table is asked about, 1 stands for a cell in it and 0 for any other.
    """
    check_cuts(question, schema, cuts)
    codes = [_codes(column, cuts, batch) for column in _columns(question, schema)]
    found = np.ravel_multi_index(codes, question.sizes).astype(np.int64)
    return in_half(found, question.half) if question.half else found


def check_cuts(question: Question, schema: Schema, cuts: Cuts) -> None:
    """InputError unless every cell of the question has its place between these cuts: whoever
    publishes them must not be able to make a person answer with what no cell is for. It depends on
    nobody's row."""
    for column, size in zip(_columns(question, schema), question.sizes, strict=True):
        if not column.is_number:
            continue
        edges, wanted = _edges(column, cuts), size - 1 - (column.when_missing == "category")
        if len(edges) != wanted or any(not a <= b for a, b in pairwise(edges)):
            raise InputError(
                f"column {column.name!r} needs {wanted} rising cuts, not the {len(edges)} given: "
                "ask the collector for those of this stage."
            )


def _columns(question: Question, schema: Schema) -> list[Column]:
    columns = [schema.column(name) for name in question.features]
    return [*columns, _label(schema)] if question.kind == "table" else columns


def _edges(column: Column, cuts: Cuts) -> Sequence[float]:
    return cuts.get(column.name, ()) if column.edges is None else column.edges


def _codes(column: Column, cuts: Cuts, batch: Batch) -> NDArray[np.int64]:
    values = batch.columns[column.name]
    return intervals(_edges(column, cuts), values) if column.is_number else values.astype(np.int64)


def _label(schema: Schema) -> Column:
    if schema.label is None:
        raise SchemaError('schema: a crowd learns a label; give one column role = "label".')
    return schema.label


def _bounds(column: Column) -> tuple[float, float]:
    if not isinstance(column.bounds, tuple):
        raise SchemaError(f"schema, column {column.name!r}: a number to be cut needs bounds.")
    return column.bounds
