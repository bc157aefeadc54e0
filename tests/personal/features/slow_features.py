"""Features the slow and obvious way: event by event, instance by instance, exact where it counts.

Shares nothing with the engine but the tree of a feature. None is missing.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from tacit.personal.dataset import Dataset
from tacit.personal.events import Event, moment
from tacit.personal.features.nodes import (
    Aggregate,
    Among,
    Binary,
    Column,
    Distance,
    Events,
    Feature,
    FixedPlace,
    Function,
    Moment,
    Not,
    Number,
    Own,
    OwnPlace,
    PickedPlace,
    Place,
    RowPlace,
    Static,
    Text,
    Truth,
)
from tacit.personal.frame import EVER, Frame

DAY = 86_400_000_000


@dataclass
class Instance:
    """Everything one instance may see."""

    events: dict[str, list[Event]]
    since: int | None
    until: int
    start: int
    at: int
    own: Event | None
    zone: ZoneInfo


def instances(dataset: Dataset, frame: Frame) -> list[Instance]:
    everything = {name: list(table.events()) for name, table in dataset.tables.items()}
    made = []
    for place in range(frame.size):
        since = None if frame.since[place] == EVER else int(frame.since[place])
        until = int(frame.until[place])
        group = {field: values[place] for field, values in frame.groups.items()}
        seen = {}
        for name, events in everything.items():
            grouped = set(group) <= set(dataset.types[name].fields)
            seen[name] = [
                event
                for event in events
                if (event.time is None or (since or -(10**30)) <= moment(event.time) < until)
                and (not grouped or all(event.fields[f] == v for f, v in group.items()))
            ]
        row = int(frame.rows[place])
        own = everything[frame.own][row] if frame.own is not None and row >= 0 else None
        made.append(
            Instance(
                seen, since, until, int(frame.start[place]), int(frame.at[place]), own, dataset.zone
            )
        )
    return made


def value(node: Feature, instance: Instance) -> Any:
    match node:
        case Own(field):
            return _plain(instance.own.fields[field]) if instance.own else None
        case Moment():
            return instance.at / 1e6
        case Static(type_, field):
            known = [e.fields[field] for e in instance.events[type_] if e.fields[field] is not None]
            return _plain(known[-1]) if known else None
        case Aggregate():
            return _aggregate(node, instance)
        case Distance(here, there):
            return _distance(_instance_place(here, instance), _instance_place(there, instance))
        case _:
            return _operator(node, lambda part: value(part, instance), instance.zone)


def _plain(found: Any) -> Any:
    return moment(found) / 1e6 if isinstance(found, datetime.datetime) else found


# ── operators ──


def _operator(node: Feature, of: Any, zone: ZoneInfo) -> Any:
    match node:
        case Number(found) | Text(found) | Truth(found):
            return found
        case Not(part):
            found = of(part)
            return None if found is None else not found
        case Among(part, values):
            found = of(part)
            return None if found is None else found in [v.value for v in values]
        case Function(name, part):
            return _function(name, of(part), zone)
        case Binary(op, left, right):
            return _binary(op, of(left), of(right))
    raise AssertionError(node)


def _binary(op: str, a: Any, b: Any) -> Any:
    if op == "and":
        return False if a is False or b is False else None if None in (a, b) else True
    if op == "or":
        return True if a is True or b is True else None if None in (a, b) else False
    if a is None or b is None:
        return None
    match op:
        case "=":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
    try:
        made = {"+": a + b, "-": a - b, "*": a * b}[op] if op != "/" else a / b
    except ZeroDivisionError:
        return None
    return made if math.isfinite(made) else None


def _function(name: str, of: Any, zone: ZoneInfo) -> Any:
    if name == "is_missing":
        return of is None
    if of is None:
        return None
    if name == "abs":
        return abs(of)
    if name == "log":
        return math.log1p(of) if of > -1 else None
    local = datetime.datetime.fromtimestamp(round(of * 1e6) // 1_000_000, zone)
    return {
        "hour": local.hour,
        "weekday": local.weekday(),
        "month": local.month,
        "weekend": local.weekday() >= 5,
    }[name]


# ── places ──


def _fields(fields: Any, name: str) -> Any:
    lat, lon = (f"{name}_lat", f"{name}_lon") if name else ("lat", "lon")
    found = (fields[lat], fields[lon])
    return None if None in found else found


def _instance_place(place: Place, instance: Instance) -> Any:
    match place:
        case FixedPlace(lat, lon):
            return lat, lon
        case OwnPlace(name):
            return _fields(instance.own.fields, name) if instance.own else None
        case PickedPlace(which, row, where, window):
            chosen = _chosen(row.type, where, window, instance)
            known = [p for e in chosen if (p := _fields(e.fields, row.name)) is not None]
            return (known[0] if which == "first" else known[-1]) if known else None
    raise AssertionError(place)


def _distance(here: Any, there: Any) -> Any:
    """By the angle between two vectors: another formula than the engine's."""
    if here is None or there is None:
        return None
    a, b = (
        (
            math.cos(math.radians(lat)) * math.cos(math.radians(lon)),
            math.cos(math.radians(lat)) * math.sin(math.radians(lon)),
            math.sin(math.radians(lat)),
        )
        for lat, lon in (here, there)
    )
    cross = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return 6_371_008.8 * math.atan2(math.hypot(*cross), dot)


# ── aggregates ──


def _row(node: Feature, event: Event, zone: ZoneInfo) -> Any:
    match node:
        case Column(_, "time"):
            assert event.time is not None
            return moment(event.time) / 1e6
        case Column(_, field):
            return _plain(event.fields[field])
        case Distance(here, there):
            places = [
                (place.latitude, place.longitude)
                if isinstance(place, FixedPlace)
                else _fields(event.fields, place.name)
                for place in (here, there)
                if isinstance(place, FixedPlace | RowPlace)
            ]
            return _distance(*places)
        case _:
            return _operator(node, lambda part: _row(part, event, zone), zone)


def _begin(window: Any, instance: Instance) -> int | None:
    begins = {None: None, "own": instance.start}.get(window)
    if isinstance(window, int):
        begins = instance.until - window
    known = [b for b in (begins, instance.since) if b is not None]
    return max(known) if known else None


def _chosen(type_: str, where: Any, window: Any, instance: Instance) -> list[Event]:
    begin = _begin(window, instance)
    return [
        event
        for event in instance.events[type_]
        if event.time is not None
        and (begin is None or moment(event.time) >= begin)
        and (where is None or _row(where, event, instance.zone) is True)
    ]


def _types(node: Any) -> set[str]:
    if isinstance(node, Events | Column | RowPlace):
        return {node.type}
    parts = [getattr(node, name) for name in getattr(node, "__dataclass_fields__", ())]
    return set().union(*(_types(part) for part in parts)) if parts else set()


def _aggregate(node: Aggregate, instance: Instance) -> Any:
    if _has_buckets(node.of):
        return _reduce(node.name, _buckets(node, instance), instance.until)
    (type_,) = _types(node.of)
    events = _chosen(type_, node.where, node.window, instance)
    if isinstance(node.of, Events) and node.name == "share":
        whole = _chosen(type_, None, node.window, instance)
        return len(events) / len(whole) if whole else None
    pairs = [
        (
            moment(event.time),  # type: ignore[arg-type]
            True if isinstance(node.of, Events) else _row(node.of, event, instance.zone),
        )
        for event in events
    ]
    return _reduce(node.name, pairs, instance.until)


def _has_buckets(node: Any) -> bool:
    if isinstance(node, Aggregate):
        return True
    parts = [getattr(node, name) for name in getattr(node, "__dataclass_fields__", ())]
    return any(_has_buckets(part) for part in parts)


def _every(node: Any) -> int:
    if isinstance(node, Aggregate):
        return node.every or 0
    parts = [getattr(node, name) for name in getattr(node, "__dataclass_fields__", ())]
    return max((_every(part) for part in parts), default=0)


def _buckets(node: Aggregate, instance: Instance) -> list[tuple[int, Any]]:
    every, begin = _every(node.of), _begin(node.window, instance)
    if begin is None:
        times = [
            moment(e.time)
            for type_ in _types(node.of)
            for e in instance.events[type_]
            if e.time is not None
        ]
        if not times:
            return []
        begin = min(times)
        whole = -((begin - instance.until) // every)
    else:
        whole = (instance.until - begin) // every
    made = []
    for back in range(whole, 0, -1):
        until = instance.until - (back - 1) * every
        inside = Instance(
            {
                name: [e for e in events if e.time and until - every <= moment(e.time) < until]
                for name, events in instance.events.items()
            },
            until - every,
            until,
            instance.start,
            instance.at,
            None,
            instance.zone,
        )
        made.append((until, _bucket(node.of, inside)))
    return made


def _bucket(node: Feature, inside: Instance) -> Any:
    if isinstance(node, Aggregate):
        return _aggregate(node, inside)
    return _operator(node, lambda part: _bucket(part, inside), inside.zone)


def _reduce(name: str, pairs: list[tuple[int, Any]], until: int) -> Any:
    known = [(t, v) for t, v in pairs if v is not None]
    values = [v for _, v in known]
    if name in ("count", "distinct"):
        return len(values) if name == "count" else len(set(values))
    if name == "sum":
        return math.fsum(values)
    if not values:
        return None
    match name:
        case "mean" | "share":
            return math.fsum(values) / len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "range":
            return max(values) - min(values)
        case "first":
            return values[0]
        case "last":
            return values[-1]
        case "median":
            ordered = sorted(values)
            return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        case "mode":
            counts = Counter(values)
            return min(v for v, c in counts.items() if c == max(counts.values()))
        case "entropy":
            shares = [c / len(values) for c in Counter(values).values()]
            return abs(math.fsum(-s * math.log(s) for s in shares))
        case "since":
            return (until - known[-1][0]) / 1e6
    if len(values) < 2:
        return None
    if name == "gap":
        return (known[-1][0] - known[0][0]) / (len(known) - 1) / 1e6
    return _moments(name, [t for t, _ in known], [Fraction(v) for v in values])


def _moments(name: str, times: list[int], values: list[Fraction]) -> Any:
    n = len(values)
    mean = sum(values, Fraction(0)) / n
    if name == "std":
        return math.sqrt(sum(((v - mean) ** 2 for v in values), Fraction(0)) / (n - 1))
    assert name == "trend"
    middle = Fraction(sum(times), n)
    below = sum(((t - middle) ** 2 for t in times), Fraction(0))
    if not below:
        return None
    pairs = zip(times, values, strict=True)
    return float(sum(((t - middle) * (v - mean) for t, v in pairs), Fraction(0)) / below * DAY)
