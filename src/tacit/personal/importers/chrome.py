"""The history of Chrome, Chromium, Edge, Brave, Opera and Vivaldi: `History` in their profile.

Moments are microseconds since 1601 in universal time; the lowest byte of `transition` says how one
came to a page (Chromium, ui/base/page_transition_types.h).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping

from tacit.personal.importers.browser_history import ADDRESSES, PAGE_VISIT, Browser
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record

__all__ = ["Chrome"]

WAYS = {
    0: "link",
    1: "typed",
    2: "bookmark",
    3: "frame",
    4: "frame",
    5: "suggestion",
    6: "start_page",
    7: "form",
    8: "reload",
    9: "keyword",
    10: "keyword",
}
BROWSER = Browser(
    file="History",
    tables={"urls": "url", "visits": "visit_time"},
    # CROSS: visits in their order, each looking up its page, whatever indices the file has.
    query="""
        SELECT v.id, v.visit_time, v.transition, v.visit_duration, u.url, u.title
        FROM visits AS v CROSS JOIN urls AS u ON u.id = v.url
        ORDER BY v.id
    """,
    epoch=datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC),
    way=lambda code: WAYS.get(code & 0xFF),
)


class Chrome:
    name = "chrome"
    title = "Chrome, Edge or Brave history"
    hint = "chrome://version, Profile path: close the browser and copy the file History."
    types = (PAGE_VISIT,)
    options: Mapping[str, str] = ADDRESSES

    def recognises(self, export: Export) -> bool:
        return bool(BROWSER.members(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        return BROWSER.visits(export, reading)
