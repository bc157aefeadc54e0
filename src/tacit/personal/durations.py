"""Lengths of time as people write them: 90s, 30m, 2h, 7d, 4w; in whole microseconds."""

from __future__ import annotations

import re

from tacit.errors import InputError

__all__ = ["DAY", "HOUR", "MINUTE", "SECOND", "WEEK", "duration", "written"]

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
DAY = 24 * HOUR
WEEK = 7 * DAY
UNITS = {"w": WEEK, "d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND}
LONGEST = 400 * 366 * DAY
WRITTEN = re.compile(r"(\d{1,9})([smhdw])")


def duration(text: str, where: str = "length of time") -> int:
    """Microseconds."""
    found = WRITTEN.fullmatch(text)
    if found is None:
        raise InputError(
            f"{where}: {text[:40]!r} is no length of time. Write a whole number and s, m, h, d or "
            "w: 30m, 7d."
        )
    length = int(found[1]) * UNITS[found[2]]
    if length > LONGEST:
        raise InputError(f"{where}: {text} is longer than four hundred years.")
    return length


def written(length: int) -> str:
    """The shortest way to write it: `duration(written(x)) == x` for whole seconds."""
    for letter, unit in UNITS.items():
        if length % unit == 0 and length >= unit:
            return f"{length // unit}{letter}"
    return f"{length // SECOND}s"
