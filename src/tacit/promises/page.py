"""docs/promises.md: every cell, put together where many have one answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from functools import lru_cache
from itertools import product
from typing import Any

from tacit.promises.asking import Refused, asked
from tacit.promises.cells import AXES, CHANNELS, Cell, cells
from tacit.promises.rules import RULES, rules_of

__all__ = ["answers", "merged", "page", "read"]

HEAD = """\
# What can be promised

Every combination of channel, program, unit, adjacency, kind of promise, sampling, windows,
selection and holders per person: {cells:,} of them. Each was put to the code. It was either
accepted ({accepted:,}), and the rules in the last column bound its cost, or refused
({refused:,}), with these words.

Written by `python -m tacit.promises`; a test compares. Proofs:
[rules.md](../src/tacit/promises/rules.md). *Kind*: pure is δ = 0; none is ε = ∞, for comparison.
*Holders* k: one person may be with several. *·* stands for every value.

## The rules

Each is proved, recomputed by other code than what it checks, compared with the privacy loss of
small cases enumerated outcome by outcome (`tests/promises/test_brute_force.py`), and attacked by
games that catch half the noise.

"""
Box = tuple[frozenset[object], ...]


@lru_cache(maxsize=1)
def answers() -> Mapping[Cell, tuple[str, ...] | str]:
    """For each cell its rules, or the words of its refusal."""
    found: dict[Cell, tuple[str, ...] | str] = {}
    for cell in cells():
        answer = asked(cell)
        if isinstance(answer, Refused):
            found[cell] = answer.reason.replace(repr(cell.program), "'…'")
        else:
            found[cell] = rules_of(cell, answer)
    return found


def read(text: str) -> dict[Cell, tuple[str, ...] | str]:
    """The same from the page as it is written."""
    found: dict[Cell, tuple[str, ...] | str] = {}
    channel, refused = "", False
    for line in text.splitlines():
        if line.startswith("## "):
            channel = next((c for c in CHANNELS if line[3:].lower() == c), "")
            refused = False
        refused = refused or line == "Refused:"
        columns = [c.strip() for c in line.strip("|").split(" | ", len(AXES) - 1)]
        if not channel or len(columns) < len(AXES) or columns[0] == list(AXES)[1]:
            continue
        box = [_values(*pair) for pair in zip(list(AXES)[1:], columns, strict=False)]
        answer = columns[-1].replace("\\|", "|") if refused else tuple(columns[-1].split(", "))
        for values in product([channel], *box):
            found[Cell(*values)] = answer
    return found


def page() -> str:
    found = answers()
    accepted = sum(isinstance(answer, tuple) for answer in found.values())
    head = HEAD.format(cells=len(found), accepted=accepted, refused=len(found) - accepted)
    return head + _rules() + "".join(_channel(name, found) for name in CHANNELS)


def _rules() -> str:
    rows = ["| rule | claim | recomputed by | attacked by |", "|---|---|---|---|"]
    for name, rule in RULES.items():
        link = f"[{name}](../src/tacit/promises/rules.md#{name})"
        games = ", ".join(f"`{attack}`" for attack in rule.attacks) or "nothing is promised"
        rows.append(f"| {link} | {rule.claim} | `{rule.verifier}` | {games} |")
    return "\n".join(rows) + "\n"


def _channel(name: str, found: Mapping[Cell, tuple[str, ...] | str]) -> str:
    here = {cell: answer for cell, answer in found.items() if cell.channel == name}
    groups: dict[tuple[str, ...] | str, list[Cell]] = {}
    for cell, answer in here.items():
        groups.setdefault(answer, []).append(cell)
    lines = ["", f"## {name[0].upper()}{name[1:]}", "", *_head("rules")]
    for answer, some in groups.items():
        if isinstance(answer, tuple):
            lines += _rows(some, ", ".join(answer))
    lines += ["", "Refused:", "", *_head("because")]
    for answer, some in groups.items():
        if isinstance(answer, str):
            lines += _rows(some, answer.replace("|", "\\|"))
    return "\n".join(lines) + "\n"


def _head(last: str) -> list[str]:
    names = [*list(AXES)[1:], last]
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def _rows(some: Iterable[Cell], answer: str) -> list[str]:
    return [
        f"| {' | '.join(_words(*pair) for pair in zip(list(AXES)[1:], box[1:], strict=True))} "
        f"| {answer} |"
        for box in merged(some)
    ]


def merged(some: Iterable[Cell]) -> list[Box]:
    """Products of sets of values that together are exactly these cells, without overlap."""
    boxes: list[Box] = [tuple(frozenset([value]) for value in astuple(cell)) for cell in some]
    for axis in reversed(range(len(AXES))):
        joined: dict[Box, frozenset[object]] = {}
        for box in boxes:
            others = box[:axis] + box[axis + 1 :]
            joined[others] = joined.get(others, frozenset()) | box[axis]
        boxes = [(*o[:axis], values, *o[axis:]) for o, values in joined.items()]
    return boxes


def _words(axis: str, values: frozenset[object]) -> str:
    if values == frozenset(AXES[axis]):
        return "·"
    return ", ".join(_word(axis, value) for value in AXES[axis] if value in values)


def _word(axis: str, value: object) -> str:
    words: dict[object, str] = {True: "yes", False: "no"}
    if axis == "holders":
        words = {1: "1", 2: "k"}
    return words.get(value, str(value))


def _values(axis: str, words: str) -> list[Any]:
    known = {_word(axis, value): value for value in AXES[axis]}
    return list(AXES[axis]) if words == "·" else [known[word] for word in words.split(", ")]
