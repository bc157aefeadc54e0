"""Tables in, batch by batch: each record checked against the schema, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.batch import Batch
from tacit.data.columns import BadCell, check_column
from tacit.data.sources import open_source
from tacit.errors import NoRecords, TableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.data.schema import Column, Schema
    from tacit.data.sources import Source

__all__ = ["check_table", "read_batches"]


def read_batches(source: Any, schema: Schema, *, batch_rows: int | None = None) -> Iterator[Batch]:
    """The records of `source`, typed, filled and clipped as the schema says.

    source      a path to a CSV file (plain, gzip, zstd, lz4, bz2, xz), Parquet or Arrow file; a
                pyarrow table, batch or reader; a pandas or polars frame; a dict of arrays
    batch_rows  at most so many records in a batch; by default a batch is about 8 MB

    Wrong columns are refused at once, a bad cell when its batch is reached, each with file, row
    and column and without the value. A table without records is refused. Use `check_table` first
    where nothing may be spent on bad data.
    """
    if batch_rows is not None and batch_rows < 1:
        raise UsageError(f"batch_rows must be at least 1, not {batch_rows}.")
    schema.require_complete()
    return _checked(open_source(source, schema), schema, batch_rows)


def check_table(source: Any, schema: Schema) -> int:
    """Read all of `source` and raise at the first fault; the number of records (private!)."""
    return sum(batch.rows for batch in read_batches(source, schema))


def _checked(source: Source, schema: Schema, batch_rows: int | None) -> Iterator[Batch]:
    row = 1
    for raw in source.batches:
        for start in range(0, raw.num_rows, batch_rows or max(1, raw.num_rows)):
            part = raw.slice(start, batch_rows)
            yield _batch(part, schema, row, source.name)
            row += part.num_rows
    if row == 1:
        raise NoRecords("has no rows.", file=source.name, remedy="Give at least one record.")


def _batch(raw: Any, schema: Schema, first_row: int, name: str) -> Batch:
    columns, raws, drops = {}, {}, []
    faults: list[tuple[BadCell, Column]] = []
    for array, column in zip(raw.columns, schema.used, strict=True):
        try:
            values, drop, as_read = check_column(array, column, schema.file)
        except BadCell as bad:
            faults.append((bad, column))
            continue
        columns[column.name] = values
        if as_read is not None:
            raws[column.name] = as_read
        if drop is not None and drop.any():
            drops.append(drop)
    if faults:
        # The first bad row, whatever the column: the same error for every size of batch.
        fault, column = min(faults, key=lambda f: f[0].index)
        raise TableError(
            fault.problem,
            file=name,
            row=first_row + fault.index,
            column=column.name,
            remedy=fault.remedy,
        )
    if drops:
        keep = ~np.logical_or.reduce(drops)
        columns = {key: values[keep] for key, values in columns.items()}
        raws = {key: values[keep] for key, values in raws.items()}
        return Batch(schema, columns, int(keep.sum()), first_row, raws)
    return Batch(schema, columns, raw.num_rows, first_row, raws)
