"""What a model says as a picture: columns of numbers as bars, curves as lines, with their noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from textwrap import wrap
from typing import Any

from tacit.errors import UsageError
from tacit.programs.shown import Cell, Number, Table

__all__ = ["draw"]

PANELS, ROWS, ACROSS = 18, 30, 3
LONGEST = 32  # of a name beside a bar
PRIVATE = "#1f5fbf"
Panel = Callable[[Any], None]


def draw(tables: Sequence[Table], path: Path) -> None:
    """One panel for each curve and each column of numbers, as a PNG that appears whole."""
    from tacit.whole_file import whole_file

    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("pictures need matplotlib: pip install 'tacit[plots]'.") from None
    panels = [panel for table in tables for panel in _panels(table)]
    if not panels:
        raise UsageError("the model says nothing that could be drawn: leave --plot out.")
    shown = panels[:PANELS]
    across = min(ACROSS, len(shown))
    down = -(-len(shown) // across)
    figure = Figure(figsize=(4.6 * across, 1 + 3.6 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for axis, panel in zip(axes, shown, strict=False):
        panel(axis)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(shown) :]:
        axis.set_visible(False)
    figure.supxlabel(_legend(tables, len(panels)), fontsize=9, color="0.35")
    with whole_file(path) as file:
        figure.savefig(file, dpi=100, format="png")


def _legend(tables: Sequence[Table], panels: int) -> str:
    said = ["Thin lines and bands: the noise, once to each side."]
    cells = (cell for table in tables for row in table.rows for cell in row)
    if any(isinstance(cell, Number) and cell.share for cell in cells):
        said = ["The noise falls with the number of records: --records draws it."]
    if panels > PANELS:
        said.append(f"The first {PANELS} of {panels} pictures.")
    return "\n".join(said)


def _panels(table: Table) -> Iterator[Panel]:
    if table.curve:
        yield partial(_curves, table)
        return
    if len(table.rows) == 1 and len(table.columns) > 2:
        table = _upright(table)
    for place, name in enumerate(table.columns):
        numbers = [row[place] for row in table.rows]
        if numbers and all(isinstance(cell, Number) for cell in numbers):
            labels = [_words(row[:place]) for row in table.rows]
            shown = [cell for cell in numbers[:ROWS] if isinstance(cell, Number)]
            title = f"{table.title}: {name}" if name else table.title
            if len(numbers) > ROWS:
                title += f" (the first {ROWS})"
            yield partial(_bars, title, labels[:ROWS], shown)


def _upright(table: Table) -> Table:
    """One row of many columns as one column of many rows; how many records there are is on another
    scale than what is said of them."""
    pairs = zip(table.columns, table.rows[0], strict=True)
    rows = tuple((name, cell) for name, cell in pairs if name != "records")
    return Table(table.title, ("", ""), rows)


def _words(cells: Sequence[Cell]) -> str:
    """What a row is about: all that stands before its numbers, as far as there is room."""
    texts = takewhile(lambda cell: isinstance(cell, str), cells)
    words = ", ".join(map(str, texts))
    if len(words) > LONGEST:  # both ends tell things apart: what rules conclude is the last
        words = f"{words[: LONGEST // 2]}…{words[-LONGEST // 2 + 1 :]}"
    return _text(words)


def _text(words: str) -> str:
    """A dollar sign would begin a formula; what cannot be printed has no glyph."""
    return "".join(c if c.isprintable() else "?" for c in words).replace("$", r"\$")


def _titled(axis: Any, title: str) -> None:
    axis.set_title(_text("\n".join(wrap(title, 44)[:2])), loc="left", fontsize=10)


def _curves(table: Table, axis: Any) -> None:
    at = [row[0] for row in table.rows]
    for place, name in enumerate(table.columns[1:], start=1):
        points = [cell for row in table.rows if isinstance(cell := row[place], Number)]
        values = [point.value for point in points]
        (line,) = axis.plot(at, values, label=_text(name), linewidth=1.6)
        low, high = zip(*((p.value - (p.noise or 0), p.value + (p.noise or 0)) for p in points),
                        strict=True)  # fmt: skip
        axis.fill_between(at, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    axis.axhline(0.0, color="0.6", linewidth=0.6)
    if len(table.columns) > 2:
        axis.legend(frameon=False, fontsize=8)
    _titled(axis, table.title)


def _bars(title: str, labels: list[str], numbers: list[Number], axis: Any) -> None:
    places = range(len(numbers))
    axis.barh(places, [number.value for number in numbers], color=PRIVATE, alpha=0.55)
    known = [
        (place, number) for place, number in zip(places, numbers, strict=True)
        if number.noise is not None and not number.share
    ]  # fmt: skip
    if known:
        where, which = zip(*known, strict=True)
        errors = [number.noise for number in which]
        axis.errorbar(
            [n.value for n in which], where, xerr=errors, fmt="none", ecolor="0.1", capsize=2.5
        )
    axis.axvline(0.0, color="0.6", linewidth=0.6)
    axis.set_yticks(places, labels, fontsize=8 if len(labels) <= 20 else 6)
    axis.invert_yaxis()
    _titled(axis, title)
