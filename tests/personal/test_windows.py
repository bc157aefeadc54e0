"""Windows of the person's calendar, against the calendar itself, hour by hour."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.personal.durations import DAY, HOUR, MINUTE, WEEK
from tacit.personal.events import moment
from tacit.personal.problems.windows import edges, midnight

ZONES = [
    "UTC",
    "Europe/Zurich",
    "America/Sao_Paulo",  # changed its clocks at midnight until 2019
    "America/Havana",  # falls back into midnight
    "Australia/Lord_Howe",  # by half an hour
    "Pacific/Apia",  # left out the 30th of December 2011
    "Asia/Kathmandu",  # + 5:45
]


def at(text: str, zone: str = "UTC") -> int:
    return moment(datetime.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)))


def local(instant: int, zone: ZoneInfo) -> datetime.datetime:
    utc = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(
        microseconds=instant
    )
    return utc.astimezone(zone)


@given(
    st.sampled_from(ZONES),
    st.integers(at("2009-01-01"), at("2019-12-31")),
    st.integers(0, 40 * DAY),
    st.sampled_from([30 * MINUTE, HOUR, 6 * HOUR, DAY, 3 * DAY, WEEK, 2 * WEEK]),
)
def test_windows_cover_the_stretch_and_follow_the_wall(
    zone: str, first: int, length: int, every: int
) -> None:
    found = edges(first, first + length, every, ZoneInfo(zone))
    assert found[0] <= first < found[1]
    assert found[-2] <= first + length < found[-1]
    assert (np.diff(found) > 0).all()
    for edge in found.tolist():
        here, before = local(edge, ZoneInfo(zone)), local(edge - 1, ZoneInfo(zone))
        changed = here.utcoffset() != before.utcoffset()
        if not changed:  # the wall shows a whole number of windows since midnight
            wall = here.hour * HOUR + here.minute * MINUTE + here.second * 1_000_000
            assert wall % min(every, DAY) == 0
            assert here.microsecond == 0
        if every % WEEK == 0:
            assert here.weekday() == 0


@pytest.mark.parametrize("zone", ZONES)
def test_each_day_is_a_window(zone: str) -> None:
    """Every moment of a year lies in the window of its own date, and no other date's."""
    there = ZoneInfo(zone)
    first, last = at("2011-01-01T12:00"), at("2011-12-31T12:00")
    found = edges(first, last, DAY, there)
    for low, high in zip(found[:-1].tolist(), found[1:].tolist(), strict=True):
        assert local(low, there).date() == local(high - 1, there).date()
        assert local(low - 1, there).date() < local(low, there).date()
    days = {local(instant, there).date() for instant in range(first, last, HOUR)}
    assert len(found) - 1 == len(days)


def test_days_with_other_than_24_hours() -> None:
    found = edges(at("2024-03-30T12:00"), at("2024-04-01T12:00"), DAY, ZoneInfo("Europe/Zurich"))
    assert (np.diff(found) // HOUR).tolist() == [24, 23, 24]
    found = edges(at("2024-10-26T12:00"), at("2024-10-28T12:00"), DAY, ZoneInfo("Europe/Zurich"))
    assert (np.diff(found) // HOUR).tolist() == [24, 25, 24]
    week = edges(at("2024-03-27T12:00"), at("2024-03-27T12:00"), WEEK, ZoneInfo("Europe/Zurich"))
    assert (np.diff(week) // HOUR).tolist() == [7 * 24 - 1]


def test_an_hour_that_the_clock_skips_or_repeats() -> None:
    zurich = ZoneInfo("Europe/Zurich")
    spring = edges(at("2024-03-31T00:30"), at("2024-03-31T02:30"), HOUR, zurich)
    assert (np.diff(spring) // HOUR).tolist() == [1, 1, 1]  # 1, 3, 4 o'clock
    autumn = edges(at("2024-10-26T23:30"), at("2024-10-27T02:30"), HOUR, zurich)
    assert (np.diff(autumn) // HOUR).tolist() == [1, 2, 1]  # 1, 2 and 2 again, 3 o'clock


def test_midnight_is_the_first_moment_of_the_day() -> None:
    assert midnight(datetime.date(2024, 7, 1), ZoneInfo("Europe/Zurich")) == at("2024-06-30T22:00")
    # The clocks went from midnight to one o'clock.
    assert midnight(datetime.date(2018, 11, 4), ZoneInfo("America/Sao_Paulo")) == at(
        "2018-11-04T03:00"
    )


def test_absurd_stretches_are_refused_or_bounded() -> None:
    with pytest.raises(InputError, match="absurd date"):
        edges(at("0001-01-02"), at("9999-12-30"), MINUTE, ZoneInfo("UTC"))
    found = edges(at("9999-12-30T12:00"), at("9999-12-31T12:00"), DAY, ZoneInfo("UTC"))
    assert len(found) == 3
