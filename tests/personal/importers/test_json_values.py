from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tacit.personal.importers import json_values as of
from tacit.personal.importers.json_values import Unreadable

UTC = datetime.UTC
VIENNA = ZoneInfo("Europe/Vienna")


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3.0), (2.5, 2.5), ("-12.50", -12.5), ("1e3", 1000.0), (None, None), ("", None)],
)
def test_numbers_come_as_numbers_or_texts(value: object, number: float | None) -> None:
    assert of.number({"a": value}, "a") == number


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (of.number, "nan"),
        (of.number, "1 234"),
        (of.number, "١٢"),
        (of.number, True),
        (of.number, 10**400),
        (of.number, float("inf")),
        (of.number, [1]),
        (of.text, 5),
        (of.flag, 1),
        (of.part, "x"),
        (of.objects, {"a": 1}),
        (of.objects, [1]),
        (of.first_of, "x"),
        (of.first_of, [1]),
        (of.instant, "yesterday"),
        (of.instant, "2024-02-30T00:00:00Z"),
        (of.instant, "0001-01-01T00:00:00+14:00"),
        (of.epoch, "9" * 20),
    ],
)
def test_other_kinds_are_unreadable_and_the_reason_shows_the_key_alone(
    read: Callable[..., Any], value: object
) -> None:
    with pytest.raises(Unreadable) as problem:
        read({"secret_key": value}, "secret_key")
    assert "`secret_key`" in str(problem.value)
    assert str(value) not in str(problem.value).replace("secret_key", "")


def test_moments_become_universal_time() -> None:
    time = datetime.datetime(2024, 7, 1, 6, 30, 0, 250_000, UTC)
    for written in ("2024-07-01T06:30:00.250Z", "2024-07-01T08:30:00.250+02:00"):
        assert of.instant({"t": written}, "t") == time
    assert of.instant({"t": "2024-07-01 08:30:00.250"}, "t", VIENNA) == time
    assert of.epoch({"t": "1719815400250"}, "t") == time
    assert of.epoch({"t": 1719815400250}, "t") == time
    assert of.instant({}, "t") is None
    assert of.epoch({}, "t") is None


def test_days_end_by_the_persons_clock() -> None:
    assert of.day_end({"d": "2024-07-01"}, "d", VIENNA) == datetime.datetime(
        2024, 7, 1, 21, 59, 59, tzinfo=UTC
    )
    for bad in ("01.07.2024", "2024-13-01"):
        with pytest.raises(Unreadable):
            of.day_end({"d": bad}, "d", VIENNA)


def test_half_a_surrogate_pair_does_not_travel_on() -> None:
    said = of.text({"a": "x\ud800y"}, "a")
    assert said == "x?y"


def test_places_lie_on_the_globe() -> None:
    assert of.place(48.2, 16.4, "p") == (48.2, 16.4)
    assert of.place(None, 16.4, "p") == (None, None)
    for lat, lon in ((90.5, 0.0), (0.0, -181.0)):
        with pytest.raises(Unreadable, match="`p`"):
            of.place(lat, lon, "p")
