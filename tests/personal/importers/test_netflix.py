"""Netflix: the detailed table, the short one in several languages' dates, and shared accounts."""

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
from tacit.personal.importers.netflix import Netflix

HEADER = (
    b"Profile Name,Start Time,Duration,Attributes,Title,Supplemental Video Type,Device Type,"
    b"Bookmark,Latest Bookmark,Country\n"
)
DETAILED = HEADER + (
    b'Ann,2024-03-02 20:15:00,00:48:10,,"Night Ferry: Season 1: Fog, Rising",,Acme Smart TV,'
    b"00:48:10,00:48:10,DE (Germany)\n"
    b"Bo,2024-03-01 07:05:30,01:52:03,Autoplayed: user action: None; ,The Long Tide,,"
    b"Web Browser,01:52:03,Not latest view,FR (France)\n"
    b"Ann,2024-02-29 19:00:00,00:00:31,,Night Ferry: Trailer,TRAILER,Acme Phone,00:00:31,"
    b"Not latest view,DE (Germany)\n"
)
SHORT = b'Title,Date\n"Night Ferry: Season 1: Fog, Rising","3/14/24"\n"The Long Tide","3/2/24"\n'


class TestDetailed(ImporterContract):
    importer = Netflix()
    good: Mapping[str, bytes] = {"CONTENT_INTERACTION/ViewingActivity.csv": DETAILED}
    events = 3
    torn = 1
    huge_name = "ViewingActivity.csv"

    def huge(self, n: int) -> Iterator[bytes]:
        yield HEADER
        for i in range(n):
            yield b"Ann,2024-03-02 20:15:%02d,00:48:10,,Some title %d,,TV,1,1,DE (Germany)\n" % (
                i % 60,
                i,
            )


class TestShort(ImporterContract):
    importer = Netflix()
    good: Mapping[str, bytes] = {"NetflixViewingHistory.csv": SHORT}
    events = 2
    torn = 2  # without its first row, 3/2/24 could be 3 February
    huge_name = "NetflixViewingHistory.csv"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b"Title,Date\n"
        for i in range(n):
            yield b'"A title of some length, number %d","3/%d/24"\n' % (i, 1 + i % 28)


def read(
    tmp_path: Path, name: str, content: bytes, skip: bool = False, **options: str
) -> tuple[list[Record], Reading]:
    (tmp_path / name).write_bytes(content)
    reading = Reading(ZoneInfo("Europe/Berlin"), options, skip_damaged=skip)
    return list(Netflix().read(Export(tmp_path / name), reading)), reading


def test_every_field_is_what_the_file_says(tmp_path: Path) -> None:
    found, _ = read(tmp_path, "ViewingActivity.csv", DETAILED)
    assert [(r.time, dict(r.values), r.place) for r in found] == [
        (
            datetime(2024, 3, 2, 21, 3, 10, tzinfo=UTC),
            {
                "title": "Night Ferry: Season 1: Fog, Rising",
                "show": "Night Ferry",
                "seconds": 2890.0,
                "profile": "Ann",
                "device": "Acme Smart TV",
                "country": "DE",
                "extra": None,
            },
            "ViewingActivity.csv, line 2",
        ),
        (
            datetime(2024, 3, 1, 8, 57, 33, tzinfo=UTC),
            {
                "title": "The Long Tide",
                "show": "The Long Tide",
                "seconds": 6723.0,
                "profile": "Bo",
                "device": "Web Browser",
                "country": "FR",
                "extra": None,
            },
            "ViewingActivity.csv, line 3",
        ),
        (
            datetime(2024, 2, 29, 19, 0, 31, tzinfo=UTC),
            {
                "title": "Night Ferry: Trailer",
                "show": "Night Ferry: Trailer",
                "seconds": 31.0,
                "profile": "Ann",
                "device": "Acme Phone",
                "country": "DE",
                "extra": "TRAILER",
            },
            "ViewingActivity.csv, line 4",
        ),
    ]


def test_one_profile_of_a_shared_account(tmp_path: Path) -> None:
    found, _ = read(tmp_path, "ViewingActivity.csv", DETAILED, profile="Bo")
    assert [r.values["title"] for r in found] == ["The Long Tide"]


def test_a_day_alone_is_its_last_second(tmp_path: Path) -> None:
    found, _ = read(tmp_path, "NetflixViewingHistory.csv", SHORT)
    assert [(r.time, dict(r.values)) for r in found] == [
        (
            datetime(2024, 3, 14, 22, 59, 59, tzinfo=UTC),
            {"title": "Night Ferry: Season 1: Fog, Rising", "show": "Night Ferry"},
        ),
        (
            datetime(2024, 3, 2, 22, 59, 59, tzinfo=UTC),
            {"title": "The Long Tide", "show": "The Long Tide"},
        ),
    ]


@pytest.mark.parametrize("day", ["2024-03-14", "14.03.24", "14/03/2024", "3/14/24"])
def test_days_in_the_account_s_language(tmp_path: Path, day: str) -> None:
    found, _ = read(tmp_path, "NetflixViewingHistory.csv", f'Title,Date\n"x","{day}"\n'.encode())
    assert [r.time for r in found] == [datetime(2024, 3, 14, 22, 59, 59, tzinfo=UTC)]


def test_days_that_nobody_can_tell_are_asked_for(tmp_path: Path) -> None:
    content = b'Title,Date\n"x","3/4/24"\n'
    with pytest.raises(InputError, match="option order"):
        read(tmp_path, "NetflixViewingHistory.csv", content)
    found, _ = read(tmp_path, "NetflixViewingHistory.csv", content, order="dmy")
    assert [r.time for r in found] == [datetime(2024, 4, 3, 21, 59, 59, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"Ann,yesterday,00:48:10,,x,,TV,1,1,DE", "`Start Time` is no time"),
        (b"Ann,2024-03-02 20:15:00,long,,x,,TV,1,1,DE", "`Duration` no length"),
        (b"Ann,2024-03-02 20:15:00,00:48:10,,,,TV,1,1,DE", "`Title` is missing"),
        (b"Ann,2024-03-02 20:15:00,00:48:10,,x,,TV,1,1", "it has 9 columns, and the header 10"),
        (b"Ann,2024-03-02 20:15:00,00:48:10,,M\xfc,,TV,1,1,DE", "no UTF-8 text"),
        (b'Ann,2024-03-02 20:15:00,00:48:10,,"a"b,,TV,1,1,DE', "a quotation mark"),
    ],
)
def test_damaged_rows_are_named(tmp_path: Path, row: bytes, reason: str) -> None:
    lines = DETAILED.split(b"\n")
    content = b"\n".join([*lines[:2], row, *lines[2:]])
    with pytest.raises(InputError, match=r"ViewingActivity\.csv, line 3: "):
        read(tmp_path, "ViewingActivity.csv", content)
    found, reading = read(tmp_path, "ViewingActivity.csv", content, skip=True)
    assert len(found) == 3
    assert len(reading.places) == 1
    assert reading.places[0].startswith("ViewingActivity.csv, line 3: ")
    assert reason in reading.places[0]


def test_a_day_unlike_the_others_is_damaged(tmp_path: Path) -> None:
    content = SHORT + b'"x","2024-03-01"\n"y","soon"\n'
    found, reading = read(tmp_path, "NetflixViewingHistory.csv", content, skip=True)
    assert len(found) == 2
    assert [place.split(":")[0] for place in reading.places] == [
        "NetflixViewingHistory.csv, line 4",
        "NetflixViewingHistory.csv, line 5",
    ]


def test_titles_and_dates_of_others_are_not_netflix_s(tmp_path: Path) -> None:
    (tmp_path / "books.csv").write_bytes(SHORT)
    assert not Netflix().recognises(Export(tmp_path / "books.csv"))
