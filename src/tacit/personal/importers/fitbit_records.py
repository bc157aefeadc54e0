"""What the items of Fitbit's files say, by the kind that a file's name gives."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from functools import partial

from tacit.personal.events import EventType
from tacit.personal.importers import json_values as of
from tacit.personal.importers.days import ended
from tacit.personal.importers.importer import Record
from tacit.personal.importers.json_values import Item, Unreadable
from tacit.personal.importers.wearables import (
    ACTIVE_TIME,
    DISTANCE,
    ENERGY,
    HEART_RATE,
    RESTING_HEART_RATE,
    SLEEP_SESSION,
    STEPS,
    WORKOUT,
)

__all__ = ["Converter", "converter"]

Converter = Callable[[Item, str], Iterator[Record]]

WRITTEN = re.compile(r"(\d\d)/(\d\d)/(\d\d)(?: (\d\d):(\d\d):(\d\d))?", re.ASCII)
UNITS = {"kilometer": 1000.0, "mile": 1609.344, "meter": 1.0}
MINUTES = {
    "steps": (STEPS, "count", 1.0),
    "calories": (ENERGY, "kcal", 1.0),
    "distance": (DISTANCE, "metres", 0.01),  # written in centimetres
}


def converter(kind: str, fine: datetime.tzinfo, zone: datetime.tzinfo) -> Converter:
    """For one file: `fine` is the zone of what is measured by the minute, `zone` of days."""
    if kind in MINUTES:
        return partial(_minute, MINUTES[kind], fine)
    if kind == "heart_rate":
        return partial(_pulse, fine)
    if kind == "exercise":
        return partial(_workout, fine)
    if kind == "sleep":
        return partial(_sleep, zone)
    if kind == "resting_heart_rate":
        return partial(_resting, zone)
    return partial(_active, kind.removesuffix("_minutes"), zone)


def _minute(
    what: tuple[EventType, str, float], zone: datetime.tzinfo, item: Item, place: str
) -> Iterator[Record]:
    kind, field, unit = what
    value = of.needed(of.number(item, "value"), "value")
    end = ended(_time(item, "dateTime", zone), 60)
    yield Record(kind, end, {field: value * unit, "seconds": 60.0}, place)


def _pulse(zone: datetime.tzinfo, item: Item, place: str) -> Iterator[Record]:
    bpm = of.needed(of.number(of.part(item, "value"), "bpm"), "bpm")
    yield Record(HEART_RATE, _time(item, "dateTime", zone), {"bpm": bpm}, place)


def _resting(zone: datetime.tzinfo, item: Item, place: str) -> Iterator[Record]:
    bpm = of.number(of.part(item, "value"), "value")
    if bpm:  # 0 on days without a measurement
        yield Record(RESTING_HEART_RATE, _day(item, zone), {"bpm": bpm}, place)


def _active(level: str, zone: datetime.tzinfo, item: Item, place: str) -> Iterator[Record]:
    minutes = of.needed(of.number(item, "value"), "value")
    yield Record(ACTIVE_TIME, _day(item, zone), {"level": level, "seconds": 60 * minutes}, place)


def _sleep(zone: datetime.tzinfo, item: Item, place: str) -> Iterator[Record]:
    phases = of.part(of.part(item, "levels"), "summary")
    start = of.needed(of.instant(item, "startTime", zone), "startTime")
    end = of.needed(of.instant(item, "endTime", zone), "endTime")
    main = of.flag(item, "mainSleep")
    values = {
        "seconds": (end - start).total_seconds(),
        "asleep_seconds": _seconds(item, "minutesAsleep"),
        "awake_seconds": _seconds(item, "minutesAwake"),
        "deep_seconds": _seconds(of.part(phases, "deep"), "minutes"),
        "light_seconds": _seconds(of.part(phases, "light"), "minutes"),
        "rem_seconds": _seconds(of.part(phases, "rem"), "minutes"),
        "score": of.number(item, "efficiency"),
        "nap": None if main is None else not main,
    }
    yield Record(SLEEP_SESSION, end, values, place)


def _workout(zone: datetime.tzinfo, item: Item, place: str) -> Iterator[Record]:
    unit = UNITS.get((of.text(item, "distanceUnit") or "").lower())
    way, active = of.number(item, "distance"), of.number(item, "activeDuration")
    seconds = of.needed(of.number(item, "duration"), "duration") / 1000
    values = {
        "sport": of.text(item, "activityName"),
        "seconds": seconds,
        "active_seconds": None if active is None else active / 1000,
        "metres": None if way is None or unit is None else way * unit,
        "energy": of.number(item, "calories"),
        "steps": of.number(item, "steps"),
        "heart_rate": of.number(item, "averageHeartRate"),
    }
    yield Record(WORKOUT, ended(_time(item, "startTime", zone), seconds), values, place)


def _seconds(item: Item, key: str) -> float | None:
    minutes = of.number(item, key)
    return None if minutes is None else 60 * minutes


def _time(item: Item, key: str, zone: datetime.tzinfo) -> datetime.datetime:
    found = WRITTEN.fullmatch(of.text(item, key) or "")
    if not found:
        raise Unreadable(f"`{key}` is no time.")
    month, day, year, hour, minute, second = (int(part or 0) for part in found.groups())
    try:
        time = datetime.datetime(2000 + year, month, day, hour, minute, second, tzinfo=zone)
        return time.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise Unreadable(f"`{key}` is no time.") from None


def _day(item: Item, zone: datetime.tzinfo) -> datetime.datetime:
    """What sums up a day is not known before it is over."""
    start = _time(item, "dateTime", datetime.UTC)
    last = datetime.datetime.combine(start.date(), datetime.time(23, 59, 59), zone)
    return last.astimezone(datetime.UTC)
