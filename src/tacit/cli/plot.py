"""Pictures of results, written as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import UsageError

if TYPE_CHECKING:
    from tacit.privacy import Promise

__all__ = ["plot_federation"]

EXACT, PRIVATE, OTHER = "#8a97ab", "#1f5fbf", "#d9a441"


def plot_federation(
    rows: Sequence[tuple[str, float, str]],
    curve: Sequence[tuple[int, float, float]],
    promise: Promise,
    path: Path,
) -> None:
    """The training curve beside who else could have learned how well."""
    plt = _pyplot()
    figure = plt.figure(figsize=(11.5, 4.6))
    grid = figure.add_gridspec(2, 2, width_ratios=(1.25, 1), height_ratios=(3, 1))
    upper = figure.add_subplot(grid[0, 0])
    _curve(upper, rows, curve)
    _spent(figure.add_subplot(grid[1, 0], sharex=upper), curve, promise)
    _bars(figure.add_subplot(grid[:, 1]), rows)
    figure.suptitle(f"Learning together under {promise}", x=0.01, ha="left", fontsize=12)
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


def _curve(
    axis: Any, rows: Sequence[tuple[str, float, str]], curve: Sequence[tuple[int, float, float]]
) -> None:
    rounds, scores, _ = zip(*curve, strict=True)
    exact, majority = rows[0][1], rows[-1][1]
    axis.axhline(exact, color=EXACT, label="no privacy")
    axis.axhline(majority, color=EXACT, linestyle=":", label="always the commoner answer")
    axis.plot(rounds, scores, color=PRIVATE, label="federation, after each round")
    axis.set_ylim(majority - 0.01, max(exact, *scores) + 0.01)
    axis.tick_params(labelbottom=False)
    axis.set_title("accuracy on the test part", loc="left", fontsize=11)
    axis.legend(frameon=False, loc="center right", fontsize=9)
    _bare(axis)


def _spent(axis: Any, curve: Sequence[tuple[int, float, float]], promise: Promise) -> None:
    rounds, _, spent = zip(*curve, strict=True)
    axis.fill_between(rounds, spent, color=OTHER, alpha=0.35, linewidth=0)
    axis.plot(rounds, spent, color=OTHER)
    axis.axhline(promise.epsilon, color="0.4", linewidth=0.8, linestyle=":")
    axis.set_ylim(0, 1.1 * promise.epsilon)
    axis.set_xlabel("round")
    axis.set_ylabel("ε spent")
    _bare(axis)


def _bars(axis: Any, rows: Sequence[tuple[str, float, str]]) -> None:
    names, scores = [row[0] for row in rows][::-1], [row[1] for row in rows][::-1]
    colours = [PRIVATE if name.startswith("tacit") else EXACT for name in names]
    axis.barh(range(len(rows)), scores, color=colours, height=0.65)
    axis.set_yticks(range(len(rows)), [name.replace(", ", ",\n") for name in names], fontsize=9)
    low = min(scores) - 0.03
    axis.set_xlim(low, max(scores) + 0.02)
    for place, score in enumerate(scores):
        axis.text(score + 0.001, place, f"{score:.1%}", va="center", fontsize=9)
    axis.set_xticks([])
    axis.spines[["bottom"]].set_visible(False)
    axis.set_title("and how else it could be learned", loc="left", fontsize=11)
    _bare(axis)


def _bare(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
