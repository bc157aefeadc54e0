"""What a model says as a picture: each column of numbers as bars, with its noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import UsageError
from tacit.programs.shown import Number, Table

__all__ = ["draw"]

PANELS, ROWS, ACROSS = 12, 30, 3
PRIVATE = "#1f5fbf"


def draw(tables: Sequence[Table], path: Path) -> None:
    """One panel for each column of numbers, the first so many, as a PNG that appears whole."""
    from tacit.whole_file import whole_file

    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("pictures need matplotlib: pip install 'tacit[plots]'.") from None
    panels = [panel for table in tables for panel in _panels(table)][:PANELS]
    if not panels:
        raise UsageError("the model says nothing that could be drawn: leave --plot out.")
    down = -(-len(panels) // ACROSS)
    figure = Figure(figsize=(13, 1 + 4 * down))
    axes = figure.subplots(down, ACROSS, squeeze=False).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        _bars(axis, *panel)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    figure.tight_layout()
    with whole_file(path) as file:
        figure.savefig(file, dpi=100, format="png")


def _panels(table: Table) -> Iterator[tuple[str, list[str], list[Number]]]:
    for place, name in enumerate(table.columns):
        numbers = [row[place] for row in table.rows]
        if numbers and all(isinstance(cell, Number) for cell in numbers):
            labels = [str(row[0]) if isinstance(row[0], str) else "" for row in table.rows]
            shown = [cell for cell in numbers[:ROWS] if isinstance(cell, Number)]
            yield f"{table.title}: {name}", labels[:ROWS], shown


def _bars(axis: Any, title: str, labels: list[str], numbers: list[Number]) -> None:
    places = range(len(numbers))
    axis.barh(places, [number.value for number in numbers], color=PRIVATE, alpha=0.8)
    known = [
        (place, number) for place, number in zip(places, numbers, strict=True)
        if number.noise is not None and not number.share
    ]  # fmt: skip
    if known:
        where, which = zip(*known, strict=True)
        errors = [number.noise for number in which]
        axis.errorbar([n.value for n in which], where, xerr=errors, fmt="none", ecolor="0.2")
    # A dollar sign would begin a formula.
    axis.set_yticks(places, [label[:30].replace("$", r"\$") for label in labels], fontsize=8)
    axis.invert_yaxis()
    axis.set_title(title[:48].replace("$", r"\$"), loc="left", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
