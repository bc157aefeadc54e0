"""Visits of web pages, the same whatever the browser.

Of an address the site alone is kept, unless the person asks for more: paths and queries hold
names, searches and keys.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tacit.errors import InputError, UsageError
from tacit.personal.events import EventType, Value
from tacit.personal.importers.database import Database, Table, databases, opened
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record

__all__ = ["ADDRESSES", "PAGE_VISIT", "Browser", "site_of"]

PAGE_VISIT = EventType(
    name="page_visit",
    fields={
        "site": "category",
        "title": "text",
        "way": "category",
        "seconds": "number",
        "address": "text",
    },
    about="A web page that was opened: on which site, how one came there, how long it stayed open; "
    "at the moment it was left, if the browser knows that.",
    words=("page", "site", "browsing", "web", "visit"),
)
NAMES = ("*History*", "*.sqlite", "*.sqlite3", "*.db")
SCHEMA = 1 << 20  # bytes within which the schema stands; it is first, unless it has changed since
ADDRESSES = {"addresses": "yes to keep whole addresses; else sites alone, since paths hold secrets"}


@dataclass(frozen=True)
class Browser:
    """How one family of browsers keeps its history.

    file    the name of its database
    tables  name → a column that the table has to have
    query   gives number, moment, way, microseconds it stayed open, address, title of each visit
    epoch   moments are microseconds since then
    way     the browser's code of how one came there, in a word
    """

    file: str
    tables: Mapping[str, str]
    query: str
    epoch: datetime.datetime
    way: Callable[[int], str | None]

    def members(self, export: Export) -> list[Member]:
        """Databases whose schema has the words of this one."""
        words = [word.encode() for words in self.tables.items() for word in words]
        likely = export.find(*NAMES) if len(export.members) > 1 else export.members
        return [
            member
            for member in databases(export)
            if member in likely and all(word in member.head(SCHEMA) for word in words)
        ]

    def visits(self, export: Export, reading: Reading) -> Iterator[Record]:
        keep = reading.options.get("addresses", "no")
        if keep not in ("yes", "no"):
            raise UsageError("addresses is yes or no.")
        for member in self.members(export) or export.find(self.file):
            with opened(export, member) as database:
                tables = self._checked(database, member)
                for number, *visit in database.rows(self.query, *tables):
                    place = f"{member.name}, visit {number}"
                    yield from self._visit(visit, keep == "yes", place, reading)

    def _checked(self, database: Database, member: Member) -> list[Table]:
        """The tables, if they are those of a browser: all their columns stored, none computed."""
        tables = database.tables()
        for name, column in self.tables.items():
            table = tables.get(name)
            if table is None or table.computes or column not in table.columns:
                raise InputError(
                    f"{member.name}: has no table {name} such as a browser's history has."
                )
        return [tables[name] for name in self.tables]

    def _visit(
        self, visit: list[object], whole: bool, place: str, reading: Reading
    ) -> Iterator[Record]:
        moment, way, lasted, address, title = visit
        # 0 where the browser was closed before the page was left
        open_for = lasted if isinstance(lasted, int) and lasted > 0 else None
        try:
            time = self.epoch + datetime.timedelta(microseconds=int(str(moment)) + (open_for or 0))
        except (ValueError, OverflowError):
            reading.damaged(place, "has no moment.")
            return
        if not isinstance(address, str) or not isinstance(title, str | None):
            reading.damaged(place, "its address or title is no text.")
            return
        site = site_of(address)
        if site is None:
            return
        values: dict[str, Value] = {
            "site": site,
            "title": title or None,
            "way": self.way(way) if isinstance(way, int) else None,
            "seconds": None if open_for is None else open_for / 1e6,
            "address": address if whole else None,
        }
        yield Record(PAGE_VISIT, time, values, place)


def site_of(address: str) -> str | None:
    """The host of a page of the web; None for the browser's own pages, files and scripts."""
    try:
        parts = urlsplit(address)
        site = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return None
    return site.removeprefix("www.") if site else None
