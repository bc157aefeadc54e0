"""Labels, feature vectors and the matrix of them all (AnonML, table 3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UsageError
from tacit.personal.events import Field, Kind, Value

__all__ = ["FeatureMatrix", "FeatureVector", "Label"]

Label = Field
"""What is to be predicted of one instance: a field like any other."""


@dataclass(frozen=True)
class FeatureVector:
    """The features of one instance, and its label (None where it is not known yet)."""

    key: str
    cutoff: int | None
    features: tuple[Field, ...]
    label: Label | None


@dataclass(frozen=True)
class FeatureMatrix:
    """One row for each instance, one column for each feature, NaN where nothing can be said.

    keys      what each row is about: `2024-W07`, `pipe 3, 2024-02-12`
    cutoffs   microseconds since 1970: the row knows of nothing at or after it
    names     the features as they are written in a problem
    kinds     number, boolean, or category (values are then places in `values[name]`)
    labels    number, or places in `classes`; NaN where not known yet
    """

    keys: tuple[str, ...]
    cutoffs: NDArray[np.int64]
    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    columns: NDArray[np.float64]
    labels: NDArray[np.float64]
    label: str
    classes: tuple[str, ...] = ()
    values: dict[str, tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        rows, width = self.columns.shape
        if not len(self.keys) == len(self.cutoffs) == len(self.labels) == rows:
            raise UsageError("keys, cut-offs, labels and rows must be as many as one another.")
        if not len(self.names) == len(self.kinds) == width:
            raise UsageError("names, kinds and columns must be as many as one another.")

    @property
    def rows(self) -> int:
        return len(self.keys)

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.labels)

    def take(self, places: NDArray[np.bool_] | NDArray[np.int64]) -> FeatureMatrix:
        """Some of the rows."""
        chosen = np.flatnonzero(places) if places.dtype == np.bool_ else places
        return FeatureMatrix(
            tuple(self.keys[place] for place in chosen),
            self.cutoffs[chosen],
            self.names,
            self.kinds,
            self.columns[chosen],
            self.labels[chosen],
            self.label,
            self.classes,
            self.values,
        )

    def only(self, names: tuple[str, ...]) -> FeatureMatrix:
        """Some of the columns, in this order."""
        places = [self.names.index(name) for name in names]
        return FeatureMatrix(
            self.keys,
            self.cutoffs,
            names,
            tuple(self.kinds[place] for place in places),
            self.columns[:, places],
            self.labels,
            self.label,
            self.classes,
            self.values,
        )

    def vectors(self) -> Iterator[FeatureVector]:
        """Row by row, with the values as they are meant."""
        for row, key in enumerate(self.keys):
            features = tuple(
                Field(name, kind, self._value(name, kind, self.columns[row, place]))
                for place, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
            )
            yield FeatureVector(key, int(self.cutoffs[row]), features, self._label(row))

    def _value(self, name: str, kind: Kind, value: float) -> Value:
        if np.isnan(value):
            return None
        if kind == "category":
            return (self.values or {})[name][int(value)]
        return bool(value) if kind == "boolean" else float(value)

    def _label(self, row: int) -> Label | None:
        value = self.labels[row]
        if np.isnan(value):
            return None
        if self.classes:
            return Field(self.label, "category", self.classes[int(value)])
        return Field(self.label, "number", float(value))
