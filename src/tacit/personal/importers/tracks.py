"""Recorded tracks, as GPX and TCX write them: each point, and the track as a whole."""

from __future__ import annotations

import datetime
import math
from typing import NamedTuple

from tacit.personal.events import EventType, Value
from tacit.personal.importers.importer import Record

__all__ = ["TRACK", "TRACK_POINT", "Point", "Track", "instant", "metres_between"]

TRACK = EventType(
    name="track",
    fields={
        "title": "text",
        "sport": "category",
        "seconds": "number",
        "metres": "number",
        "climb": "number",
        "energy": "number",
        "heart_rate": "number",
        "points": "number",
        "start_lat": "number",
        "start_lon": "number",
        "end_lat": "number",
        "end_lon": "number",
    },
    about="A recorded track, a run, a ride or a walk, at the moment of its last point; energy in "
    "kcal.",
    words=("run", "ride", "walk", "hike", "training", "activity"),
)
TRACK_POINT = EventType(
    name="track_point",
    fields={
        "lat": "number",
        "lon": "number",
        "elevation": "number",
        "heart_rate": "number",
        "cadence": "number",
        "speed": "number",
        "power": "number",
    },
    about="One point of a track: where it was, and what the sensors said (m, beats/min, m/s, W).",
    words=("position", "point", "place"),
)

EARTH = 6_371_008.8  # metres: the mean radius (Moritz, Geodetic Reference System 1980)
NOISE = 2.0  # metres: lesser rises are the jitter of the sensor


class Point(NamedTuple):
    time: datetime.datetime
    lat: float | None
    lon: float | None
    elevation: float | None = None
    heart_rate: float | None = None
    cadence: float | None = None
    speed: float | None = None
    power: float | None = None

    def record(self, place: str) -> Record:
        return Record(
            TRACK_POINT, self.time, dict(zip(self._fields[1:], self[1:], strict=True)), place
        )

    def checked(self) -> Point:
        """Itself, if it lies on Earth; else a ValueError."""
        if (self.lat is None) != (self.lon is None):
            raise ValueError("half a place")
        if abs(self.lat or 0.0) > 90 or abs(self.lon or 0.0) > 180:
            raise ValueError("not a place on Earth")
        return self


class Track:
    """Sums over the points of one track, in constant memory."""

    def __init__(self, place: str) -> None:
        self._place = place
        # Of the points that have a place:
        self._first: Point | None = None
        self._last: Point | None = None
        self._previous: Point | None = None
        self._from = self._to = datetime.datetime.max.replace(tzinfo=datetime.UTC)
        self._points = self._beats = 0
        self._heart = self._metres = 0.0
        self._climb: float | None = None
        self._low: float | None = None  # the height from which the present rise is counted

    def add(self, point: Point) -> None:
        if not self._points:
            self._from = self._to = point.time
        self._from, self._to = min(self._from, point.time), max(self._to, point.time)
        self._points += 1
        if point.heart_rate is not None:
            self._beats, self._heart = self._beats + 1, self._heart + point.heart_rate
        if point.elevation is not None:
            self._rise(point.elevation)
        if point.lat is not None:
            if self._previous is not None:
                self._metres += metres_between(self._previous, point)
            self._first, self._last, self._previous = self._first or point, point, point

    def gap(self) -> None:
        """What lies between the last point and the next was not recorded."""
        self._previous = self._low = None

    def record(
        self, title: str | None, sport: str | None, metres: float | None, energy: float | None
    ) -> Record | None:
        """The whole; `metres`, if the device measured them, else along the points."""
        if not self._points:
            return None
        start, end = self._first, self._last
        if metres is None and start is not None:
            metres = self._metres
        values: dict[str, Value] = {
            "title": title,
            "sport": sport,
            "seconds": (self._to - self._from).total_seconds(),
            "metres": metres,
            "climb": self._climb,
            "energy": energy,
            "heart_rate": self._heart / self._beats if self._beats else None,
            "points": float(self._points),
            "start_lat": start and start.lat,
            "start_lon": start and start.lon,
            "end_lat": end and end.lat,
            "end_lon": end and end.lon,
        }
        return Record(TRACK, self._to, values, self._place)

    def _rise(self, elevation: float) -> None:
        low, self._climb = self._low, self._climb or 0.0
        if low is None or elevation < low:
            self._low = elevation
        elif elevation - low >= NOISE:
            self._climb, self._low = self._climb + elevation - low, elevation


def metres_between(a: Point, b: Point) -> float:
    """Along the great circle, by haversines (Sinnott, Virtues of the haversine, 1984)."""
    if a.lat is None or a.lon is None or b.lat is None or b.lon is None:
        return 0.0
    south, north = math.radians(a.lat), math.radians(b.lat)
    east = math.radians(b.lon - a.lon)
    h = (
        math.sin((north - south) / 2) ** 2
        + math.cos(south) * math.cos(north) * math.sin(east / 2) ** 2
    )
    return 2 * EARTH * math.asin(math.sqrt(min(1.0, h)))


def instant(text: str) -> datetime.datetime:
    """Both schemas say that times are universal, with or without a Z; else a ValueError."""
    time = datetime.datetime.fromisoformat(text.strip())
    if time.tzinfo is None:
        return time.replace(tzinfo=datetime.UTC)
    try:
        return time.astimezone(datetime.UTC)
    except OverflowError:
        raise ValueError("before or after all times") from None
