"""What `tacit me` shows of instances, features, models and predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from tacit.cli.me_view import safe_cell, shown, time_of
from tacit.personal.learning.prediction import Prediction
from tacit.personal.learning.training import Trained
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.problems.instances import Instances
from tacit.personal.problems.problem import Problem

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "features_document",
    "instances_document",
    "matrix_rows",
    "predictions_document",
    "print_features",
    "print_instances",
    "print_predictions",
    "print_report",
    "report_document",
]

USEFUL = 8  # features that are listed


# ── instances and features ──


def instances_document(
    problem: Problem, found: Instances, zone: ZoneInfo, limit: int
) -> dict[str, Any]:
    places = range(len(found))[-limit:]
    return {
        "problem": problem.name,
        "instances": len(found),
        "labelled": int(np.sum(~np.isnan(found.labels.values))),
        "shown": [
            {
                "key": found.keys[place],
                "cutoff": time_of(int(found.cutoffs[place]), zone),
                "label": _label(found, problem, place),
            }
            for place in places
        ],
    }


def print_instances(
    console: Console, problem: Problem, found: Instances, zone: ZoneInfo, limit: int
) -> None:
    from rich.table import Table

    document = instances_document(problem, found, zone, limit)
    table = Table(box=None, pad_edge=False)
    for heading in ("example", "known before", problem.label.name):
        table.add_column(heading)
    for row in document["shown"]:
        label = "?" if row["label"] is None else shown(row["label"])
        table.add_row(row["key"], row["cutoff"], label)
    console.print(table, soft_wrap=False)
    console.print(
        f"{document['instances']:,} examples, of which {document['labelled']:,} have an answer.",
        markup=False,
    )


def matrix_rows(matrix: FeatureMatrix, zone: ZoneInfo) -> Iterator[list[Any]]:
    """The matrix as the rows of a table, with a heading."""
    yield ["example", "cutoff", *(safe_cell(name) for name in matrix.names), matrix.label]
    for vector in matrix.vectors():
        values = (feature.value for feature in vector.features)
        label = "" if vector.label is None else vector.label.value
        cutoff = "" if vector.cutoff is None else time_of(vector.cutoff, zone)
        cells = ("" if value is None else value for value in values)
        yield [safe_cell(vector.key), cutoff, *(safe_cell(cell) for cell in cells), label]


def features_document(matrix: FeatureMatrix, zone: ZoneInfo, limit: int) -> dict[str, Any]:
    latest = _latest(matrix, limit)
    return {
        "rows": matrix.rows,
        "features": [
            {"name": name, "kind": kind}
            for name, kind in zip(matrix.names, matrix.kinds, strict=True)
        ],
        "shown": [
            {
                "key": vector.key,
                "cutoff": time_of(vector.cutoff or 0, zone),
                "features": {feature.name: feature.value for feature in vector.features},
                "label": None if vector.label is None else vector.label.value,
            }
            for vector in latest.vectors()
        ],
    }


def print_features(console: Console, matrix: FeatureMatrix, zone: ZoneInfo, limit: int) -> None:
    """One line a feature: people read down, and there are many."""
    from rich.table import Table

    latest = list(_latest(matrix, min(limit, 4)).vectors())
    table = Table(box=None, pad_edge=False)
    table.add_column("feature", overflow="fold")
    table.add_column("there", justify="right")
    for vector in latest:
        table.add_column(vector.key, justify="right", overflow="ellipsis", no_wrap=True)
    present = np.mean(~np.isnan(matrix.columns), axis=0) if matrix.rows else np.zeros(0)
    for place, name in enumerate(matrix.names):
        cells = [shown(vector.features[place].value) for vector in latest]
        share = f"{present[place]:.0%}" if matrix.rows else ""
        table.add_row(name, share, *cells)
    console.print(table, soft_wrap=False)
    console.print(f"{matrix.rows:,} examples, {len(matrix.names)} features.", markup=False)


# ── models and predictions ──


def report_document(problem: Problem, trained: Trained, plot: Path | None) -> dict[str, Any]:
    report: dict[str, Any] = msgspec.to_builtins(trained.report)
    return {"problem": problem.name, **report, "plot": None if plot is None else str(plot)}


def print_report(console: Console, problem: Problem, trained: Trained) -> None:
    from rich.table import Table
    from rich.text import Text

    report = trained.report
    console.print(Text(f"{problem.name}: {problem.question}", style="bold"))
    console.print(
        f"{report.rows:,} examples, the latest {report.held_out:,} kept for the test; "
        f"{len(report.features)} features; {report.recipe.model}.",
        markup=False,
    )
    console.print(Text(report.verdict.words, style="bold"))
    table = Table(box=None, pad_edge=False)
    for heading in ("on the latest examples", "model", "between", report.guess):
        table.add_column(heading, justify="left" if "latest" in heading else "right")
    for score in report.scores:
        between = "" if score.low is None else f"{score.low:.3g} and {score.high:.3g}"
        table.add_row(score.name, _figure(score.value), between, _figure(score.baseline))
    console.print(table, soft_wrap=False)
    if report.useful:
        console.print("\nMost useful (skill lost without it):", markup=False)
        for useful in report.useful[:USEFUL]:
            console.print(f"  {useful.lost:+.3f}  {useful.name}", markup=False)
    for note in (*report.notes, *trained.notes):
        console.print(note, markup=False)
    console.print(f"Kept as {problem.name}. Next: tacit me predict {problem.name}", markup=False)


def predictions_document(
    problem: Problem, trained: Trained, said: Sequence[Prediction]
) -> dict[str, Any]:
    return {
        "problem": problem.name,
        "classes": list(trained.report.classes),
        "verdict": trained.report.verdict.words,
        "predictions": [
            {
                "key": one.key,
                "answer": one.answer,
                "chances": list(one.chances),
                "low": one.low,
                "high": one.high,
                "coverage": one.coverage,
                "trust": one.trust.words,
            }
            for one in said
        ],
    }


def print_predictions(
    console: Console, problem: Problem, trained: Trained, said: Sequence[Prediction]
) -> None:
    console.print(problem.question, markup=False)
    for one in said:
        if one.chances:
            each = zip(trained.report.classes, one.chances, strict=True)
            text = ", ".join(f"{name} {chance:.0%}" for name, chance in each)
        else:
            text = shown(one.answer)
            if one.low is not None and one.high is not None and one.coverage is not None:
                text += (
                    f" (between {one.low:.4g} and {one.high:.4g} in {one.coverage:.0%} of cases)"
                )
        console.print(f"  {one.key}: {text}", markup=False)
        console.print(f"    {one.trust.words}", markup=False)
    console.print(f"How good the model is: {trained.report.verdict.words}", markup=False)


def _label(found: Instances, problem: Problem, place: int) -> Any:
    field = found.labels.field(problem.label.name, place)
    return None if field is None else field.value


def _latest(matrix: FeatureMatrix, limit: int) -> FeatureMatrix:
    order = np.argsort(matrix.cutoffs, kind="stable")
    return matrix.take(order[-limit:] if limit else order[:0])


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
