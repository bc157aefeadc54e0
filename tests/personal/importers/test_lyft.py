"""Lyft's table of rides, under the names that its columns are known by."""

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
from tacit.personal.importers.lyft import Lyft

GOOD = (
    "Requested At,Picked Up At,Dropped Off At,Pickup Address,Dropoff Address,Ride Type,Status,"
    "Distance (miles),Total,Currency\n"
    '2024-03-01 10:00:00,2024-03-01 10:06:00,2024-03-01 10:26:00,Home,"9 Hill Road, Oakland",'
    "standard,Completed,4.0,$22.00,USD\n"
    "2024-03-05 18:00:00,2024-03-05 18:03:00,2024-03-05 18:13:00,9 Hill Road,Home,shared,Completed,"
    '1.5,"$1,012.75",\n'
)


class TestContract(ImporterContract):
    importer = Lyft()
    good: Mapping[str, bytes] = {"lyft_rides.csv": GOOD.encode()}
    events = 2
    torn = 1
    huge_name = "lyft_rides.csv"

    def huge(self, n: int) -> Iterator[bytes]:
        head, row, *_ = GOOD.splitlines(keepends=True)
        yield head.encode()
        yield from [row.encode()] * n


def read(
    tmp_path: Path, content: str, skip: bool = False, **options: str
) -> tuple[list[Record], Reading]:
    (tmp_path / "lyft_rides.csv").write_text(content)
    reading = Reading(ZoneInfo("America/Los_Angeles"), options, skip_damaged=skip)
    return list(Lyft().read(Export(tmp_path / "lyft_rides.csv"), reading)), reading


def test_every_field_is_what_the_file_says(tmp_path: Path) -> None:
    (first, second), _ = read(tmp_path, GOOD)
    assert first.time == datetime(2024, 3, 1, 18, tzinfo=UTC)
    assert dict(first.values) == {
        "service": "lyft",
        "product": "standard",
        "status": "completed",
        "city": None,
        "amount": 22.0,
        "currency": "USD",
        "metres": 4 * 1609.344,
        "seconds": 1200.0,
        "wait_seconds": 360.0,
        "pickup": "Home",
        "pickup_lat": None,
        "pickup_lon": None,
        "dropoff": "9 Hill Road, Oakland",
        "dropoff_lat": None,
        "dropoff_lon": None,
    }
    assert (second.values["amount"], second.values["currency"]) == (1012.75, None)
    assert second.place == "lyft_rides.csv, line 3"


def test_a_plain_table(tmp_path: Path) -> None:
    content = "Requested,Pickup,Dropoff,Amount\n3/14/2024 9:05 PM,a,b,22.00\n"
    (ride,), _ = read(tmp_path, content)
    assert ride.time == datetime(2024, 3, 15, 4, 5, tzinfo=UTC)
    assert ride.values["amount"] == 22.0


def test_days_that_nobody_can_tell_are_asked_for(tmp_path: Path) -> None:
    content = "Requested,Pickup,Dropoff,Amount\n03/04/2024 21:05,a,b,22.00\n"
    with pytest.raises(InputError, match="option order"):
        read(tmp_path, content)
    (ride,), _ = read(tmp_path, content, order="mdy")
    assert ride.time == datetime(2024, 3, 5, 5, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("2024-03-01 10:06:00", "later", "one of its times is no time."),
        ("$22.00", "free", "its price is no amount of money."),
        (",4.0,", ",far,", "`distance` is no number."),
    ],
)
def test_damaged_rows_are_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    found, reading = read(tmp_path, GOOD.replace(old, new), skip=True)
    assert len(found) == 1
    assert reading.places == [f"lyft_rides.csv, line 2: {reason}"]


def test_anybody_s_rides_are_not_lyft_s(tmp_path: Path) -> None:
    (tmp_path / "rides.csv").write_text(GOOD)
    assert not Lyft().recognises(Export(tmp_path / "rides.csv"))
