"""When things are over: days without a time of day at their last second, lengths after a start.

What happened at some time of a day is not known before the day is over; were it put at midnight, a
prediction for the afternoon would see the evening.
"""

from __future__ import annotations

import datetime

from tacit.personal.importers.json_values import Unreadable

__all__ = ["end_of_day", "ended"]

LAST = datetime.time(23, 59, 59)


def end_of_day(
    day: datetime.date, zone: datetime.tzinfo, after: float | None = 0
) -> datetime.datetime:
    """The last second of the day that lies `after` so many days."""
    try:
        when = day + datetime.timedelta(days=int(after or 0))
        return datetime.datetime.combine(when, LAST, zone).astimezone(datetime.UTC)
    except (OverflowError, ValueError):
        raise Unreadable("its day lies beyond the calendar.") from None


def ended(start: datetime.datetime, seconds: float) -> datetime.datetime:
    """When something ended, where a file says its start and how long it lasted."""
    if seconds < 0:
        raise Unreadable("it ends before it begins.")
    try:
        return start + datetime.timedelta(seconds=seconds)
    except OverflowError:
        raise Unreadable("it ends beyond the calendar.") from None
