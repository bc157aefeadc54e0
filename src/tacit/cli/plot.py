"""Pictures of results, written as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import UsageError

if TYPE_CHECKING:
    from tacit.privacy import Promise

__all__ = ["plot_learning"]

EXACT, PRIVATE = "#8a97ab", "#1f5fbf"
MOST = 14  # features shown


def plot_learning(
    curve: Sequence[tuple[float, float]],
    lines: tuple[float, float],
    weights: tuple[Sequence[str], Any, Any],
    promise: Promise,
    path: Path,
) -> None:
    """Accuracy against ε, and the heaviest weights with and without privacy."""
    plt = _pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), width_ratios=(1, 1.25))
    _curve(left, curve, lines)
    _weights(right, weights, promise)
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


def _curve(axis: Any, curve: Sequence[tuple[float, float]], lines: tuple[float, float]) -> None:
    epsilons, accuracies = zip(*curve, strict=True)
    exact, majority = lines
    axis.axhline(exact, color=EXACT, label="no privacy")
    axis.axhline(majority, color=EXACT, linestyle=":", label="always the commoner answer")
    axis.plot(epsilons, accuracies, "o-", color=PRIVATE, label="private")
    axis.set_xscale("log")
    axis.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    axis.minorticks_off()
    axis.set_xlabel("ε: smaller is more private")
    axis.set_title("accuracy on the test part", loc="left", fontsize=11)
    axis.legend(frameon=False, loc="center right")
    _bare(axis)


def _weights(axis: Any, weights: tuple[Sequence[str], Any, Any], promise: Promise) -> None:
    names, private, exact = weights
    heaviest = np.argsort(-np.abs(exact))[:MOST][::-1]
    places = np.arange(len(heaviest))
    axis.barh(places, exact[heaviest], color=EXACT, height=0.75, label="no privacy")
    axis.plot(private[heaviest], places, "o", color=PRIVATE, label=f"private, {promise}")
    axis.set_yticks(places, [names[i] for i in heaviest], fontsize=8)
    axis.axvline(0, color="0.4", linewidth=0.8)
    axis.set_title("the heaviest weights", loc="left", fontsize=11)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    _bare(axis)


def _bare(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
