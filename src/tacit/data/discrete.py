"""Records of a schema whose every feature has few values, as codes from 0.

What a crowd is asked for, and what it learns from, are tables of such codes. Like encoding, this is
a pure function of the schema and one record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.schema import Column, Schema
from tacit.errors import SchemaError, UsageError

if TYPE_CHECKING:
    from tacit.data.batch import Batch

__all__ = ["Discrete", "codes_of_vectors", "with_edges"]

Codes = NDArray[np.int64]


class Discrete:
    """Codes of one schema: categories and bins in their order, false before true; a missing value
    that counts as a category comes last.

    sizes  how many codes each feature has
    open   whether a feature's code 0 has no coordinate of its own in a vector: booleans (Encoder)
    """

    def __init__(self, schema: Schema) -> None:
        schema.require_complete()
        if not schema.features:
            raise SchemaError("schema: there is no feature: every column is a label or ignored.")
        self.schema = schema
        self.sizes: tuple[int, ...] = tuple(_size(column) for column in schema.features)
        self.open: tuple[bool, ...] = tuple(column.type == "boolean" for column in schema.features)
        self._label = _binary_label(schema)

    def codes(self, batch: Batch) -> Codes:
        """One row for each record, one column for each feature."""
        self._check(batch)
        each = [_codes(column, batch.columns[column.name]) for column in self.schema.features]
        return np.column_stack(each)

    def labels(self, batch: Batch) -> Codes:
        """0 or 1 for each record."""
        self._check(batch)
        return _codes(self._label, batch.columns[self._label.name])

    def _check(self, batch: Batch) -> None:
        if batch.schema != self.schema:
            raise UsageError("the batch was read with another schema than these codes are of.")


def codes_of_vectors(X: ArrayLike, sizes: Sequence[int], open: Sequence[bool]) -> Codes:
    """The codes of records that were encoded; `sizes` and `open` as of `Discrete`."""
    vectors = np.asarray(X, dtype=np.float64)
    widths = [size - is_open for size, is_open in zip(sizes, open, strict=True)]
    if vectors.ndim != 2 or vectors.shape[1] != sum(widths):
        raise UsageError(
            f"these are vectors of shape {vectors.shape}, and the codes are of vectors with "
            f"{sum(widths)} coordinates: encode the records with the model's own encoder."
        )
    found = np.empty((len(vectors), len(widths)), dtype=np.int64)
    start = 0
    for place, (width, is_open) in enumerate(zip(widths, open, strict=True)):
        block = vectors[:, start : start + width]
        largest = block.argmax(axis=1)
        found[:, place] = np.where(block.max(axis=1) > 0.5, largest + 1, 0) if is_open else largest
        start += width
    return found


def with_edges(schema: Schema, edges: Mapping[str, Sequence[float]]) -> Schema:
    """The schema with these numbers cut into bins; bounds and all else stay as they are."""
    for name in edges:
        if not schema.column(name).is_number:
            raise SchemaError(f"schema, column {name!r}: only a number can be cut into bins.")
    columns = tuple(
        msgspec.structs.replace(column, edges=tuple(map(float, edges[column.name])))
        if column.name in edges
        else column
        for column in schema.columns
    )
    return msgspec.structs.replace(schema, columns=columns)


def _size(column: Column) -> int:
    return _values(column) + (column.when_missing == "category")


def _values(column: Column) -> int:
    """How many values it has, missing ones aside."""
    if not column.is_number:
        return len(column.categories) if isinstance(column.categories, tuple) else 2
    if column.edges is None:
        raise SchemaError(
            f"schema, column {column.name!r}: a number without edges has too many values to be "
            "counted one by one. Give it edges = [...], from public knowledge or found privately."
        )
    return len(column.edges) + 1


def _binary_label(schema: Schema) -> Column:
    label = schema.label
    if label is None or (label.is_number and label.edges is None) or _values(label) != 2:
        raise SchemaError(
            'schema: the label must have two values: give one column role = "label" and two '
            "categories, or a number one edge."
        )
    return label


def _codes(column: Column, values: NDArray[Any]) -> Codes:
    if not column.is_number:
        return values.astype(np.int64)
    edges = np.asarray(column.edges)
    bins = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, bins).astype(np.int64)
