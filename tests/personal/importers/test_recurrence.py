"""Rules of repetition: the same days as dateutil gives, and no search without an end."""

from __future__ import annotations

import datetime
import itertools

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.personal.importers.recurrence import MOST, Rule, days

FIRST = datetime.date(2024, 1, 31)
FAR = datetime.date(2034, 1, 1)


def parts(text: str) -> dict[str, list[object]]:
    pairs = (part.split("=") for part in text.split(";"))
    return {name: list(values.split(",")) for name, values in pairs}


def ours(text: str, first: datetime.date = FIRST, last: datetime.date = FAR) -> list[datetime.date]:
    return list(days(Rule.of(parts(text)), first, last))


def dateutil_s(text: str, first: datetime.date, last: datetime.date) -> list[datetime.date]:
    start = datetime.datetime.combine(first, datetime.time())
    found = rrulestr(text, dtstart=start)
    end = datetime.datetime.combine(last, datetime.time())
    return [one.date() for one in itertools.takewhile(lambda one: one <= end, found)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FREQ=DAILY;COUNT=3", ["2024-01-31", "2024-02-01", "2024-02-02"]),
        ("FREQ=WEEKLY;INTERVAL=2;COUNT=2", ["2024-01-31", "2024-02-14"]),
        ("FREQ=MONTHLY;COUNT=3", ["2024-01-31", "2024-03-31", "2024-05-31"]),
        ("FREQ=MONTHLY;BYDAY=-1FR;COUNT=2", ["2024-02-23", "2024-03-29"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=2", ["2024-01-31", "2024-02-29"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=2", ["2024-01-31", "2024-02-29"]),
        ("FREQ=YEARLY;COUNT=2", ["2024-01-31", "2025-01-31"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;COUNT=2", ["2024-02-29", "2028-02-29"]),
        ("FREQ=YEARLY;BYDAY=1MO;COUNT=2", ["2025-01-06", "2026-01-05"]),
        ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;COUNT=1", ["2024-11-28"]),
    ],
)
def test_the_days_of_known_rules(text: str, expected: list[str]) -> None:
    assert [day.isoformat() for day in ours(text)] == expected


weekdays = st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"])


@st.composite
def rules(draw: st.DrawFn) -> str:
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    said = [f"FREQ={frequency}", f"INTERVAL={draw(st.integers(1, 4))}"]
    if draw(st.booleans()):
        said.append(f"COUNT={draw(st.integers(1, 30))}")
    if draw(st.booleans()):
        months = draw(st.sets(st.integers(1, 12), min_size=1, max_size=4))
        said.append(f"BYMONTH={','.join(map(str, sorted(months)))}")
    if draw(st.booleans()):
        nths = frequency in ("MONTHLY", "YEARLY") and draw(st.booleans())
        which = draw(st.sets(weekdays, min_size=1, max_size=3))
        nth = draw(st.sampled_from([-2, -1, 1, 2, 4])) if nths else ""
        said.append(f"BYDAY={','.join(f'{nth}{day}' for day in sorted(which))}")
    if frequency != "WEEKLY" and draw(st.booleans()):
        month_days = draw(
            st.sets(st.one_of(st.integers(1, 31), st.integers(-5, -1)), min_size=1, max_size=4)
        )
        said.append(f"BYMONTHDAY={','.join(map(str, sorted(month_days)))}")
    if frequency != "DAILY" and len(said) > 2 and draw(st.booleans()):
        said.append(f"BYSETPOS={draw(st.sampled_from([1, 2, -1]))}")
    if draw(st.booleans()):
        said.append(f"WKST={draw(weekdays)}")
    return ";".join(said)


@settings(max_examples=60, deadline=None)
@given(rules(), st.dates(datetime.date(2019, 1, 1), datetime.date(2024, 12, 31)))
def test_dateutil_gives_the_same_days(text: str, first: datetime.date) -> None:
    last = first + datetime.timedelta(days=1200)
    further = ours(text, first, last + 3 * (last - first))
    times = Rule.of(parts(text)).times
    if not any(day > last for day in further) and len(further) != times:
        return  # dateutil would search to the year 9999 for the next day
    try:
        theirs = dateutil_s(text, first, last)
    except ValueError:  # what dateutil refuses is no rule
        return
    assert ours(text, first, last) == theirs


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;INTERVAL=7;BYDAY=MO",
        "FREQ=MONTHLY;INTERVAL=12;BYMONTH=3",
        "FREQ=MONTHLY;BYSETPOS=300;BYDAY=MO",
        "FREQ=DAILY;BYMONTH=13",
    ],
)
def test_a_rule_that_never_comes_true_ends(text: str) -> None:
    assert ours(text, FIRST, datetime.date.max) == []


def test_endless_rules_are_cut_off() -> None:
    assert len(ours("FREQ=DAILY", FIRST, datetime.date.max)) == MOST
    assert len(ours("FREQ=DAILY;COUNT=99999999", FIRST, datetime.date.max)) == MOST
    assert max(ours("FREQ=YEARLY", FIRST, datetime.date.max)).year == 2124


@pytest.mark.parametrize("freq", ["DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
def test_the_ends_of_time_are_no_fault(freq: str) -> None:
    near = datetime.date.max - datetime.timedelta(days=40)
    assert ours(f"FREQ={freq}", near, datetime.date.max)[0] == near
    assert ours(f"FREQ={freq};WKST=SU", datetime.date.min, FIRST)[0] == datetime.date.min


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=SECONDLY",
        "FREQ=HOURLY;INTERVAL=2",
        "INTERVAL=2",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=-1",
        "FREQ=YEARLY;BYWEEKNO=20",
        "FREQ=DAILY;BYHOUR=9,10",
        "FREQ=WEEKLY;BYDAY=1MO",
        "FREQ=WEEKLY;BYDAY=XX",
        "FREQ=DAILY;COUNT=x",
        "FREQ=DAILY;WKST=XX",
    ],
)
def test_other_rules_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not|no|invalid"):
        Rule.of(parts(text))
