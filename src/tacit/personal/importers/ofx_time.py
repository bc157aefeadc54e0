"""Dates and times as OFX writes them: `20240315`, `20240315120000.000[-5:EST]`.

OFX 2.2, section 3.2.8.2: the day, then perhaps the time, then perhaps hours from Greenwich.
"""

from __future__ import annotations

import datetime
import re
from zoneinfo import ZoneInfo

from tacit.personal.importers.days import end_of_day
from tacit.personal.importers.json_values import Unreadable

__all__ = ["posted"]

POSTED = re.compile(
    r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?(?:\.\d{1,6})?)?"
    r"\s*(?:\[([+-]?)(\d{1,2})(?:\.(\d{1,2}))?(?::[^\]]*)?\])?",
    re.ASCII,
)


def posted(text: str, zone: ZoneInfo) -> datetime.datetime:
    """The moment. Without an offset it is Greenwich's; a day alone is the person's own."""
    found = POSTED.fullmatch(text)
    if found is None:
        raise Unreadable("`DTPOSTED` is no time.")
    year, month, day, hour, minute, second, sign, hours, part = found.groups()
    try:
        date = datetime.date(int(year), int(month), int(day))
        if hour is None:
            return end_of_day(date, zone)
        offset = datetime.timedelta(hours=float(f"{sign or ''}{hours or 0}.{part or 0}"))
        time = datetime.time(int(hour), int(minute), int(second or 0))
        there = datetime.datetime.combine(date, time, datetime.timezone(offset))
        return there.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise Unreadable("`DTPOSTED` is no time.") from None
