"""The pictures of the page: sweeps with the spread between peers, newcomers, saboteurs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from peers_parts.newcomers import Arrival, Attack
from peers_parts.sweeps import Result

COLOURS = {
    "as published": "#c9772b",
    "as published, summed loss": "#b03a48",
    "corrected": "#7a5ea8",
    "corrected, by rule": "#1f5fbf",
}
OWN_COLOURS = {0: "0.55", 5: "#c9772b", 20: "#3d8b6e", 66: "#1f5fbf"}
AXES = {
    "epsilon": "ε: smaller is more private",
    "penalty": "λ",
    "records": "records of each peer",
    "group": "group size",
}
DPI = 80


def draw_sweeps(results: Sequence[Result], path: Path) -> None:
    """Means over peers and folds; bands are one deviation between the peers of a network."""
    figure, axes = _figure(len(results), 3)
    for axis, result in zip(axes, results, strict=False):
        _sweep(axis, result)
    drawn = {line.get_label(): line for axis in axes for line in axis.get_lines()}
    kept = {name: line for name, line in drawn.items() if not name.startswith("_")}
    figure.legend(kept.values(), kept.keys(), frameon=False, loc="lower center", ncols=len(kept))
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    figure.savefig(path, dpi=DPI)


def draw_newcomers(came: Sequence[Arrival], attacked: Sequence[Attack], path: Path) -> None:
    figure, axes = _figure(3, 3)
    _by_models(axes[0], [a for a in came if a.group == 10])
    _by_records(axes[1], came)
    _by_garbage(axes[2], [a for a in attacked if a.kind == "random"])
    figure.tight_layout()
    figure.savefig(path, dpi=DPI)


def _figure(panels: int, columns: int) -> tuple[Any, list[Any]]:
    from matplotlib.figure import Figure

    count = -(-panels // columns)
    figure = Figure(figsize=(4.6 * columns, 3.4 * count))
    axes = list(figure.subplots(count, columns, squeeze=False).flat)
    for axis in axes[panels:]:
        axis.set_visible(False)
    return figure, axes


def _sweep(axis: Any, result: Result) -> None:
    places = result.places
    at = np.arange(len(places))
    for line in result.lines:
        found = [result.at(x, line) for x in places]
        mean = np.array([o.mean for o in found])
        spread = np.array([o.between_peers for o in found])
        _line(axis, at, mean, line, COLOURS[line])
        band = {"color": COLOURS[line], "alpha": 0.15, "linewidth": 0}
        axis.fill_between(at, mean - spread, mean + spread, **band)
    title, varied = f"{result.sweep.data}: {result.sweep.title}", result.sweep.varied
    _labelled(axis, title, AXES[varied], at, [_short(varied, x) for x in places])


def _by_models(axis: Any, came: Sequence[Arrival]) -> None:
    for own in sorted({a.records for a in came}):
        found = sorted((a for a in came if a.records == own), key=lambda a: a.models)
        at = np.array([a.models for a in found])
        _line(axis, at, np.array([a.weighed for a in found]), f"{own} records", OWN_COLOURS[own])
    ticks = sorted({a.models for a in came})
    _labelled(
        axis, "a newcomer's accuracy, groups of 10", "models received", np.array(ticks), ticks
    )
    axis.legend(frameon=False, fontsize=8)


def _by_records(axis: Any, came: Sequence[Arrival]) -> None:
    places = sorted({a.records for a in came})
    at = np.arange(len(places))
    for group, colour in ((5, "#c9772b"), (10, "#3d8b6e"), (50, "#1f5fbf")):
        last = max(a.models for a in came if a.group == group)
        found = {a.records: a for a in came if (a.group, a.models) == (group, last)}
        mean = np.array([found[own].weighed for own in places])
        _line(axis, at, mean, f"groups of {group}", colour)
        if group == 50:
            lonely = np.array([found[own].alone for own in places])
            _line(axis, at, lonely, "alone", "0.55")
    _labelled(axis, "a newcomer's accuracy, all received", "own records", at, places)
    axis.legend(frameon=False, fontsize=8)


def _by_garbage(axis: Any, attacked: Sequence[Attack]) -> None:
    places = sorted({a.garbage for a in attacked})
    at = np.arange(len(places))
    for group, colour in ((5, "#c9772b"), (50, "#1f5fbf")):
        found = {a.garbage: a for a in attacked if a.group == group}
        weighed = np.array([found[x].weighed for x in places])
        plain = np.array([found[x].plain for x in places])
        _line(axis, at, weighed, f"groups of {group}, weighed", colour)
        axis.plot(at, plain, "o--", color=colour, markersize=3, label=f"groups of {group}")
    _labelled(axis, "beside random garbage of one peer", "garbage models", at, places)
    axis.legend(frameon=False, fontsize=8)


def _line(axis: Any, at: Any, values: Any, label: str, colour: str) -> None:
    axis.plot(at, values, "o-", color=colour, markersize=3.5, linewidth=1.5, label=label)


def _labelled(axis: Any, title: str, below: str, at: Any, ticks: Sequence[object]) -> None:
    axis.set_title(title, loc="left", fontsize=9)
    axis.set_xlabel(below, fontsize=9)
    axis.set_xticks(at, [str(tick) for tick in ticks], fontsize=8)
    axis.grid(axis="y", color="0.92")
    axis.spines[["top", "right"]].set_visible(False)


def _short(varied: str, value: float) -> str:
    return f"1/{1 / value:g}" if varied == "penalty" and value < 1 else f"{value:g}"
