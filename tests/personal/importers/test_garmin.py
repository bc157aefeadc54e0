from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.garmin import Garmin
from tacit.personal.importers.importer import Reading, Record

DAY: dict[str, Any] = {
    "userProfilePK": 1,
    "calendarDate": "2024-07-01",
    "uuid": {"uuid": "invented"},
    "durationInMilliseconds": 86400000,
    "totalKilocalories": 2400.0,
    "activeKilocalories": 500.0,
    "totalSteps": 8000,
    "dailyStepGoal": 7500,
    "totalDistanceMeters": 6100,
    "moderateIntensityMinutes": 10,
    "vigorousIntensityMinutes": 5,
    "floorsAscendedInMeters": 30.5,
    "minHeartRate": 45,
    "maxHeartRate": 150,
    "restingHeartRate": 52,
    "allDayStress": {
        "aggregatorList": [
            {"type": "AWAKE", "averageStressLevel": 40},
            {"type": "TOTAL", "averageStressLevel": 30, "maxStressLevel": 90},
        ]
    },
    "bodyBattery": {
        "bodyBatteryStatList": [
            {"bodyBatteryStatType": "HIGHEST", "statsValue": 80},
            {"bodyBatteryStatType": "LOWEST", "statsValue": 20},
        ]
    },
}
UNWORN = {"calendarDate": "2024-07-02", "totalSteps": 0, "restingHeartRate": 0}
NIGHT = {
    "sleepStartTimestampGMT": "2024-06-30T21:10:30.0",
    "sleepEndTimestampGMT": "2024-07-01T05:00:30.0",
    "calendarDate": "2024-07-01",
    "sleepWindowConfirmationType": "ENHANCED_CONFIRMED_FINAL",
    "deepSleepSeconds": 4800,
    "lightSleepSeconds": 14400,
    "remSleepSeconds": 6000,
    "awakeSleepSeconds": 3000,
    "unmeasurableSeconds": 0,
    "sleepScores": {"overallScore": 81, "qualityScore": 80},
    "retro": False,
}
RUN = {
    "activityId": 111,
    "name": "Morning Run",
    "activityType": "running",
    "sportType": "RUNNING",
    "beginTimestamp": 1719813600000,
    "startTimeGmt": 1719813600000.0,
    "startTimeLocal": 1719820800000.0,
    "duration": 1800500.0,
    "elapsedDuration": 1920000.0,
    "distance": 502000.0,
    "elevationGain": 1250.0,
    "avgHr": 140.0,
    "maxHr": 165.0,
    "steps": 4600.0,
    "startLatitude": 48.2,
    "startLongitude": 16.4,
}
DAYS = "DI_CONNECT/DI-Connect-Aggregator/UDSFile_2024-06-27_2024-10-05.json"
NIGHTS = "DI_CONNECT/DI-Connect-Wellness/2024-06-27_2024-10-05_1_sleepData.json"
ACTIVITIES = "DI_CONNECT/DI-Connect-Fitness/someone_0_summarizedActivities.json"
EXPORT: dict[str, object] = {
    DAYS: [DAY, UNWORN],
    ACTIVITIES: [{"summarizedActivitiesExport": [RUN]}],
    NIGHTS: [{"retro": False}, NIGHT],
}


def read(folder: Path, members: Mapping[str, object]) -> tuple[list[Record], Reading]:
    for name, content in members.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    reading = Reading(ZoneInfo("Europe/Vienna"), skip_damaged=True)
    return list(Garmin().read(Export(folder), reading)), reading


def told(record: Record) -> dict[str, object]:
    return {name: value for name, value in record.values.items() if value is not None}


class TestGarmin(ImporterContract):
    importer = Garmin()
    good: Mapping[str, bytes] = {
        f"a1b2/{name}": json.dumps(content).encode() for name, content in EXPORT.items()
    }
    events = 4
    zone = "Europe/Vienna"
    huge_name = "UDSFile_2024-06-27_2024-10-05.json"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b'[{"calendarDate": "2023-01-01"}'
        for i in range(n):
            yield b',{"calendarDate": "2024-01-%02d", "totalSteps": %d}' % (i % 31 + 1, i)
        yield b"]"


class TestActivities(ImporterContract):
    importer = Garmin()
    good: Mapping[str, bytes] = {
        "someone_0_summarizedActivities.json": json.dumps(EXPORT[ACTIVITIES]).encode()
    }
    events = 1


def test_days_nights_and_activities(tmp_path: Path) -> None:
    records, reading = read(tmp_path, EXPORT)
    assert not reading.damages
    assert [(record.kind.name, record.time, told(record)) for record in records] == [
        (
            "daily_summary",
            datetime(2024, 7, 1, 21, 59, 59, tzinfo=UTC),
            {
                "steps": 8000.0,
                "metres": 6100.0,
                "climb": 30.5,
                "energy": 2400.0,
                "active_energy": 500.0,
                "moderate_seconds": 600.0,
                "vigorous_seconds": 300.0,
                "resting_heart_rate": 52.0,
                "min_heart_rate": 45.0,
                "max_heart_rate": 150.0,
                "stress": 30.0,
                "battery_high": 80.0,
                "battery_low": 20.0,
            },
        ),
        ("daily_summary", datetime(2024, 7, 2, 21, 59, 59, tzinfo=UTC), {"steps": 0.0}),
        (
            "workout",
            datetime(2024, 7, 1, 6, 32, tzinfo=UTC),
            {
                "sport": "running",
                "title": "Morning Run",
                "seconds": 1920.0,
                "active_seconds": 1800.5,
                "metres": 5020.0,
                "climb": 12.5,
                "steps": 4600.0,
                "heart_rate": 140.0,
                "max_heart_rate": 165.0,
                "lat": 48.2,
                "lon": 16.4,
            },
        ),
        (
            "sleep_session",
            datetime(2024, 7, 1, 5, 0, 30, tzinfo=UTC),
            {
                "seconds": 28200.0,
                "asleep_seconds": 25200.0,
                "awake_seconds": 3000.0,
                "deep_seconds": 4800.0,
                "light_seconds": 14400.0,
                "rem_seconds": 6000.0,
                "score": 81.0,
            },
        ),
    ]
    assert records[2].place == f"{ACTIVITIES}, summarizedActivitiesExport item 1"


def test_without_pauses_an_activity_lasts_as_long_as_it_was_active(tmp_path: Path) -> None:
    run = {name: value for name, value in RUN.items() if name != "elapsedDuration"}
    (record,), _ = read(tmp_path, {ACTIVITIES: [{"summarizedActivitiesExport": [run]}]})
    assert record.time == datetime(2024, 7, 1, 6, 30, 0, 500_000, UTC)
    assert record.values["seconds"] == record.values["active_seconds"] == 1800.5


def test_damaged_records_say_where_and_why(tmp_path: Path) -> None:
    days: list[object] = [
        {"calendarDate": "1 July"},
        {"totalSteps": 5},
        {**DAY, "allDayStress": [1]},
        {**DAY, "allDayStress": {"aggregatorList": [{"type": "TOTAL", "averageStressLevel": -1}]}},
    ]
    records, reading = read(tmp_path, {"UDSFile_x.json": days})
    assert [record.values["stress"] for record in records] == [None]
    assert reading.places == [
        "UDSFile_x.json, item 1: `calendarDate` is no date.",
        "UDSFile_x.json, item 2: `calendarDate` is missing.",
        "UDSFile_x.json, item 3: `allDayStress` is no object.",
    ]


def test_a_night_or_activity_without_its_moment_is_damaged(tmp_path: Path) -> None:
    members = {
        "x_sleepData.json": [{"calendarDate": "2024-07-01"}],
        "x_summarizedActivities.json": [{"summarizedActivitiesExport": [{"name": "Run"}]}],
    }
    records, reading = read(tmp_path, members)
    assert not records
    assert [said.partition(": ")[2] for said in reading.places] == [
        "`sleepStartTimestampGMT` is missing.",
        "`beginTimestamp` is missing.",
    ]
