"""The engine against the slow and obvious way, on random events, frames and features."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from drawn_features import BASE, World, another, dataset_of, features, world, worlds
from slow_features import instances, value

from tacit.errors import InputError
from tacit.personal.dataset import Dataset
from tacit.personal.events import Event, EventType, moment
from tacit.personal.features.engine import evaluate
from tacit.personal.features.language import parse
from tacit.personal.features.nodes import Feature
from tacit.personal.frame import EVER, Frame


def computed(features: Sequence[Feature], dataset: Dataset, frame: Frame) -> list[list[Any]]:
    """The values of each feature as they are meant, None for missing."""
    columns, kinds, values = evaluate(features, dataset, frame)
    made = []
    for feature, kind, column in zip(features, kinds, columns.T.tolist(), strict=True):
        words = values[str(feature)] if kind == "category" else None
        made.append([None if math.isnan(x) else words[int(x)] if words else x for x in column])
    return made


def close(ours: Any, true: Any) -> bool:
    if ours is None or true is None or isinstance(true, str):
        return bool(ours == true)
    return math.isclose(ours, float(true), rel_tol=1e-9, abs_tol=1e-6)


@settings(max_examples=300)
@given(worlds, st.lists(features, min_size=1, max_size=4))
def test_it_computes_what_the_features_say(world: World, some: list[Any]) -> None:
    dataset = dataset_of(world.events)
    seen = instances(dataset, world.frame)
    for feature, ours in zip(some, computed(some, dataset, world.frame), strict=True):
        true = [value(feature, instance) for instance in seen]
        assert all(map(close, ours, true)), (str(feature), ours, true)


def stranger(event: Event, world: World, place: int) -> bool:
    """Whether an instance may not see it: too late, too early, or of another group."""
    if event.time is not None and moment(event.time) >= world.frame.until[place]:
        return True
    groups = world.frame.groups
    return bool(groups) and "pipe" in event.fields and event.fields["pipe"] != groups["pipe"][place]


@settings(max_examples=120)
@given(worlds, st.lists(features, min_size=1, max_size=3), st.integers(0, 10**9), st.data())
def test_what_an_instance_may_not_see_changes_nothing(
    world: World, some: list[Any], seed: int, data: st.DataObject
) -> None:
    """Every event at or after the cut-off or of another group is replaced, dropped or doubled."""
    place = data.draw(st.integers(0, world.frame.size - 1))
    frame, own = only(world.frame, place), own_event(world, place)
    others: list[Event] = []
    for number, event in enumerate(world.events):
        fate = (seed + number) % 3
        if not stranger(event, world, place) or same(event, own):
            others.append(event)
        elif fate:
            changed = another(seed + number, event.type, event.time)
            pipe = {"pipe": event.fields["pipe"]} if "pipe" in event.fields else {}
            others += [Event(event.type, event.time, {**changed.fields, **pipe})] * fate
    others += [
        another(seed + hour, type_, cutoff(frame, hour)) for hour in (0, 1) for type_ in HAPPEN
    ]
    before = evaluate(some, dataset_of(world.events), frame)
    after = evaluate(some, dataset_of(others), moved(frame, own, others))
    # To the last bit, and to the words that stand for the codes.
    np.testing.assert_array_equal(before.columns, after.columns, str([*map(str, some)]))
    assert before.values == after.values


HAPPEN = ("ride", "click", "stay")


def cutoff(frame: Frame, hours: int) -> datetime:
    return datetime.fromtimestamp(int(frame.until[0]) // 10**6, UTC) + timedelta(hours=hours)


def own_event(world: World, place: int) -> Event | None:
    row = int(world.frame.rows[place])
    return list(dataset_of(world.events).of("ride").events())[row] if row >= 0 else None


def same(event: Event, other: Event | None) -> bool:
    return other is not None and (event.time, {**event.fields}) == (other.time, {**other.fields})


def moved(frame: Frame, own: Event | None, events: list[Event]) -> Frame:
    """The own event has another place among other events."""
    if own is None:
        return frame
    rides = list(dataset_of(events).of("ride").events())
    return replace(frame, rows=np.array([rides.index(own)], np.int64))


def only(frame: Frame, place: int) -> Frame:
    at = slice(place, place + 1)
    groups = {field: values[at] for field, values in frame.groups.items()}
    return Frame(
        *(frame.since[at], frame.until[at], frame.start[at], frame.at[at]),
        groups,
        frame.own,
        frame.rows[at],
        frame.known,
    )


def test_an_event_at_the_cutoff_is_not_seen() -> None:
    kind = EventType(name="ride", fields={"price": "number"})
    times = [BASE + timedelta(hours=hour) for hour in range(4)]
    rides = [Event("ride", time, {"price": 10.0**place}) for place, time in enumerate(times)]
    until = np.array([moment(times[2]), moment(times[2]) + 1])
    window = "2h"
    texts = ["sum(ride.price)", f"sum(ride.price, {window})", "since(ride)"]
    found = computed([parse(t) for t in texts], Dataset.of_events([kind], rides), plain(until))
    assert found == [[11.0, 111.0], [11.0, 110.0], [3600.0, 1e-6]]


def plain(until: Any) -> Frame:
    nothing = np.full(len(until), -1, np.int64)
    ever = np.full(len(until), EVER)
    return Frame(ever, until, until, until, {}, None, nothing, frozenset())


def test_buckets_are_counted_back_from_the_cutoff() -> None:
    kind = EventType(name="click", fields={"weight": "number"})
    hours_ago = [1, 2, 23, 24, 25, 100]
    clicks = [Event("click", BASE - timedelta(hours=h), {"weight": h}) for h in hours_ago]
    some = {
        "last(count(click per 1d), 3d)": 4.0,  # a click 24 hours ago is in the newest bucket
        "first(count(click per 1d), 3d)": 0.0,
        "sum(count(click per 1d))": 6.0,  # back to the day of the first click
        "mean(count(click per 1d))": 6.0 / 5,
        "mean(count(click per 2d), 5d)": 5.0 / 2,  # the third bucket would be cut
        "mean(mean(click.weight per 1d))": (12.5 + 25.0 + 100.0) / 3,  # empty days say nothing
        "share(count(click per 1d) > 0)": 3.0 / 5,
        "trend(count(click per 1d), 2d)": 3.0,
        "max(max(count(click per 1h) per 1d), 5d)": 1.0,
    }
    dataset = Dataset.of_events([kind], clicks)
    until = np.array([moment(BASE)])
    found = computed([parse(text) for text in some], dataset, plain(until))
    assert [column[0] for column in found] == pytest.approx(list(some.values()))


def test_buckets_are_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    built = world(7)
    some = [parse("mean(count(ride per 12h), 9d)"), parse("mode(mode(ride.city per 1d))")]
    whole = computed(some, dataset_of(built.events), built.frame)
    monkeypatch.setattr("tacit.personal.features.buckets.CHUNK", 5)
    assert computed(some, dataset_of(built.events), built.frame) == whole


def test_too_many_buckets_are_refused() -> None:
    kind = EventType(name="click", fields={})
    clicks = [Event("click", BASE - timedelta(days=90))]
    dataset, frame = Dataset.of_events([kind], clicks), plain(np.array([moment(BASE)]))
    with pytest.raises(InputError, match="129600 buckets for one instance; 10000 are the most"):
        computed([parse("max(count(click per 1m))")], dataset, frame)


def test_no_events_and_no_instances() -> None:
    texts = ["count(ride)", "mean(ride.price, 7d)", "mode(ride.city)", "max(count(ride per 1d))"]
    some, nothing = [parse(text) for text in texts], dataset_of([])
    assert computed(some, nothing, plain(np.array([0]))) == [[0.0], [None], [None], [None]]
    assert evaluate(some, nothing, plain(np.array([], np.int64))).columns.shape == (0, 4)
    assert evaluate([], nothing, plain(np.array([0, 1]))).columns.shape == (2, 0)


def test_words_that_may_not_be_seen_do_not_show() -> None:
    """Not even as a gap in the codes: `Aarau` is of the future."""
    kind = EventType(name="ride", fields={"city": "category"})
    words = ["Zug", "Bern", "Aarau"]
    rides = [
        Event("ride", BASE + timedelta(hours=place), {"city": word})
        for place, word in enumerate(words)
    ]
    until = np.array([moment(BASE) + 1, moment(BASE + timedelta(hours=2))])
    columns, _, values = evaluate(
        [parse("last(ride.city)")], Dataset.of_events([kind], rides), plain(until)
    )
    assert columns[:, 0].tolist() == [1.0, 0.0]
    assert values == {"last(ride.city)": ("Bern", "Zug")}
