"""Instances of every kind, against a slow reference that looks at one event after the other."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError, Leakage, UsageError
from tacit.personal.dataset import Dataset
from tacit.personal.durations import DAY, HOUR, MINUTE
from tacit.personal.events import Event, EventType, moment
from tacit.personal.problems.declared import DeclaredInstancer
from tacit.personal.problems.instances import Instances
from tacit.personal.problems.problem import FeatureTerms, InstanceTerms, LabelTerms, Problem

ZURICH = ZoneInfo("Europe/Zurich")
FIRST = datetime.datetime(2024, 3, 20, tzinfo=datetime.UTC)  # the clocks change on the 31st
FLOW = EventType(name="flow", fields={"pipe": "category", "litres": "number", "night": "boolean"})
BURST = EventType(name="burst", fields={"pipe": "category"})
RAIN = EventType(name="rain", fields={"millimetres": "number"})
TYPES = (FLOW, BURST, RAIN)


def when(minutes: int) -> datetime.datetime:
    return FIRST + datetime.timedelta(minutes=minutes)


def flow(
    minutes: int, pipe: str | None = "a", litres: float | None = 1.0, night: bool | None = None
) -> Event:
    return Event("flow", when(minutes), {"pipe": pipe, "litres": litres, "night": night})


def burst(minutes: int, pipe: str | None = "a") -> Event:
    return Event("burst", when(minutes), {"pipe": pipe})


def rain(minutes: int, millimetres: float = 1.0) -> Event:
    return Event("rain", when(minutes), {"millimetres": millimetres})


def data(events: Iterable[Event]) -> Dataset:
    return Dataset.of_events(TYPES, events, ZURICH)


def problem(instance: dict[str, Any], label: dict[str, Any], **more: Any) -> Problem:
    return Problem(
        name="pipes",
        question="Will it burst?",
        events={kind.name: dict(kind.fields) for kind in TYPES},
        instance=InstanceTerms(**instance),
        label=LabelTerms(**label),
        features=FeatureTerms(list=more.get("features", ("count(flow)",))),
    )


def made(
    instance: dict[str, Any],
    label: dict[str, Any],
    events: Iterable[Event],
    now: int | None = None,
) -> Instances:
    return DeclaredInstancer(problem(instance, label)).make_instances(data(events), now)


# ── the reference ──

Key = str | float | None


class Slow(NamedTuple):
    """One instance, found the slow way."""

    group: tuple[Key, ...]
    start: int
    cutoff: int
    since: int
    until: int
    label: float  # NaN where not known


pipes = st.sampled_from(["a", "b", None])
minutes = st.integers(0, 20 * 24 * 60)
some_events = st.lists(
    st.one_of(
        st.builds(flow, minutes, pipes, st.sampled_from([0.0, 2.0, None]), st.booleans()),
        st.builds(burst, minutes, pipes),
        st.builds(rain, minutes),
    ),
    min_size=1,
    max_size=25,
)


def time_of(event: Event) -> int:
    assert event.time is not None
    return moment(event.time)


def has(event: Event, by: tuple[str, ...]) -> bool:
    return set(by) <= set(event.fields)


def group_of(event: Event, by: tuple[str, ...]) -> tuple[Key, ...]:
    values = (event.fields[name] for name in by)
    return tuple(float(v) if isinstance(v, bool) else v for v in values)  # type: ignore[misc]


def bursts(
    events: list[Event], by: tuple[str, ...], group: tuple[Key, ...], since: int, until: int
) -> float:
    """How many bursts of the group there were in the stretch."""
    return float(
        sum(
            since <= time_of(e) < until and (not has(e, by) or group_of(e, by) == group)
            for e in events
            if e.type == "burst"
        )
    )


def labelled(
    events: list[Event], by: tuple[str, ...], spans: list[Slow], now: int, is_open: bool = False
) -> list[Slow]:
    done = []
    for span in spans:
        count = bursts(events, by, span.group, span.since, span.until)
        known = span.until - 1 <= now and (count > 0 or not is_open)
        done.append(span._replace(label=count if known else math.nan))
    return done


def same(found: Instances, expected: list[Slow]) -> None:
    spans = found.starts if found.starts is not None else found.cutoffs
    got = [
        Slow(
            tuple(values[i] for values in found.groups.values()),
            int(spans[i]),
            int(found.cutoffs[i]),
            int(found.label_since[i]),
            int(found.label_until[i]),
            float(found.labels.values[i]),
        )
        for i in range(len(found))
    ]

    def key(one: Slow) -> Any:
        return one.start, [(value is None, value) for value in one.group], str(one)

    assert repr(sorted(got, key=key)) == repr(sorted(expected, key=key))
    assert (np.diff(spans) >= 0).all()


def firsts(events: list[Event], by: tuple[str, ...]) -> dict[tuple[Key, ...], int]:
    found: dict[tuple[Key, ...], int] = {}
    for event in events:
        if has(event, by):
            group = group_of(event, by)
            found[group] = min(time_of(event), found.get(group, time_of(event)))
    return found


COUNT = "count(burst)"


@given(some_events, st.sampled_from([(), ("pipe",), ("pipe", "night")]), st.sampled_from([0, 90]))
def test_per_event(events: list[Event], by: tuple[str, ...], lead: int) -> None:
    instance = {
        "per": "event",
        "event": "flow",
        "where": "litres > 1",
        "by": by,
        "lead": f"{lead}m",
    }
    found = made(instance, {"value": COUNT, "horizon": "2d"}, events)
    now = max(map(time_of, events))
    spans = []
    for event in events:
        litres = event.fields.get("litres")
        if event.type == "flow" and isinstance(litres, float) and litres > 1:
            at = time_of(event)
            after = at + 1
            cutoff = after - lead * MINUTE
            spans.append(Slow(group_of(event, by), at, cutoff, after, after + 2 * DAY, 0))
    same(found, labelled(events, by, spans, now))


@given(some_events, st.sampled_from([(), ("pipe",)]), st.booleans(), st.sampled_from([0, 26]))
def test_per_window(events: list[Event], by: tuple[str, ...], horizon: bool, lead: int) -> None:
    instance = {"per": "window", "every": "1w", "by": by, "lead": f"{lead}h"}
    label = {"value": COUNT, **({"horizon": "3d"} if horizon else {})}
    found = made(instance, label, events)
    now = max(map(time_of, events))
    mondays = [
        moment(datetime.datetime(2024, 3, 18, tzinfo=ZURICH) + datetime.timedelta(weeks=week))
        for week in range(6)
    ]
    spans = []
    for group, first in firsts(events, by).items():
        for start, end in pairwise(mondays):
            base = end if horizon else start
            cutoff = base - lead * HOUR
            if end > first and start <= now and first < cutoff <= now + 1:
                until = base + 3 * DAY if horizon else end
                spans.append(Slow(group, start, cutoff, base, until, 0))
    same(found, labelled(events, by, spans, now))


@given(some_events, st.sampled_from([(), ("pipe",)]), st.sampled_from(["start", "90m"]))
def test_per_session(events: list[Event], by: tuple[str, ...], cutoff: str) -> None:
    instance = {"per": "session", "event": "flow", "gap": "1d", "by": by, "cutoff": cutoff}
    found = made(instance, {"value": COUNT}, events)
    now = max(map(time_of, events))
    after = 0 if cutoff == "start" else 90 * MINUTE
    spans = []
    for group in {group_of(e, by) for e in events if e.type == "flow"}:
        times = sorted(time_of(e) for e in events if e.type == "flow" and group_of(e, by) == group)
        sessions: list[list[int]] = []
        for time in times:
            if sessions and time - sessions[-1][-1] < DAY:
                sessions[-1].append(time)
            else:
                sessions.append([time])
        for session in sessions:
            base, until = session[0] + after, session[-1] + DAY
            if base < until:
                spans.append(Slow(group, session[0], base, base, until, 0))
    same(found, labelled(events, by, spans, now))


@given(some_events, st.sampled_from([("pipe",), ("night",), ("litres", "pipe")]))
def test_per_group(events: list[Event], by: tuple[str, ...]) -> None:
    instance = {"per": "group", "by": by, "cutoff": "1d"}
    found = made(instance, {"value": COUNT}, events)
    now = max(map(time_of, events))
    spans = [
        Slow(group, first, first + DAY, first + DAY, max(first + DAY, now + 1), 0)
        for group, first in firsts(events, by).items()
    ]
    same(found, labelled(events, by, spans, now, is_open=True))


@given(some_events, st.sampled_from(["", "rain"]), st.sampled_from(["3d", "2024-04-01"]))
def test_per_user(events: list[Event], event: str, cutoff: str) -> None:
    instance = {"per": "user", "event": event, "cutoff": cutoff}
    found = made(instance, {"value": COUNT, "horizon": "2d"}, events)
    now = max(map(time_of, events))
    times = [time_of(e) for e in events if event in ("", e.type)]
    spans = []
    if times:
        base = min(times) + 3 * DAY
        if cutoff != "3d":
            base = moment(datetime.datetime(2024, 4, 1, tzinfo=ZURICH))
        spans = [Slow((), min(times), base, base, base + 2 * DAY, 0)]
    same(found, labelled(events, (), spans, now))


# ── details ──


def test_keys_are_for_people() -> None:
    events = [flow(0, "a"), flow(60 * 24 * 9, None), burst(60 * 24 * 9, "a")]
    week = {"per": "window", "every": "1w", "by": ("pipe",)}
    ahead = {"value": COUNT, "horizon": "1w"}
    assert made(week, ahead, events).keys == ("pipe=a, 2024-03-18",)
    hours = {"per": "window", "every": "6h", "cutoff": "end"}
    assert made(hours, ahead, events).keys[:2] == ("2024-03-20 00:00", "2024-03-20 06:00")
    each = {"per": "event", "event": "flow", "by": ("pipe",)}
    assert made(each, ahead, events).keys == (
        "pipe=a, 2024-03-20 01:00",
        "pipe=none, 2024-03-29 01:00",
    )
    groups = {"per": "group", "by": ("night", "litres"), "cutoff": "1d"}
    dark = [flow(0, night=True, litres=2.5), flow(1, night=False, litres=None)]
    assert made(groups, {"value": COUNT}, dark).keys == (
        "night=true, litres=2.5",
        "night=false, litres=none",
    )
    assert made({"per": "user", "cutoff": "1d"}, {"value": COUNT}, events).keys == ("me",)


def test_an_unfinished_week_is_not_a_week_without_a_burst() -> None:
    week = {"per": "window", "every": "1w"}
    ahead = {"value": "count(burst) > 0", "horizon": "1w"}
    monday = 18 * 24 * 60 + 22 * 60  # midnight of 2024-04-08 in Zurich
    sunday = monday - 1
    found = made(week, ahead, [flow(0), flow(sunday)])
    assert found.keys == ("2024-03-18", "2024-03-25")
    assert found.labels.field("burst", 0) is not None
    assert found.labels.field("burst", 1) is None
    # Now the week has passed.
    found = made(week, ahead, [flow(0), flow(sunday)], moment(when(monday)))
    label = found.labels.field("burst", 1)
    assert label is not None
    assert label.value is False
    assert found.labels.field("burst", 2) is None


def test_an_open_stretch_says_nothing_until_something_happens() -> None:
    me = {"per": "user", "event": "flow", "cutoff": "1d"}
    passed = {"value": 'count(burst where pipe = "b") > 0'}
    nothing = made(me, passed, [flow(0), flow(5000)])
    assert math.isnan(nothing.labels.values[0])
    assert made(me, passed, [flow(0), burst(5000, "a")]).labels.values.tolist() == [0.0]
    assert made(me, passed, [flow(0), burst(5000, "b")]).labels.values.tolist() == [1.0]
    early = made(me, passed, [flow(0), burst(100, "b"), flow(5000)])  # before the cut-off
    assert math.isnan(early.labels.values[0])


def test_planned_events_are_instances_to_predict() -> None:
    each = {"per": "event", "event": "flow"}
    found = made(each, {"value": "own.litres"}, [flow(0), flow(100)], moment(when(50)))
    assert found.labels.values[0] == 1.0
    assert math.isnan(found.labels.values[1])


def test_a_condition_that_is_not_known_yet_leaves_planned_events_in() -> None:
    """Only those still to come: of the past, a condition holds or does not."""
    each = {"per": "event", "event": "flow", "where": "litres > 1"}
    events = [flow(0, litres=2.0), flow(1, litres=None), flow(60, litres=None), flow(61, litres=0)]
    now = moment(when(50))
    found = made(each, {"value": "own.pipe"}, [*events, flow(62, litres=5.0)], now)
    assert found.rows is not None
    assert found.rows.tolist() == [0, 2, 4]
    assert repr(found.labels.values.tolist()) == "[0.0, nan, nan]"


def test_without_events_there_are_no_instances() -> None:
    for instance in (
        {"per": "event", "event": "flow"},
        {"per": "window", "every": "1d", "by": ("pipe",)},
        {"per": "session", "event": "flow", "gap": "1h"},
        {"per": "group", "by": ("pipe",)},
        {"per": "user"},
    ):
        found = made(instance, {"value": COUNT, "horizon": "1d"}, [])
        assert len(found) == len(found.labels.values) == 0


def test_the_kinds_of_labels() -> None:
    each = {"per": "event", "event": "flow"}
    events = [flow(0, "b", 3.0), flow(1, None, None), flow(2, "a", 4.0)]
    numbers = made(each, {"value": "own.litres"}, events).labels
    assert (numbers.kind, numbers.classes) == ("number", ())
    assert repr(numbers.values.tolist()) == "[3.0, nan, 4.0]"
    words = made(each, {"value": "own.pipe"}, events).labels
    assert (words.kind, words.classes) == ("category", ("a", "b"))
    assert repr(words.values.tolist()) == "[1.0, nan, 0.0]"
    truths = made(each, {"value": "own.litres > 3"}, events).labels
    assert (truths.kind, truths.classes) == ("boolean", ("false", "true"))
    assert repr(truths.values.tolist()) == "[0.0, nan, 1.0]"


def test_only_what_the_problem_names_is_read() -> None:
    """A field that it does not name neither restricts events to groups nor is handed on."""
    asked = problem({"per": "event", "event": "flow", "by": ("pipe",)}, {"value": "own.litres"})
    kinds = (FLOW, BURST, EventType(name="rain", fields={**RAIN.fields, "pipe": "category"}))
    wet = Event("rain", when(0), {"millimetres": 1.0, "pipe": "b"})
    found = DeclaredInstancer(asked).make_instances(
        Dataset.of_events(kinds, [wet, flow(10, "a")], ZURICH)
    )
    seen = found.instance(0).dataset.of("rain")
    assert seen.rows == 1
    assert "pipe" not in seen.table.column_names


def test_one_instance_sees_its_own_past_alone() -> None:
    asked = problem(
        {"per": "event", "event": "flow", "by": ("pipe",), "known": ("night",)},
        {"value": "own.litres"},
    )
    events = [
        flow(0, "a", 5.0),
        flow(1, "b", 6.0),
        rain(2),
        burst(3, "b"),
        flow(10, "a", 7.0, night=True),
        rain(10),
        flow(11, "a", 8.0),
    ]
    one = DeclaredInstancer(asked).make_instances(data(events)).instance(2)
    assert one.key == "pipe=a, 2024-03-20 01:10"
    assert one.cutoff == moment(when(10))
    assert [(e.type, e.fields.get("litres")) for e in one.dataset.events()] == [
        ("flow", 5.0),
        ("rain", None),
    ]
    assert one.own is not None
    assert dict(one.own.fields) == {"night": True}
    assert one.label is not None
    assert one.label.value == 7.0


# ── by hand, in Python ──


def by_hand(dataset: Dataset, **changes: Any) -> Instances:
    times = dataset.of("flow").times
    terms: dict[str, Any] = {
        "dataset": dataset,
        "keys": tuple(map(str, times)),
        "cutoffs": times,
        "label": "own.litres",
        "label_since": times,
        "label_until": times + 1,
        "now": int(times[-1]),
        "own": "flow",
        "rows": np.arange(len(times)),
    }
    return Instances(**{**terms, **changes})


def test_instances_made_by_hand() -> None:
    dataset = data([flow(0, litres=2.0), flow(5, litres=3.0)])
    assert by_hand(dataset).labels.values.tolist() == [2.0, 3.0]


def most_litres(seen: Dataset) -> float | None:
    return float(np.max(seen.of("flow").numbers("litres"), initial=0.0))


@pytest.mark.parametrize(
    ("label", "kind", "values"),
    [
        (most_litres, "number", "[3.0, nan]"),
        (lambda seen: seen.of("flow").rows > 5, "boolean", "[0.0, nan]"),
        (lambda seen: np.bool_(seen.of("flow").rows > 5), "boolean", "[0.0, nan]"),
        (lambda seen: np.int64(seen.of("flow").rows), "number", "[1.0, nan]"),
        (lambda seen: "wet" if seen.of("flow").rows else "dry", "category", "[0.0, nan]"),
        (lambda seen: None, "number", "[nan, nan]"),
        (lambda seen: math.inf, "number", "[nan, nan]"),
    ],
)
def test_a_label_function_sees_the_stretch_and_nothing_else(
    label: Callable[[Dataset], Any], kind: str, values: str
) -> None:
    dataset = data([flow(0, litres=9.0), flow(5, litres=3.0)])
    times = dataset.of("flow").times
    labels = by_hand(
        dataset, label=label, label_since=times + 1, label_until=times + HOUR, now=times[0] + HOUR
    ).labels
    assert (labels.kind, repr(labels.values.tolist())) == (kind, values)


def test_mixed_labels_are_refused() -> None:
    dataset = data([flow(0), flow(5)])
    answers = iter([1.0, "wet"])
    with pytest.raises(UsageError, match="numbers, truths or texts"):
        _ = by_hand(dataset, label=lambda seen: next(answers)).labels


@pytest.mark.parametrize(
    "change",
    [
        lambda t: {"label_since": t - 1},  # the stretch begins before the cut-off
        lambda t: {"cutoffs": t + 1},
        lambda t: {"known": frozenset({"litres"})},  # known beforehand
        lambda t: {"label": "hour(moment)"},
        # The own event lies before the cut-off.
        lambda t: {"cutoffs": t + 1, "label_since": t + 1, "label_until": t + 2},
    ],
)
def test_by_hand_too_a_label_that_features_see_is_refused(
    change: Callable[[Any], dict[str, Any]],
) -> None:
    dataset = data([flow(0), flow(5)])
    with pytest.raises(Leakage):
        _ = by_hand(dataset, **change(dataset.of("flow").times)).labels


def test_by_hand_columns_must_fit() -> None:
    dataset = data([flow(0), flow(5)])
    with pytest.raises(UsageError, match="equally many"):
        by_hand(dataset, keys=("one",))
    with pytest.raises(UsageError, match="go together"):
        by_hand(dataset, rows=None)
    with pytest.raises(UsageError, match="no field colour"):
        by_hand(dataset, known=frozenset({"colour"}))
    with pytest.raises(UsageError, match="there is no instance 2"):
        by_hand(dataset).instance(2)


def test_a_problem_cannot_ask_for_endless_instances() -> None:
    events = [flow(0), flow(60 * 24 * 365 * 2)]
    with pytest.raises(InputError, match="more than 1000000"):
        made({"per": "window", "every": "1m"}, {"value": COUNT}, events)
