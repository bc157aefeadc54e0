"""How people see what a crowd has answered."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.channels.crowd.liars import liars_document, lies_explained
from tacit.errors import UsageError
from tacit.programs.prediction import class_names

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from rich.console import Console

    from tacit.channels.crowd.harvest import Harvest
    from tacit.channels.crowd.proposal import Proposal
    from tacit.channels.crowd.tables import Table
    from tacit.data.schema import Column, Schema

__all__ = ["collected_document", "draw_tables", "figure_class", "print_collected"]

SILENT = ("cover", "again")  # neither frauds nor faults
ACROSS = 3  # panels in a row of the picture
MOST_NAMED = 16  # cells of a panel that are named


def collected_document(
    proposal: Proposal, harvest: Harvest, refused: Counter[str], files: dict[str, str]
) -> dict[str, Any]:
    certificate = harvest.certificate
    amplified = certificate.amplified
    return {
        "study": proposal.name,
        "people": certificate.participation.holders if certificate.participation else 0,
        "reports": {table.question.name: table.reports for table in harvest.tables},
        "tables": {table.question.name: _bars(table) for table in harvest.tables},
        "liars": liars_document(proposal.drawn_up, proposal.group.corrupt),
        "refused": {reason: n for reason, n in refused.items() if reason not in SILENT},
        "local_epsilon": certificate.promise.epsilon,
        "central_epsilon": None if amplified is None else float(amplified.epsilon),
        "central_delta": None if amplified is None else float(amplified.delta),
        **files,
    }


def print_collected(
    console: Console,
    proposal: Proposal,
    harvest: Harvest,
    refused: Counter[str],
    files: dict[str, str],
) -> None:
    document = collected_document(proposal, harvest, refused, files)
    console.print(f"{proposal.name}: {proposal.question}", markup=False)
    for table in harvest.tables:
        console.print(f"  {_line(table)}", markup=False)
    for line in lies_explained(proposal.drawn_up, proposal.group.corrupt):
        console.print(f"  {line}", markup=False)
    for reason, number in document["refused"].items():
        console.print(f"  refused, {reason}: {number}", markup=False)
    console.print(f"each person  ε = {document['local_epsilon']:g}, whoever sees what")
    if document["central_epsilon"] is not None:
        epsilon, delta = document["central_epsilon"], document["central_delta"]
        console.print(f"anonymity    ε = {epsilon:.3g}, δ = {delta:g}, see the certificate")
    for what, name in files.items():
        console.print(f"{what:<12} {name}", markup=False)


def _line(table: Table) -> str:
    names = ", ".join(table.question.features)
    share = table.counts[..., 1].sum() / max(table.counts.sum(), 1)
    error = np.sqrt((table.errors[..., 1] ** 2).sum()) / max(table.reports, 1)
    return (
        f"{names}: {table.reports} answers in {table.question.cells} cells; the label holds for "
        f"{share:.3f} ± {error:.3f}; {_width(table)}"
    )


def _width(table: Table) -> str:
    """Of a count's error bar: noise and lies are kept apart, since only noise averages out."""
    bars = _bars(table)
    noise = f"a count is ± {bars['error']:.1f} by noise"
    return f"{noise}, ± {bars['shift']:.1f} by lies" if table.shift else noise


def _bars(table: Table) -> dict[str, float]:
    """Of a count, in people: the largest standard error, and the bound on what liars did."""
    return {"error": float(table.errors.max()), "shift": table.shift}


def draw_tables(harvest: Harvest, path: Path) -> None:
    """Each table: the share of the label in each cell of its features, with error bars."""

    shown = [table for table in harvest.tables if table.reports]
    down = max(1, -(-len(shown) // ACROSS))
    figure = figure_class()(figsize=(4.2 * ACROSS, 2.9 * down), layout="constrained")
    panels = figure.subplots(down, ACROSS, squeeze=False).ravel()
    for table, panel in zip(shown, panels, strict=False):
        _panel(table, panel, harvest.schema)
    for panel in panels[len(shown) :]:
        panel.set_axis_off()
    figure.savefig(path, dpi=110)


def figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("pictures need matplotlib: pip install 'tacit[plots]'.") from None
    return Figure


def _panel(table: Table, panel: Any, schema: Schema) -> None:
    counts = table.counts.reshape(-1, 2) / table.reports
    widths = (2 * table.errors.reshape(-1, 2) + table.shift) / table.reports
    places = np.arange(len(counts))
    for side, (name, colour) in enumerate(
        zip(_classes(schema), ("#9aa5b1", "#c2410c"), strict=True)
    ):
        panel.bar(
            places + 0.4 * side - 0.2,
            counts[:, side],
            0.38,
            yerr=widths[:, side],
            color=colour,
            ecolor="#334155",
            capsize=2,
            label=name,
        )
    panel.axhline(0, color="black", linewidth=0.6)
    panel.set_title(", ".join(table.question.features), fontsize=9)
    panel.set_ylabel("share of people", fontsize=8)
    panel.tick_params(labelsize=7)
    panel.set_xticks([])
    if len(counts) <= MOST_NAMED:
        panel.set_xticks(places)
        panel.set_xticklabels(_cells(table, schema), rotation=30, ha="right", fontsize=7)
    panel.legend(fontsize=7, frameon=False)


def _classes(schema: Schema) -> list[str]:
    label = schema.label
    assert label is not None  # a crowd's schema has one
    return [f"{label.name}: {name}" for name in class_names(label)]


def _cells(table: Table, schema: Schema) -> list[str]:
    """What the combinations of features are called, in the order of the table."""
    codes = [_codes(schema.column(name)) for name in table.question.features]
    return [", ".join(names) for names in product(*codes)]


def _codes(column: Column) -> list[str]:
    names = list(class_names(column))
    if column.edges is not None:
        edges = [f"{edge:g}" for edge in column.edges]
        inner = [f"{a}–{b}" for a, b in pairwise(edges)]
        names = [f"< {edges[0]}", *inner, f"≥ {edges[-1]}"]
    return [*names, "missing"] if column.when_missing == "category" else names
