"""Firefox's history: `places.sqlite` in its profile, moments in microseconds since 1970."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping

from tacit.personal.importers.browser_history import ADDRESSES, PAGE_VISIT, Browser
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record

__all__ = ["Firefox"]

# TRANSITION_* of Firefox's nsINavHistoryService
WAYS = {
    1: "link",
    2: "typed",
    3: "bookmark",
    4: "embedded",
    5: "redirect",
    6: "redirect",
    7: "download",
    8: "frame",
    9: "reload",
}
BROWSER = Browser(
    file="places.sqlite",
    tables={"moz_places": "url", "moz_historyvisits": "visit_date"},
    # CROSS: visits in their order, each looking up its page, whatever indices the file has.
    query="""
        SELECT v.id, v.visit_date, v.visit_type, NULL, p.url, p.title
        FROM moz_historyvisits AS v CROSS JOIN moz_places AS p ON p.id = v.place_id
        ORDER BY v.id
    """,
    epoch=datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
    way=WAYS.get,
)


class Firefox:
    name = "firefox"
    title = "Firefox history"
    hint = (
        "about:support, Profile folder: copy places.sqlite, and places.sqlite-wal if it is there."
    )
    types = (PAGE_VISIT,)
    options: Mapping[str, str] = ADDRESSES

    def recognises(self, export: Export) -> bool:
        return bool(BROWSER.members(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        return BROWSER.visits(export, reading)
