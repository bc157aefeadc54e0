"""When: the stretch of time a question asks about, on the person's own clock.

A stretch becomes the terms of a problem: windows of a day or a week, when in them the stretch
begins, how long it is, and how long before its beginning the question was asked. Past windows are
then cut off just as long before, so that the past is asked the same question.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.personal.ask.patterns import PARTS, WEEKDAYS, Found, first_of
from tacit.personal.ask.words import Token
from tacit.personal.durations import HOUR, WEEK, written

__all__ = ["Horizon", "horizon_in", "unstated"]

_DAYS = {"day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}
_MOST_DAYS = 3 * 365
_MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class Horizon:
    """From `start` until before `end`, by the clock on the wall; `said` as it was typed.

    weekly   compared with the same days of other weeks, not with all days
    stated   False if the question did not say when
    """

    start: datetime.datetime
    end: datetime.datetime
    said: str
    weekly: bool = False
    stated: bool = True

    @property
    def length(self) -> str:
        return written(_wall(self.end) - _wall(self.start))

    @property
    def every(self) -> str:
        return "1w" if self.weekly or _wall(self.end) - _wall(self.start) >= WEEK else "1d"

    @property
    def cutoff(self) -> str:
        """How long after the beginning of its day or week the stretch begins."""
        midnight = self.start.replace(hour=0, minute=0)
        back = self.start.weekday() if self.every == "1w" else 0
        into = _wall(self.start) - _wall(midnight - datetime.timedelta(days=back))
        return written(into) if into else "start"

    def lead(self, now: datetime.datetime) -> str:
        """How long before its beginning it was asked about, in whole hours, upwards."""
        ahead = max(0, _wall(self.start) - _wall(now))
        return written(-(-ahead // HOUR) * HOUR) if ahead else "0s"

    def days_ahead(self, now: datetime.datetime) -> int:
        return max(0, (self.start.date() - now.date()).days)


def _wall(time: datetime.datetime) -> int:
    """Microseconds as the clock on the wall counts them: a day has 24 hours."""
    return (time.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)) // _MICROSECOND


def _stretch(
    now: datetime.datetime, day: int, days: float = 1, hour: float = 0, **more: bool
) -> tuple[datetime.datetime, datetime.datetime, bool]:
    """From an hour of the day so many days ahead; never before the next whole hour from now."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight + datetime.timedelta(days=day, hours=hour)
    end = start + datetime.timedelta(days=days)
    if start < now:
        hours = datetime.timedelta(
            hours=now.hour + (now > now.replace(minute=0, second=0, microsecond=0))
        )
        start = min(midnight + hours, end - datetime.timedelta(hours=1))
    return start, end, more.get("weekly", False)


Stretch = tuple[datetime.datetime, datetime.datetime, bool]
Reckon = Callable[[datetime.datetime, Found], Stretch]


def _part(day: int) -> Reckon:
    def reckon(now: datetime.datetime, found: Found) -> Stretch:
        first, last = PARTS[found.word("{part}")]
        return _stretch(now, day, (last - first) / 24, first)

    return reckon


def _ahead(now: datetime.datetime, found: Found) -> Stretch:
    """So many days or weeks: whole days from tomorrow on; hours from the next one on."""
    number = found.held.get("{number}")
    many = 1.0 if number is None or number.number is None else number.number
    unit = found.word("{unit}")
    if unit == "hour":
        hours = min(max(1, round(many)), 24 * 14)
        start, _, _ = _stretch(now, 0)
        return start, start + datetime.timedelta(hours=hours), False
    days = min(max(1, round(many * _DAYS[unit])), _MOST_DAYS)
    return _stretch(now, 1, days)


def _weekday(now: datetime.datetime, found: Found) -> Stretch:
    ahead = (WEEKDAYS.index(found.word("{weekday}")) - now.weekday()) % 7
    return _stretch(now, ahead or 7)


def _week(weeks: int) -> Reckon:
    def reckon(now: datetime.datetime, found: Found) -> Stretch:
        if weeks:
            return _stretch(now, 7 * weeks - now.weekday(), 7, weekly=True)
        return _stretch(now, 1, max(1, 6 - now.weekday()), weekly=True)

    return reckon


def _weekend(weeks: int) -> Reckon:
    def reckon(now: datetime.datetime, found: Found) -> Stretch:
        return _stretch(now, 5 - now.weekday() + 7 * weeks, 2, weekly=True)

    return reckon


def _month(now: datetime.datetime, found: Found) -> Stretch:
    first = (now.replace(day=1) + datetime.timedelta(days=32)).replace(day=1)
    after = (first + datetime.timedelta(days=32)).replace(day=1)
    return _stretch(now, (first.date() - now.date()).days, (after.date() - first.date()).days)


HORIZONS: tuple[tuple[str, Reckon], ...] = (
    ("the? day after tomorrow", lambda now, _: _stretch(now, 2)),
    ("tomorrow {part}", _part(1)),
    ("tomorrow", lambda now, _: _stretch(now, 1)),
    ("tonight", lambda now, _: _stretch(now, 0, 0.5, 18)),
    ("this|in the? {part}", _part(0)),
    ("today", lambda now, _: _stretch(now, 0)),
    ("next weekend", _weekend(1)),
    ("this|on|at|over|coming the? coming? weekend", _weekend(0)),
    ("next week", _week(1)),
    ("this week", _week(0)),
    ("next month", _month),
    ("in|within|over|during|for the? next|coming|following {number}? {unit}", _ahead),
    ("the? next|coming|following {number} {unit}", _ahead),
    ("next|coming {unit}", _ahead),
    ("in|within {number} {unit}", _ahead),
    ("in|within|over a|an|the {unit}", _ahead),
    ("on|by|this|next|coming a? next|coming? {weekday}", _weekday),
    ("{weekday}", _weekday),
)


def horizon_in(
    tokens: Sequence[Token], now: datetime.datetime
) -> tuple[Found, Horizon] | tuple[None, None]:
    """The stretch of time that the words name, if any."""
    found = first_of(HORIZONS, tokens)
    if found is None:
        return None, None
    fit, reckon = found
    start, end, weekly = reckon(now, fit)
    said = " ".join(token.text for token in tokens[fit.first : fit.end])
    return fit, Horizon(start, end, said, weekly)


def unstated(now: datetime.datetime) -> Horizon:
    """Nothing was said: the seven days from tomorrow on."""
    start, end, _ = _stretch(now, 1, 7)
    return Horizon(start, end, "", stated=False)
