"""Uber's trips in the three forms that the download has had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.uber import Uber

HEADER = (
    "City,Product Type,Trip or Order Status,Request Time,Begin Trip Time,Begin Trip Lat,"
    "Begin Trip Lng,Begin Trip Address,Dropoff Time,Dropoff Lat,Dropoff Lng,Dropoff Address,"
    "Distance (miles),Fare Amount,Fare Currency\n"
)
FIRST = HEADER + (
    "Paris,UberX,COMPLETED,2024-03-02 21:31:00 +0000 UTC,2024-03-02 21:40:00 +0000 UTC,48.85,2.35,"
    '"1 Quay Street, Paris",2024-03-02 22:05:30 +0000 UTC,48.87,2.33,"9 Hill Road, Paris",2.5,'
    "18.20,EUR\n"
    "Paris,UberX,CANCELED,2024-03-03 22:00:00 +0000 UTC,1970-01-01 00:00:00 +0000 UTC,,,,"
    "1970-01-01 00:00:00 +0000 UTC,,,,0.0,0.0,EUR\n"
    "Paris,UberEATS Marketplace,COMPLETED,2024-03-04 19:00:00 +0000 UTC,"
    "2024-03-04 19:20:00 +0000 UTC,48.85,2.35,x,2024-03-04 19:40:00 +0000 UTC,48.87,2.33,y,1.0,"
    "23.90,EUR\n"
)
SECOND = (
    "city,product_type,status,request_time,begin_trip_time,begintrip_lat,begintrip_lng,"
    "begintrip_address,dropoff_time,dropoff_lat,dropoff_lng,dropoff_address,distance,fare_amount,"
    "fare_currency\n"
    "Paris,UberX,completed,2024-03-02T21:31:00.000Z,2024-03-02T21:40:00.000Z,48.85,2.35,a,"
    "2024-03-02T22:05:30.000Z,48.87,2.33,b,2.5,18.20,EUR\n"
)
THIRD = (
    "city_name,currency_code,timezone,product_type_name,request_timestamp_local,"
    "request_timestamp_utc,begintrip_timestamp_local,begintrip_timestamp_utc,begintrip_lat,"
    "begintrip_lng,begintrip_address,dropoff_timestamp_local,dropoff_timestamp_utc,dropoff_lat,"
    "dropoff_lng,dropoff_address,trip_distance_miles,trip_duration_seconds,status,fare_amount,"
    "surge_multiplier\n"
    "Paris,EUR,Europe/Paris,UberX,2024-03-02 22:31:00,2024-03-02 21:31:00Z,2024-03-02 22:40:00,"
    "2024-03-02 21:40:00Z,48.85,2.35,a,2024-03-02 23:05:30,2024-03-02 22:05:30Z,48.87,2.33,b,2.5,"
    "1530,completed,18.20,1.4\n"
)
PLAIN = {"pickup": "a", "dropoff": "b"}


class TestContract(ImporterContract):
    importer = Uber()
    good: Mapping[str, bytes] = {"Uber Data/Rider/trips_data.csv": FIRST.encode()}
    events = 3
    torn = 1
    huge_name = "trips_data.csv"

    def huge(self, n: int) -> Iterator[bytes]:
        yield HEADER.encode()
        yield from [FIRST.splitlines(keepends=True)[1].encode()] * n


class TestSecond(ImporterContract):
    importer = Uber()
    good: Mapping[str, bytes] = {"trips_data.csv": SECOND.encode()}
    events = 1
    torn = 1


class TestThird(ImporterContract):
    importer = Uber()
    good: Mapping[str, bytes] = {"trips_data-0.csv": THIRD.encode()}
    events = 1
    torn = 1


def read(tmp_path: Path, content: str, skip: bool = False) -> tuple[list[Record], Reading]:
    (tmp_path / "trips_data.csv").write_text(content)
    reading = Reading(ZoneInfo("Asia/Tokyo"), skip_damaged=skip)
    return list(Uber().read(Export(tmp_path / "trips_data.csv"), reading)), reading


RIDE = {
    "service": "uber",
    "product": "UberX",
    "status": "completed",
    "city": "Paris",
    "amount": 18.2,
    "currency": "EUR",
    "metres": 2.5 * 1609.344,
    "seconds": 1530.0,
    "wait_seconds": 540.0,
    "surge": None,
    "pickup_lat": 48.85,
    "pickup_lon": 2.35,
    "dropoff_lat": 48.87,
    "dropoff_lon": 2.33,
}


def test_every_field_is_what_the_file_says(tmp_path: Path) -> None:
    found, _ = read(tmp_path, FIRST)
    assert [(r.kind.name, r.time, r.place) for r in found] == [
        ("ride", datetime(2024, 3, 2, 21, 31, tzinfo=UTC), "trips_data.csv, line 2"),
        ("ride", datetime(2024, 3, 3, 22, tzinfo=UTC), "trips_data.csv, line 3"),
        ("delivery", datetime(2024, 3, 4, 19, tzinfo=UTC), "trips_data.csv, line 4"),
    ]
    ride, cancelled, meal = (dict(r.values) for r in found)
    assert ride == RIDE | {"pickup": "1 Quay Street, Paris", "dropoff": "9 Hill Road, Paris"}
    nothing = ("seconds", "wait_seconds", "surge", "pickup", "dropoff")
    nowhere = ("pickup_lat", "pickup_lon", "dropoff_lat", "dropoff_lon")
    assert cancelled == RIDE | dict.fromkeys((*nothing, *nowhere)) | {
        "status": "canceled",
        "amount": 0.0,
        "metres": 0.0,
    }
    assert meal == {
        "product": "UberEATS Marketplace",
        "status": "completed",
        "city": "Paris",
        "amount": 23.9,
        "currency": "EUR",
    }


@pytest.mark.parametrize(("content", "surge"), [(SECOND, None), (THIRD, 1.4)])
def test_the_later_forms_say_the_same(tmp_path: Path, content: str, surge: float | None) -> None:
    (found,), _ = read(tmp_path, content)
    assert found.time == datetime(2024, 3, 2, 21, 31, tzinfo=UTC)
    assert dict(found.values) == RIDE | PLAIN | {"surge": surge}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("2024-03-02 21:31:00 +0000 UTC", "last week", "one of its times is no time."),
        ("18.20", "many", "its price is no amount of money."),
        (",2.5,", ",far,", "`distance` is no number."),
        ("48.85,2.35", "148.85,2.35", "`pickup` lies off the globe."),
        ("48.85,2.35", "north,2.35", "`pickup_lat` is no number."),
    ],
)
def test_damaged_rows_are_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    content = FIRST.replace(old, new, 1)
    with pytest.raises(InputError, match=r"trips_data\.csv, line 2: "):
        read(tmp_path, content)
    found, reading = read(tmp_path, content, skip=True)
    assert len(found) == 2
    assert reading.places == [f"trips_data.csv, line 2: {reason}"]


def test_a_row_without_any_time_is_damaged(tmp_path: Path) -> None:
    row = "Paris,UberX,FAILED" + "," * 12 + "\n"
    _, reading = read(tmp_path, FIRST + row, skip=True)
    assert reading.places == ["trips_data.csv, line 5: `Request Time` is missing."]


def test_a_dropoff_before_the_pickup_has_no_length(tmp_path: Path) -> None:
    content = FIRST.replace("2024-03-02 22:05:30", "2024-03-02 20:05:30")
    found, _ = read(tmp_path, content)
    assert found[0].values["seconds"] is None
