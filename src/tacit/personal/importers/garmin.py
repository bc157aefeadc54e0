"""Garmin's export of an account: days, nights and activities of Garmin Connect.

`UDSFile_*.json` sums up days, `*_sleepData.json` nights (moments in universal time, as texts), and
`*_summarizedActivities.json` activities, in milliseconds and centimetres.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from tacit.personal.events import EventType
from tacit.personal.importers import json_values as of
from tacit.personal.importers.days import ended
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import items, records
from tacit.personal.importers.json_values import Item
from tacit.personal.importers.wearables import SLEEP_SESSION, WORKOUT

__all__ = ["Garmin"]

DAY = EventType(
    name="daily_summary",
    fields={
        "steps": "number",
        "metres": "number",
        "climb": "number",
        "energy": "number",
        "active_energy": "number",
        "moderate_seconds": "number",
        "vigorous_seconds": "number",
        "resting_heart_rate": "number",
        "min_heart_rate": "number",
        "max_heart_rate": "number",
        "stress": "number",
        "battery_high": "number",
        "battery_low": "number",
    },
    about="What a watch measured in a day, at its end; climb in metres, energy in kcal.",
    words=("day", "steps", "resting heart rate", "stress", "body battery"),
)

DAYS, NIGHTS = "UDSFile_*.json", "*_sleepData.json"
ACTIVITIES = "*summarizedActivities*.json"
Converter = Callable[[Item, str], Iterator[Record]]


class Garmin:
    name = "garmin"
    title = "Garmin Connect (export of the account)"
    hint = "garmin.com: Account, Data management, Export your data; a link comes by mail."
    types = (DAY, SLEEP_SESSION, WORKOUT)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        marks = b'"calendarDate"', b'"summarizedActivitiesExport"'
        return any(
            mark in member.head()
            for member in export.find(DAYS, NIGHTS, ACTIVITIES)
            for mark in marks
        )

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        days, nights = export.find(DAYS), export.find(NIGHTS)
        for member in export.find(DAYS, NIGHTS, ACTIVITIES):
            if member in days:
                yield from self._list(member, reading, partial(_day, reading))
            elif member in nights:
                yield from self._list(member, reading, _night)
            else:
                found = items(member, reading, "item.summarizedActivitiesExport.item")
                yield from records(found, _workout, reading)

    def _list(self, member: Member, reading: Reading, convert: Converter) -> Iterator[Record]:
        return records(items(member, reading, "item"), convert, reading)


def _day(reading: Reading, item: Item, place: str) -> Iterator[Record]:
    stress = [
        of.number(one, "averageStressLevel")
        for one in of.objects(of.part(item, "allDayStress"), "aggregatorList")
        if of.text(one, "type") == "TOTAL"
    ]
    battery = {
        of.text(one, "bodyBatteryStatType"): of.number(one, "statsValue")
        for one in of.objects(of.part(item, "bodyBattery"), "bodyBatteryStatList")
    }
    values = {
        "steps": of.number(item, "totalSteps"),
        "metres": of.number(item, "totalDistanceMeters"),
        "climb": of.number(item, "floorsAscendedInMeters"),
        "energy": of.number(item, "totalKilocalories"),
        "active_energy": of.number(item, "activeKilocalories"),
        "moderate_seconds": _times(of.number(item, "moderateIntensityMinutes"), 60),
        "vigorous_seconds": _times(of.number(item, "vigorousIntensityMinutes"), 60),
        # 0, or less for stress, where the watch was not worn
        "resting_heart_rate": of.number(item, "restingHeartRate") or None,
        "min_heart_rate": of.number(item, "minHeartRate") or None,
        "max_heart_rate": of.number(item, "maxHeartRate") or None,
        "stress": next((level for level in stress if level is not None and level >= 0), None),
        "battery_high": battery.get("HIGHEST"),
        "battery_low": battery.get("LOWEST"),
    }
    time = of.needed(of.day_end(item, "calendarDate", reading.zone), "calendarDate")
    yield Record(DAY, time, values, place)


def _night(item: Item, place: str) -> Iterator[Record]:
    if "calendarDate" not in item:
        return  # Garmin writes an empty record where it knows of no night
    start = of.needed(of.instant(item, "sleepStartTimestampGMT"), "sleepStartTimestampGMT")
    end = of.needed(of.instant(item, "sleepEndTimestampGMT"), "sleepEndTimestampGMT")
    deep, light, rem = (of.number(item, f"{name}SleepSeconds") for name in ("deep", "light", "rem"))
    known = [phase for phase in (deep, light, rem) if phase is not None]
    values = {
        "seconds": (end - start).total_seconds(),
        "asleep_seconds": sum(known) if known else None,
        "awake_seconds": of.number(item, "awakeSleepSeconds"),
        "deep_seconds": deep,
        "light_seconds": light,
        "rem_seconds": rem,
        "score": of.number(of.part(item, "sleepScores"), "overallScore"),
    }
    yield Record(SLEEP_SESSION, end, values, place)


def _workout(item: Item, place: str) -> Iterator[Record]:
    lat, lon = of.place(
        of.number(item, "startLatitude"), of.number(item, "startLongitude"), "startLatitude"
    )
    start = of.epoch(item, "beginTimestamp") or of.epoch(item, "startTimeGmt")
    start = of.needed(start, "beginTimestamp")
    # The watch's stopwatch stands still in pauses; the activity does not.
    active = of.needed(of.number(item, "duration"), "duration") / 1000
    seconds = max(active, (of.number(item, "elapsedDuration") or 0) / 1000)
    values = {
        "sport": of.text(item, "activityType"),
        "title": of.text(item, "name"),
        "seconds": seconds,
        "active_seconds": active,
        "metres": _times(of.number(item, "distance"), 0.01),
        "climb": _times(of.number(item, "elevationGain"), 0.01),
        "steps": of.number(item, "steps"),
        "heart_rate": of.number(item, "avgHr"),
        "max_heart_rate": of.number(item, "maxHr"),
        "lat": lat,
        "lon": lon,
    }
    yield Record(WORKOUT, ended(start, seconds), values, place)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
