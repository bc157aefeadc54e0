"""YouTube's history of videos and searches, from Google's Takeout in JSON.

Names of files and the words around titles are in the person's language, addresses are not: whether
an entry is a video or a search is told from its address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs, urlsplit

from tacit.personal.events import EventType
from tacit.personal.importers import json_values as of
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import items, marked, records
from tacit.personal.importers.json_values import Item
from tacit.personal.importers.takeout import in_json

__all__ = ["YouTube"]

VIDEO = EventType(
    name="video",
    fields={
        "title": "text",
        "channel": "category",
        "video": "text",
        "music": "boolean",
        "advertisement": "boolean",
    },
    about="A video that was watched on YouTube, or a song on YouTube Music.",
    words=("clip", "youtube", "watched"),
)
SEARCH = EventType(
    name="video_search",
    fields={"query": "text"},
    about="A search on YouTube.",
    words=("youtube search",),
)

MARKS = (b'"header"', b'"YouTube', b'"titleUrl"')
JSON = ("watch-history*.json", "search-history*.json")
HTML = ("watch-history*.html", "search-history*.html")
# What Takeout writes before or after a title, in the languages that we could check.
BEFORE = ("Watched ", "Has visto ", "Vous avez regardé ", "Hai guardato ")
AFTER = (" angesehen", " を視聴しました")


class YouTube:
    name = "youtube"
    title = "YouTube history (Google Takeout)"
    hint = "takeout.google.com: YouTube and YouTube Music, history; as its format choose JSON."
    types = (VIDEO, SEARCH)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        return bool(_members(export)) or bool(export.find(*HTML))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in in_json(export, _members(export) or export.find(*JSON), HTML):
            yield from records(items(member, reading, "item"), _records, reading)


def _members(export: Export) -> list[Member]:
    """Histories by name or, in other languages, by content; My Activity is another importer's."""
    other = export.find("*activit*.json", "*aktivit*.json")
    named = [m for m in export.find(*JSON) if m.head(64).lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"["]
    found = named or marked(export, "*.json", lambda head: all(mark in head for mark in MARKS))
    return [member for member in found if member not in other]


def _records(item: Item, place: str) -> Iterator[Record]:
    time = of.needed(of.instant(item, "time"), "time")
    address = of.text(item, "titleUrl")
    path, asked = _address(address)
    if path.endswith("/results"):
        query = asked.get("search_query", [""])[0]
        yield Record(SEARCH, time, {"query": of.text({"query": query}, "query")}, place)
    elif address is None or "v" in asked or "/shorts/" in path:
        yield Record(VIDEO, time, _video(item, address, path, asked), place)


def _video(
    item: Item, address: str | None, path: str, asked: Mapping[str, list[str]]
) -> dict[str, str | bool | None]:
    """Videos that were taken down have no address, and a title that speaks of that alone."""
    channel = next(iter(of.objects(item, "subtitles")), {})
    title = of.text(item, "title")
    key = asked["v"][0] if "v" in asked else path.rpartition("/shorts/")[2]
    return {
        "title": _title(title) if title and address and key not in title else None,
        "channel": of.text(channel, "name"),
        "video": of.text({"video": key}, "video"),
        "music": of.text(item, "header") == "YouTube Music",
        "advertisement": any(
            "Google Ads" in (of.text(one, "name") or "") for one in of.objects(item, "details")
        ),
    }


def _title(title: str) -> str:
    for before in BEFORE:
        title = title.removeprefix(before)
    for after in AFTER:
        title = title.removesuffix(after)
    return title


def _address(address: str | None) -> tuple[str, dict[str, list[str]]]:
    try:
        parts = urlsplit(address or "")
        return parts.path, parse_qs(parts.query, errors="replace")
    except ValueError:
        raise of.Unreadable("`titleUrl` is no address.") from None
