"""Pictures of results, written as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import UsageError

if TYPE_CHECKING:
    from tacit.cli.summary import Answer
    from tacit.privacy import Promise

__all__ = ["plot_summary"]

EXACT, PRIVATE = "#b8c4d6", "#1f5fbf"


def plot_summary(answers: Sequence[Answer], promise: Promise, path: Path) -> None:
    """Each histogram, exact behind private, with the reach of 95 % of its noise."""
    plt = _pyplot()
    histograms = [a for a in answers if a.question.kind == "histogram"]
    rows = -(-len(histograms) // 2)
    figure, axes = plt.subplots(rows, 2, figsize=(11, 4.2 * rows), squeeze=False)
    for axis, histogram in zip(axes.flat, histograms, strict=False):
        _bars(axis, histogram)
        _quartiles(axis, histogram, answers)
    for axis in axes.flat[len(histograms) :]:
        axis.axis("off")
    figure.suptitle(f"A private summary beside the exact one: {promise}", fontsize=13)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise UsageError("pictures need matplotlib: pip install 'tacit[plots]'.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _bars(axis: Any, answer: Answer) -> None:
    places = range(len(answer.question.cells))
    axis.bar(places, answer.exact, width=0.9, color=EXACT, label="exact")
    axis.errorbar(
        places, answer.private, yerr=answer.reach, fmt="o", color=PRIVATE, markersize=5,
        capsize=3, label=f"private, ± {answer.reach:.0f} for 95 % of the noise",
    )  # fmt: skip
    steep = max(map(len, answer.question.cells)) > 7
    axis.set_xticks(places, answer.question.cells, rotation=45 if steep else 0,
                    ha="right" if steep else "center")  # fmt: skip
    axis.set_title(answer.question.name)
    axis.set_ylabel("records")
    axis.set_ylim(bottom=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9)


def _quartiles(axis: Any, histogram: Answer, answers: Sequence[Answer]) -> None:
    """The private quartiles of a numeric column, as lines at their place among the bins."""
    column = histogram.question.column
    if column is None or not isinstance(column.bounds, tuple):
        return
    low, high = column.bounds
    for a in answers:
        if a.question.kind == "quantile" and a.question.column == column:
            place = (a.private[0] - low) / (high - low) * len(histogram.question.cells) - 0.5
            axis.axvline(place, color=PRIVATE, linewidth=1, linestyle=":")
            axis.annotate(
                f"{a.question.cells[0]}: {a.private[0]:.1f}", (place, 1), (2, -2), color=PRIVATE,
                xycoords=("data", "axes fraction"), textcoords="offset points", fontsize=8,
                rotation=90, va="top",
            )  # fmt: skip
