"""Google's My Activity, from Takeout in JSON: what was done in which of its products, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tacit.personal.events import EventType
from tacit.personal.importers import json_values as of
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import items, marked, records
from tacit.personal.importers.json_values import Item
from tacit.personal.importers.takeout import in_json

__all__ = ["GoogleActivity"]

ACTIVITY = EventType(
    name="google_activity",
    fields={
        "app": "category",
        "product": "category",
        "title": "text",
        "detail": "category",
        "lat": "number",
        "lon": "number",
    },
    about="Something done in a product of Google, such as a search, roughly where it was done.",
    words=("activity", "google", "search"),
)

JSON, HTML = ("MyActivity.json", "My Activity.json"), ("MyActivity.html", "My Activity.html")
CENTRE = re.compile(r"[?&]center=(-?\d{1,3}(?:\.\d+)?),(-?\d{1,3}(?:\.\d+)?)(?:&|$)", re.ASCII)


class GoogleActivity:
    name = "google_activity"
    title = "Google My Activity (Takeout)"
    hint = "takeout.google.com: My Activity; under «Multiple formats» choose JSON."
    types = (ACTIVITY,)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        return bool(_members(export)) or bool(export.find(*HTML))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in in_json(export, _members(export) or export.find(*JSON), HTML):
            yield from records(items(member, reading, "item"), _records, reading)


def _members(export: Export) -> list[Member]:
    """One file for each product, in its folder; the name is in the person's language."""
    likely = export.find("*activit*.json", "*aktivit*.json", *JSON)
    found = marked(export, "*.json", lambda head: b'"header"' in head and b'"time"' in head)
    return [member for member in found if member in likely]


def _records(item: Item, place: str) -> Iterator[Record]:
    where = next(iter(of.objects(item, "locationInfos")), {})
    found = CENTRE.search(of.text(where, "url") or "")
    lat, lon = (
        of.place(float(found[1]), float(found[2]), "locationInfos") if found else (None, None)
    )
    values = {
        "app": of.text(item, "header"),
        "product": of.first_of(item, "products"),
        "title": of.text(item, "title"),
        "detail": of.text(next(iter(of.objects(item, "details")), {}), "name"),
        "lat": lat,
        "lon": lon,
    }
    yield Record(ACTIVITY, of.needed(of.instant(item, "time"), "time"), values, place)
