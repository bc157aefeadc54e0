"""One fit on a table that is read through a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tacit.data.batch import Batch
from tacit.data.digests import Digester
from tacit.data.records import ArrayRecords, Records
from tacit.data.schema import Schema
from tacit.errors import NoRecords
from tacit.estimators.randomness import RunDigest
from tacit.estimators.run import BOUNDS_READ_OFF, Run, uniform_bounds
from tacit.estimators.tables import Target, columns_of, is_plain, read_table
from tacit.privacy.ledger import RecordDigests
from tacit.programs.program import Program
from tacit.programs.ranged import ranged

if TYPE_CHECKING:
    from tacit.estimators.base import PrivateEstimator

__all__ = ["TableRun"]


class TableRun(Run):
    """Its records are a batch, checked against the schema; all else is as in any other fit."""

    def __init__(
        self,
        estimator: PrivateEstimator,
        program: Program[Any, Any],
        X: Any,
        known: Schema,
        target: Target | None,
    ) -> None:
        self.estimator, self.known, self.target = estimator, known, target
        self.features = known.features
        self.promise = self._promised()
        self.remarks = []
        self.schema = self._read_with(known)
        self.schema.require_complete()
        self.batch = self._read(X, known)
        self.promise.check_population(self.batch.rows)
        digest = self._table_digest(program)
        if not self.promise.is_private:
            self._read_off()
        # Widened to one width where distances matter, as an array's; beside categories every
        # column keeps the width that its schema gives it.
        uniform = estimator._uniform and is_plain(known)
        if uniform and not self.schema.private:
            self._rename(uniform_bounds(self.schema))
        self.program = ranged(program, self.schema, uniform)
        self.channel = self._channel(digest)
        encoded = self.program.encoder(self.schema).encode(self.batch)
        self.encoded = ArrayRecords(encoded.X, encoded.y)
        self.y = encoded.y
        self.labels = None if target is None or encoded.y is None else target.labels(encoded.y)

    def _read_with(self, known: Schema) -> Schema:
        """The features and the label: what is learned of, and in the model's file."""
        columns = list(self.features)
        if self.target is not None:
            columns.append(self.target.column)
        return msgspec.structs.replace(known, columns=tuple(columns))

    def _read(self, X: Any, known: Schema) -> Batch:
        columns = columns_of(X, known, self.features)
        if self.target is not None:
            columns[self.target.column.name] = self.target.values
        batch = read_table(columns, self.schema)
        if not batch.rows:
            raise NoRecords(
                'has no records left: each lacks a value of a column with when_missing = "drop".',
                remedy='Use "fill" or "category" there.',
            )
        return batch

    def _rename(self, schema: Schema) -> None:
        """The same records under other bounds."""
        batch = self.batch
        self.schema = schema
        self.batch = Batch(schema, batch.columns, batch.rows, batch.first_row, batch.raw)

    def _read_off(self) -> None:
        """Without privacy there is nothing to protect."""
        found: dict[str, tuple[float, float]] = {}
        for column in self.schema.private:
            values = self.batch.columns[column.name]
            present = values[~np.isnan(values)]
            low, high = (present.min(), present.max()) if len(present) else (0.0, 1.0)
            found[column.name] = (low, high) if low < high else (low - 1.0, high + 1.0)
        if not found:
            return
        self.remarks.append(BOUNDS_READ_OFF)
        columns = [
            msgspec.structs.replace(c, bounds=tuple(map(float, found[c.name])))
            if c.name in found
            else c
            for c in self.schema.columns
        ]
        self._rename(msgspec.structs.replace(self.schema, columns=tuple(columns)))

    def _table_digest(self, program: Program[Any, Any]) -> RunDigest:
        found = RunDigest(type(self.estimator).__name__, program, self.promise)
        found.add(self.schema.digest)
        for column in self.schema.columns:
            found.add_numbers(np.asarray(self.batch.columns[column.name], dtype=np.float64))
        return found

    def _records(self) -> RecordDigests:
        digester = Digester(self.batch.schema)
        digester.add(self.batch)
        return digester.digests

    def _encoded(self) -> Records:
        return self.encoded

    def _columns(self) -> tuple[str, ...] | None:
        return tuple(column.name for column in self.schema.columns)

    def _stated(self) -> list[str]:
        features, stated = self.features, []
        if any(isinstance(c.bounds, tuple) or c.edges for c in features):
            stated.append("bounds of the columns")
        if any(isinstance(c.categories, tuple) for c in features):
            stated.append("categories")
        if any(c.fill is not None for c in features):
            stated.append("values that stand for missing ones")
        label = None if self.target is None else self.target.column
        if label is not None and isinstance(label.bounds, tuple):
            stated.append("bounds of the label")
        return [*stated, *(["classes"] if self.labels is not None and self.labels.stated else [])]
