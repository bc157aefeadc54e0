"""Records that a model is used on: read as in training, but the label may be absent.

In training a record may be dropped. Here every record of the table keeps its place, so that what
is said of it can be put beside it; those that training would drop are marked instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tacit.data.batch import Batch
from tacit.data.schema import Schema
from tacit.data.sources import open_file
from tacit.data.tables import read_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tacit.data.schema import Column

__all__ = ["Unlabelled", "features_alone", "read_unlabelled"]


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """Some records of a table.

    batch       the records that have all they need, read with `features_alone`
    kept        of each record of the table, whether it is in the batch
    first_row   the place of the first one in the table, from 1
    label       of each record in the batch, if the table has a label: a class's number, or a number
                in its own unit; NaN where it is missing
    """

    batch: Batch
    kept: NDArray[np.bool_]
    first_row: int
    label: NDArray[np.float64] | None


def features_alone(schema: Schema) -> Schema:
    """The schema without label and person id; vectors have the same coordinates."""
    return msgspec.structs.replace(schema, columns=schema.features)


def read_unlabelled(path: str, schema: Schema) -> Iterator[Unlabelled]:
    """The records of a file in batches; faults are reported as `read_batches` does."""
    schema.require_complete()
    features, reading = features_alone(schema), _reading(path, schema)
    labelled = schema.label is not None and schema.label.name in [c.name for c in reading.used]
    for batch in read_batches(path, reading):
        kept = np.ones(batch.rows, dtype=np.bool_)
        for column in features.columns:
            if column.when_missing == "drop":
                kept &= ~_missing(column, batch.columns[column.name])
        columns = {c.name: batch.columns[c.name][kept] for c in features.columns}
        label = None
        if labelled and schema.label is not None:
            label = _label(schema.label, batch.columns[schema.label.name][kept])
        whole = Batch(features, columns, int(kept.sum()), batch.first_row)
        yield Unlabelled(whole, kept, batch.first_row, label)


def _reading(path: str, schema: Schema) -> Schema:
    """How to read this file: missing values that would drop a record are kept, marked as such."""
    file = open_file(path, schema.file)
    named = file.names is not None
    columns = []
    for column in schema.columns:
        there = column.name in file.names if file.names is not None else True
        if column.role == "label" and not named:
            there = file.width >= len(schema.columns)  # known by places: all columns, or all but it
            if not there:
                continue
        columns.append(_read_as(column, there))
    return msgspec.structs.replace(schema, columns=tuple(columns))


def _read_as(column: Column, there: bool) -> Column:
    match column.role:
        case "feature" if column.when_missing == "drop":
            return msgspec.structs.replace(column, when_missing="category")
        case "label" if there:
            return msgspec.structs.replace(column, role="feature", when_missing="category")
        case "feature":
            return column
        case _:
            return msgspec.structs.replace(column, role="ignore")


def _missing(column: Column, values: NDArray[Any]) -> NDArray[np.bool_]:
    """A missing number is NaN; a missing category comes after the last one (batch.py)."""
    if column.is_number:
        return np.asarray(np.isnan(values))
    last = len(column.categories) if isinstance(column.categories, tuple) else 2
    return np.asarray(values == last)


def _label(column: Column, values: NDArray[Any]) -> NDArray[np.float64]:
    missing = _missing(column, values)
    if column.edges is not None:
        values = np.searchsorted(np.asarray(column.edges), values, side="right")
    return np.where(missing, np.nan, values.astype(np.float64))
