"""When an event of a calendar takes place: zones, rules, and what is left out or changed.

What repeats without an end is followed to the newest stamp in the file, which is when it was
exported or last changed: a second import of the same file then gives the same. What has an end of
its own is followed two years further.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tacit.errors import InputError
from tacit.personal.importers.export import Member
from tacit.personal.importers.ical_components import Component, components
from tacit.personal.importers.recurrence import Rule, days

__all__ = ["Facts", "When", "facts_of", "listed"]

MOST_CHANGED = 100_000
AHEAD = datetime.timedelta(days=2 * 366)
_STAMP = re.compile(r"^(?:DTSTAMP|CREATED|LAST-MODIFIED)[^:]*:(\d{8})T\d{6}Z?\s*$", re.M | re.I)
_CHANGED = re.compile(r"^RECURRENCE-ID[^:]*:(\d{8}(?:T\d{6}Z?)?)\s*$", re.M | re.I)
_UID = re.compile(r"^UID[^:]*:(.*?)\s*$", re.M | re.I)
_TZID = re.compile(r"^TZID[^:\r\n]*:(.*?)\s*$", re.M | re.I)
_ZONE_PARTS = {"FREQ", "BYMONTH", "BYDAY", "BYMONTHDAY", "UNTIL", "COUNT", "WKST"}


@dataclass
class Facts:
    """What must be known of a whole file before its events can be read.

    newest   the day of its newest stamp
    until    what the user said instead
    zones    those that it defines
    changed  UIDs with the times, as the file writes them, that another event stands for
    """

    newest: datetime.date | None = None
    until: datetime.date | None = None
    zones: dict[str, datetime.tzinfo] = field(default_factory=dict)
    changed: set[tuple[str, str]] = field(default_factory=set)

    def last(self, first: datetime.date, ends: bool) -> datetime.date:
        """The day to which a rule is followed."""
        if self.until is not None:
            return self.until
        newest = max(self.newest or first, first)
        return newest + min(AHEAD, datetime.date.max - newest) if ends else newest


def facts_of(member: Member) -> Facts:
    facts, newest = Facts(), ""
    for component in components(member, lambda place, reason: None):
        if component.name == "VTIMEZONE":
            _add_zone(component, facts)
            continue
        newest = max([newest, *_STAMP.findall(component.text)])
        changed, uid = _CHANGED.search(component.text), _UID.search(component.text)
        if changed and uid:
            facts.changed.add((uid[1], changed[1]))
            if len(facts.changed) > MOST_CHANGED:
                raise InputError(f"{member.name}: changes more than {MOST_CHANGED:,} repetitions.")
    try:
        facts.newest = datetime.date.fromisoformat(newest) if newest else None
    except ValueError:
        facts.newest = None
    return facts


def _add_zone(component: Component, facts: Facts) -> None:
    """A zone that the file defines. One that cannot be read is damage to the events that use it.

    It is parsed without its name: the library would keep it for all files to come, unexamined.
    """
    from icalendar import Timezone

    name = _TZID.search(component.text)
    if name is None:
        return
    try:
        zone = cast(Timezone, Timezone.from_ical(_TZID.sub("", component.text)))
        rules = [rule for part in zone.subcomponents for rule in listed(part, "RRULE")]
        if all(map(_comes_true, rules)):
            zone.add("TZID", name[1])
            facts.zones[name[1]] = zone.to_tz(lookup_tzid=False)
    except Exception:  # whatever a strange file makes of the library
        return


def _comes_true(rule: Mapping[str, Any]) -> bool:
    """Whether a zone's rule is of the usual kind; the library's search for others has no end."""
    usual = set(rule) <= _ZONE_PARTS and [str(f) for f in rule["FREQ"]] == ["YEARLY"]
    return usual and any(1 <= int(day) <= 28 for day in rule.get("BYMONTHDAY", [1]))


class When:
    """The times of one event: its start in its own zone, and the rule it repeats by."""

    def __init__(self, event: Any, facts: Facts, floating: datetime.tzinfo) -> None:
        """`floating` is the zone of times that are written without one."""
        self._event, self._facts, self._floating = event, facts, floating
        start = listed(event, "DTSTART")[0]
        self.all_day = not isinstance(start.dt, datetime.datetime)
        self._local, self._zone = self._wall_clock(start)
        self.seconds = self._length()
        self.repeats = any(name in event for name in ("RRULE", "RDATE", "RECURRENCE-ID"))

    def times(self) -> Iterator[datetime.datetime]:
        left_out = set(self._moments("EXDATE"))
        for local in self._locals():
            time = _instant(local, self._zone)
            if time in left_out or local.date() in left_out or self._is_changed(local, time):
                continue
            yield time

    def _is_changed(self, local: datetime.datetime, time: datetime.datetime) -> bool:
        """Whether another event in the file stands for this repetition."""
        if "RECURRENCE-ID" in self._event or not self._facts.changed:
            return False
        uid = str(self._event.get("UID", ""))
        forms = (f"{local:%Y%m%d}", f"{local:%Y%m%dT%H%M%S}", f"{time:%Y%m%dT%H%M%SZ}")
        return any((uid, form) in self._facts.changed for form in forms)

    def _locals(self) -> Iterator[datetime.datetime]:
        """Starts on the clock of its own zone, before any are left out."""
        rules = listed(self._event, "RRULE")
        if not rules:
            yield self._local
        for parts in rules[:1]:
            yield from self._repetitions(parts)
        for extra in self._moments("RDATE"):
            if isinstance(extra, datetime.datetime):
                yield extra.astimezone(self._zone).replace(tzinfo=None)
            else:
                yield datetime.datetime.combine(extra, self._local.time())

    def _repetitions(self, parts: Mapping[str, Any]) -> Iterator[datetime.datetime]:
        first, (until,) = self._local.date(), parts.get("UNTIL") or [None]
        last = self._facts.last(first, ends=until is not None or "COUNT" in parts)
        for day in days(Rule.of(parts), first, last):
            local = datetime.datetime.combine(day, self._local.time())
            if until is not None and self._after(local, until):
                return
            yield local

    def _after(self, local: datetime.datetime, until: datetime.date) -> bool:
        if not isinstance(until, datetime.datetime):
            return local.date() > until
        end = _instant(until.replace(tzinfo=None), until.tzinfo or self._zone)
        return _instant(local, self._zone) > end

    def _moments(self, name: str) -> Iterator[datetime.date]:
        """The days and instants that a property lists."""
        for group in listed(self._event, name):
            for one in group.dts:
                if isinstance(one.dt, datetime.datetime):
                    yield _instant(*self._wall_clock(one))
                elif isinstance(one.dt, datetime.date):
                    yield one.dt

    def _wall_clock(self, said: Any) -> tuple[datetime.datetime, datetime.tzinfo]:
        time = said.dt
        if not isinstance(time, datetime.datetime):
            return datetime.datetime.combine(time, datetime.time()), self._floating
        zone = time.tzinfo
        if zone is None:  # no zone that is known everywhere
            name = said.params.get("TZID")
            zone = self._facts.zones[str(name)] if name else self._floating
        return time.replace(tzinfo=None), zone

    def _length(self) -> float:
        if "DTEND" in self._event:
            end, zone = self._wall_clock(listed(self._event, "DTEND")[0])
            if self.all_day:
                return (end - self._local).total_seconds()
            return (_instant(end, zone) - _instant(self._local, self._zone)).total_seconds()
        if "DURATION" in self._event:
            length: datetime.timedelta = listed(self._event, "DURATION")[0].dt
            return length.total_seconds()
        return 86400.0 if self.all_day else 0.0


def listed(component: Any, name: str) -> list[Any]:
    """A property's values, however many there are."""
    said = component.get(name)
    if said is None:
        return []
    return said if isinstance(said, list) else [said]


def _instant(local: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    return local.replace(tzinfo=zone).astimezone(datetime.UTC)
