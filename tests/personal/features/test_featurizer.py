"""The featurizer: features and functions side by side; functions see nothing they may not."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from drawn_features import BASE, KNOWN, dataset_of, world

from tacit.errors import UsageError
from tacit.personal.dataset import Dataset
from tacit.personal.events import Event, EventType, moment
from tacit.personal.features.conditions import fulfils
from tacit.personal.features.featurizer import FeatureFunction, Featurizer
from tacit.personal.frame import EVER, Frame

KIND = EventType(name="ride", fields={"price": "number", "city": "category"})
RIDES = [
    Event("ride", BASE + timedelta(hours=place), {"price": float(place), "city": "ab"[place % 2]})
    for place in range(6)
]


def frame() -> Frame:
    until = np.array([moment(BASE + timedelta(hours=h)) for h in (0, 3, 5)])
    rows = np.array([0, 3, -1])
    groups: dict[str, tuple[str, ...]] = {}
    return Frame(np.full(3, EVER), until, until, until, groups, "ride", rows, frozenset({"city"}))


def made(*features: str, **functions: FeatureFunction):  # type: ignore[no-untyped-def]
    dataset = Dataset.of_events([KIND], RIDES)
    keys, labels = ["x", "y", "z"], np.array([1.0, 2.0, np.nan])
    return Featurizer.of(*features, **functions).make(dataset, frame(), keys, labels, "price")


def test_features_and_functions() -> None:
    matrix = made(
        "count(ride)",
        "mode(ride.city)",
        rows=lambda seen: seen.of("ride").rows,
        any=lambda seen: seen.of("ride").rows > 0,
        own=lambda seen: (
            next((e.fields["city"] for e in seen.of("own").events()), None)
            if "own" in seen.tables
            else None
        ),
        latest=lambda seen: max((e.time for e in seen.of("ride").events()), default=None),
    )
    assert matrix.names == ("count(ride)", "mode(ride.city)", "rows", "any", "own", "latest")
    assert matrix.kinds == ("number", "category", "number", "boolean", "category", "number")
    last = BASE.timestamp() + 3600 * np.array([np.nan, 2, 4])
    np.testing.assert_array_equal(matrix.columns[:, 5], last)
    shown = [[field.value for field in row.features[:5]] for row in matrix.vectors()]
    assert shown == [
        [0.0, None, 0.0, False, "a"],
        [3.0, "a", 3.0, True, "b"],
        [5.0, "a", 5.0, True, None],
    ]
    np.testing.assert_array_equal(matrix.cutoffs, frame().until)


def test_functions_only_see_what_the_instance_may() -> None:
    for seed in range(8):
        events, seen_by = world(seed)
        featurizer = Featurizer.of(
            "count(ride)",
            "count(click)",
            rides=lambda seen: seen.of("ride").rows,
            clicks=lambda seen: seen.of("click").rows,
            fields=lambda seen: (
                "own" not in seen.tables or set(seen.of("own").kind.fields) == KNOWN
            ),
        )
        size = seen_by.size
        matrix = featurizer.make(dataset_of(events), seen_by, ["k"] * size, np.zeros(size), "label")
        np.testing.assert_array_equal(matrix.columns[:, :2], matrix.columns[:, 2:4])
        assert matrix.columns[:, 4].all()


def test_a_function_keeps_to_one_kind() -> None:
    with pytest.raises(UsageError, match="mixed: a feature function returns"):
        made(mixed=lambda seen: "many" if seen.of("ride").rows else 0.0)


def test_conditions_of_problems() -> None:
    table = Dataset.of_events([KIND], RIDES).of("ride")
    assert fulfils('city = "a" and price > 1', table).tolist() == [0, 0, 1, 0, 1, 0]
    assert fulfils("hour(time) < 2", table).tolist() == [1, 1, 0, 0, 0, 0]
