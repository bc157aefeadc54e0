"""What each column adds to the scores of a logistic regression, with how far noise moves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoder
from tacit.data.schema import Column
from tacit.programs.encodings import Encoding
from tacit.programs.logistic_band import band
from tacit.programs.logistic_model import LogisticModel

__all__ = ["Part", "parts_of"]

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False)
class Part:
    """Of one column.

    at         places: numbers in the column's own unit, or the names of its values
    scores     what it adds to the log-odds of each class in `classes`, one column each, around
               their mean over these places
    deviation  the standard deviation of the noise in `scores`; None where it is not known
    """

    column: str
    at: tuple[float, ...] | tuple[str, ...]
    scores: Reals
    deviation: Reals | None
    classes: tuple[str, ...]

    @property
    def band(self) -> str:
        """Whether there is one, in words."""
        return "no band" if self.deviation is None else "with a band for the noise"

    def __repr__(self) -> str:
        return f"Part({self.column!r}, {len(self.at)} places, {self.band})"


def parts_of(
    model: LogisticModel, encoder: Encoder, classes: tuple[str, ...], points: int
) -> tuple[Part, ...]:
    """Each column looked at by itself; numbers at so many places."""
    shown = classes if len(model.coef) > 1 else classes[1:]
    columns, starts = encoder.schema.features, [*encoder.starts.tolist(), encoder.width]
    found = []
    for column, start, stop in zip(columns, starts, starts[1:], strict=False):
        at, place, looks = _looks(model, encoder, column, slice(start, stop), points)
        looks = looks - looks.mean(axis=0)
        scores, deviation = looks @ model.coef[:, place].T, band(model, place, looks)
        found.append(Part(column.name, at, scores, deviation, shown))
    return tuple(found)


def _looks(
    model: LogisticModel, encoder: Encoder, column: Column, own: slice, points: int
) -> tuple[Any, slice, Reals]:
    """Places of a column, its coordinates in the model, and what these are at the places."""
    encoding = model.encoding
    if column.is_number and column.edges is None:
        assert isinstance(column.bounds, tuple)  # a fitted schema has them
        grid = np.linspace(-1.0, 1.0, points)
        low, high = column.bounds
        at = tuple((low + (grid + 1.0) / 2.0 * (high - low)).tolist())
        if encoding is None:
            return at, slice(own.start, own.start + 1), grid[:, None]
        number = int(np.searchsorted(encoding.numbers, own.start))
        return at, encoding.places(number), encoding.basis(grid)
    names = encoder.feature_names[own]
    place = own if encoding is None else _moved(encoding, own)
    looks = np.eye(len(names))
    if column.type == "boolean":  # where it is false, all its coordinates are 0
        return ("false", *names), place, np.vstack([np.zeros(len(names)), looks])
    return names, place, looks


def _moved(encoding: Encoding, own: slice) -> slice:
    """Where coordinates that stay are in the model."""
    start = int(np.searchsorted(encoding.others, own.start))
    return slice(start, start + own.stop - own.start)
