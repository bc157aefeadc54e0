"""The words of a feature's text, each with its place. Nothing here evaluates anything."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tacit.errors import InputError

__all__ = ["LONGEST", "Token", "fault", "nearest", "tokens"]

LONGEST = 2000  # characters

Sort = Literal["number", "length", "text", "name", "sign", "end"]

PATTERN = re.compile(
    r"""\s*(?:
      (?P<length>\d{1,9}[smhdw](?![A-Za-z0-9_]))
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![A-Za-z0-9_.]))
    | (?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign><=|>=|!=|[-+*/=<>(),.])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    sort: Sort
    text: str
    place: int


def tokens(text: str) -> list[Token]:
    if len(text) > LONGEST:
        raise InputError(
            f"a feature of {len(text)} characters: {LONGEST} are the most. Split it in two."
        )
    found, place = [], 0
    while text[place:].strip():
        match = PATTERN.match(text, place)
        if match is None or match.lastgroup is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            raise fault(text, start, _unreadable(text[start:]))
        sort: Sort = match.lastgroup  # type: ignore[assignment]
        found.append(Token(sort, match[sort], match.start(sort)))
        place = match.end()
    return [*found, Token("end", "", len(text))]


def _unreadable(rest: str) -> str:
    if rest[0] == '"':
        return "this text does not end. Close it with a quotation mark."
    if rest[0].isdigit():
        return "no number and no length of time (30m, 7d)."
    if rest[0] == "'":
        return 'texts stand between double quotation marks: "Bern".'
    return f"{json.dumps(rest[0])} means nothing here."


def fault(text: str, place: int, problem: str) -> InputError:
    """What is wrong, and where. A feature is a definition: it may be shown."""
    shown = text if len(text) <= 120 else f"{text[:117]}..."
    return InputError(f"`{shown}`, character {place + 1}: {problem}")


def nearest(name: str, known: Iterable[str]) -> str:
    """` Did you mean …?`, or what there is."""
    there = sorted(known)
    close = difflib.get_close_matches(name[:64], there, 1, 0.6)
    if close:
        return f" Did you mean {close[0]}?"
    listed = ", ".join(there[:30]) + (", …" if len(there) > 30 else "")
    return f" There are: {listed}." if there else " There are none."
