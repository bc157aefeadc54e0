from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import UsageError
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.fitbit import Fitbit
from tacit.personal.importers.importer import Reading, Record

FOLDER = "Takeout/Fitbit/Global Export Data/"
FILES: dict[str, list[Any]] = {
    "heart_rate-2024-07-01.json": [
        {"dateTime": "07/01/24 07:00:05", "value": {"bpm": 61, "confidence": 3}}
    ],
    "steps-2024-07-01.json": [{"dateTime": "07/01/24 07:00:00", "value": "84"}],
    "calories-2024-07-01.json": [{"dateTime": "07/01/24 07:00:00", "value": "1.17"}],
    "distance-2024-07-01.json": [{"dateTime": "07/01/24 07:00:00", "value": "6150"}],
    "resting_heart_rate-2024-07-01.json": [
        {
            "dateTime": "07/01/24 00:00:00",
            "value": {"date": "07/01/24", "value": 55.5, "error": 6.8},
        },
        {"dateTime": "07/02/24 00:00:00", "value": {"date": None, "value": 0.0, "error": 0.0}},
    ],
    "very_active_minutes-2024-07-01.json": [{"dateTime": "07/01/24 00:00:00", "value": "25"}],
    "sleep-2024-07-01.json": [
        {
            "logId": 46000000000,
            "dateOfSleep": "2024-07-01",
            "startTime": "2024-06-30T23:10:30.000",
            "endTime": "2024-07-01T07:00:30.000",
            "duration": 28200000,
            "minutesToFallAsleep": 0,
            "minutesAsleep": 420,
            "minutesAwake": 50,
            "timeInBed": 470,
            "efficiency": 92,
            "type": "stages",
            "levels": {
                "summary": {
                    "deep": {"count": 4, "minutes": 80},
                    "wake": {"count": 30, "minutes": 50},
                    "light": {"count": 28, "minutes": 240},
                    "rem": {"count": 6, "minutes": 100},
                },
                "data": [{"dateTime": "2024-06-30T23:10:30.000", "level": "wake", "seconds": 30}],
            },
            "mainSleep": True,
        }
    ],
    "exercise-0.json": [
        {
            "logId": 47000000000,
            "activityName": "Run",
            "activityTypeId": 90009,
            "averageHeartRate": 140,
            "calories": 300,
            "duration": 1800000,
            "activeDuration": 1790000,
            "steps": 4500,
            "startTime": "07/01/24 18:00:00",
            "distance": 5.25,
            "distanceUnit": "Kilometer",
        }
    ],
    "altitude-2024-07-01.json": [{"dateTime": "07/01/24 07:00:00", "value": "10"}],
}


def read(folder: Path, files: Mapping[str, object], **options: str) -> tuple[list[Record], Reading]:
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    reading = Reading(ZoneInfo("Europe/Vienna"), options, skip_damaged=True)
    return list(Fitbit().read(Export(folder), reading)), reading


class TestFitbit(ImporterContract):
    importer = Fitbit()
    good: Mapping[str, bytes] = {
        FOLDER + name: json.dumps(FILES[name], indent=2).encode()
        for name in (
            "exercise-0.json",
            "resting_heart_rate-2024-07-01.json",
            "sleep-2024-07-01.json",
        )
    }
    events = 3
    zone = "Europe/Vienna"
    huge_name = "heart_rate-2024-07-01.json"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b"["
        for i in range(n):
            time = b"%02d:%02d:%02d" % (i // 3600 % 24, i // 60 % 60, i % 60)
            yield b'{"dateTime": "07/01/24 %s", "value": {"bpm": 60}},' % time
        yield b'{"dateTime": "07/01/24 00:00:00", "value": {"bpm": 60}}]'


class TestOneFile(ImporterContract):
    importer = Fitbit()
    good: Mapping[str, bytes] = {
        "steps-2024-07-01.json": json.dumps(FILES["steps-2024-07-01.json"] * 5).encode()
    }
    events = 5


def test_every_kind_of_file(tmp_path: Path) -> None:
    records, reading = read(tmp_path, FILES)
    assert not reading.damages
    morning = datetime(2024, 7, 1, 5, 0, tzinfo=UTC)
    evening = datetime(2024, 7, 1, 21, 59, 59, tzinfo=UTC)
    assert {record.kind.name: (record.time, dict(record.values)) for record in records} == {
        "heart_rate": (morning.replace(second=5), {"bpm": 61.0}),
        "steps": (morning.replace(minute=1), {"count": 84.0, "seconds": 60.0}),
        "energy": (morning.replace(minute=1), {"kcal": 1.17, "seconds": 60.0}),
        "distance": (morning.replace(minute=1), {"metres": 61.5, "seconds": 60.0}),
        "resting_heart_rate": (evening, {"bpm": 55.5}),
        "active_time": (evening, {"level": "very_active", "seconds": 1500.0}),
        "sleep_session": (
            datetime(2024, 7, 1, 5, 0, 30, tzinfo=UTC),
            {
                "seconds": 28200.0,
                "asleep_seconds": 25200.0,
                "awake_seconds": 3000.0,
                "deep_seconds": 4800.0,
                "light_seconds": 14400.0,
                "rem_seconds": 6000.0,
                "score": 92.0,
                "nap": False,
            },
        ),
        "workout": (
            datetime(2024, 7, 1, 16, 30, tzinfo=UTC),
            {
                "sport": "Run",
                "seconds": 1800.0,
                "active_seconds": 1790.0,
                "metres": 5250.0,
                "energy": 300.0,
                "steps": 4500.0,
                "heart_rate": 140.0,
            },
        ),
    }


def test_minutes_in_universal_time(tmp_path: Path) -> None:
    files = {name: FILES[name] for name in ("steps-2024-07-01.json", "sleep-2024-07-01.json")}
    records, _ = read(tmp_path, files, minutes="utc")
    assert {record.kind.name: record.time for record in records} == {
        "sleep_session": datetime(2024, 7, 1, 5, 0, 30, tzinfo=UTC),
        "steps": datetime(2024, 7, 1, 7, 1, tzinfo=UTC),
    }
    with pytest.raises(UsageError, match="utc or local"):
        read(tmp_path, files, minutes="maybe")


def test_a_distance_in_an_unknown_unit_is_left_out(tmp_path: Path) -> None:
    run = {**FILES["exercise-0.json"][0], "distanceUnit": "Furlong"}
    mile = {**run, "distanceUnit": "Mile", "distance": 2}
    records, _ = read(tmp_path, {"exercise-100.json": [run, mile]})
    assert [record.values["metres"] for record in records] == [None, 3218.688]


def test_a_workout_whose_end_nobody_knows_is_damaged(tmp_path: Path) -> None:
    (run,) = FILES["exercise-0.json"]
    endless = {name: value for name, value in run.items() if name != "duration"}
    items = [endless, {**run, "duration": -1}, {**run, "duration": 1e300}, run]
    records, reading = read(tmp_path, {"exercise-0.json": items})
    assert len(records) == 1
    assert reading.places == [
        "exercise-0.json, item 1: `duration` is missing.",
        "exercise-0.json, item 2: it ends before it begins.",
        "exercise-0.json, item 3: it ends beyond the calendar.",
    ]


def test_damaged_items_say_where_and_why(tmp_path: Path) -> None:
    items = [
        {"dateTime": "2024-07-01T00:00:00", "value": "1"},
        {"dateTime": "13/01/24 00:00:00", "value": "1"},
        {"dateTime": "07/01/24 00:00:00"},
        {"dateTime": "07/01/24 00:00:00", "value": "many"},
        {"dateTime": "07/01/24 00:00:00", "value": "3"},
    ]
    records, reading = read(tmp_path, {"steps-2024-07-01.json": items})
    assert len(records) == 1
    assert reading.places == [
        "steps-2024-07-01.json, item 1: `dateTime` is no time.",
        "steps-2024-07-01.json, item 2: `dateTime` is no time.",
        "steps-2024-07-01.json, item 3: `value` is missing.",
        "steps-2024-07-01.json, item 4: `value` is no number.",
    ]
