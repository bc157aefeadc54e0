"""iCalendar: the contract, each value, zones, repetition, and hostile calendars."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers import ical_components, ical_times
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.ical import ICalendar
from tacit.personal.importers.importer import Reading, Record

GOOD = """BEGIN:VCALENDAR
PRODID:-//Google Inc//Google Calendar 70.9054//EN
VERSION:2.0
CALSCALE:GREGORIAN
METHOD:PUBLISH
X-WR-CALNAME:ann@example.org
X-WR-TIMEZONE:Europe/Berlin
BEGIN:VTIMEZONE
TZID:Our Office
BEGIN:STANDARD
DTSTART:19701025T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:19700329T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VEVENT
DTSTART:20240131T070000Z
DTEND:20240131T083000Z
DTSTAMP:20240401T120000Z
UID:one@google.com
ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;CN=Bo
 b;X-NUM-GUESTS=0:mailto:bob@example.org
ATTENDEE;CN=Cy:mailto:cy@example.org
CREATED:00001231T000000Z
CATEGORIES:WORK,PLANS
DESCRIPTION:Private matters\\, not to be kept
LAST-MODIFIED:20240130T120000Z
LOCATION:Room 1\\, upstairs
SEQUENCE:0
STATUS:CONFIRMED
SUMMARY:Budget\\; and a lo
 ng title
TRANSP:OPAQUE
BEGIN:VALARM
ACTION:DISPLAY
DESCRIPTION:This is an event reminder
ATTENDEE:mailto:nobody@example.org
TRIGGER:-P0DT0H30M0S
END:VALARM
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20240210
DTEND;VALUE=DATE:20240213
DTSTAMP:20240401T120000Z
UID:two@google.com
SUMMARY:Ski
END:VEVENT
BEGIN:VEVENT
DTSTART;TZID=Our Office:20240701T090000
DURATION:PT45M
DTSTAMP:20240401T120000Z
UID:three@google.com
SUMMARY:Own zone
END:VEVENT
BEGIN:VEVENT
DTSTART;TZID=America/New_York:20240304T090000
DTEND;TZID=America/New_York:20240304T100000
RRULE:FREQ=WEEKLY;BYDAY=MO
EXDATE;TZID=America/New_York:20240318T090000
DTSTAMP:20240401T120000Z
UID:four@google.com
SUMMARY:Stand-up
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n").encode()


class TestICalendar(ImporterContract):
    importer = ICalendar()
    good: Mapping[str, bytes] = {"Takeout/Calendar/Work.ics": GOOD}
    events = 7
    zone = "Europe/Berlin"
    huge_name = "huge.ics"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b"BEGIN:VCALENDAR\r\n"
        for i in range(n):
            yield b"BEGIN:VEVENT\r\nUID:%d\r\nDTSTAMP:20240401T120000Z\r\n" % i
            yield b"DTSTART:20240131T%02d0000Z\r\n" % (i % 24)
            yield b"DESCRIPTION:" + b"d" * 20_000 + b"\r\nEND:VEVENT\r\n"
        yield b"END:VCALENDAR\r\n"


def utc(month: int, day: int, hour: int = 0, minute: int = 0) -> datetime.datetime:
    return datetime.datetime(2024, month, day, hour, minute, tzinfo=datetime.UTC)


def read(
    tmp_path: Path, content: bytes, skip: bool = False, **options: str
) -> tuple[list[Record], Reading]:
    path = tmp_path / "Work.ics"
    path.write_bytes(content)
    reading = Reading(ZoneInfo("Europe/Berlin"), options, skip_damaged=skip)
    return list(ICalendar().read(Export(path), reading)), reading


def event(*lines: str, stamp: str = "20240401T120000Z", uid: str = "u") -> str:
    return "\n".join(["BEGIN:VEVENT", f"UID:{uid}", f"DTSTAMP:{stamp}", *lines, "END:VEVENT", ""])


def calendar(*events: str) -> bytes:
    return ("BEGIN:VCALENDAR\nVERSION:2.0\n" + "".join(events) + "END:VCALENDAR\n").encode()


def times(
    tmp_path: Path, *lines: str, stamp: str = "20240401T120000Z", **options: str
) -> list[str]:
    found, _ = read(tmp_path, calendar(event(*lines, stamp=stamp)), **options)
    return [f"{one.time:%Y-%m-%d %H:%M}" for one in found]


def test_each_value_is_what_the_file_says(tmp_path: Path) -> None:
    records, reading = read(tmp_path, GOOD)
    assert reading.damages == 0
    one, ski, own, *stand_up = records
    assert (one.time, one.place) == (utc(1, 31, 7), "Work.ics, line 23")
    assert one.values == {
        "title": "Budget; and a long title",
        "location": "Room 1, upstairs",
        "calendar": "Work",
        "category": "WORK, PLANS",
        "status": "confirmed",
        "attendees": 2.0,
        "seconds": 5400.0,
        "all_day": False,
        "repeats": False,
        "uid": "one@google.com",
    }
    assert ski.time == utc(2, 9, 23)  # midnight in Berlin
    assert (ski.values["all_day"], ski.values["seconds"]) == (True, 3 * 86400.0)
    assert (own.time, own.values["seconds"]) == (utc(7, 1, 7), 2700.0)
    # Nine o'clock in New York: its summer time begins on 10 March; the 18th is left out; the file
    # is of 1 April.
    assert [one.time for one in stand_up] == [
        utc(3, 4, 14),
        utc(3, 11, 13),
        utc(3, 25, 13),
        utc(4, 1, 13),
    ]
    assert all(one.values["repeats"] for one in stand_up)


def test_nothing_of_descriptions_or_people_is_kept(tmp_path: Path) -> None:
    said = repr(read(tmp_path, GOOD)[0])
    assert "Private" not in said
    assert "bob" not in said


START = "DTSTART:20240101T090000Z"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["DTSTART:20240101T090000"], ["2024-01-01 08:00"]),  # floating: the person's zone
        (["DTSTART;TZID=W. Europe Standard Time:20240101T090000"], ["2024-01-01 08:00"]),
        ([START, "RRULE:FREQ=DAILY;COUNT=2"], ["2024-01-01 09:00", "2024-01-02 09:00"]),
        (
            [START, "RRULE:FREQ=DAILY;UNTIL=20240102T090000Z"],
            ["2024-01-01 09:00", "2024-01-02 09:00"],
        ),
        ([START, "RRULE:FREQ=DAILY;UNTIL=20240102T085959Z"], ["2024-01-01 09:00"]),
        (
            ["DTSTART;VALUE=DATE:20240101", "RRULE:FREQ=DAILY;UNTIL=20240102"],
            ["2023-12-31 23:00", "2024-01-01 23:00"],
        ),
        (
            [START, "RDATE:20240105T100000Z,20240106T100000Z", "EXDATE:20240106T100000Z"],
            ["2024-01-01 09:00", "2024-01-05 10:00"],
        ),
        (
            [START, "RRULE:FREQ=DAILY;COUNT=3", "EXDATE;VALUE=DATE:20240102"],
            ["2024-01-01 09:00", "2024-01-03 09:00"],
        ),
        (["DTSTART:20240601T090000Z", "RRULE:FREQ=DAILY"], ["2024-06-01 09:00"]),  # not begun yet
    ],
)
def test_when_it_takes_place(tmp_path: Path, lines: list[str], expected: list[str]) -> None:
    assert times(tmp_path, *lines) == expected


def test_the_newest_stamp_bounds_what_has_no_end(tmp_path: Path) -> None:
    assert len(times(tmp_path, START, "RRULE:FREQ=DAILY", stamp="20240110T000000Z")) == 10
    assert len(times(tmp_path, START, "RRULE:FREQ=DAILY", until="2024-01-05")) == 5
    # An end of its own is followed two years further, and no more.
    ended = times(tmp_path, START, "RRULE:FREQ=YEARLY;UNTIL=20990101T000000Z")
    assert [one[:4] for one in ended] == ["2024", "2025", "2026"]


def test_a_changed_repetition_stands_once(tmp_path: Path) -> None:
    content = calendar(
        event("DTSTART;TZID=Europe/Berlin:20240101T090000", "RRULE:FREQ=DAILY;COUNT=3"),
        event(
            "DTSTART;TZID=Europe/Berlin:20240102T150000",
            "RECURRENCE-ID;TZID=Europe/Berlin:20240102T090000",
        ),
        event("DTSTART:20240103T170000Z", "RECURRENCE-ID:20240103T080000Z"),
    )
    assert [one.time for one in read(tmp_path, content)[0]] == [
        utc(1, 1, 8),
        utc(1, 2, 14),
        utc(1, 3, 17),
    ]


def test_a_zone_of_one_file_is_unknown_to_the_next(tmp_path: Path) -> None:
    assert len(read(tmp_path, GOOD)[0]) == 7
    with pytest.raises(InputError, match="zone"):
        read(tmp_path, calendar(event("DTSTART;TZID=Our Office:20240701T090000")))


@pytest.mark.parametrize(
    "lines",
    [
        ["SUMMARY:no start"],
        ["DTSTART:yesterday"],
        ["DTSTART:20240101T250000Z"],
        [START, "DTEND:late"],
        [START, "DURATION:P99999999999999999D"],
        [START, "RRULE:FREQ=SECONDLY"],
        [START, "RRULE:FREQ=DAILY;COUNT=x"],
        [START, "EXDATE:never"],
        ["DTSTART;TZID=Nowhere/Atall:20240101T090000"],
        ["DTSTART:00010101T000000", "DTEND:99991231T235959"],
    ],
)
def test_damage_is_told_with_its_place_and_left_out(tmp_path: Path, lines: list[str]) -> None:
    content = calendar(event(START), event(*lines), event(START))
    with pytest.raises(InputError, match=r"Work\.ics, line 8: the event"):
        read(tmp_path, content)
    records, reading = read(tmp_path, content, skip=True)
    assert (len(records), reading.damages) == (2, 1)


def test_lines_that_are_no_property_of_use_are_passed_over(tmp_path: Path) -> None:
    content = calendar(event(START, "not a property", "X-A:" + "b" * 200_000, "SUMMARY:still here"))
    ((one,), _) = read(tmp_path, content)
    assert one.values["title"] == "still here"


def test_folds_may_fall_inside_a_letter(tmp_path: Path) -> None:
    content = calendar(event(START, "SUMMARY:Gr\u00fc\u00dfe"))
    broken = content.replace("ü".encode(), "ü".encode()[:1] + b"\r\n " + "ü".encode()[1:])
    assert read(tmp_path, broken)[0][0].values["title"] == "Grüße"


def test_other_encodings_are_damage(tmp_path: Path) -> None:
    content = calendar(event(START, "SUMMARY:x"), event(START)).replace(
        b"SUMMARY:x", b"SUMMARY:\xfc"
    )
    records, reading = read(tmp_path, content, skip=True)
    assert len(records) == 1
    assert reading.places == ["Work.ics, line 3: the event is not written in UTF-8."]


def test_a_file_that_breaks_off_says_where(tmp_path: Path) -> None:
    content = calendar(event(START), event(START))
    _, reading = read(tmp_path, content[: content.rindex(b"DTSTART")], skip=True)
    assert reading.places == ["Work.ics, line 8: the file breaks off here."]
    _, reading = read(tmp_path, content.replace(b"END:VCALENDAR\n", b""), skip=True)
    assert reading.places == ["Work.ics, line 12: the file breaks off here."]
    merged = content.replace(b"END:VEVENT\n", b"", 1)
    records, reading = read(tmp_path, merged, skip=True)
    assert (len(records), reading.damages) == (1, 1)


@pytest.mark.parametrize(
    "rule",
    ["FREQ=SECONDLY", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=YEARLY;BYHOUR=1,2,3"],
)
def test_zones_with_strange_rules_are_not_searched(tmp_path: Path, rule: str) -> None:
    content = GOOD.replace(b"FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU", rule.encode())
    records, reading = read(tmp_path, content, skip=True)
    assert (len(records), reading.damages) == (6, 1)


def test_limits_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ical_components, "MOST", 20)
    content = calendar(event(START, *["SUMMARY:x"] * 30), event(START))
    assert read(tmp_path, content, skip=True)[1].damages == 1
    monkeypatch.setattr(ical_times, "MOST_CHANGED", 2)
    changed = [event(START, f"RECURRENCE-ID:2024010{i}T090000Z") for i in range(1, 5)]
    with pytest.raises(InputError, match="changes more than 2"):
        read(tmp_path, calendar(*changed), skip=True)


def test_until_must_be_a_day(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="until"):
        read(tmp_path, GOOD, until="soon")


def test_two_readings_of_a_file_are_one_progress(tmp_path: Path) -> None:
    path = tmp_path / "Work.ics"
    path.write_bytes(GOOD)
    export = Export(path)
    list(ICalendar().read(export, Reading(ZoneInfo("UTC"))))
    assert export.seen == export.size
