"""Dates as numbers: days since 1 January 1970, with the time of the day as a fraction.

A timestamp with a time zone is the moment in UTC; one without is taken as it stands.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from tacit.errors import SchemaError

__all__ = ["date_text", "day_of_text", "days_of"]

EPOCH = datetime(1970, 1, 1)
SECONDS = 86_400.0
WORDS = ("TODO", "private")


def days_of(value: Any) -> Any:
    """A schema's date, or a list of them, as days; numbers, None and TODO as they are."""
    if isinstance(value, (list, tuple)):
        return tuple(days_of(part) for part in value)
    if value is None or value in WORDS or isinstance(value, (int, float)):
        return value
    if isinstance(value, datetime):
        return _days(value)
    if isinstance(value, date):
        return _days(datetime(value.year, value.month, value.day))
    found = day_of_text(value) if isinstance(value, str) else None
    if found is None:
        raise SchemaError(f"{value!r} is no date: write it as 2024-05-31.")
    return found


def day_of_text(text: str) -> float | None:
    """Days of an ISO 8601 date or timestamp; None if it is none."""
    try:
        return _days(datetime.fromisoformat(text))
    except ValueError:
        return None


def _days(moment: datetime) -> float:
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - EPOCH).total_seconds() / SECONDS


def date_text(days: float) -> str | float:
    """A date, or a timestamp if it has a time of the day; far from our time, the days."""
    try:
        moment = EPOCH + timedelta(days=days)
    except OverflowError:
        return float(days)
    # Fractions of a day that no timestamp names are kept as days: what is read back is the same.
    text = moment.date().isoformat() if float(days).is_integer() else moment.isoformat()
    return text if day_of_text(text) == days else float(days)
