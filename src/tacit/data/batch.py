"""A batch: some records of a table, checked against the schema and typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.data.schema import Schema

__all__ = ["Batch"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Columns of equal length, by name; ignored columns are not there.

    number, integer    float64, clipped to the public bounds; NaN stands for a missing value where
                       the schema says when_missing = "category", and nowhere else
    category, boolean  int32, the place in the schema's categories; a missing value comes after
                       the last one
    person             int64 or objects (str)

    `raw` has those columns in which something was clipped or filled, as they stood in the table
    (missing values as above): bounds and fillings are a study's, the records are not.

    `first_row` is the place of its first record in the table, from 1; records that the schema
    drops are not counted in `rows`.
    """

    schema: Schema
    columns: Mapping[str, NDArray[Any]]
    rows: int
    first_row: int = 1
    raw: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def concat(cls, batches: Sequence[Batch]) -> Batch:
        """Batches of one table, in their order, as one."""
        if not batches:
            raise UsageError("there is no batch to join: a table has at least one.")
        first = batches[0]
        if any(b.schema != first.schema for b in batches):
            raise UsageError("only batches of one schema can be joined.")
        names = first.columns
        columns = {name: np.concatenate([b.columns[name] for b in batches]) for name in names}
        changed = {name for b in batches for name in b.raw}
        raw = {n: np.concatenate([b.raw.get(n, b.columns[n]) for b in batches]) for n in changed}
        return cls(first.schema, columns, sum(b.rows for b in batches), first.first_row, raw)
