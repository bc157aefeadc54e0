"""Generated features: known functions stacked, bounded, in one order; redundant ones dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.personal.dataset import Dataset
from tacit.personal.features.engine import evaluate
from tacit.personal.features.generate import generated
from tacit.personal.features.nodes import Own, children
from tacit.personal.features.redundant import without_redundant
from tacit.personal.features.signature import kind_of
from tacit.personal.frame import EVER, Frame
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.problems.problem import Problem

RIDES = {
    "name": "price",
    "question": "What will this ride cost?",
    "events": {
        "ride": {
            "price": "number",
            "city": "category",
            "surge": "boolean",
            "note": "text",
            "booked": "time",
            "pickup_lat": "number",
            "pickup_lon": "number",
            "dropoff_lat": "number",
            "dropoff_lon": "number",
        },
        "person": {"year": "number"},
    },
    "static": ["person"],
    "instance": {
        "per": "event",
        "event": "ride",
        "known": ["pickup_lat", "pickup_lon", "dropoff_lat", "dropoff_lon", "booked"],
    },
    "label": {"value": "own.price"},
}
PIPES = {
    "name": "burst",
    "question": "Will it burst?",
    "events": {"flow": {"pipe": "category", "litres": "number"}, "burst": {"pipe": "category"}},
    "instance": {"per": "window", "every": "1w", "by": ["pipe"]},
    "label": {"value": "count(burst) > 0", "horizon": "1w"},
}


def problem(document: dict[str, Any], **features: Any) -> Problem:
    return Problem.from_dict({**document, "features": features})


def texts(document: dict[str, Any], **features: Any) -> list[str]:
    chosen = problem(document, **features)
    return [str(feature) for feature in generated(chosen.types, chosen)]


def test_depth_by_depth() -> None:
    assert texts(PIPES, list=["count(flow)"], depth=0) == []
    shallow = texts(PIPES, depth=1, most=1000)
    deep = texts(PIPES, depth=2, most=1000)
    deepest = texts(PIPES, depth=3, most=1000)
    assert shallow[:4] == ["hour(moment)", "weekday(moment)", "weekend(moment)", "month(moment)"]
    assert "mean(flow.litres, 4w)" in shallow
    assert "since(burst)" in shallow
    assert deep[: len(shallow)] == shallow
    assert "mean(sum(flow.litres per 1d), 1w)" in deep
    assert deepest[: len(deep)] == deep
    assert "mean(max(count(flow per 1h) per 1d), 4w)" in deepest
    assert len(set(deepest)) == len(deepest)


def test_what_is_not_known_of_the_own_event_is_never_used() -> None:
    chosen = problem(RIDES, depth=3, most=1000)
    made = generated(chosen.types, chosen)
    for feature in made:
        assert kind_of(feature, chosen.types, "ride", chosen.instance.known)  # no Leakage
    own = {
        node.field
        for feature in made
        for node in (feature, *children(feature))
        if isinstance(node, Own)
    }
    assert own == set(chosen.instance.known)
    assert "distance(own.dropoff, own.pickup)" in map(str, made)
    assert "static(person.year)" in map(str, made)


def test_fields_that_tell_groups_apart_are_no_features() -> None:
    assert not [text for text in texts(PIPES, depth=3, most=1000) if "pipe" in text]


def test_own_spans_only_where_they_have_begun() -> None:
    assert "count(flow, own)" in texts(PIPES, depth=1, most=1000)
    assert not [text for text in texts(RIDES, depth=2, most=1000) if ", own)" in text]


@pytest.mark.parametrize("most", [1, 5, 50])
def test_bounded_with_those_listed(most: int) -> None:
    listed = ["count(flow, 7d)", "hour(moment)"][:most]
    made = texts(PIPES, list=listed, depth=2, most=most)
    assert len(made) == most - len(listed)
    assert "hour(moment)" not in made or len(listed) < 2


def test_all_of_them_can_be_computed() -> None:
    chosen = problem(RIDES, depth=3, most=1000)
    made = generated(chosen.types, chosen)
    until = np.array([0, 10**15])
    frame = Frame(
        np.full(2, EVER),
        until,
        until,
        until,
        {},
        "ride",
        np.array([-1, -1]),
        frozenset(chosen.instance.known),
    )
    found = evaluate(made, Dataset.of_events(chosen.types.values(), []), frame)
    assert found.columns.shape == (2, len(made))


# ── redundant ones ──


def matrix(**columns: list[float]) -> FeatureMatrix:
    data = np.array(list(columns.values()), np.float64).T
    rows = len(data)
    kinds = ["category" if name.startswith("c") else "number" for name in columns]
    return FeatureMatrix(
        tuple(map(str, range(rows))), np.arange(rows), tuple(columns), tuple(kinds), data,  # type: ignore[arg-type]
        np.zeros(rows), "label",
    )  # fmt: skip


def test_redundant_columns_go_and_say_why() -> None:
    nan = np.nan
    kept, dropped = without_redundant(
        matrix(
            a=[1, 2, 3, 5],
            twice=[2, 4, 6, 10],
            minus=[-1, -2, -3, -5.001],
            other=[1, -1, 1, 2],
            missing=[nan] * 4,
            constant=[7, 7, nan, 7],
            part=[1, 2, 3, nan],
            c1=[0, 1, 2, 3],
            c2=[0, 1, 2, 3],
            c3=[0, 2, 1, 3],
        )
    )
    assert kept == ("a", "other", "part", "c1", "c3")
    assert dropped == {
        "twice": "says the same as a",
        "minus": "says the same as a",
        "missing": "never known",
        "constant": "always the same",
        "c2": "says the same as c1",
    }


def test_one_row_leaves_nothing() -> None:
    assert without_redundant(matrix(a=[1.0]))[0] == ()
