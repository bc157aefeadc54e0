"""Apple Health: `export.xml` in the archive that the Health app of an iPhone makes.

Versions 2 to 14 of the format, as its own DTD describes it. Known faults of it are borne with: the
DTD of iOS 16 is not well formed (it is never parsed), `WorkoutStatistics` may have a second
`startDate` in place of the end, and texts may hold vertical tabs. Records inside a Correlation also
stand outside of it, and are taken only there. Units depend on the settings of the phone, and are
converted. What lasts stands at its end, and what sums up a day at the end of the day.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping

from tacit.personal.events import EventType, Value
from tacit.personal.importers.apple_health_types import (
    ACTIVITY_DAY,
    PERSON,
    QUANTITIES,
    RECORD,
    SLEEP,
    TYPES,
    WORKOUT,
    converted,
    plain,
)
from tacit.personal.importers.days import end_of_day
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_values import Unreadable
from tacit.personal.importers.xml import Element, elements, number, root_of

__all__ = ["AppleHealth", "health_files"]

RECORDS = ("Record", "Workout", "ActivitySummary", "Me")
SLEEP_TYPE = "HKCategoryTypeIdentifierSleepAnalysis"
_SECOND_START = re.compile(rb'(<WorkoutStatistics [^>]*?startDate="[^"]*" )startDate=')


class AppleHealth:
    name = "apple_health"
    title = "Apple Health"
    hint = (
        "On the iPhone: Health, your picture at the top, Export All Health Data. Bring the archive "
        "export.zip here as it is."
    )
    types: tuple[EventType, ...] = TYPES
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        return bool(health_files(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in health_files(export):
            for element in elements(member, reading, RECORDS, mend=_mended):
                if element.parent != "Correlation":
                    yield from _events(element, member, reading)


def health_files(export: Export) -> list[Member]:
    """By content: the file's name is translated to the language of the phone."""
    return [m for m in export.find("*.xml") if root_of(m.head()) == "HealthData"]


def _mended(data: bytes) -> bytes:
    return _SECOND_START.sub(rb"\1endDate=", data.replace(b"\x0b", b" "))


def _events(element: Element, member: Member, reading: Reading) -> Iterator[Record]:
    place = f"{member.name}, line {element.line}"
    try:
        record = _READERS[element.tag](element, place, reading)
    except (KeyError, ValueError, OverflowError, Unreadable):
        reading.damaged(place, f"this {element.tag} has a date, number or unit that is not read.")
        return
    if record is not None:
        yield record


def _record(element: Element, place: str, reading: Reading) -> Record:
    said = element.attributes
    kind, value, unit = said["type"], said.get("value"), said.get("unit")
    start, end = _time(said["startDate"]), _time(said["endDate"])
    values: dict[str, Value] = {
        "device": said.get("sourceName"),
        "seconds": (end - start).total_seconds(),
    }
    if kind == SLEEP_TYPE:
        values["stage"] = plain((value or "").removeprefix("HKCategoryValueSleepAnalysis"))
        return Record(SLEEP, end, values, place)
    if kind in QUANTITIES:
        quantity = QUANTITIES[kind]
        values.update(quantity.fixed)
        values[quantity.field] = converted(number(value or ""), unit or "", quantity.measure)
        return Record(quantity.type, end, values, place)
    values["kind"], values["unit"] = plain(kind), unit
    if value is not None:
        # Quantities have numbers; categories have names: HKCategoryValueAppleStandHourStood.
        name = value.startswith("HK")
        values["state" if name else "value"] = plain(value) if name else number(value)
    return Record(RECORD, end, values, place)


def _workout(element: Element, place: str, reading: Reading) -> Record:
    said = element.attributes
    start, end = _time(said["startDate"]), _time(said["endDate"])
    lasted, unit = said.get("duration"), said.get("durationUnit", "min")
    values: dict[str, Value] = {
        "sport": plain(said["workoutActivityType"]),
        "seconds": (end - start).total_seconds(),
        "active_seconds": converted(number(lasted), unit, "time") if lasted else None,
        "metres": _total(element, "totalDistance", "distance"),
        "energy": _total(element, "totalEnergyBurned", "energy"),
        "device": said.get("sourceName"),
    }
    # Since iOS 16 the totals stand in elements of their own.
    for one in element.inside:
        if one.tag != "WorkoutStatistics" or one.parent != "Workout":
            continue
        kind, unit = plain(one.attributes["type"]), one.attributes.get("unit", "")
        if kind is None:
            continue
        if kind.startswith("distance_"):
            values["metres"] = converted(number(one.attributes["sum"]), unit, "distance")
        elif kind == "active_energy_burned":
            values["energy"] = converted(number(one.attributes["sum"]), unit, "energy")
        elif kind == "heart_rate":
            values["heart_rate"] = converted(number(one.attributes["average"]), unit, "rate")
    return Record(WORKOUT, end, values, place)


def _total(element: Element, name: str, measure: str) -> float | None:
    said = element.attributes.get(name)
    return converted(number(said), element.attributes[f"{name}Unit"], measure) if said else None


def _activity_day(element: Element, place: str, reading: Reading) -> Record | None:
    said = element.attributes
    day = datetime.date.fromisoformat(said["dateComponents"])
    if day.year < 1971:  # the app writes a first day of zeros, from before there were phones
        return None
    energy, unit = said.get("activeEnergyBurned"), said.get("activeEnergyBurnedUnit", "kcal")
    goal, exercise = said.get("activeEnergyBurnedGoal"), said.get("appleExerciseTime")
    values: dict[str, Value] = {
        "energy": converted(number(energy), unit, "energy") if energy else None,
        "energy_goal": converted(number(goal), unit, "energy") if goal else None,
        "exercise_seconds": 60 * number(exercise) if exercise else None,
        "stand_hours": number(said["appleStandHours"]) if said.get("appleStandHours") else None,
    }
    return Record(ACTIVITY_DAY, end_of_day(day, reading.zone), values, place)


def _person(element: Element, place: str, reading: Reading) -> Record:
    prefix = "HKCharacteristicTypeIdentifier"
    said = {key.removeprefix(prefix): value for key, value in element.attributes.items()}
    birth = said.get("DateOfBirth")
    values: dict[str, Value] = {
        "birth": _birth(birth, reading) if birth else None,
        "sex": plain(said.get("BiologicalSex", "").removeprefix("HKBiologicalSex")),
        "blood": plain(said.get("BloodType", "").removeprefix("HKBloodType")),
    }
    return Record(PERSON, None, values, place)


_READERS = {
    "Record": _record,
    "Workout": _workout,
    "ActivitySummary": _activity_day,
    "Me": _person,
}


def _time(text: str) -> datetime.datetime:
    """`2024-01-31 07:00:00 +0100`: the offset is the one where it was measured."""
    time = datetime.datetime.fromisoformat(f"{text[:19]}{text[20:]}")
    if time.tzinfo is None:
        raise ValueError("no offset")
    return time.astimezone(datetime.UTC)


def _birth(text: str, reading: Reading) -> datetime.datetime:
    day = datetime.date.fromisoformat(text)
    start = datetime.datetime(day.year, day.month, day.day, tzinfo=reading.zone)
    return start.astimezone(datetime.UTC)
