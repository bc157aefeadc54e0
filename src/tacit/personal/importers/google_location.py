"""Google's location history in its three forms.

Takeout, raw: `Records.json`, {"locations": [...]}. Takeout, summed up by month: `2023_MAY.json`,
{"timelineObjects": [...]}. The export of the phone since 2024, `Timeline.json`: an object with
`semanticSegments` and `rawSignals` on Android, a list of the same segments on an iPhone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tacit.personal.importers import json_values as of
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.google_places import (
    JOURNEY,
    LOCATION,
    PLACE_VISIT,
    e7,
    journey,
    moment,
    plain,
    span,
)
from tacit.personal.importers.google_timeline import segment_records, signal_records
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import items, marked, records
from tacit.personal.importers.json_values import Item

__all__ = ["GoogleLocation"]

LISTS = (
    "locations.item",
    "timelineObjects.item",
    "semanticSegments.item",
    "rawSignals.item",
    "item",
)
MARKS = (b'"locations"', b'"timelineObjects"', b'"semanticSegments"', b'"geo:')
NAMES = ("Records.json", "Location History.json", "Timeline.json", "location-history.json")


class GoogleLocation:
    name = "google_location"
    title = "Google location history (Timeline)"
    hint = (
        "On the phone: Settings, Location, Location services, Timeline, Export. Older ones: "
        "takeout.google.com, Location History, JSON."
    )
    types = (LOCATION, PLACE_VISIT, JOURNEY)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        return bool(_members(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in _members(export) or export.find(*NAMES):
            yield from records(items(member, reading, *LISTS), _records, reading)


def _members(export: Export) -> list[Member]:
    """By their first bytes: Takeout translates the names of files."""
    return marked(export, "*.json", lambda head: any(mark in head[:4096] for mark in MARKS))


def _records(item: Item, place: str) -> Iterator[Record]:
    if "placeVisit" in item:
        yield _visit(of.part(item, "placeVisit"), place)
    elif "activitySegment" in item:
        yield from _journey(of.part(item, "activitySegment"), place)
    elif "startTime" in item:
        yield from segment_records(item, place)
    elif "position" in item:
        yield from signal_records(item, place)
    elif "latitudeE7" in item:  # raw records without a place tell of networks alone
        yield _point(item, place)


def _point(item: Item, place: str) -> Record:
    lat, lon = e7(item, "latitudeE7", "longitudeE7")
    guesses = of.objects(next(iter(of.objects(item, "activity")), {}), "activity")
    likeliest = max(guesses, key=lambda one: of.number(one, "confidence") or 0, default={})
    values = {
        "lat": lat,
        "lon": lon,
        "accuracy_metres": of.number(item, "accuracy"),
        "altitude_metres": of.number(item, "altitude"),
        "speed": of.number(item, "velocity"),
        "activity": plain(of.text(likeliest, "type")),
        "origin": plain(of.text(item, "source")),
    }
    return Record(LOCATION, moment(item, "timestamp"), values, place)


def _visit(visit: Item, place: str) -> Record:
    where = of.part(visit, "location")
    lat, lon = e7(where, "latitudeE7", "longitudeE7")
    start, end = span(of.part(visit, "duration"), "startTimestamp", "endTimestamp")
    values = {
        "lat": lat,
        "lon": lon,
        "place": of.text(where, "placeId"),
        "title": of.text(where, "name"),
        "role": plain(of.text(where, "semanticType")),
        "seconds": (end - start).total_seconds(),
    }
    return Record(PLACE_VISIT, end, values, place)


def _journey(segment: Item, place: str) -> Iterator[Record]:
    taken = span(of.part(segment, "duration"), "startTimestamp", "endTimestamp")
    ends = (
        e7(of.part(segment, "startLocation"), "latitudeE7", "longitudeE7"),
        e7(of.part(segment, "endLocation"), "latitudeE7", "longitudeE7"),
    )
    metres, mode = of.number(segment, "distance"), of.text(segment, "activityType")
    yield journey(taken, ends, metres, mode, place)
    for point in of.objects(of.part(segment, "simplifiedRawPath"), "points"):
        lat, lon = e7(point, "latE7", "lngE7")
        values = {
            "lat": lat,
            "lon": lon,
            "accuracy_metres": of.number(point, "accuracyMeters"),
            "origin": "path",
        }
        yield Record(LOCATION, moment(point, "timestamp"), values, place)
