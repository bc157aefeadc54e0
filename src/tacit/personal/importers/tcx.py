"""TCX activities: of Garmin Connect, Strava, Polar, Wahoo and others.

Garmin's Training Center Database, version 2, with its activity extension (`TPX`: Speed, RunCadence,
Watts) in whatever namespace prefix. Courses are plans and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tacit.personal.events import EventType
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.tracks import TRACK, TRACK_POINT, Point, Track, instant
from tacit.personal.importers.xml import Element, elements, number, root_of

__all__ = ["Tcx"]

RECORDS = ("Trackpoint", "DistanceMeters", "Calories", "Notes")
AROUND = ("Activity", "Course", "Track")


class Tcx:
    name = "tcx"
    title = "TCX activities"
    hint = (
        "Garmin Connect, Strava, Polar and others export an activity as a .tcx file: open it on "
        "their site and choose Export to TCX."
    )
    types: tuple[EventType, ...] = (TRACK_POINT, TRACK)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        found = export.find("*.tcx")[:20]
        return any(root_of(member.head()) == "TrainingCenterDatabase" for member in found)

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in export.find("*.tcx"):
            yield from _activities(member, reading)


class _Laps:
    """What the device summed up itself, lap by lap."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}

    def add(self, element: Element) -> None:
        said = number(element.text.strip())
        self._sums[element.tag] = self._sums.get(element.tag, 0.0) + said

    @property
    def metres(self) -> float | None:
        return self._sums.get("DistanceMeters")

    @property
    def energy(self) -> float | None:
        return self._sums.get("Calories")


def _activities(member: Member, reading: Reading) -> Iterator[Record]:
    track, laps, title, planned = Track(""), _Laps(), None, False
    for element in elements(member, reading, RECORDS, AROUND):
        place = f"{member.name}, line {element.line}"
        if element.tag == "Course":
            planned = not element.whole
        elif planned:
            continue
        elif element.tag == "Trackpoint":
            point = _point(element, place, reading)
            if point is not None:
                track.add(point)
                yield point.record(place)
        elif element.tag == "Track":
            track.gap()
        elif element.tag == "Notes":
            title = title if element.parent == "Lap" else element.text.strip() or None
        elif element.tag in ("DistanceMeters", "Calories"):
            _sum_up(laps, element, place, reading)
        elif not element.whole:
            track, laps, title = Track(place), _Laps(), None
        else:
            sport = element.attributes.get("Sport", "").lower() or None
            whole = track.record(title, sport, laps.metres, laps.energy)
            if whole is not None:
                yield whole


def _sum_up(laps: _Laps, element: Element, place: str, reading: Reading) -> None:
    if element.parent != "Lap":
        return
    try:
        laps.add(element)
    except ValueError:
        reading.damaged(place, "a sum of the lap is no number.")


def _point(element: Element, place: str, reading: Reading) -> Point | None:
    try:
        return Point(
            instant(element.said("Time") or ""),
            _measured(element, "LatitudeDegrees"),
            _measured(element, "LongitudeDegrees"),
            _measured(element, "AltitudeMeters"),
            _measured(element, "Value"),  # in HeartRateBpm: nothing else in a point has one
            _measured(element, "Cadence", "RunCadence"),
            _measured(element, "Speed"),
            _measured(element, "Watts"),
        ).checked()
    except ValueError:
        reading.damaged(place, "the point has a time, place or measure that cannot be read.")
        return None


def _measured(element: Element, *tags: str) -> float | None:
    said = element.said(*tags)
    return number(said) if said else None
