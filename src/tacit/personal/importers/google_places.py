"""What Google's location histories tell, and how their forms write places and moments."""

from __future__ import annotations

import datetime
import re

from tacit.personal.events import EventType
from tacit.personal.importers import json_values as of
from tacit.personal.importers.importer import Record
from tacit.personal.importers.json_values import Item, Unreadable

__all__ = [
    "JOURNEY",
    "LOCATION",
    "PLACE_VISIT",
    "Place",
    "e7",
    "geo",
    "journey",
    "moment",
    "plain",
    "span",
]

Place = tuple[float | None, float | None]

LOCATION = EventType(
    name="location",
    fields={
        "lat": "number",
        "lon": "number",
        "accuracy_metres": "number",
        "altitude_metres": "number",
        "speed": "number",
        "activity": "category",
        "origin": "category",
    },
    about="Where the phone was: a point, with the speed in metres a second if it was measured.",
    words=("position", "place", "whereabouts"),
)
PLACE_VISIT = EventType(
    name="place_visit",
    fields={
        "lat": "number",
        "lon": "number",
        "place": "category",
        "title": "text",
        "role": "category",
        "seconds": "number",
    },
    about="A stay at a place, at the moment it ended.",
    words=("visit", "stay", "place"),
)
JOURNEY = EventType(
    name="journey",
    fields={
        "from_lat": "number",
        "from_lon": "number",
        "to_lat": "number",
        "to_lon": "number",
        "metres": "number",
        "seconds": "number",
        "mode": "category",
    },
    about="A way from one place to the next, at the moment of arrival.",
    words=("trip", "commute", "way", "travel"),
)

GEO = re.compile(r"(?:geo:)?\s*(-?\d{1,3}(?:\.\d+)?)°?\s*,\s*(-?\d{1,3}(?:\.\d+)?)°?\s*", re.ASCII)


def journey(
    span: tuple[datetime.datetime, datetime.datetime],
    ends: tuple[Place, Place],
    metres: float | None,
    mode: str | None,
    place: str,
) -> Record:
    start, end = span
    (from_lat, from_lon), (to_lat, to_lon) = ends
    values = {
        "from_lat": from_lat,
        "from_lon": from_lon,
        "to_lat": to_lat,
        "to_lon": to_lon,
        "metres": metres,
        "seconds": (end - start).total_seconds(),
        "mode": plain(mode),
    }
    return Record(JOURNEY, end, values, place)


def moment(item: Item, key: str) -> datetime.datetime:
    """Until 2022 moments were texts of milliseconds, under a key with Ms."""
    return of.needed(of.instant(item, key) or of.epoch(item, f"{key}Ms"), key)


def span(item: Item, first: str, last: str) -> tuple[datetime.datetime, datetime.datetime]:
    return moment(item, first), moment(item, last)


def e7(item: Item, lat: str, lon: str) -> Place:
    """Degrees times ten million. Some old files have them 2³² too large: an overflow of theirs."""
    degrees = [
        None if value is None else (value - (2**32 if value > 18e8 else 0)) / 1e7
        for value in (of.number(item, lat), of.number(item, lon))
    ]
    return of.place(degrees[0], degrees[1], lat)


def geo(item: Item, key: str) -> Place:
    """`48.2082°, 16.3738°` (Android, itself or under `latLng`) or `geo:48.208200,16.373800`."""
    inner = item.get(key)
    written = of.text(inner, "latLng") if isinstance(inner, dict) else of.text(item, key)
    if written is None:
        return None, None
    found = GEO.fullmatch(written)
    if not found:
        raise Unreadable(f"`{key}` is no place.")
    return of.place(float(found[1]), float(found[2]), key)


def plain(word: str | None) -> str | None:
    """TYPE_HOME, Home and HOME are one role; IN_PASSENGER_VEHICLE and its small form one mode."""
    return word.lower().replace(" ", "_").removeprefix("type_") if word else None
