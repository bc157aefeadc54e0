"""Whole answers over invented lives in which the truth is known."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tacit.errors import InputError, UsageError
from tacit.personal.ask.answering import Answer, answer
from tacit.personal.ask.case import LEAST_EXAMPLES
from tacit.personal.ask.frequency import counted, wilson
from tacit.personal.ask.understanding import understand
from tacit.personal.dataset import Dataset
from tacit.personal.events import Event, EventType, Value

ZONE = ZoneInfo("Europe/Zurich")
NOW = datetime.datetime(2026, 3, 11, 9, 0, tzinfo=ZONE)  # a Wednesday
DAY = datetime.timedelta(days=1)
EXAM = EventType(name="exam", fields={"passed": "boolean", "course": "category"}, words=("test",))
SLEEP = EventType(name="sleep", fields={"hours": "number"})
RIDE = EventType(name="ride", fields={"price": "number", "destination": "category"})
BURST = EventType(name="burst", fields={"pipe": "category"})
FLOW = EventType(name="flow", fields={"pipe": "category", "litres": "number"})


def day(back: int, hour: float) -> datetime.datetime:
    """So many days before today, at this hour."""
    midnight = NOW.replace(hour=0) - back * DAY
    return midnight + datetime.timedelta(hours=hour)


def asked(question: str, dataset: Dataset, now: datetime.datetime = NOW) -> Answer:
    def values(type_: str, field: str) -> list[str]:
        return sorted(set(dataset.of(type_).codes(field)[1]))

    return answer(understand(question, dataset.types, values, now), dataset, now)


def student(days: int, noise: bool = False, last_night: float = 4.0) -> Dataset:
    """An exam each day at noon; passed nine times of ten after a night of six hours or more, and
    one time of ten after a shorter one; or, with `noise`, by a coin. Today's is still to come."""
    draws = np.random.default_rng(7)
    events = []
    for back in range(days, -1, -1):
        hours = last_night if back == 0 else float(draws.uniform(4, 8))
        chance = 0.5 if noise else 0.9 if hours >= 6 else 0.1
        passed = None if back == 0 else bool(draws.uniform() < chance)
        events.append(Event("sleep", day(back, 7), {"hours": hours}))
        events.append(Event("exam", day(back, 12), {"passed": passed, "course": "algebra"}))
    return Dataset.of_events([EXAM, SLEEP], events, ZONE)


@pytest.fixture(scope="module")
def life() -> Dataset:
    return student(250)


QUESTION = "How likely am I to pass the exam today?"


@pytest.fixture(scope="module")
def today(life: Dataset) -> Answer:
    return asked(QUESTION, life)


def test_chance_follows_what_it_depends_on(today: Answer) -> None:
    """Today's exam stands in the calendar, after a night of four hours."""
    assert today.method == "model"
    assert not today.imagined
    assert isinstance(today.results[0].value, float)
    assert 0 < today.results[0].value < 0.3
    assert today.examples == 250
    assert today.trust.grade in ("fairly", "well")
    assert "chance is" in today.says
    assert any("hours of sleep" in line for line in today.how)


def test_what_is_supposed_changes_the_chance(life: Dataset) -> None:
    question = "How likely am I to pass the exam tomorrow if I sleep {}?"
    little = asked(question.format("less than five hours"), life)
    much = asked(question.format("more than seven hours"), life)
    assert little.imagined
    assert isinstance(little.results[0].value, float)
    assert isinstance(much.results[0].value, float)
    assert little.results[0].value < 0.3 < 0.7 < much.results[0].value
    assert any("imagined" in line for line in much.how)
    assert any("calendar" in line for line in much.helps)


def test_noise_is_not_to_be_trusted_at_all() -> None:
    said = asked(QUESTION, student(250, noise=True))
    assert said.method == "counting"
    assert said.trust.grade == "not at all"
    result = said.results[0]
    assert isinstance(result.value, float)
    assert result.low is not None
    assert result.high is not None
    assert result.low < 0.5 < result.high
    assert said.helps


def test_few_examples_are_counted() -> None:
    said = asked(QUESTION, student(8))
    assert said.method == "counting"
    assert said.examples == 8 < LEAST_EXAMPLES
    assert said.trust.grade == "not at all"
    result = said.results[0]
    assert isinstance(result.value, float)
    hits = round(result.value * 8)
    assert (result.low, result.high) == wilson(hits, 8)
    assert "12 more" in said.helps[0]


def test_nothing_to_count() -> None:
    none = Dataset.of_events([EXAM, SLEEP], [], ZONE)
    said = asked("How likely am I to pass the exam tomorrow?", none)
    assert said.results[0].value is None
    assert said.trust.grade == "not at all"


def test_weeks_of_rides() -> None:
    """Two rides on working days, none at weekends: Saturday is told from the others."""
    events = [
        Event("ride", day(back, hour), {"price": 20.0, "destination": "office"})
        for back in range(210, 0, -1)
        if day(back, 0).weekday() < 5
        for hour in (8, 18)
    ]
    dataset = Dataset.of_events([RIDE], events, ZONE)
    said = asked("How many rides will I take on Saturday?", dataset)
    assert said.method == "model"
    assert said.trust.grade != "not at all"
    result = said.results[0]
    assert isinstance(result.value, float)
    assert result.value < 0.5
    assert result.low is not None
    assert result.low <= result.value


def farm(days: int) -> Dataset:
    """Three pipes, of which the third bursts every week."""
    events = [
        Event("flow", day(back, 6), {"pipe": pipe, "litres": 5.0})
        for back in range(days, -1, -1)
        for pipe in ("1", "2", "3")
    ]
    events += [Event("burst", day(back, 5), {"pipe": "3"}) for back in range(days - 1, 0, -7)]
    return Dataset.of_events([FLOW, BURST], events, ZONE)


def test_the_pipe_that_bursts_comes_first() -> None:
    said = asked("Which pipe will burst next week?", farm(200))
    assert said.results[0].key.startswith("pipe=3")
    chances = [result.value for result in said.results]
    assert len(chances) == 3
    assert isinstance(chances[0], float)
    assert isinstance(chances[1], float)
    assert chances[0] > 0.7 > 0.3 > chances[1]


def test_one_pipe_is_asked_about() -> None:
    """Four weeks are too few for a model, and each pipe is counted by itself."""
    (third,) = asked("How likely is pipe 3 to burst next week?", farm(30)).results
    (first,) = asked("How likely is pipe 1 to burst next week?", farm(30)).results
    assert third.key.startswith("pipe=3")
    assert (third.value, first.value) == (1.0, 0.0)


def test_conditions_narrow_the_examples() -> None:
    events = [
        Event(
            "ride",
            day(back, 8),
            {"price": 50.0 + back % 3, "destination": "airport"}
            if back % 2
            else {"price": 10.0, "destination": "office"},
        )
        for back in range(30, 0, -1)
    ]
    dataset = Dataset.of_events([RIDE], events, ZONE)
    said = asked("How much will a ride to the airport cost tomorrow?", dataset)
    assert said.examples == 15
    assert said.results[0].value == pytest.approx(51)


def test_what_stands_in_the_calendar_is_said() -> None:
    life = student(8).with_event(Event("exam", day(-2, 12), {}))
    said = asked("How many exams will I have in the next 3 days?", life)
    assert any("1 such exam events are recorded" in line for line in said.how)


def test_counting_goes_by_what_is_supposed() -> None:
    """Too few for a model: passed after every long night, and after no short one."""
    events = [
        event
        for back in range(12, 0, -1)
        for event in (
            Event("sleep", day(back, 7), {"hours": 8.0 if back % 3 else 5.0}),
            Event("exam", day(back, 12), {"passed": bool(back % 3)}),
        )
    ]
    life = Dataset.of_events([EXAM, SLEEP], events, ZONE)
    question = "How likely am I to pass the exam tomorrow if I sleep {} than 6 hours?"
    little, much = (asked(question.format(word), life) for word in ("less", "more"))
    assert (little.results[0].value, much.results[0].value) == (0.0, 1.0)
    assert "Counted were the 4 examples in which what you suppose held." in little.how


def test_which_song() -> None:
    play = EventType(name="play", fields={"song": "category"}, words=("listen",))
    songs = ["Blue", "Red", "Blue", "Blue"]
    events = [Event("play", day(9 - i, 20), {"song": song}) for i, song in enumerate(songs)]
    said = asked("Which song will I listen to next?", Dataset.of_events([play], events, ZONE))
    assert said.results[0].value == "Blue"
    assert said.results[0].chances == (("Blue", 0.75), ("Red", 0.25))
    assert "Blue 75%" in said.says


def test_the_unsure_must_choose(life: Dataset) -> None:
    def values(type_: str, field: str) -> list[str]:
        return []

    unsure = understand("Will I pass the xylophone exam today?", life.types, values, NOW)
    with pytest.raises(UsageError, match="xylophone"):
        answer(unsure, life, NOW)
    with pytest.raises(UsageError, match="there are"):
        answer(unsure, life, NOW, choice=9)
    few = student(8)
    assert answer(unsure, few, NOW, choice=1).examples == 8
    with pytest.raises(InputError, match="You could ask"):
        answer(understand("Is blue green?", life.types, values, NOW), life, NOW)


def test_the_future_is_not_learned_from(life: Dataset, today: Answer) -> None:
    """An export from later changes nothing in an answer as of now."""
    later = life
    for ahead in range(1, 60):
        later = later.with_event(Event("exam", day(-ahead, 12), {"passed": False}))
    assert asked(QUESTION, later).results == today.results


def test_days_after_the_export_are_not_days_without_rides() -> None:
    """The export of rides ends forty days ago; nights are recorded until today."""
    fields: dict[str, Value] = {"price": 20.0, "destination": "office"}
    events = [Event("ride", day(back, 8), fields, "rides.csv") for back in range(50, 40, -1)]
    events += [Event("sleep", day(b, 7), {"hours": 7.0}, "watch") for b in range(300, -1, -1)]
    dataset = Dataset.of_events([RIDE, SLEEP], events, ZONE)
    said = asked("Will I take a ride tomorrow?", dataset)
    assert said.examples == 8  # the whole days between the first ride and the last
    assert said.results[0].value == 1.0
    assert any("41 days old" in line for line in said.helps)


def test_counting() -> None:
    assert counted("boolean", np.array([1.0, 0.0, np.nan, 1.0]), ("false", "true")).value == 2 / 3
    assert counted("number", np.arange(11.0), ()).low == 1.0
    found = counted("category", np.array([0.0, 1.0, 1.0]), ("a", "b"))
    assert found.value == "b"
    assert found.shares == (("b", 2 / 3), ("a", 1 / 3))
    assert counted("boolean", np.array([np.nan]), ()).value is None


@pytest.mark.parametrize(("hits", "of"), [(0, 10), (5, 10), (10, 10), (1, 1)])
def test_wilson(hits: int, of: int) -> None:
    """Against the score test that it inverts: at the bounds it is just not rejected."""
    low, high = wilson(hits, of)
    assert 0 <= low <= hits / of <= high <= 1
    for bound in (low, high):
        if 0 < bound < 1:
            z = abs(hits / of - bound) / np.sqrt(bound * (1 - bound) / of)
            assert z == pytest.approx(1.959964, rel=1e-4)
