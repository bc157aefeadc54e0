"""Spotify's streaming history: of the last year, as sent within days, or the extended one of all.

Both give the moment at which a stream ended, in universal time. Where an export holds both, the
extended files tell all that the others tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tacit.personal.events import EventType, Kind, Value
from tacit.personal.importers import json_values as of
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import items, records
from tacit.personal.importers.json_values import Item, Unreadable

__all__ = ["Spotify"]

PLAYED: dict[str, Kind] = {
    "seconds": "number",
    "platform": "category",
    "country": "category",
    "began_by": "category",
    "ended_by": "category",
    "shuffle": "boolean",
    "skipped": "boolean",
    "offline": "boolean",
    "private": "boolean",
}
SONG = EventType(
    name="song",
    fields={"title": "text", "artist": "category", "album": "category", **PLAYED},
    about="A song that was played on Spotify, at the moment it ended.",
    words=("track", "music", "listen", "stream"),
)
PODCAST = EventType(
    name="podcast",
    fields={"title": "text", "show": "category", **PLAYED},
    about="An episode of a podcast that was played on Spotify, at the moment it ended.",
    words=("episode", "show"),
)
AUDIOBOOK = EventType(
    name="audiobook",
    fields={"title": "text", "book": "category", **PLAYED},
    about="A chapter of an audiobook that was played on Spotify, at the moment it ended.",
    words=("chapter", "book"),
)

EXTENDED = ("Streaming_History_*.json", "endsong_*.json")
BASIC = ("StreamingHistory*.json",)


class Spotify:
    name = "spotify"
    title = "Spotify streaming history"
    hint = (
        "spotify.com: Account, Privacy settings, Download your data. The extended streaming "
        "history takes weeks and tells most."
    )
    types = (SONG, PODCAST, AUDIOBOOK)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        return any(b'"ts"' in m.head() or b'"endTime"' in m.head() for m in _members(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in _members(export):
            yield from records(items(member, reading, "item"), _records, reading)


def _members(export: Export) -> list[Member]:
    return export.find(*EXTENDED) or export.find(*BASIC)


def _records(item: Item, place: str) -> Iterator[Record]:
    yield _extended(item, place) if "ts" in item else _basic(item, place)


def _basic(item: Item, place: str) -> Record:
    time = of.needed(of.instant(item, "endTime"), "endTime")
    played = {"seconds": of.needed(of.number(item, "msPlayed"), "msPlayed") / 1000}
    if "podcastName" in item:
        values = {"title": of.text(item, "episodeName"), "show": of.text(item, "podcastName")}
        return Record(PODCAST, time, {**values, **played}, place)
    values = {"title": of.text(item, "trackName"), "artist": of.text(item, "artistName")}
    return Record(SONG, time, {**values, **played}, place)


def _extended(item: Item, place: str) -> Record:
    time = of.needed(of.instant(item, "ts"), "ts")
    played: dict[str, Value] = {
        "seconds": of.needed(of.number(item, "ms_played"), "ms_played") / 1000,
        "platform": of.text(item, "platform"),
        "country": of.text(item, "conn_country"),
        "began_by": of.text(item, "reason_start"),
        "ended_by": of.text(item, "reason_end"),
        "shuffle": of.flag(item, "shuffle"),
        "skipped": of.flag(item, "skipped"),
        "offline": of.flag(item, "offline"),
        "private": of.flag(item, "incognito_mode"),
    }
    kind, names = _what(item)
    return Record(kind, time, {**names, **played}, place)


def _what(item: Item) -> tuple[EventType, dict[str, Value]]:
    """A stream without any name was a song whose names Spotify no longer has."""
    if of.text(item, "episode_name") or of.text(item, "spotify_episode_uri"):
        show = of.text(item, "episode_show_name")
        return PODCAST, {"title": of.text(item, "episode_name"), "show": show}
    if of.text(item, "audiobook_title") or of.text(item, "audiobook_uri"):
        chapter = of.text(item, "audiobook_chapter_title")
        return AUDIOBOOK, {"title": chapter, "book": of.text(item, "audiobook_title")}
    if "master_metadata_track_name" not in item:
        raise Unreadable("`master_metadata_track_name` is missing.")
    return SONG, {
        "title": of.text(item, "master_metadata_track_name"),
        "artist": of.text(item, "master_metadata_album_artist_name"),
        "album": of.text(item, "master_metadata_album_album_name"),
    }
