"""Data: schemas with public bounds, tables in batches, encoding, data sets, partitions."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.data.batch import Batch
    from tacit.data.datasets import Dataset, load_dataset
    from tacit.data.encode import Encoded, Encoder
    from tacit.data.partitions import partition
    from tacit.data.schema import Column, Layout, Schema
    from tacit.data.tables import check_table, read_batches

__all__ = [
    "Batch",
    "Column",
    "Dataset",
    "Encoded",
    "Encoder",
    "Layout",
    "Schema",
    "check_table",
    "load_dataset",
    "partition",
    "read_batches",
]

# Late, so that a schema can be read without pyarrow, an optional extra.
_HOMES = {
    "Batch": "batch",
    "Column": "schema",
    "Dataset": "datasets",
    "Encoded": "encode",
    "Encoder": "encode",
    "Layout": "schema",
    "Schema": "schema",
    "check_table": "tables",
    "load_dataset": "datasets",
    "partition": "partitions",
    "read_batches": "tables",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'tacit.data' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tacit.data.{_HOMES[name]}"), name)
