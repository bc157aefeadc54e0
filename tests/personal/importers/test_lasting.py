"""What lasts stands at its end: before that, nobody knows what it says.

Each start is copied from the good export of that importer's own test, as the file names it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from all_contracts import contracts

from tacit.personal.importers.contract import records_of
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record

CONTRACTS = contracts()


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


HEALTH = at("2024-01-31T07:00+01:00")
LASTING: Mapping[str, Mapping[str, datetime]] = {
    "test_apple_health.TestAppleHealth": {
        "steps": HEALTH,
        "heart_rate": HEALTH,
        "distance": HEALTH,
        "weight": HEALTH,
        "energy": HEALTH,
        "sleep": HEALTH,
        "health_record": HEALTH,
        "exercise": HEALTH,
        "workout": HEALTH,
    },
    "test_gpx.TestGpx": {"track": at("2024-03-01T06:00Z")},
    "test_tcx.TestTcx": {"track": at("2024-03-01T06:00Z")},
    "test_google_location.TestMonths": {
        "journey": at("2023-05-01T08:00Z"),
        "place_visit": datetime.fromtimestamp(1682929230, UTC),
    },
    "test_google_location.TestPhones": {
        "journey": at("2024-09-01T11:30+02:00"),
        "place_visit": at("2024-09-01T10:30+02:00"),
    },
    "test_fitbit.TestFitbit": {
        "sleep_session": at("2024-06-30T23:10:30+02:00"),
        "workout": at("2024-07-01T18:00+02:00"),
    },
    "test_fitbit.TestOneFile": {"steps": at("2024-07-01T07:00Z")},
    "test_garmin.TestGarmin": {
        "sleep_session": at("2024-06-30T21:10:30Z"),
        "workout": datetime.fromtimestamp(1719813600, UTC),
    },
    "test_browser_history.TestChrome": {"page_visit": at("2024-01-31T07:59:01.500Z")},
}


def read(name: str, folder: Path) -> list[Record]:
    contract = CONTRACTS[name]
    for member, content in contract.good.items():
        path = folder / member
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    reading = Reading(ZoneInfo(contract.zone), contract.options)
    return list(records_of(contract.importer.read(Export(folder), reading)))


@pytest.mark.parametrize("name", LASTING)
def test_the_time_less_the_seconds_is_the_start_that_the_file_names(
    tmp_path: Path, name: str
) -> None:
    lasting = [one for one in read(name, tmp_path) if one.values.get("seconds")]
    assert {one.kind.name for one in lasting} == set(LASTING[name])
    for kind, start in LASTING[name].items():
        first = next(one for one in lasting if one.kind.name == kind)
        seconds = first.values["seconds"]
        assert first.time is not None
        assert isinstance(seconds, float)
        assert seconds > 0
        assert first.time - timedelta(seconds=seconds) == start, kind
