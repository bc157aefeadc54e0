"""Stretches of the person's calendar: days from midnight, weeks from Monday, hours by the wall.

A day has 23 or 25 hours when the clocks change, and a window follows the clock on the wall: each
edge is the first moment at which that clock shows it. A time that the clock skips is the moment
of the change; where two edges fall together, the empty window between them is none.
"""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.personal.durations import DAY, WEEK
from tacit.personal.events import moment

__all__ = ["MOST", "edges", "midnight"]

MOST = 1_000_000  # instances of one problem
MONDAY = 3 * DAY  # 1970-01-01 was a Thursday
WALL_EPOCH = datetime.datetime(1970, 1, 1)
Moments = NDArray[np.int64]


def edges(first: int, last: int, every: int, zone: ZoneInfo) -> Moments:
    """The edges of windows, so that `first` lies in the first of them and `last` in the last."""
    shift = MONDAY if every % WEEK == 0 else 0
    begin = (_wall(first, zone) + shift) // every
    # One more on each side: near a change of the clocks the wall is behind or ahead.
    end = (_wall(last, zone) + shift) // every + 2
    if end - begin > MOST:
        raise InputError(
            f"windows of this length from the first event to the last are more than {MOST}. Take "
            "longer ones, or check that no event has an absurd date."
        )
    walls = [step * every - shift for step in range(begin - 1, end + 1)]
    made = np.unique(np.array([_instant(wall, zone) for wall in walls], np.int64))
    low = int(np.searchsorted(made, first, "right")) - 1
    high = int(np.searchsorted(made, last, "right"))
    return made[max(low, 0) : high + 1]


def midnight(date: datetime.date, zone: ZoneInfo) -> int:
    """The moment at which this day begins."""
    return moment(datetime.datetime(date.year, date.month, date.day, tzinfo=zone))


def _wall(at: int, zone: ZoneInfo) -> int:
    """What the clock on the wall shows, as microseconds of a calendar without zones."""
    try:
        offset = datetime.datetime.fromtimestamp(at // 1_000_000, zone).utcoffset()
    except (OverflowError, ValueError):  # the edge of the calendar, where nobody changes clocks
        return at
    return at + (offset or datetime.timedelta()) // datetime.timedelta(microseconds=1)


def _instant(wall: int, zone: ZoneInfo) -> int:
    try:
        shown = WALL_EPOCH + datetime.timedelta(microseconds=wall)
        return moment(shown.replace(tzinfo=zone))  # fold 0: the first of two, see PEP 495
    except OverflowError:
        return wall
