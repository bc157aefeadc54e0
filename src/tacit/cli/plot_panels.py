"""Measurements over a logarithmic axis, side by side, written as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from tacit.errors import UsageError

__all__ = ["Line", "Panel", "plot_panels"]


@dataclass(frozen=True, slots=True)
class Line:
    """At each place the values of several runs: their mean is drawn, and a band from least to most.

    `colour` is one of matplotlib's. A bold line lies above the others.
    """

    label: str
    points: Sequence[tuple[float, Sequence[float]]]
    colour: str
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """`above` says what is measured, `below` over what."""

    above: str
    below: str
    lines: Sequence[Line]


def plot_panels(panels: Sequence[Panel], path: Path) -> None:
    """Two in a row, with one legend for all: a label has one colour everywhere."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("pictures need matplotlib: pip install 'tacit[plots]'.") from None
    rows = -(-len(panels) // 2)
    figure = Figure(figsize=(11, 3.8 * rows + 0.5))
    axes = figure.subplots(rows, 2, squeeze=False).flat
    for axis, panel in zip(axes, panels, strict=False):
        _draw(axis, panel)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    drawn = {line.get_label(): line for axis in axes for line in axis.get_lines()}
    figure.legend(drawn.values(), drawn.keys(), frameon=False, loc="lower center", ncols=len(drawn))
    figure.tight_layout(rect=(0, 0.4 / figure.get_figheight(), 1, 1))
    figure.savefig(path, dpi=110)


def _draw(axis: Any, panel: Panel) -> None:
    for line in panel.lines:
        places, runs = zip(*line.points, strict=True)
        order, width = (4, 2.4) if line.bold else (3, 1.4)
        style = {"color": line.colour, "linewidth": width, "zorder": order}
        axis.plot(places, [*map(fmean, runs)], "o-", markersize=4, label=line.label, **style)
        low, high = [*map(min, runs)], [*map(max, runs)]
        axis.fill_between(places, low, high, color=line.colour, alpha=0.15, linewidth=0)
    marks = sorted({place for line in panel.lines for place, _ in line.points})
    axis.set_xscale("log")
    axis.set_xticks(marks, [f"{mark:g}" for mark in marks])
    axis.minorticks_off()
    axis.set_xlabel(panel.below)
    axis.set_title(panel.above, loc="left", fontsize=11)
    axis.grid(axis="y", color="0.92")
    axis.spines[["top", "right"]].set_visible(False)
