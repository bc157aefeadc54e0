"""Draws consortium.png, the letters of both protocols. Redraw: python docs/images/consortium.py"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

__all__ = ["draw"]

PARTY, CURATOR = 0.30, 0.70  # where the two lifelines stand
INK, UP, DOWN, PAID = "#222222", "#1f5fa8", "#8a5a00", "#b02020"


class Step(NamedTuple):
    """What a party does, sends, gets back, and what the curator makes of it."""

    name: str
    does: str
    sends: str
    gets: str
    sees: str


JOINT = (
    Step(
        "1  keys",
        "trains $w_j$ alone; draws an X25519 key,\na mask seed $b_j$, one part of the noise",
        "signed public key",
        "all signed keys",
        "public keys",
    ),
    Step(
        "2  vectors",
        "checks every signature;\n"
        r"$y_j = w_j + \mathrm{noise}_j + G(b_j) \pm \sum_i G(s_{ij})$",
        r"$y_j$, signed “mine is here”",
        "everybody's “mine is here”",
        "uniformly random vectors:\neach hides under a mask of its own",
    ),
    Step(
        "3  masks",
        "checks that ALL have signed;\nledger: the promise is spent",
        r"$b_j$, signed statement on the noise",
        "model and certificate",
        r"$\sum y_j - \sum G(b_j) = \sum (w_j + \mathrm{noise}_j)$"
        "\nand nothing about a smaller sum",
    ),
)

PUBLISHED = (
    Step(
        "1 – 2  keys",
        "the first party deals all parties\na Paillier key and a permutation $π_1$",
        "signed keys; boxes for the others",
        "boxes; its Paillier and DGK keys",
        "boxes that it cannot open",
    ),
    Step(
        "3 – 6  who is smallest?",
        "splits $n_j = a_j + b_j$ modulo $2^{32}$;\ncompares blinded shares pair by pair",
        r"$E(a)$ and $b$, in places permuted by $π_1$",
        r"shares, blinded, permuted by $π_2$; then $E(v)$",
        "$b$, uniformly random; an order\nof places that $π_1$ makes uniform",
    ),
    Step(
        "7  the smallest's noise",
        "raises its element of $E(v)$, 1 for the\nsmallest and else 0, to its own noise",
        r"$E(v_j)^{\mathrm{noise}_j}$ in a box for the first party",
        "the boxes, to the first party",
        "boxes that it cannot open",
    ),
    Step(
        "8 – 9  sum",
        "shares $w_j$ among all; the first joins the\nnoise, masks it with $s$; ledger: spent",
        "its share of the sum, signed statement",
        "model and certificate",
        "$\\mathrm{noise} + s$, and in the end\n$\\sum w_j + K·\\mathrm{noise}$",
    ),
)


def draw(path: Path) -> None:
    figure, (upper, lower) = pyplot.subplots(
        2, 1, figsize=(12, 11.5), height_ratios=[len(JOINT), len(PUBLISHED)]
    )
    _panel(upper, "joint: tacit's protocol", JOINT)
    _panel(
        lower,
        "as published (Pathak, Rane, Raj 2010): for comparison, the promise does not hold",
        PUBLISHED,
    )
    figure.tight_layout(h_pad=2.0)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)


def _panel(axes: Axes, title: str, steps: tuple[Step, ...]) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(len(steps) + 0.02, -0.42)
    axes.axis("off")
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK)
    for place, name in ((PARTY, "each party"), (CURATOR, "curator")):
        axes.plot([place, place], [-0.08, len(steps)], color="#999999", linewidth=1.2, zorder=1)
        box = {"boxstyle": "round,pad=0.35", "facecolor": "#f2f2f2", "edgecolor": "#777777"}
        axes.text(place, -0.2, name, ha="center", va="center", fontsize=11, bbox=box)
    axes.text(0.0, -0.2, "does", va="center", fontsize=10, style="italic", color="#666666")
    axes.text(
        1.0, -0.2, "can see", ha="right", va="center", fontsize=10, style="italic", color="#666666"
    )
    for row, step in enumerate(steps):
        last = row == len(steps) - 1
        if last:
            axes.axhspan(row + 0.02, row + 0.98, color=PAID, alpha=0.06, zorder=0)
        _row(axes, row, step, PAID if last else UP)


def _row(axes: Axes, row: int, step: Step, colour: str) -> None:
    axes.plot([0, 1], [row + 0.02] * 2, color="#dddddd", linewidth=0.8, zorder=0)
    axes.text(0.0, row + 0.16, step.name, fontsize=10.5, fontweight="bold", color=INK, va="center")
    axes.text(0.0, row + 0.52, step.does, fontsize=10, color=INK, va="center", linespacing=1.5)
    axes.text(
        1.0, row + 0.52, step.sees, fontsize=10, color=INK, va="center", ha="right", linespacing=1.5
    )
    _arrow(axes, PARTY, CURATOR, row + 0.42, step.sends, colour)
    _arrow(axes, CURATOR, PARTY, row + 0.82, step.gets, DOWN)


def _arrow(axes: Axes, start: float, end: float, height: float, words: str, colour: str) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=(end, height), xytext=(start, height), arrowprops=style, zorder=2)
    axes.text(
        (start + end) / 2, height - 0.05, words, ha="center", va="bottom", fontsize=10, color=colour
    )


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
