"""A picture of what was learned: can it be believed, what it lives by, and how it did in time."""

from __future__ import annotations

import datetime
import textwrap
from pathlib import Path
from typing import Any

from tacit.errors import UsageError
from tacit.personal.learning.report import Report, Stretch, Useful
from tacit.personal.learning.training import Trained

__all__ = ["draw_report"]

INK, OWN, GUESS = "#334155", "#c2410c", "#9aa5b1"
SHOWN = 8  # features
LONGEST = 44  # letters of a feature's name


def draw_report(trained: Trained, path: str | Path) -> None:
    """Write a PNG. Nothing in it is meant for others: it shows the person's own answers."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("pictures need matplotlib: pip install 'tacit[plots]'.") from None
    report = trained.report
    figure = Figure(figsize=(13.5, 4.6), layout="constrained")
    first, second, third = figure.subplots(1, 3, gridspec_kw={"width_ratios": (1, 1.35, 1.15)})
    if report.task == "number":
        _draw_numbers(first, report)
    else:
        _draw_reliability(first, report)
    _draw_useful(second, report)
    _draw_over_time(third, report)
    for axis in (first, second, third):
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    figure.suptitle(_wrapped(report.verdict.words, 150), x=0.01, ha="left", fontsize=10)
    figure.savefig(path, dpi=110)


def _draw_reliability(axis: Any, report: Report) -> None:
    points = report.reliability
    said, true = [p.said for p in points], [p.true for p in points]
    reach = [[p.true - p.low for p in points], [p.high - p.true for p in points]]
    axis.plot((0, 1), (0, 1), color=GUESS, linewidth=1, linestyle="--", label="as often as said")
    axis.errorbar(said, true, reach, fmt="o-", color=OWN, ecolor=INK, capsize=2, label="this model")
    axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    two = len(report.classes) == 2
    what = f"“{_short(report.classes[1], 24)}”" if two else "the answer it named"
    axis.set_title("Do its chances mean what they say?", loc="left", fontsize=10)
    axis.set_xlabel(f"chance it gave to {what}", fontsize=9)
    axis.set_ylabel("how often that was true", fontsize=9)
    axis.legend(fontsize=8, frameon=False, loc="upper left")


def _draw_numbers(axis: Any, report: Report) -> None:
    said, true = zip(*report.said, strict=True)
    least, most = min(*said, *true), max(*said, *true)
    axis.plot((least, most), (least, most), color=GUESS, linewidth=1, linestyle="--")
    axis.scatter(said, true, s=14, color=OWN, alpha=0.6, linewidths=0)
    span = report.range
    if span is not None:
        low, high = ([end + side for end in (least, most)] for side in (span.low, span.high))
        words = f"range for {span.coverage:.0%}"
        axis.fill_between((least, most), low, high, color=GUESS, alpha=0.25, lw=0, label=words)
        axis.legend(fontsize=8, frameon=False, loc="upper left")
    axis.set_title("What it said and what was true", loc="left", fontsize=10)
    axis.set_xlabel(f"{_short(report.label, 30)}: said", fontsize=9)
    axis.set_ylabel("true", fontsize=9)


def _draw_useful(axis: Any, report: Report) -> None:
    axis.set_title("What it lives by", loc="left", fontsize=10)
    shown: list[Useful] = list(report.useful[:SHOWN])[::-1]
    if not shown:
        axis.set_axis_off()
        axis.text(0, 0.9, f"Nothing: {report.guess} did better.", fontsize=9, color=INK)
        return
    reach = [
        [0.0 if each.low is None else each.lost - each.low for each in shown],
        [0.0 if each.high is None else each.high - each.lost for each in shown],
    ]
    places = range(len(shown))
    axis.barh(places, [e.lost for e in shown], 0.6, xerr=reach, color=OWN, ecolor=INK, capsize=2)
    axis.set_yticks(places, [_short(each.name, LONGEST) for each in shown])
    axis.axvline(0, color="black", linewidth=0.6)
    axis.xaxis.set_major_formatter(_percent)
    axis.set_xlabel("error added when it is shuffled, of guessing's error", fontsize=9)


def _draw_over_time(axis: Any, report: Report) -> None:
    axis.set_title("How it did in time", loc="left", fontsize=10)
    stretches = report.over_time
    places = range(len(stretches))
    own, guess = [s.value for s in stretches], [s.baseline for s in stretches]
    axis.plot(places, guess, "o-", color=GUESS, markersize=4, label=_short(report.guess, 34))
    axis.plot(places, own, "o-", color=OWN, markersize=5, label="this model")
    axis.plot(places[-1:], own[-1:], "o", markersize=11, fillstyle="none", color=OWN)
    axis.set_xticks(places, [_when(s, report.in_time) for s in stretches], rotation=30, ha="right")
    if report.task == "number":
        axis.set_ylim(0, 1.25 * max(*own, *guess) or 1)
        axis.set_ylabel("mean absolute error", fontsize=9)
    else:
        axis.set_ylim(0, 1.05)
        axis.yaxis.set_major_formatter(_percent)
        axis.set_ylabel("right answers", fontsize=9)
    axis.set_xlabel("ringed: the last test, which no choice has seen", fontsize=8)
    axis.legend(fontsize=8, frameon=False, loc="best")


def _when(stretch: Stretch, in_time: bool) -> str:
    """The day it begins, and how many rows it has."""
    if not in_time:
        return f"{stretch.rows} at random"
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    day = epoch + datetime.timedelta(microseconds=stretch.since)
    return f"{day:%Y-%m-%d} ({stretch.rows})"


def _percent(share: float, _place: int | None) -> str:
    return f"{share:.0%}"


def _short(text: str, most: int) -> str:
    """One line, without letters that matplotlib would read as mathematics."""
    plain = " ".join(text.split()).replace("$", r"\$")
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text.replace("$", r"\$"), width))
