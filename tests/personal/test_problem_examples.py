"""The guide's worked examples, run as they stand there, on invented events with known answers."""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tacit.data.schema import Schema
from tacit.errors import Leakage, UsageError
from tacit.personal.dataset import Dataset
from tacit.personal.durations import DAY, HOUR, SECOND
from tacit.personal.events import Event, moment
from tacit.personal.features.featurizer import Featurizer
from tacit.personal.features.language import parse
from tacit.personal.importing import import_export
from tacit.personal.learning.training import train
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.pipeline import Imagined, predict_with, train_and_keep
from tacit.personal.problems.declared import DeclaredInstancer
from tacit.personal.problems.instances import Instancer
from tacit.personal.problems.making import matrix_of
from tacit.personal.problems.problem import Problem
from tacit.personal.problems.row import row_of
from tacit.personal.store.store import Store

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "problems.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(toml|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOML = [tomllib.loads(text) for kind, text in BLOCK.findall(PAGE) if kind == "toml"]
PYTHON = [text for kind, text in BLOCK.findall(PAGE) if kind == "python"]
ZURICH = ZoneInfo("Europe/Zurich")


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=ZURICH)


def problem(name: str) -> Problem:
    (found,) = [document for document in TOML if document.get("name") == name]
    return Problem.from_dict(found)


def dataset(of: Problem, events: list[Event]) -> Dataset:
    return Dataset.of_events(of.types.values(), events, ZURICH)


def column(matrix: FeatureMatrix, feature: str) -> list[float]:
    place = matrix.names.index(str(parse(feature)))
    return [float(value) for value in matrix.columns[:, place]]


def test_every_block_of_the_page_is_run_here() -> None:
    assert [document.get("name") for document in TOML] == [
        "ride-price",
        "pipe-burst",
        "pass-course",
        None,  # the study's schema
    ]
    assert len(PYTHON) == 2


# ── the price of a ride ──


def ride(
    when: str, price: float | None, kilometres: float, status: str | None = "completed"
) -> Event:
    """Due north from 47 degrees: a degree is 111.195 km on a sphere of the earth's mean radius."""
    places = {
        "pickup_lat": 47.0,
        "pickup_lon": 8.0,
        "dropoff_lat": 47.0 + kilometres / 111.19508,
        "dropoff_lon": 8.0,
    }
    return Event("ride", at(when), {"status": status, "amount": price, **places})


RIDES = [
    ride("2026-01-01T08:15", 12.0, 3.0),  # a Thursday
    ride("2026-01-02T09:00", None, 5.0, "cancelled"),
    ride("2026-01-03T20:30", 24.0, 9.0),  # a Saturday
    ride("2026-01-04T20:30", None, 2.0, None),
    ride("2026-02-20T07:00", 14.0, 4.0),
]


def check_rides(matrix: FeatureMatrix) -> None:
    assert matrix.labels.tolist() == [12.0, 24.0, 14.0]
    kilometres = [metres / 1000 for metres in column(matrix, "distance(own.pickup, own.dropoff)")]
    assert kilometres == pytest.approx([3.0, 9.0, 4.0], rel=1e-6)
    assert column(matrix, "hour(moment)") == [8.0, 20.0, 7.0]
    assert column(matrix, "weekend(moment)") == [0.0, 1.0, 0.0]
    # None before the first; the first; more than 28 days ago.
    assert repr(column(matrix, "mean(ride.amount, 28d)")) == "[nan, 12.0, nan]"
    hours = [seconds / 3600 for seconds in column(matrix, "since(ride)")]
    assert math.isnan(hours[0])
    assert hours[1:] == [35.5, 24 * 46 + 10.5]


def test_the_price_of_a_ride() -> None:
    asked = problem("ride-price")
    matrix = matrix_of(asked, dataset(asked, RIDES))
    check_rides(matrix)
    assert matrix.label == "price"
    assert matrix.classes == ()
    assert matrix.keys == ("2026-01-01 08:15", "2026-01-03 20:30", "2026-02-20 07:00")
    assert matrix.cutoffs[0] == moment(at("2026-01-01T08:15"))


def test_a_status_is_not_known_beforehand() -> None:
    """As the page says."""
    (document,) = [document for document in TOML if document.get("name") == "ride-price"]
    features = {"list": [*document["features"]["list"], "own.status"]}
    with pytest.raises(Leakage, match="status"):
        Problem.from_dict({**document, "features": features})


def test_the_same_in_python() -> None:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(PYTHON[0], "problems.md", "exec"), names)  # our own page
    rides: Instancer = names["Rides"]()
    asked = problem("ride-price")
    features = Featurizer.of(*asked.declared, dearest=names["dearest"])
    matrix = matrix_of((rides, features), dataset(asked, RIDES))
    check_rides(matrix)
    assert matrix.keys == ("ride 0", "ride 2", "ride 4")
    assert matrix.columns[:, -1].tolist() == [0.0, 12.0, 24.0]
    with pytest.raises(Leakage):
        matrix_of((rides, Featurizer.of("own.amount")), dataset(asked, RIDES))
    with pytest.raises(UsageError, match="featurizer"):
        matrix_of((rides, features), dataset(asked, RIDES), features=["count(ride)"])


# ── will a pipe burst? ──


def test_will_a_pipe_burst_next_week() -> None:
    """Pipe 1 bursts in the week after each one in which more than 100 litres flow; pipe 2 never."""
    asked = problem("pipe-burst")
    mondays = [at("2026-03-02") + datetime.timedelta(weeks=week) for week in range(6)]
    hour, day = datetime.timedelta(hours=1), datetime.timedelta(days=1)
    litres = {"1": [50.0, 150.0, 60.0, 170.0, 40.0], "2": [10.0, 10.0, 10.0, 10.0, 10.0]}
    events = [
        Event("flow", mondays[week] + hour, {"pipe": pipe, "litres": amount})
        for pipe, amounts in litres.items()
        for week, amount in enumerate(amounts)
    ]
    events += [
        Event("burst", mondays[2] + 3 * day, {"pipe": "1"}),
        Event("burst", mondays[4] + 3 * day, {"pipe": "1"}),
        Event("frost", mondays[1] + 6 * day, {"degrees": -5.0}),
        Event("frost", mondays[5], {"degrees": 2.0}),  # by then the fifth week is over
    ]
    matrix = matrix_of(asked, dataset(asked, events))
    # Weeks 1 to 4, and week 5, whose answer is to come. The clocks change in the fourth.
    dates = ["2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23", "2026-03-30"]
    assert matrix.keys == tuple(f"pipe={pipe}, {date}" for date in dates for pipe in "12")
    assert matrix.classes == ("false", "true")
    assert matrix.labels[:8].tolist() == [0, 0, 1, 0, 0, 0, 1, 0]
    assert np.isnan(matrix.labels[8:]).all()
    assert column(matrix, "sum(flow.litres, 7d)") == [50, 10, 150, 10, 60, 10, 170, 10, 40, 10]
    assert column(matrix, "max(flow.litres, 7d)") == column(matrix, "sum(flow.litres, 7d)")
    assert column(matrix, "count(burst, 28d)") == [0, 0, 0, 0, 1, 0, 1, 0, 2, 0]
    since = column(matrix, "since(burst) / 86400")
    assert [since[4], since[6], since[8]] == pytest.approx([4.0, 11.0 - 1 / 24, 4.0])
    assert all(math.isnan(since[row]) for row in (0, 1, 2, 3, 5, 7, 9))
    frost = column(matrix, "min(frost.degrees, 7d)")
    assert frost[2:4] == [-5.0, -5.0]
    assert all(math.isnan(value) for value in (*frost[:2], *frost[4:]))


# ── will I pass? ──


def student(clicks: list[int], points: list[float], passed: bool | None) -> list[Event]:
    """Enrolled on the first of February; clicks and scores on these days after it."""
    start, day = at("2026-02-01T10:00"), datetime.timedelta(days=1)
    events = [Event("enrolled", start, {"course": "maths"})]
    events += [Event("click", start - 9 * day, {"page": "home"})]  # before the course
    events += [Event("click", start + n * day, {"page": "video"}) for n in clicks]
    events += [Event("score", start + 2 * day, {"points": p}) for p in points]
    if passed is not None:
        events.append(Event("result", start + 60 * day, {"passed": passed}))
    return events


@pytest.mark.parametrize(
    ("clicks", "points", "passed", "row"),
    [
        ([1, 5, 20, 40], [80.0, 60.0], True, [3.0, 8.0, 70.0, 1]),
        ([1] * 600, [], True, [500.0, 27.0, 0.0, 1]),  # clipped; filled
        ([], [20.0], False, [0.0, 28.0, 20.0, 0]),  # 37 quiet days are clipped to 28
    ],
)
def test_will_i_pass_the_course(
    clicks: list[int], points: list[float], passed: bool, row: list[float]
) -> None:
    asked = problem("pass-course")
    schema = Schema.from_dict(TOML[3])
    batch = row_of(asked, dataset(asked, student(clicks, points, passed)), schema)
    names = ("clicks", "quiet_days", "points", "passed")
    assert [float(batch.columns[name][0]) for name in names] == pytest.approx(row)


def test_the_row_is_also_a_matrix_of_one() -> None:
    asked = problem("pass-course")
    matrix = matrix_of(asked, dataset(asked, student([1], [50.0], None)), features=asked.declared)
    assert matrix.keys == ("me",)
    assert math.isnan(matrix.labels[0])


def test_the_last_block_explains_a_bundle(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(PYTHON[1], "problems.md", "exec"), {"__name__": "example"})
    said = capsys.readouterr().out
    assert "How many meetings will I have today?" in said
    assert "Each day." in said
    assert "label: the number of meeting events" in said


UBER = (
    "City,Product Type,Trip or Order Status,Request Time,Begin Trip Time,Begin Trip Lat,"
    "Begin Trip Lng,Dropoff Time,Dropoff Lat,Dropoff Lng,Distance (miles),Fare Amount,Fare Currency"
)


def test_rides_as_a_service_exports_them_fit_the_problem(tmp_path: Path) -> None:
    """From the export to the model's answer for the next ride: the fare follows the distance."""
    lines = [UBER]
    for day in range(60):
        when, degrees = f"2024-0{1 + day // 28}-{1 + day % 28:02d}", 0.02 * (1 + day % 5)
        lines.append(
            f"Bern,UberX,{'CANCELED' if day % 7 == 6 else 'COMPLETED'},{when} 08:00:00 +0000 UTC,"
            f"{when} 08:05:00 +0000 UTC,46.95,7.44,{when} 08:20:00 +0000 UTC,{46.95 + degrees},"
            f"7.44,3.0,{5 + 500 * degrees:.2f},CHF"
        )
    (tmp_path / "trips_data.csv").write_text("\n".join(lines) + "\n")
    asked = problem("ride-price")
    with Store.create(tmp_path / "me.db", ZURICH) as store:
        assert import_export(store, tmp_path / "trips_data.csv").added == {"ride": 60}
        trained = train_and_keep(store, asked)
        assert trained.report.rows == 52  # the completed ones
        assert trained.report.verdict.outcome == "better"
        known = {"pickup_lat": "46.95", "pickup_lon": "7.44"}
        there = {"dropoff_lat": "47.01", "dropoff_lon": "7.44"}
        next_ride = Imagined(moment(at("2024-03-05T09:00:00")), {**known, **there})
        _, (said,) = predict_with(store, asked, trained, imagined=next_ride)
    assert float(said.answer) == pytest.approx(35, abs=4)


COURSES = """
name = "pass-courses"
question = "Will I pass this course?"

[events.enrolled]
course = "category"

[events.click]
course = "category"

[events.result]
course = "category"
passed = "boolean"

[instance]
per = "group"
by = ["course"]
event = "enrolled"
cutoff = "28d"

[label]
value = "last(result.passed)"
horizon = "ever"
name = "passed"

[features]
list = ["count(click, own)"]
"""


def test_answers_without_an_end_are_learned_from_once_they_are_given(tmp_path: Path) -> None:
    """A course's answer is known with its result, not only at the end of all time."""
    asked = Problem.from_dict(tomllib.loads(COURSES))
    events, start = [], at("2010-01-04T08:00:00")
    for number in range(60):
        begins, course = start + datetime.timedelta(days=40 * number), f"course {number}"
        clicks = 3 + 4 * (number % 3)
        events.append(Event("enrolled", begins, {"course": course}))
        events += [
            Event("click", begins + datetime.timedelta(days=1 + i), {"course": course})
            for i in range(clicks)
        ]
        done = begins + datetime.timedelta(days=60)
        events.append(Event("result", done, {"course": course, "passed": clicks > 5}))
    instances = DeclaredInstancer(asked).make_instances(dataset(asked, events))
    assert len(instances) == 60
    assert 32 * DAY <= instances.label_span <= 32 * DAY + HOUR + 2 * SECOND  # the clocks change
    trained = train(
        matrix_of(asked, dataset(asked, events)), "boolean", label_span=instances.label_span
    )
    assert trained.report.verdict.outcome == "better"
