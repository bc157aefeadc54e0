"""How a round grows with holders and with numbers: a federation's third figure, in processor time.

The real state machines in one process, without network or disk. A server's work must grow like the
number of holders and like the length of their vectors, and the aggregator's, once the servers have
answered, must not depend on the holders at all: that is what the servers are for. Writes
bench/federation-scaling.csv and .png.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from federation_parts.one_round import Times, one_round
from tacit.cli.bench import Row

WIDTH, FEW = 124, 10
HOLDERS = (10, 30, 100, 300, 1000, 3000, 10_000)
LENGTHS = (10, 100, 1000, 10_000, 100_000, 1_000_000)
COSTLY = 2 * 10**6  # numbers in a round from which on one turn says enough
TURNS = 3
FOLDER = Path("bench")
ROLES = {
    "whole": "whole round, all parties",
    "holders": "holders, together",
    "server": "one server",
    "counting": "aggregator: answering holders",
    "combining": "aggregator: from sums to model",
}

Say = Callable[[str], None]
Curve = dict[int, Times]


def rows(say: Say) -> Iterator[Row]:
    one_round(FEW, WIDTH)  # the first is slow
    by_holders = _curve(say, [(n, n, WIDTH) for n in HOLDERS])
    by_length = _curve(say, [(d, FEW, d) for d in LENGTHS])
    slopes = exponent(by_holders, "server"), exponent(by_length, "server")
    say(f"a server's time grows like holders^{slopes[0]:.2f} and length^{slopes[1]:.2f}")
    write_csv(FOLDER, by_holders, by_length)
    draw(FOLDER, by_holders, by_length, slopes)
    say(f"written: {FOLDER}/federation-scaling.csv and .png")
    few, many = by_holders[min(HOLDERS)], by_holders[max(HOLDERS)]
    what = f"aggregator, {max(HOLDERS):,} holders: s"
    name = f"{min(HOLDERS)} holders"
    yield Row(what, many.combining, few.combining, name, 2.0, at_most=True)
    for growth, slope in zip(("holders", "length"), slopes, strict=True):
        yield Row(f"server's time ∝ {growth}^x: x", slope, 1.0, "linear", 1.2, at_most=True)


def _curve(say: Say, sizes: Sequence[tuple[int, int, int]]) -> Curve:
    found = {}
    for place, holders, length in sizes:
        say(f"{holders:,} holders × {length:,} …")
        turns = 1 if holders * length > COSTLY else TURNS
        found[place] = _median([one_round(holders, length) for _ in range(turns)])
    return found


def _median(turns: Sequence[Times]) -> Times:
    roles = ("holders", "server", "counting", "combining")
    return Times(**{role: median(getattr(turn, role) for turn in turns) for role in roles})


def exponent(curve: Curve, role: str) -> float:
    """The slope in logarithms over the upper half, where fixed costs have faded."""
    sizes = sorted(curve)[len(curve) // 2 :]
    times = [getattr(curve[size], role) for size in sizes]
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def write_csv(folder: Path, by_holders: Curve, by_length: Curve) -> None:
    folder.mkdir(exist_ok=True)
    with (folder / "federation-scaling.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["holders", "length", *(f"{role}_seconds" for role in ROLES)])
        for holders, times in by_holders.items():
            table.writerow([holders, WIDTH, *_figures(times)])
        for length, times in by_length.items():
            table.writerow([FEW, length, *_figures(times)])


def _figures(times: Times) -> list[str]:
    return [f"{getattr(times, role):.6g}" for role in ROLES]


def draw(folder: Path, by_holders: Curve, by_length: Curve, slopes: tuple[float, float]) -> None:
    from matplotlib.figure import Figure

    folder.mkdir(exist_ok=True)
    figure = Figure(figsize=(11, 5), layout="constrained")
    figure.suptitle(
        "A federation's round grows linearly; the aggregator's sum does not feel the holders"
    )
    left, right = figure.subplots(1, 2, sharey=True)
    _panel(left, by_holders, f"holders (vectors of {WIDTH} numbers)", slopes[0])
    _panel(right, by_length, f"numbers in a vector ({FEW} holders)", slopes[1])
    left.set_ylabel("processor seconds of one round")
    left.legend(loc="upper left", frameon=False, fontsize=9)
    figure.savefig(folder / "federation-scaling.png", dpi=150)


def _panel(axes: Any, curve: Curve, label: str, slope: float) -> None:
    sizes = sorted(curve)
    for style, (role, words) in zip("s^oxD", ROLES.items(), strict=True):
        times = [getattr(curve[size], role) for size in sizes]
        axes.loglog(sizes, times, marker=style, markersize=5, label=words)
    top = curve[sizes[-1]].server
    straight = [top * size / sizes[-1] for size in sizes]
    kept = [(size, t) for size, t in zip(sizes, straight, strict=True) if t > top / 1e3]
    axes.loglog(*zip(*kept, strict=True), color="grey", linestyle=":", label="linear")
    axes.set_xlabel(label)
    axes.set_title(f"one server: slope {slope:.2f} over the upper half", fontsize=10)
    axes.grid(True, which="major", alpha=0.3)
    axes.set_xlim(sizes[0] / math.sqrt(2), sizes[-1] * math.sqrt(2))
