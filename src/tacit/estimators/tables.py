"""Tables as people have them, read through a schema: names, texts, categories, dates, gaps.

With a schema, a table with named columns is read by these names, whatever their order, and checked
cell by cell; an array's columns are the schema's features in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.data.batch import Batch
from tacit.data.schema import PRIVATE, Column, Schema
from tacit.errors import TableError, UsageError
from tacit.estimators.labels import Labels, classes_of_schema, labels_of

__all__ = ["Target", "columns_of", "has_names", "is_plain", "read_table", "read_target"]

Columns = dict[str, Any]


def has_names(X: Any) -> bool:
    """Whether X is a table whose columns have names."""
    if isinstance(X, Mapping):
        return True
    return not isinstance(X, np.ndarray) and (
        hasattr(X, "collect_schema")  # polars; its lazy frames are slow to say their columns
        or hasattr(X, "columns")
        or hasattr(X, "__arrow_c_stream__")
    )


def is_plain(schema: Schema) -> bool:
    """Whether an array of numbers is all that it takes: no categories, dates, bins or gaps."""
    return all(
        c.type in ("number", "integer") and c.edges is None and c.when_missing == "refuse"
        for c in schema.features
    )


def columns_of(X: Any, schema: Schema, wanted: tuple[Column, ...]) -> Columns:
    """The wanted columns of X by name; a TableError names those that are not there."""
    names = [column.name for column in wanted]
    if not has_names(X):
        return _by_place(X, schema, names)
    from tacit.data.sources import open_table

    file = open_table(X)
    if file is None or file.names is None:
        raise UsageError(f"cannot read a table from {type(X).__name__}.")
    twice = sorted({n for n in file.names if file.names.count(n) > 1 and n in names})
    if twice:
        raise TableError(f"has {twice[0]!r} twice.", remedy="Give every column a name of its own.")
    absent = [name for name in names if name not in file.names]
    if absent:
        problem = f"has no column {', '.join(map(repr, absent))}."
        raise TableError(problem, column=absent[0], remedy="Compare its columns with the schema's.")
    _refuse_extra(file.names, schema)
    batches = list(file.read([file.names.index(name) for name in names]))
    if not batches:
        return {name: [] for name in names}
    (batch,) = batches
    return dict(zip(names, batch.columns, strict=True))


def _refuse_extra(names: list[str], schema: Schema) -> None:
    known = {column.name for column in schema.columns}
    extra = [repr(name) for name in names if name not in known]
    if extra and schema.extra_columns == "refuse":
        raise TableError(
            f"{len(extra)} column(s) are not in the schema: {', '.join(extra[:20])}.",
            remedy='List them with role = "ignore", or say extra_columns = "ignore".',
        )


def _by_place(X: Any, schema: Schema, names: list[str]) -> Columns:
    """An array's columns are the schema's features."""
    features = [column.name for column in schema.features]
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != len(features):
        width = X.shape[1] if X.ndim == 2 else f"{X.ndim} dimension(s) instead of"
        raise UsageError(
            f"X has {width} columns, but the schema has {len(features)} features: an array's "
            "columns are the schema's features in their order. Or give a table with names."
        )
    if sparse.issparse(X):
        X = X.tocsc()
        return {n: X[:, [i]].toarray().ravel() for i, n in enumerate(features) if n in names}
    return {n: X[:, i].tolist() for i, n in enumerate(features) if n in names}


@dataclass(frozen=True, slots=True)
class Target:
    """The label column with its values, and the classes it stands for, if it has classes."""

    column: Column
    values: Any
    classes: NDArray[Any] | None = None
    stated: bool = False

    def labels(self, numbers: NDArray[Any]) -> Labels | None:
        if self.classes is None:
            return None
        return Labels(self.classes, numbers.astype(np.int64), self.stated)


def read_target(
    X: Any,
    y: Any,
    schema: Schema,
    *,
    classes: Any = None,
    bounds: tuple[float, float] | None = None,
    is_class: bool,
) -> Target:
    """The label: y, or the schema's label column of the table itself."""
    known = schema.label
    values = _given(X, y, schema)
    names = {column.name for column in schema.columns}
    name = known.name if known is not None else "y"
    while known is None and name in names:
        name += "_"
    if is_class:
        return _classes(name, values, known, classes)
    if known is not None and known.is_number and known.edges is None:
        column = known if bounds is None else msgspec.structs.replace(known, bounds=bounds)
    else:
        column = Column(name=name, type="number", role="label", bounds=bounds or PRIVATE)
    return Target(column, values)


def _given(X: Any, y: Any, schema: Schema) -> Any:
    """What y says; without it, the label column."""
    if y is not None:
        values = y if _has_type(y) else np.asarray(y)
        if getattr(values, "ndim", 1) == 2 and values.shape[1] == 1:
            values = np.asarray(values)[:, 0]
        if getattr(values, "ndim", 1) != 1:
            raise UsageError("y must be one column: one label for each record.")
        return values
    if schema.label is None or not has_names(X):
        raise UsageError(
            "there is no y, and the schema names no label column of X: give y, or set "
            'role = "label" for a column of the table.'
        )
    return columns_of(X, schema, (schema.label,))[schema.label.name]


def _has_type(y: Any) -> bool:
    """Whether it is somebody's column, with gaps of its own kind: pandas, polars, Arrow."""
    return hasattr(y, "dtype") or hasattr(y, "type")


def _classes(name: str, values: Any, known: Column | None, classes: Any) -> Target:
    plain = np.asarray(values)
    present = plain[~_gaps(plain)]
    if classes is None and known is not None:
        kinds = np.unique(present.astype(str) if present.dtype.kind == "O" else present)
        if present.dtype.kind == "O" and all(isinstance(v, (bool, np.bool_)) for v in present):
            kinds = np.unique(present.astype(bool))
        found = classes_of_schema(known, kinds)
        if found is not None:
            return Target(known, values, found, stated=True)
    if len(present) < len(plain):
        remedy = 'Remove these records, or give the schema a label with when_missing = "drop".'
        raise TableError("y has missing labels.", remedy=remedy)
    if plain.dtype.kind == "O" and all(isinstance(v, str) for v in plain):
        plain = plain.astype(str)
    labels = labels_of(plain, classes)
    spelt = np.array(labels.names)
    missing: tuple[str, ...] | None = () if "" in labels.names else None
    column = Column(
        name=name, type="category", role="label", categories=labels.names, missing=missing
    )
    return Target(column, spelt[labels.numbers], labels.classes, labels.stated)


def _gaps(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array([v is None or v != v or str(v) == "<NA>" for v in values], dtype=bool)


def _nulls(array: Any) -> Any:
    """NaN is how numbers are missing in memory, whichever library holds them."""
    from tacit.data.arrow import pa, pc

    if not pa.types.is_floating(array.type):
        return array
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)


def read_table(columns: Columns, schema: Schema) -> Batch:
    """All records, checked, filled and clipped as the schema says, some dropped."""
    from tacit.data.sources import as_array
    from tacit.data.tables import read_batches

    columns = {name: _nulls(as_array(values, name)) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise TableError(
            "X and y differ in length.", remedy="Give one label for each record, in the same order."
        )
    return Batch.concat(list(read_batches(columns, schema)))
