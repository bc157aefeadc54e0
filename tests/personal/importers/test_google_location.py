from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.google_location import GoogleLocation
from tacit.personal.importers.importer import Reading, Record

RAW = {
    "locations": [
        {
            "timestampMs": "1500000000123",
            "latitudeE7": 482082000,
            "longitudeE7": 163738000,
            "accuracy": 20,
            "velocity": 3,
            "altitude": 171,
            "activity": [
                {
                    "timestampMs": "1500000001000",
                    "activity": [
                        {"type": "STILL", "confidence": 20},
                        {"type": "ON_FOOT", "confidence": 75},
                    ],
                }
            ],
        },
        {
            "latitudeE7": 4194967296,  # 2³² too large: ten degrees south
            "longitudeE7": -163738000,
            "accuracy": 14,
            "source": "WIFI",
            "deviceTag": 12345,
            "timestamp": "2023-02-03T04:05:06.789Z",
        },
        {"timestamp": "2023-02-03T04:06:06Z", "activeWifiScan": {"accessPoints": []}},
    ]
}
MONTH = {
    "timelineObjects": [
        {
            "activitySegment": {
                "startLocation": {"latitudeE7": 480000000, "longitudeE7": 160000000},
                "endLocation": {"latitudeE7": 481000000, "longitudeE7": 161000000},
                "duration": {
                    "startTimestamp": "2023-05-01T08:00:00Z",
                    "endTimestamp": "2023-05-01T08:20:30.500Z",
                },
                "distance": 4200,
                "activityType": "IN_PASSENGER_VEHICLE",
                "confidence": "HIGH",
                "simplifiedRawPath": {
                    "points": [
                        {
                            "latE7": 480500000,
                            "lngE7": 160500000,
                            "accuracyMeters": 9,
                            "timestamp": "2023-05-01T08:10:00Z",
                        }
                    ]
                },
            }
        },
        {
            "placeVisit": {
                "location": {
                    "latitudeE7": 481000000,
                    "longitudeE7": 161000000,
                    "placeId": "ChIJinvented",
                    "address": "Invented Street 1",
                    "name": "Invented Bakery",
                    "semanticType": "TYPE_WORK",
                },
                "duration": {
                    "startTimestampMs": "1682929230000",
                    "endTimestampMs": "1682932830000",
                },
                "visitConfidence": 90,
            }
        },
    ]
}
ANDROID = {
    "semanticSegments": [
        {
            "startTime": "2024-09-01T10:00:00.000+02:00",
            "endTime": "2024-09-01T12:00:00.000+02:00",
            "timelinePath": [
                {"point": "48.2082°, 16.3738°", "time": "2024-09-01T10:05:00.000+02:00"}
            ],
        },
        {
            "startTime": "2024-09-01T10:30:00.000+02:00",
            "endTime": "2024-09-01T11:30:00.000+02:00",
            "startTimeTimezoneUtcOffsetMinutes": 120,
            "visit": {
                "hierarchyLevel": 0,
                "probability": 0.9,
                "topCandidate": {
                    "placeId": "ChIJinvented",
                    "semanticType": "INFERRED_HOME",
                    "probability": 0.8,
                    "placeLocation": {"latLng": "48.2°, -16.4°"},
                },
            },
        },
        {
            "startTime": "2024-09-01T10:30:00.000+02:00",
            "endTime": "2024-09-01T11:30:00.000+02:00",
            "visit": {"hierarchyLevel": 1, "topCandidate": {"placeId": "a shop within"}},
        },
        {
            "startTime": "2024-09-01T11:30:00.000+02:00",
            "endTime": "2024-09-01T11:45:00.000+02:00",
            "activity": {
                "start": {"latLng": "48.2°, 16.4°"},
                "end": {"latLng": "48.3°, 16.5°"},
                "distanceMeters": 1234.5,
                "topCandidate": {"type": "WALKING", "probability": 0.7},
            },
        },
        {
            "startTime": "2024-09-01T11:30:00.000+02:00",
            "endTime": "2024-09-03T11:45:00.000+02:00",
            "timelineMemory": {"trip": {"distanceFromOriginKms": 50}},
        },
    ],
    "rawSignals": [
        {
            "position": {
                "LatLng": "48.2082°, 16.3738°",
                "accuracyMeters": 13,
                "altitudeMeters": 200.5,
                "source": "GPS",
                "timestamp": "2024-09-01T10:00:07.000+02:00",
                "speedMetersPerSecond": 1.5,
            }
        },
        {"wifiScan": {"deliveryTime": "2024-09-01T10:00:07.000+02:00", "devicesRecords": []}},
        {"activityRecord": {"timestamp": "2024-09-01T10:00:07.000+02:00"}},
    ],
    "userLocationProfile": {"frequentPlaces": [{"placeId": "x", "label": "HOME"}]},
}
IPHONE = [
    {
        "endTime": "2024-09-01T12:00:00.000+02:00",
        "startTime": "2024-09-01T10:00:00.000+02:00",
        "timelinePath": [
            {"point": "geo:48.208200,16.373800", "durationMinutesOffsetFromStartTime": "7"}
        ],
    },
    {
        "endTime": "2024-09-01T11:30:00.000+02:00",
        "startTime": "2024-09-01T10:30:00.000+02:00",
        "visit": {
            "hierarchyLevel": "0",
            "topCandidate": {
                "probability": "0.75",
                "semanticType": "Inferred Home",
                "placeID": "ChIJinvented",
                "placeLocation": "geo:48.2,-16.4",
            },
            "probability": "0.8",
        },
    },
    {
        "endTime": "2024-09-01T11:45:00.000+02:00",
        "startTime": "2024-09-01T11:30:00.000+02:00",
        "activity": {
            "start": "geo:48.2,16.4",
            "end": "geo:48.3,16.5",
            "topCandidate": {"type": "walking", "probability": "0.7"},
            "distanceMeters": "1234.500000",
        },
    },
]
FORMS: dict[str, Any] = {
    "Records.json": RAW,
    "2023_MAY.json": MONTH,
    "Timeline.json": ANDROID,
    "location-history.json": IPHONE,
}


def read(folder: Path, name: str, content: object) -> tuple[list[Record], Reading]:
    (folder / name).write_text(json.dumps(content))
    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    return list(GoogleLocation().read(Export(folder), reading)), reading


def told(record: Record) -> tuple[str, datetime | None, dict[str, object]]:
    values = {name: value for name, value in record.values.items() if value is not None}
    return record.kind.name, record.time, values


class TestRaw(ImporterContract):
    importer = GoogleLocation()
    good: Mapping[str, bytes] = {"Records.json": json.dumps(RAW, indent=1).encode()}
    events = 2
    huge_name = "Records.json"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b'{"locations": [{}'
        for i in range(n):
            yield b',{"timestampMs": "%d", "latitudeE7": 1, "longitudeE7": 2}' % (1000 * i)
        yield b"]}"


class TestMonths(ImporterContract):
    importer = GoogleLocation()
    good: Mapping[str, bytes] = {
        "Takeout/Location History/Semantic Location History/2023/2023_MAY.json": json.dumps(
            MONTH
        ).encode()
    }
    events = 3


class TestPhones(ImporterContract):
    importer = GoogleLocation()
    good: Mapping[str, bytes] = {
        "Timeline.json": json.dumps(ANDROID).encode(),
        "location-history.json": json.dumps(IPHONE, ensure_ascii=False, indent=2).encode(),
    }
    events = 7


def test_raw_records(tmp_path: Path) -> None:
    records, reading = read(tmp_path, "Records.json", RAW)
    first = datetime(2017, 7, 14, 2, 40, 0, 123_000, UTC)
    assert [told(record) for record in records] == [
        (
            "location",
            first,
            {
                "lat": 48.2082,
                "lon": 16.3738,
                "accuracy_metres": 20.0,
                "altitude_metres": 171.0,
                "speed": 3.0,
                "activity": "on_foot",
            },
        ),
        (
            "location",
            datetime(2023, 2, 3, 4, 5, 6, 789_000, UTC),
            {"lat": -10.0, "lon": -16.3738, "accuracy_metres": 14.0, "origin": "wifi"},
        ),
    ]
    assert records[1].place == "Records.json, locations item 2"
    assert not reading.damages


def test_months(tmp_path: Path) -> None:
    records, _ = read(tmp_path, "2023_MAI.json", MONTH)
    start = datetime(2023, 5, 1, 8, 0, tzinfo=UTC)
    assert [told(record) for record in records] == [
        (
            "journey",
            datetime(2023, 5, 1, 8, 20, 30, 500_000, UTC),
            {
                "from_lat": 48.0,
                "from_lon": 16.0,
                "to_lat": 48.1,
                "to_lon": 16.1,
                "metres": 4200.0,
                "seconds": 1230.5,
                "mode": "in_passenger_vehicle",
            },
        ),
        (
            "location",
            start.replace(minute=10),
            {"lat": 48.05, "lon": 16.05, "accuracy_metres": 9.0, "origin": "path"},
        ),
        (
            "place_visit",
            datetime(2023, 5, 1, 9, 20, 30, tzinfo=UTC),
            {
                "lat": 48.1,
                "lon": 16.1,
                "place": "ChIJinvented",
                "title": "Invented Bakery",
                "role": "work",
                "seconds": 3600.0,
            },
        ),
    ]


def test_both_phones_tell_the_same(tmp_path: Path) -> None:
    (tmp_path / "android").mkdir()
    (tmp_path / "iphone").mkdir()
    android, _ = read(tmp_path / "android", "Timeline.json", ANDROID)
    iphone, _ = read(tmp_path / "iphone", "location-history.json", IPHONE)
    visit = (
        "place_visit",
        datetime(2024, 9, 1, 9, 30, tzinfo=UTC),
        {
            "lat": 48.2,
            "lon": -16.4,
            "place": "ChIJinvented",
            "role": "inferred_home",
            "seconds": 3600.0,
        },
    )
    journey = (
        "journey",
        datetime(2024, 9, 1, 9, 45, tzinfo=UTC),
        {
            "from_lat": 48.2,
            "from_lon": 16.4,
            "to_lat": 48.3,
            "to_lon": 16.5,
            "metres": 1234.5,
            "seconds": 900.0,
            "mode": "walking",
        },
    )
    on_path = {"lat": 48.2082, "lon": 16.3738, "origin": "path"}
    signal = {
        "lat": 48.2082,
        "lon": 16.3738,
        "accuracy_metres": 13.0,
        "altitude_metres": 200.5,
        "speed": 1.5,
        "origin": "gps",
    }
    assert [told(record) for record in android] == [
        ("location", datetime(2024, 9, 1, 8, 5, tzinfo=UTC), on_path),
        visit,
        journey,
        ("location", datetime(2024, 9, 1, 8, 0, 7, tzinfo=UTC), signal),
    ]
    assert [told(record) for record in iphone] == [
        ("location", datetime(2024, 9, 1, 8, 7, tzinfo=UTC), on_path),
        visit,
        journey,
    ]
    assert android[-1].place == "Timeline.json, rawSignals item 1"


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"latitudeE7": 1, "longitudeE7": 1}, "`timestamp` is missing."),
        ({"latitudeE7": 1e9, "longitudeE7": 1, "timestampMs": "1"}, "lies off the globe."),
        ({"latitudeE7": "x", "longitudeE7": 1, "timestampMs": "1"}, "`latitudeE7` is no number."),
        ({"placeVisit": 5}, "`placeVisit` is no object."),
        ({"placeVisit": {"location": {}}}, "`startTimestamp` is missing."),
        ({"startTime": "2024-01-01T00:00:00Z"}, "`endTime` is missing."),
        ({"position": {"LatLng": "somewhere"}}, "`LatLng` is no place."),
    ],
)
def test_damaged_items_say_why(tmp_path: Path, item: object, reason: str) -> None:
    good = {"latitudeE7": 1, "longitudeE7": 1, "timestampMs": "1"}
    records, reading = read(tmp_path, "Records.json", {"locations": [good, item, good]})
    assert len(records) == 2
    assert reading.places[0].startswith("Records.json, locations item 2: ")
    assert reading.places[0].endswith(reason)
