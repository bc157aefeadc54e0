"""Values from files that anybody may have written: each is checked, each size is bounded, and an
error says the place, what is wrong and what to write."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tacit import toml_text
from tacit.errors import InputError

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_LIST",
    "keys",
    "line",
    "lines",
    "number",
    "only_known",
    "read_text",
    "toml_of",
    "whole_number",
]

MAX_FILE_BYTES = 256 * 1024
MAX_LIST = 1000
MAX_TEXT = 200
KEY = re.compile(r"[0-9a-f]{64}")


def read_text(path: Path, remedy: str) -> str:
    """A small text file; `remedy` is said where there is none."""
    return toml_text.read_text(path, remedy, MAX_FILE_BYTES)


def toml_of(text: str, where: str) -> dict[str, Any]:
    if '"""' in text or "'''" in text:
        raise InputError(f"{where}: texts of several lines are not read here: write one line each.")
    return toml_text.toml_of(text, where, MAX_FILE_BYTES)


def only_known(table: Any, known: Iterable[str], where: str) -> Mapping[str, Any]:
    """The table, if all of its keys are known; else the nearest known one is named."""
    names = list(known)
    if not isinstance(table, dict):
        raise InputError(f"{where}: must be a table, with: {', '.join(names)}.")
    for key in table:
        if key not in names:
            near = difflib.get_close_matches(str(key)[:MAX_TEXT], names, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(names)}."
            raise InputError(f"{where}: unknown {_shown(key)}. {hint}")
    return table


def line(value: Any, where: str) -> str:
    """Shown on terminals and hashed: one printable line, short, without stray blanks."""
    fine = isinstance(value, str) and value and value == value.strip() and value.isprintable()
    if not fine or len(value) > MAX_TEXT:
        raise InputError(
            f"{where}: must be one printable line of 1 to {MAX_TEXT} characters, without blanks at "
            "its ends."
        )
    return str(value)


def lines(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_LIST:
        raise InputError(f"{where}: must be a list of at most {MAX_LIST} texts.")
    found = tuple(line(one, f"{where}, entry {i}") for i, one in enumerate(value, start=1))
    for one in found:
        if found.count(one) > 1:
            raise InputError(f"{where}: {_shown(one)} stands there twice: take one out.")
    return found


def keys(value: Any, where: str) -> tuple[str, ...]:
    """Public keys."""
    found = lines(value, where)
    for one in found:
        if not KEY.fullmatch(one):
            raise InputError(
                f"{where}: {_shown(one)} is not a public key: 64 hexadecimal digits in small "
                "letters, as `tacit keys show` prints them."
            )
    return found


def number(value: Any, where: str, *, below: float = math.inf, zero: bool = False) -> float:
    """A finite number above 0 (or from 0 on), below `below`."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        found = float(value) if plain else math.nan
    except OverflowError:
        found = math.inf
    if not (math.isfinite(found) and (found > 0 or (zero and found == 0)) and found < below):
        least = "from 0 on" if zero else "above 0"
        most = "" if below == math.inf else f" and below {below:g}"
        raise InputError(f"{where}: must be a finite number {least}{most}, not {_shown(value)}.")
    return found + 0.0


def whole_number(value: Any, where: str, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InputError(f"{where}: must be a whole number from 1 to {most}, not {_shown(value)}.")
    return value


def _shown(value: Any) -> str:
    """What stood there, for people: short, and without anything that acts on a terminal."""
    if isinstance(value, str):
        text = repr(value[:60])
    elif isinstance(value, (dict, list)):
        text = "a table" if isinstance(value, dict) else "a list"
    elif isinstance(value, int) and value.bit_length() > 200:
        text = "a very long number"
    else:
        text = str(value)
    return text if text.isprintable() else ascii(text)
