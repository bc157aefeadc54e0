"""Netflix: the viewing activity of an account's data, or the short history of one profile.

CONTENT_INTERACTION/ViewingActivity.csv   start in universal time, duration, device, profile
NetflixViewingHistory.csv                 title and day alone, the day as the account's language
                                          writes it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from zoneinfo import ZoneInfo

from tacit.personal.events import EventType, Value
from tacit.personal.importers import json_values as of
from tacit.personal.importers.csv_rows import csv_rows, tables_with
from tacit.personal.importers.days import end_of_day, ended
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import records
from tacit.personal.importers.json_values import Item, Unreadable
from tacit.personal.importers.times import Form, form_among, instant

__all__ = ["Netflix"]

VIEWING = EventType(
    name="viewing",
    fields={
        "title": "text",
        "show": "category",
        "seconds": "number",
        "profile": "category",
        "device": "category",
        "country": "category",
        "extra": "category",
    },
    about="Something watched on Netflix, when it ended; `extra` says if it was a trailer or so.",
    words=("film", "movie", "episode", "series", "show", "watch", "netflix"),
)
DETAILED = ("Profile Name", "Start Time", "Duration", "Title")
SHORT = ("Title", "Date")
LENGTH = re.compile(r"(\d{1,4}):(\d\d):(\d\d)", re.ASCII)
UTC = ZoneInfo("UTC")


class Netflix:
    name = "netflix"
    title = "Netflix viewing activity"
    hint = (
        "netflix.com/account/getmyinfo for all of it; or Account, Profile, Viewing activity, "
        "Download all, for titles and days."
    )
    types = (VIEWING,)
    options: Mapping[str, str] = {
        "profile": "only what this profile of the account watched",
        "order": "dmy or mdy, where a day as 03/04/24 could be both",
    }

    def recognises(self, export: Export) -> bool:
        return bool(tables_with(export, *DETAILED) or _short(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        profile = reading.options.get("profile")
        for member in tables_with(export, *DETAILED):
            rows = csv_rows(member, reading, DETAILED)
            yield from records(rows, lambda row, at: _detailed(row, at, profile), reading)
        for member in _short(export):
            convert = _by_day(_form(member, reading), reading.zone)
            yield from records(csv_rows(member, reading, SHORT), convert, reading)


def _short(export: Export) -> list[Member]:
    return [m for m in tables_with(export, *SHORT) if "netflix" in m.name.lower()]


def _detailed(row: Item, place: str, profile: str | None) -> Iterable[Record]:
    who = of.text(row, "Profile Name")
    if profile is not None and who != profile:
        return
    start = instant(row["Start Time"], "iso", UTC)
    length = LENGTH.fullmatch(row["Duration"])
    if start is None or length is None:
        raise Unreadable("`Start Time` is no time, or `Duration` no length of time.")
    hours, minutes, seconds = map(int, length.groups())
    lasted = float(3600 * hours + 60 * minutes + seconds)
    title = of.needed(of.text(row, "Title"), "Title")
    values: dict[str, Value] = {
        "title": title,
        "show": _show(title),
        "seconds": lasted,
        "profile": who,
        "device": of.text(row, "Device Type"),
        "country": (of.text(row, "Country") or "").partition(" (")[0] or None,
        "extra": of.text(row, "Supplemental Video Type"),
    }
    yield Record(VIEWING, ended(start, lasted), values, place)


def _show(title: str) -> str:
    """`Dark: Season 1: Secrets` is of Dark; what has no season and no episode stands for itself."""
    parts = title.split(": ")
    return parts[0] if len(parts) > 2 else title


def _form(member: Member, reading: Reading) -> Form | None:
    """The form that all days of the file fit. None: there are none, or they fit no form."""
    quiet = Reading(reading.zone, skip_damaged=True)
    days = (row["Date"] for _, row in csv_rows(member, quiet, SHORT))
    return form_among(days, reading.options.get("order"), member.name)


def _by_day(form: Form | None, zone: ZoneInfo) -> Callable[[Item, str], Iterable[Record]]:
    def convert(row: Item, place: str) -> Iterable[Record]:
        day = instant(row["Date"], form, UTC) if form else None
        if day is None:
            raise Unreadable("`Date` is no day, or not in the form that the others have.")
        title = of.needed(of.text(row, "Title"), "Title")
        values: dict[str, Value] = {"title": title, "show": _show(title)}
        yield Record(VIEWING, end_of_day(day.date(), zone), values, place)

    return convert
