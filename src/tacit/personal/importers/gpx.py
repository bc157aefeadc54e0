"""GPX tracks: of watches and phones, of Strava, Komoot, Garmin, and of Apple Health's routes.

GPX 1.0 and 1.1 (Foster, GPX 1.1 schema, Topografix 2004). Heart rate and cadence come in
extensions, Garmin's `hr` and `cad`, ClueTrust's `hr` and `cadence`, and are found by name in
whatever namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tacit.personal.events import EventType
from tacit.personal.importers.apple_health import health_files
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.tracks import TRACK, TRACK_POINT, Point, Track, instant
from tacit.personal.importers.xml import Element, elements, number, root_of

__all__ = ["Gpx"]


class Gpx:
    name = "gpx"
    title = "GPX tracks"
    hint = (
        "Watches, phones and services for sport export tracks as .gpx files, one by one or as an "
        "archive. Points without a time, as planned routes have them, are left out."
    )
    types: tuple[EventType, ...] = (TRACK_POINT, TRACK)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        if health_files(export):  # whose routes are .gpx files, too
            return False
        return any(root_of(member.head()) == "gpx" for member in export.find("*.gpx")[:20])

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in export.find("*.gpx"):
            yield from _tracks(member, reading)


def _tracks(member: Member, reading: Reading) -> Iterator[Record]:
    track, title, sport = Track(""), None, None
    for element in elements(member, reading, ("trkpt", "name", "type"), ("trk", "trkseg")):
        place = f"{member.name}, line {element.line}"
        if element.tag == "trkpt":
            point = _point(element, place, reading)
            if point is not None:
                track.add(point)
                yield point.record(place)
        elif element.tag == "trkseg":
            track.gap()
        elif element.parent == "trk" and element.tag == "name":
            title = element.text.strip() or None
        elif element.parent == "trk" and element.tag == "type":
            sport = element.text.strip().lower() or None
        elif element.tag == "trk" and not element.whole:
            track, title, sport = Track(place), None, None
        elif element.tag == "trk":
            whole = track.record(title, sport, None, None)
            if whole is not None:
                yield whole


def _point(element: Element, place: str, reading: Reading) -> Point | None:
    time = element.said("time")
    if not time:
        return None
    try:
        return Point(
            instant(time),
            number(element.attributes["lat"]),
            number(element.attributes["lon"]),
            _measured(element, "ele"),
            _measured(element, "hr", "heartrate"),
            _measured(element, "cad", "cadence"),
            _measured(element, "speed"),
            _measured(element, "power", "PowerInWatts"),
        ).checked()
    except (KeyError, ValueError):
        reading.damaged(place, "the point has a time, place or measure that cannot be read.")
        return None


def _measured(element: Element, *tags: str) -> float | None:
    said = element.said(*tags)
    return number(said) if said else None
