"""iCalendar files: of Google and Apple Calendar, Outlook, Nextcloud (RFC 5545).

What repeats becomes one event for each time. Only the properties that become fields are read.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from tacit.errors import InputError, UsageError
from tacit.personal.events import EventType, Value
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.ical_components import Component, components
from tacit.personal.importers.ical_times import Facts, When, facts_of, listed
from tacit.personal.importers.importer import Reading, Record

__all__ = ["ICalendar"]

APPOINTMENT = EventType(
    name="appointment",
    fields={
        "title": "text",
        "location": "text",
        "calendar": "category",
        "category": "category",
        "status": "category",
        "attendees": "number",
        "seconds": "number",
        "all_day": "boolean",
        "repeats": "boolean",
        "uid": "text",
    },
    about="An appointment in the calendar, at each time that it takes place.",
    words=("meeting", "calendar entry", "event", "date"),
)
# Others may be broken: Google writes CREATED in the year 0.
NEEDED = {None, "DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID"}


class ICalendar:
    name = "ical"
    title = "Calendars (iCalendar)"
    hint = (
        "Google Calendar: Settings, Import & export, Export. Apple Calendar: File, Export. Outlook "
        "and others: save or export the calendar as .ics."
    )
    types: tuple[EventType, ...] = (APPOINTMENT,)
    options: Mapping[str, str] = {
        "until": "the day to which repeated appointments are followed, such as 2025-12-31",
    }

    def recognises(self, export: Export) -> bool:
        heads = (member.head(64) for member in export.find("*.ics", "*.ical")[:20])
        start = b"BEGIN:VCALENDAR"
        return any(h.removeprefix(b"\xef\xbb\xbf").upper().startswith(start) for h in heads)

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        _need_the_library()
        until = _until(reading)
        for member in export.find("*.ics", "*.ical"):
            seen = export.seen
            facts = facts_of(member)
            facts.until, export.seen = until, seen  # the first of two readings is no progress
            for component in components(member, reading.damaged):
                if component.name == "VEVENT":
                    yield from _appointments(component, member, facts, reading)


def _need_the_library() -> None:
    try:
        import icalendar  # noqa: F401
    except ImportError:
        raise UsageError("calendars need icalendar: pip install 'tacit[me]'.") from None


def _until(reading: Reading) -> datetime.date | None:
    said = reading.options.get("until")
    try:
        return datetime.date.fromisoformat(said) if said else None
    except ValueError:
        raise InputError("until: a day is expected, such as 2025-12-31.") from None


def _appointments(
    component: Component, member: Member, facts: Facts, reading: Reading
) -> Iterator[Record]:
    from icalendar import Event

    place = f"{member.name}, line {component.line}"
    try:
        event = Event.from_ical(component.text)
        if NEEDED.intersection(name for name, _ in event.errors):
            raise ValueError("a property that cannot be read")
        when = When(event, facts, reading.zone)
        values, times = _values(event, component, member), list(when.times())
    except Exception:  # whatever a strange file makes of the library
        reading.damaged(place, "the event has a date, zone, rule or text that cannot be read.")
        return
    values.update(seconds=when.seconds, all_day=when.all_day, repeats=when.repeats)
    for time in times:
        yield Record(APPOINTMENT, time, values, place)


def _values(event: Any, component: Component, member: Member) -> dict[str, Value]:
    categories = [str(one) for group in listed(event, "CATEGORIES") for one in group.cats]
    return {
        "title": _text(event, "SUMMARY"),
        "location": _text(event, "LOCATION"),
        "calendar": PurePosixPath(member.name).stem,
        "category": ", ".join(categories) or None,
        "status": (_text(event, "STATUS") or "").lower() or None,
        "attendees": float(component.attendees),
        "uid": _text(event, "UID"),
    }


def _text(event: Any, name: str) -> str | None:
    said = listed(event, name)
    return str(said[0]).strip() or None if said else None
