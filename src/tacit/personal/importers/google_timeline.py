"""The segments and signals of Google's Timeline as phones export it since 2024.

Android writes places as `48.2082°, 16.3738°`; an iPhone writes `geo:48.208200,16.373800`, numbers
as texts, and the moments of a path as minutes since its start.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from tacit.personal.importers import json_values as of
from tacit.personal.importers.google_places import (
    LOCATION,
    PLACE_VISIT,
    geo,
    journey,
    moment,
    plain,
    span,
)
from tacit.personal.importers.importer import Record
from tacit.personal.importers.json_values import Item, Unreadable

__all__ = ["segment_records", "signal_records"]


def signal_records(item: Item, place: str) -> Iterator[Record]:
    """A raw signal: positions among scans of networks and guesses of activities."""
    position = of.part(item, "position")
    lat, lon = geo(position, "LatLng" if "LatLng" in position else "latLng")
    if lat is None:
        return
    values = {
        "lat": lat,
        "lon": lon,
        "accuracy_metres": of.number(position, "accuracyMeters"),
        "altitude_metres": of.number(position, "altitudeMeters"),
        "speed": of.number(position, "speedMetersPerSecond"),
        "origin": plain(of.text(position, "source")),
    }
    yield Record(LOCATION, moment(position, "timestamp"), values, place)


def segment_records(item: Item, place: str) -> Iterator[Record]:
    """A path, a visit or a journey; memories of trips, the fourth kind, repeat the others."""
    start, end = span(item, "startTime", "endTime")
    for point in of.objects(item, "timelinePath"):
        yield _on_path(point, start, place)
    if "visit" in item:
        yield from _visit(of.part(item, "visit"), start, end, place)
    if "activity" in item:
        activity = of.part(item, "activity")
        ends = geo(activity, "start"), geo(activity, "end")
        mode = of.text(of.part(activity, "topCandidate"), "type")
        metres = of.number(activity, "distanceMeters")
        yield journey((start, end), ends, metres, mode, place)


def _visit(
    visit: Item, start: datetime.datetime, end: datetime.datetime, place: str
) -> Iterator[Record]:
    # A shop within a mall is a second visit at the same time, of a higher level: one stay is one.
    if of.number(visit, "hierarchyLevel"):
        return
    top = of.part(visit, "topCandidate")
    lat, lon = geo(top, "placeLocation")
    values = {
        "lat": lat,
        "lon": lon,
        "place": of.text(top, "placeId") or of.text(top, "placeID"),
        "role": plain(of.text(top, "semanticType")),
        "seconds": (end - start).total_seconds(),
    }
    yield Record(PLACE_VISIT, end, values, place)


def _on_path(point: Item, start: datetime.datetime, place: str) -> Record:
    lat, lon = geo(point, "point")
    minutes = of.number(point, "durationMinutesOffsetFromStartTime") or 0
    try:
        time = of.instant(point, "time") or start + datetime.timedelta(minutes=minutes)
    except OverflowError:
        raise Unreadable("a point of `timelinePath` has no time.") from None
    return Record(LOCATION, time, {"lat": lat, "lon": lon, "origin": "path"}, place)
