"""Encoded features as a model's tables name them: their units, classes, and made-up records."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tacit.data.schema import Column
from tacit.programs.model_file import SavedModel
from tacit.programs.prediction import class_names

__all__ = ["classes_of", "each", "is_measured", "made_up", "units"]

Reals = NDArray[np.float64]
PROBES = 512  # records made up over the schema's bounds, for estimates


def units(saved: SavedModel) -> tuple[tuple[str, ...], list[tuple[float, float]]]:
    """The names of encoded features, and what makes of a coordinate a value in its own unit."""
    encoder = saved.encoder
    ball = 1.0 if encoder.ball is None else encoder.bound_before(encoder.ball)
    unit = encoder.interval == "unit"
    found = []
    numbers = {c.name: c for c in saved.schema.features if is_measured(c)}
    for name in encoder.feature_names:
        column = numbers.get(name)
        if column is None or not isinstance(column.bounds, tuple):
            found.append((0.0, ball))
            continue
        low, high = column.bounds
        width = high - low if unit else (high - low) / 2
        found.append((low if unit else (low + high) / 2, width * ball))
    return encoder.feature_names, found


def is_measured(column: Column) -> bool:
    return column.is_number and column.edges is None


def made_up(saved: SavedModel) -> Reals:
    """Vectors of records whose columns are independent and even over their bounds."""
    encoder, blocks = saved.encoder, []
    ends = [*encoder.starts[1:].tolist(), encoder.width]
    even = iter(_even(len(saved.schema.features)))
    for column, start, stop in zip(saved.schema.features, encoder.starts, ends, strict=True):
        width, where = stop - start, next(even)
        if is_measured(column):
            part = np.zeros((PROBES, width))
            part[:, 0] = where if encoder.interval == "unit" else 2 * where - 1
        else:
            values = np.vstack([np.eye(width), np.zeros((int(column.type == "boolean"), width))])
            part = values[(where * len(values)).astype(np.int64)]
        blocks.append(part)
    ball = 1.0 if encoder.ball is None else encoder.bound_before(encoder.ball)
    return np.asarray(np.hstack(blocks) / ball)


def _even(columns: int) -> Reals:
    """Points that fill the unit cube evenly, a row for each column: multiples of 1/φ, 1/φ², …
    modulo 1, where φ to the power of columns + 1 is φ + 1 (Roberts 2018)."""
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (columns + 1))
    steps = ratio ** -np.arange(1.0, columns + 1)
    found: Reals = np.outer(steps, np.arange(1.0, PROBES + 1)) % 1.0
    return found


def classes_of(saved: SavedModel) -> tuple[str, ...]:
    label = saved.schema.label
    known = getattr(saved.model, "classes", None)
    names = known if known else (() if label is None else class_names(label))
    return tuple(map(str, names))


def each(values: Reals, names: Iterable[str]) -> list[float]:
    """As many numbers as names."""
    found = np.asarray(values, dtype=np.float64).tolist()
    return [value for value, _ in zip(found, names, strict=True)]
