"""No feature sees what is to be predicted: neither by definition nor in what is computed."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tacit.personal.dataset import Dataset
from tacit.personal.events import Event, EventType, moment
from tacit.personal.features.language import parse
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.problems.declared import DeclaredInstancer
from tacit.personal.problems.instances import Instances
from tacit.personal.problems.making import matrix_of, matrix_over
from tacit.personal.problems.problem import FeatureTerms, InstanceTerms, LabelTerms, Problem

FIRST = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)  # a Monday
FLOW = EventType(name="flow", fields={"pipe": "category", "litres": "number", "planned": "number"})
BURST = EventType(name="burst", fields={"pipe": "category", "size": "number"})
TYPES = (FLOW, BURST)
HOURS = 10 * 24
NOW = moment(FIRST + datetime.timedelta(hours=2 * HOURS))

FEATURES = (
    "count(flow)",
    "sum(flow.litres, 3d)",
    "last(flow.litres)",
    "max(burst.size)",
    "since(burst) + since(flow)",
    "mode(flow.pipe)",
    "distinct(burst.pipe, 3d)",
    "mean(count(flow per 1d), 7d)",
    "trend(flow.litres)",
    "count(flow, own)",
    "hour(moment)",
)
KINDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"per": "event", "event": "flow", "known": ("planned",)}, {"value": "own.litres"}),
    ({"per": "event", "event": "flow", "by": ("pipe",)}, {"value": "own.litres"}),
    ({"per": "event", "event": "flow"}, {"value": "sum(burst.size)", "horizon": "3d"}),
    ({"per": "event", "event": "flow", "lead": "5h"}, {"value": "count(flow)", "horizon": "3d"}),
    ({"per": "window", "every": "1w", "by": ("pipe",)}, {"value": "last(burst.size)"}),
    ({"per": "window", "every": "1d"}, {"value": "count(burst) > 0", "horizon": "2d"}),
    ({"per": "window", "every": "1d", "lead": "3h"}, {"value": "sum(flow.litres)"}),
    ({"per": "session", "event": "flow", "gap": "12h", "cutoff": "1h"}, {"value": "count(flow)"}),
    ({"per": "group", "by": ("pipe",), "cutoff": "3d"}, {"value": "sum(flow.litres)"}),
    ({"per": "user", "cutoff": "4d"}, {"value": "mean(burst.size)", "horizon": "5d"}),
    ({"per": "user", "cutoff": "2024-01-09"}, {"value": "count(burst)", "horizon": "ever"}),
]


def problem(instance: dict[str, Any], label: dict[str, Any], **features: Any) -> Problem:
    more = ("own.planned * 2",) if "known" in instance else ()
    return Problem(
        name="pipes",
        question="Will it burst?",
        events={kind.name: dict(kind.fields) for kind in TYPES},
        instance=InstanceTerms(**instance),
        label=LabelTerms(**label),
        features=FeatureTerms(**(features or {"list": (*FEATURES, *more)})),
    )


hours = st.integers(0, HOURS)  # coarse, so that many fall on or beside a cut-off
pipes = st.sampled_from(["a", "b", None])
amounts = st.sampled_from([0.0, 1.0, 7.0, None])


def event(kind: str, hour: int, pipe: str | None, amount: float | None) -> Event:
    when = FIRST + datetime.timedelta(hours=hour)
    if kind == "flow":
        return Event("flow", when, {"pipe": pipe, "litres": amount, "planned": 1.0 * hour})
    return Event("burst", when, {"pipe": pipe, "size": amount})


some_events = st.lists(
    st.builds(event, st.sampled_from(["flow", "burst"]), hours, pipes, amounts),
    min_size=2,
    max_size=30,
)


def data(events: list[Event]) -> Dataset:
    return Dataset.of_events(TYPES, events)


def time_of(one: Event) -> int:
    assert one.time is not None
    return moment(one.time)


def identity(instances: Instances, place: int) -> tuple[Any, ...]:
    """What makes it the same instance over other events."""
    assert instances.starts is not None
    group = tuple(values[place] for values in instances.groups.values())
    return group, int(instances.starts[place]), int(instances.cutoffs[place])


def row(matrix: FeatureMatrix, place: int) -> list[Any]:
    """Features as they are meant, so that another numbering of categories is no difference."""
    (vector,) = matrix.take(np.array([place])).vectors()
    return [feature.value for feature in vector.features]


def others(events: list[Event], chosen: list[bool], fresh: list[Event], keep: Event | None) -> Any:
    """Some of the events left out and fresh ones added; `keep` stays whatever is chosen."""
    kept = [e for e, stays in zip(events, chosen, strict=False) if stays or e is keep]
    return kept + events[len(chosen) :] + fresh


@given(
    st.sampled_from(KINDS), some_events, some_events, st.lists(st.booleans()), st.integers(0, 99)
)
def test_what_happens_from_the_cutoff_on_never_changes_a_feature(
    kind: tuple[dict[str, Any], dict[str, Any]],
    events: list[Event],
    fresh: list[Event],
    chosen: list[bool],
    pick: int,
) -> None:
    asked = problem(*kind)
    times = {time_of(e) for e in events}
    instances = DeclaredInstancer(asked).make_instances(data(events), NOW)
    assume(len(instances) > 0)
    place = pick % len(instances)
    cutoff = int(instances.cutoffs[place])
    own = None
    if instances.rows is not None:
        at = instances.rows[place]
        own = sorted([e for e in events if e.type == "flow"], key=time_of)[int(at)]
    before = [e for e in events if time_of(e) < cutoff]
    after = [e for e in events if time_of(e) >= cutoff]
    new = [e for e in fresh if time_of(e) >= cutoff and time_of(e) not in times]
    # The own event stays, at its moment and with what is known of it, but whatever else it says
    # changes.
    changed = before + others(after, chosen, new, own)
    if own is not None and own in after:
        fields = {**own.fields, "litres": 99.0}
        changed = [Event("flow", own.time, fields) if e is own else e for e in changed]
    again = DeclaredInstancer(asked).make_instances(data(changed), NOW)
    same = [i for i in range(len(again)) if identity(again, i) == identity(instances, place)]
    assume(same)
    features = [parse(text) for text in asked.declared]
    expected = row(matrix_over(instances, features), place)
    assert any(row(matrix_over(again, features), i) == expected for i in same)


@given(
    st.sampled_from(KINDS), some_events, some_events, st.lists(st.booleans()), st.integers(0, 99)
)
def test_what_happened_before_the_stretch_never_changes_a_label(
    kind: tuple[dict[str, Any], dict[str, Any]],
    events: list[Event],
    fresh: list[Event],
    chosen: list[bool],
    pick: int,
) -> None:
    asked = problem(*kind)
    times = {time_of(e) for e in events}
    instances = DeclaredInstancer(asked).make_instances(data(events), NOW)
    assume(len(instances) > 0)
    place = pick % len(instances)
    since = int(instances.label_since[place])
    before = [e for e in events if time_of(e) < since]
    after = [e for e in events if time_of(e) >= since]
    new = [e for e in fresh if time_of(e) < since and time_of(e) not in times]
    changed = others(before, chosen, new, None) + after
    again = DeclaredInstancer(asked).make_instances(data(changed), NOW)
    same = [
        i
        for i in range(len(again))
        if identity(again, i) == identity(instances, place)
        and again.label_until[i] == instances.label_until[place]
    ]
    assume(same)
    expected = instances.labels.field("label", place)
    assert any(again.labels.field("label", i) == expected for i in same)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_features_are_those_of_the_events_before_the_cutoff(
    kind: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    """With the future cut away, every feature of every instance is the same."""
    draw = np.random.default_rng(7)
    events = [
        event(
            str(draw.choice(["flow", "burst"])),
            int(draw.integers(HOURS)),
            [None, "a", "b"][draw.integers(3)],
            float(draw.integers(9)),
        )
        for _ in range(60)
    ]
    asked = problem(*kind)
    features = [parse(text) for text in asked.declared if "own." not in text]
    instances = DeclaredInstancer(asked).make_instances(data(events), NOW)
    whole = matrix_over(instances, features)
    assert whole.rows
    for place in range(whole.rows):
        past = data([e for e in events if time_of(e) < instances.cutoffs[place]])
        alone = Instances(
            dataset=past,
            keys=("alone",),
            cutoffs=instances.cutoffs[place : place + 1],
            label="count(burst)",
            label_since=instances.cutoffs[place : place + 1],
            label_until=instances.cutoffs[place : place + 1],
            now=NOW,
            starts=None if instances.starts is None else instances.starts[place : place + 1],
            moments=None if instances.moments is None else instances.moments[place : place + 1],
            groups={name: (values[place],) for name, values in instances.groups.items()},
        )
        assert row(matrix_over(alone, features), 0) == row(whole, place)


def planted(offset: int) -> tuple[Problem, Dataset]:
    """Weeks burst or not by the toss of a coin, and an alarm at their beginning (and so many
    microseconds later) tells which."""
    draw = np.random.default_rng(3)
    week = datetime.timedelta(weeks=1)
    alarm = EventType(name="alarm", fields={"level": "number"})
    beat = EventType(name="beat", fields={"level": "number"})
    events = []
    for number in range(120):
        start = FIRST + number * week
        bursts = bool(draw.random() < 0.5)
        shift = datetime.timedelta(microseconds=offset)
        events.append(Event("beat", start + week / 2, {"level": float(draw.random())}))
        events.append(Event("alarm", start + shift, {"level": 5.0 * bursts}))
        if bursts:
            events.append(Event("burst", start + week / 3, {"pipe": "a", "size": 1.0}))
    asked = Problem(
        name="alarms",
        question="Will it burst next week?",
        events={"alarm": {"level": "number"}, "beat": {"level": "number"}, "burst": {}},
        instance=InstanceTerms(per="window", every="1w"),
        label=LabelTerms(value="count(burst) > 0", horizon="1w"),
        features=FeatureTerms(list=("last(alarm.level)",), depth=2, most=1000),
    )
    return asked, Dataset.of_events((alarm, beat, BURST), events)


def strongest(matrix: FeatureMatrix) -> float:
    """The greatest correlation of any feature with the label, where both are known."""
    known = matrix.is_labelled
    best = 0.0
    for values in matrix.columns[known].T:
        there = ~np.isnan(values)
        labels = matrix.labels[known][there]
        if there.sum() > 50 and values[there].std() > 0 and labels.std() > 0:
            best = max(best, abs(float(np.corrcoef(values[there], labels)[0, 1])))
    return best


def test_a_signal_from_the_cutoff_on_is_in_no_feature() -> None:
    for offset in (0, 1):
        matrix = matrix_of(*planted(offset))
        assert matrix.columns.shape[1] > 20
        assert strongest(matrix) < 0.5  # of 120 tosses: 0.5 by chance is 5 standard errors
    assert strongest(matrix_of(*planted(-1))) > 0.99  # one microsecond earlier, it may be seen
