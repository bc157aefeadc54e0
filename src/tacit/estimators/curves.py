"""What each column adds to the scores of a logistic regression, with a band for the noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoder
from tacit.data.schema import Column
from tacit.errors import UsageError
from tacit.programs.encodings import Encoding
from tacit.programs.logistic_band import band
from tacit.programs.logistic_model import LogisticModel

__all__ = ["Part", "Parts", "parts_of"]

Reals = NDArray[np.float64]
WIDE = 2.0  # a band has so many standard deviations to each side
ACROSS = 3  # pictures in a row


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Parts(Sequence[Part]):
    """Of all columns, in the schema's order."""

    parts: tuple[Part, ...]

    def __getitem__(self, which: Any) -> Any:
        return self.parts[which]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure, one picture for each column; written to `path`, if one is given."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise UsageError("pictures need matplotlib: pip install 'tacit[plots]'.") from None
        across = min(ACROSS, len(self))
        down = -(-len(self) // across)
        figure = Figure(figsize=(3.6 * across, 2.6 * down), layout="constrained")
        axes = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
        for axis, part in zip(axes, self.parts, strict=False):
            _draw(axis, part)
        for axis in axes[len(self) :]:
            axis.set_visible(False)
        axes[0].legend(frameon=False, fontsize=8)
        if path is not None:
            figure.savefig(path)
        return figure


def parts_of(model: LogisticModel, encoder: Encoder, classes: Any, points: int) -> Parts:
    """Each column looked at by itself; numbers at so many places."""
    spoken = [str(label) for label in classes]
    shown = tuple(spoken if len(model.coef) > 1 else spoken[1:])
    columns, starts = encoder.schema.features, [*encoder.starts.tolist(), encoder.width]
    found = []
    for column, start, stop in zip(columns, starts, starts[1:], strict=False):
        at, place, looks = _looks(model, encoder, column, slice(start, stop), points)
        looks = looks - looks.mean(axis=0)
        scores, deviation = looks @ model.coef[:, place].T, band(model, place, looks)
        found.append(Part(column.name, at, scores, deviation, shown))
    return Parts(tuple(found))


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


def _draw(axis: Any, part: Part) -> None:
    at = np.arange(len(part.at)) if isinstance(part.at[0], str) else np.array(part.at)
    for output, label in enumerate(part.classes):
        scores = part.scores[:, output]
        if isinstance(part.at[0], str):
            wide = None if part.deviation is None else WIDE * part.deviation[:, output]
            axis.errorbar(at, scores, yerr=wide, fmt="o", label=label)
            continue
        axis.plot(at, scores, label=label)
        if part.deviation is not None:
            wide = WIDE * part.deviation[:, output]
            axis.fill_between(at, scores - wide, scores + wide, alpha=0.2, linewidth=0)
    if isinstance(part.at[0], str):
        axis.set_xticks(at, part.at, rotation=60, ha="right", fontsize=7)
    axis.set_title(part.column, fontsize=9)
    axis.axhline(0.0, color="0.6", linewidth=0.6)
