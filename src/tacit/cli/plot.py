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

EXACT, PRIVATE = "#c3cede", "#1f5fbf"
LINEAR_BELOW = 20  # counts; above, the axis is logarithmic, so that small cells can be seen


def plot_summary(answers: Sequence[Answer], promise: Promise, path: Path) -> None:
    """Each histogram, exact behind private, with the reach of 95 % of its noise."""
    plt = _pyplot()
    histograms = [a for a in answers if a.question.kind == "histogram"]
    rows = -(-len(histograms) // 2)
    figure, axes = plt.subplots(rows, 2, figsize=(11, 4.1 * rows + 0.7), squeeze=False)
    for axis, histogram in zip(axes.flat, histograms, strict=False):
        _bars(axis, histogram)
        axis.set_title(_title(histogram, answers), fontsize=11, loc="left")
    for axis in axes.flat[len(histograms) :]:
        axis.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.suptitle(f"A private summary beside the exact one: {promise}", fontsize=13)
    figure.legend(handles, labels, loc="upper right", bbox_to_anchor=(1, 0.965), ncols=2,
                  frameon=False)  # fmt: skip
    figure.tight_layout(rect=(0, 0, 1, 0.965))
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
    cells = answer.question.cells
    places = range(len(cells))
    axis.bar(places, answer.exact, width=0.92, color=EXACT, label="exact")
    axis.errorbar(
        places, answer.private, yerr=answer.reach, fmt="o", color=PRIVATE, markersize=4,
        capsize=3, label="private, with the reach of 95 % of the noise",
    )  # fmt: skip
    steep = sum(map(len, cells)) > 40
    axis.set_xticks(places, cells, rotation=45 if steep else 0, ha="right" if steep else "center")
    axis.set_yscale("symlog", linthresh=LINEAR_BELOW)
    axis.set_ylim(min(0, *answer.private) - LINEAR_BELOW / 2, 2 * max(answer.exact))
    axis.axhline(0, color="0.4", linewidth=0.8)
    axis.set_ylabel("records (log scale)")
    axis.spines[["top", "right"]].set_visible(False)


def _title(histogram: Answer, answers: Sequence[Answer]) -> str:
    """The column, and its private quartiles if it has any."""
    column = histogram.question.column
    quartiles = [
        f"{a.private[0]:.1f}"
        for a in answers
        if a.question.kind == "quantile" and a.question.column == column
    ]
    name = histogram.question.name
    return f"{name}   (private quartiles: {', '.join(quartiles)})" if quartiles else name
