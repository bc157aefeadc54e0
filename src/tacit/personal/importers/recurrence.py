"""On which days something repeats: the rules of iCalendar (RFC 5545, section 3.3.10), bounded.

dateutil has these rules too, but searches without a bound: a rule that never comes true, such as
30 February, holds it for seconds up to the year 9999, or for ever if it is said by the second. An
invitation in the mail may hold such a rule. Here the days that are looked at bound the work. Rules
by the hour or less, and by the number of the week or of the day in the year, are refused.
"""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

__all__ = ["MOST", "Rule", "days"]

MOST = 10_000  # occurrences
SPAN = datetime.timedelta(days=100 * 366)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
PARTS = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS"}


class Rule(NamedTuple):
    frequency: str
    interval: int
    times: int | None
    months: frozenset[int]
    month_days: frozenset[int]
    weekdays: frozenset[tuple[int, int]]  # which (0: each), and day of the week
    positions: frozenset[int]
    week_start: int

    @classmethod
    def of(cls, parts: Mapping[str, Sequence[object]]) -> Rule:
        """From a parsed RRULE; a ValueError if it is none that is followed here."""
        if not set(parts) <= PARTS:
            raise ValueError("a part that is not followed")
        rule = cls(
            frequency=str(_one(parts, "FREQ", "")).upper(),
            interval=int(str(_one(parts, "INTERVAL", 1))),
            times=int(str(_one(parts, "COUNT", 0))) if "COUNT" in parts else None,
            months=_numbers(parts, "BYMONTH"),
            month_days=_numbers(parts, "BYMONTHDAY"),
            weekdays=frozenset(_weekday(str(day)) for day in parts.get("BYDAY", ())),
            positions=_numbers(parts, "BYSETPOS"),
            week_start=DAYS.index(str(_one(parts, "WKST", "MO")).upper()),
        )
        if rule.frequency not in _PERIODS or rule.interval < 1:
            raise ValueError("not daily, weekly, monthly or yearly")
        if rule.frequency in ("DAILY", "WEEKLY") and any(nth for nth, _ in rule.weekdays):
            raise ValueError("the nth weekday of no month")
        return rule

    def starting(self, first: datetime.date) -> Rule:
        """The rule with what it leaves unsaid taken from its first day."""
        if self.weekdays or self.month_days or self.frequency == "DAILY":
            return self
        if self.frequency == "WEEKLY":
            return self._replace(weekdays=frozenset({(0, first.weekday())}))
        by_day = self._replace(month_days=frozenset({first.day}))
        if self.frequency == "YEARLY" and not self.months:
            return by_day._replace(months=frozenset({first.month}))
        return by_day


def days(rule: Rule, first: datetime.date, last: datetime.date) -> Iterator[datetime.date]:
    """The days from the first to the last on which it occurs, at most `MOST` of them."""
    rule = rule.starting(first)
    most = MOST if rule.times is None else min(MOST, rule.times)
    last = min(last, first + min(SPAN, datetime.date.max - first))
    found = 0
    for period in _PERIODS[rule.frequency](rule, first, last):
        fitting = [day for day in period if _fits(day, rule)]
        for day in _at_positions(fitting, rule.positions):
            if day > last or found == most:
                return
            if day >= first:
                found += 1
                yield day


def _daily(
    rule: Rule, first: datetime.date, last: datetime.date
) -> Iterator[Sequence[datetime.date]]:
    for ordinal in range(first.toordinal(), last.toordinal() + 1, rule.interval):
        yield (datetime.date.fromordinal(ordinal),)


def _weekly(
    rule: Rule, first: datetime.date, last: datetime.date
) -> Iterator[Sequence[datetime.date]]:
    monday = first.toordinal() - (first.weekday() - rule.week_start) % 7
    for start in range(max(1, monday), last.toordinal() + 1, 7 * rule.interval):
        end = min(start + 7, datetime.date.max.toordinal())
        yield [datetime.date.fromordinal(ordinal) for ordinal in range(start, end)]


def _monthly(
    rule: Rule, first: datetime.date, last: datetime.date
) -> Iterator[Sequence[datetime.date]]:
    for month in range(12 * first.year + first.month - 1, 12 * last.year + 12, rule.interval):
        yield _month(month // 12, month % 12 + 1)


def _yearly(
    rule: Rule, first: datetime.date, last: datetime.date
) -> Iterator[Sequence[datetime.date]]:
    for year in range(first.year, last.year + 1, rule.interval):
        months = sorted(rule.months & set(range(1, 13))) or range(1, 13)
        yield [day for month in months for day in _month(year, month)]


_PERIODS = {"DAILY": _daily, "WEEKLY": _weekly, "MONTHLY": _monthly, "YEARLY": _yearly}


def _month(year: int, month: int) -> list[datetime.date]:
    length = calendar.monthrange(year, month)[1]
    return [datetime.date(year, month, day) for day in range(1, length + 1)]


def _fits(day: datetime.date, rule: Rule) -> bool:
    if rule.months and day.month not in rule.months:
        return False
    length = calendar.monthrange(day.year, day.month)[1]
    if rule.month_days and not rule.month_days & {day.day, day.day - length - 1}:
        return False
    if not rule.weekdays:
        return True
    number, of = day.day, length
    if rule.frequency == "YEARLY" and not rule.months:
        number, of = day.timetuple().tm_yday, 365 + calendar.isleap(day.year)
    nths = {0, (number - 1) // 7 + 1, -((of - number) // 7 + 1)}
    return any((nth, day.weekday()) in rule.weekdays for nth in nths)


def _at_positions(
    fitting: list[datetime.date], positions: frozenset[int]
) -> Sequence[datetime.date]:
    if not positions:
        return fitting
    size = len(fitting)
    return [day for i, day in enumerate(fitting) if positions & {i + 1, i - size}]


def _one(parts: Mapping[str, Sequence[object]], name: str, otherwise: object) -> object:
    said = parts.get(name) or (otherwise,)
    return said[0]


def _numbers(parts: Mapping[str, Sequence[object]], name: str) -> frozenset[int]:
    return frozenset(int(str(part)) for part in parts.get(name, ()))


def _weekday(text: str) -> tuple[int, int]:
    """`-1SU` → (-1, 6)."""
    return int(text[:-2] or 0), DAYS.index(text[-2:].upper())
