"""Records to vectors: a pure function of the schema and one record.

Nothing is learned from the data on the way, so encoding costs no privacy, gives the same vector
whatever else the table holds, and every holder of a study gets the same coordinates.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tacit.data.schema import written
from tacit.errors import SchemaError, UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.clipping import clip_to_ball, norm_named

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.data.batch import Batch
    from tacit.data.schema import Column, Schema

__all__ = ["Encoded", "Encoder"]

Interval = Literal["unit", "symmetric"]


class Encoded(NamedTuple):
    """Vectors, labels (None without a label column), person ids (None without that column)."""

    X: NDArray[np.float64]
    y: NDArray[Any] | None
    person: NDArray[Any] | None


class Encoder:
    """Vectors of one schema.

    A number becomes one coordinate: its public bounds mapped to [0, 1] ("unit") or [-1, 1]
    ("symmetric"). A category and a number with edges become one coordinate per value, one of
    which is 1. A boolean becomes one coordinate. A missing value that counts as a category has a
    coordinate of its own, and leaves its column's others at 0.

    So each column contributes a vector of norm at most 1, in every norm: c columns give at most c
    in L1 and √c in L2 (`bound`). With `ball="L2"` (or "L1") vectors are divided by that, so that
    every one lies in the unit ball of the norm.
    """

    def __init__(
        self, schema: Schema, *, interval: Interval = "unit", ball: Norm | str | None = None
    ) -> None:
        schema.require_complete()
        if schema.private:
            listed = ", ".join(column.name for column in schema.private)
            raise SchemaError(
                f'schema: bounds = "private" of {listed} must be found first, which a study of a '
                "federation, the central channel and estimators do (tacit.programs.ranged). Here, "
                "write bounds that are public knowledge."
            )
        if interval not in ("unit", "symmetric"):
            raise UsageError(f'interval must be "unit" or "symmetric", not {interval!r}.')
        if not schema.features:
            raise UsageError("the schema has no feature: every column is a label, id or ignored.")
        self.schema, self.interval = schema, interval
        self.ball = None if ball is None else norm_named(ball)
        names = [_coordinates(column) for column in schema.features]
        self.feature_names: tuple[str, ...] = tuple(n for block in names for n in block)
        self.width = len(self.feature_names)
        self._starts = np.cumsum([0, *(len(block) for block in names)])

    def bound(self, norm: Norm | str) -> float:
        """The largest norm that any vector can have, rounded up."""
        kind = norm_named(norm)
        if self.ball is kind:
            return 1.0
        if self.ball is None:
            return self._largest(kind)
        return math.nextafter(self._largest(kind) / self._largest(self.ball), math.inf)

    @property
    def starts(self) -> NDArray[np.intp]:
        """The first coordinate of each feature."""
        return self._starts[:-1]

    def bound_before(self, norm: Norm | str) -> float:
        """The largest norm before vectors are divided by it (`ball`)."""
        return self._largest(norm_named(norm))

    def _largest(self, norm: Norm) -> float:
        count = len(self.schema.features)
        match norm:
            case Norm.L1:
                return float(count)
            case Norm.L2:
                root = math.sqrt(count)
                return root if root.is_integer() else math.nextafter(root, math.inf)
            case Norm.LINF:
                return 1.0

    def encode(self, batch: Batch) -> Encoded:
        if batch.schema != self.schema:
            raise UsageError("the batch was read with another schema than the encoder's.")
        X = np.zeros((batch.rows, self.width))
        for column, start in zip(self.schema.features, self._starts, strict=False):
            self._place(X[:, start:], column, batch.columns[column.name])
        if self.ball is not None:
            X /= self._largest(self.ball)
            X = clip_to_ball(X, 1.0, self.ball)
        label, person = self.schema.label, self.schema.person
        return Encoded(
            X,
            None if label is None else _label(label, batch.columns[label.name]),
            None if person is None else batch.columns[person.name],
        )

    def _place(self, X: NDArray[np.float64], column: Column, values: NDArray[Any]) -> None:
        """Write one column's coordinates into the first columns of X."""
        rows = np.arange(len(values))
        if column.is_number and column.edges is None:
            missing = np.isnan(values)
            X[:, 0] = np.where(missing, 0.0, self._scaled(column, values))
            if column.when_missing == "category":
                X[:, 1] = missing
        elif column.is_number:
            X[rows, _bins(column, values)] = 1.0
        elif column.type == "boolean":
            X[:, 0] = values == 1
            if column.when_missing == "category":
                X[:, 1] = values == 2
        else:
            X[rows, values] = 1.0

    def _scaled(self, column: Column, values: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = _numbers(column)
        unit = (values - low) / (high - low)
        # Rounding may step over the border by one unit in the last place: the bound must hold.
        unit = np.clip(unit, 0.0, 1.0)
        return unit if self.interval == "unit" else 2.0 * unit - 1.0


def _numbers(column: Column) -> tuple[float, float]:
    assert isinstance(column.bounds, tuple)  # the schema is complete
    return column.bounds


def _coordinates(column: Column) -> list[str]:
    name = column.name
    if column.is_number and column.edges is not None:
        low, high = column.bounds if isinstance(column.bounds, tuple) else (-math.inf, math.inf)
        marks = [written(column, v) for v in (low, *column.edges, high)]
        names = [f"{name} in [{a}, {b})" for a, b in pairwise(marks)]
    elif column.type == "category":
        names = [f"{name}={c}" for c in column.categories or ()]
    else:
        names = [name]
    return [*names, f"{name} missing"] if column.when_missing == "category" else names


def _bins(column: Column, values: NDArray[np.float64]) -> NDArray[np.intp]:
    """The bin of each value; NaN, a missing value, comes after the last bin."""
    edges = column.edges or ()
    bins = np.searchsorted(np.asarray(edges), values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, bins)


def _label(column: Column, values: NDArray[Any]) -> NDArray[Any]:
    """Categories, booleans and bins as whole numbers from 0; other numbers in their own unit."""
    if column.is_number and column.edges is None:
        return values
    if column.is_number:
        return _bins(column, values).astype(np.int32)
    return values
