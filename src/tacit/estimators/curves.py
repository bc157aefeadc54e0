"""What each column adds to the scores of a logistic regression, with a band for the noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UsageError
from tacit.programs.logistic_parts import Part

__all__ = ["Part", "Parts"]

Reals = NDArray[np.float64]
WIDE = 2.0  # a band has so many standard deviations to each side
ACROSS = 3  # pictures in a row


@dataclass(frozen=True, slots=True, repr=False)
class Parts(Sequence[Part]):
    """Of all columns, in the schema's order."""

    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        band = f", {self.parts[0].band}" if self.parts else ""
        return f"Parts({len(self)} column{'s' * (len(self) != 1)}{band})"

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"

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
