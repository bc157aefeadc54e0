"""Features made by stacking the functions of the language, as deep feature synthesis does.

(Kanter and Veeramachaneni 2015.) Simple ones come first and rare functions last, so that a bound on
their number cuts off what is least likely to be missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tacit.personal.durations import DAY, HOUR, WEEK, duration
from tacit.personal.events import EventType, Kind
from tacit.personal.features.language import parse
from tacit.personal.features.nodes import (
    KEYWORDS,
    Aggregate,
    Column,
    Distance,
    Events,
    Feature,
    Function,
    Moment,
    Own,
    OwnPlace,
    Static,
    Window,
)
from tacit.personal.problems.problem import Problem

__all__ = ["generated"]

# Kind of a field → the functions of it, the most telling first.
SIMPLE: dict[Kind, tuple[str, ...]] = {
    "number": ("mean", "last", "sum", "max", "min", "std", "trend", "median", "range"),
    "boolean": ("share", "last"),
    "category": ("mode", "distinct", "last", "entropy"),
    "text": ("distinct",),
    "time": (),
}
OUTER = ("mean", "max", "std", "trend", "median", "min")
INNER: dict[Kind, tuple[str, ...]] = {
    "number": ("sum", "mean", "max"),
    "boolean": ("share",),
    "category": ("distinct",),
    "text": ("distinct",),
    "time": (),
}
BUCKETS = (DAY, WEEK, HOUR)


def generated(types: Mapping[str, EventType], problem: Problem) -> tuple[Feature, ...]:
    """At most so many as the problem says, with those it lists; the same for the same problem."""
    terms = problem.features
    listed = [parse(text) for text in (*terms.list, *problem.columns.values())]
    room = max(0, terms.most - len(dict.fromkeys(listed)))
    made: dict[Feature, None] = {}
    for level in range(1, terms.depth + 1):
        for feature in _level(level, _Needs(types, problem)):
            if len(made) >= room:
                return tuple(made)
            if feature not in listed:
                made[feature] = None
    return tuple(made)


class _Needs:
    """What features may be made of: the needed events, without the fields that tell groups apart,
    and of the own event only what is known."""

    def __init__(self, types: Mapping[str, EventType], problem: Problem) -> None:
        instance = problem.instance
        self.known = tuple(sorted(instance.known)) if instance.per == "event" else ()
        self.own = instance.event if instance.per == "event" else None
        self.types = {
            name: types[name] for name in problem.events if name in types and name not in KEYWORDS
        }
        self._problem = problem

    @property
    def happening(self) -> list[str]:
        return [name for name, kind in self.types.items() if not kind.static]

    @property
    def windows(self) -> tuple[Window, ...]:
        lengths = tuple(duration(text) for text in self._problem.features.windows)
        # An own span that is over, or has begun, at the cut-off says something of its own.
        instance = self._problem.instance
        begun = instance.per in ("session", "window") and self._problem.cutoff != "start"
        return (*lengths, *(("own",) if begun else ()), None)

    def fields(self, type_: str) -> Iterator[tuple[Column, Kind]]:
        for field in self._problem.events[type_]:
            if field not in self._problem.instance.by and field in self.types[type_].fields:
                yield Column(type_, field), self.types[type_].fields[field]


def _level(level: int, needs: _Needs) -> Iterable[Feature]:
    return {1: _simple, 2: _stacked}.get(level, _deeper)(needs)


def _simple(needs: _Needs) -> Iterator[Feature]:
    yield from _known(needs)
    yield from (Function(name, Moment()) for name in ("hour", "weekday", "weekend", "month"))
    for name, kind in needs.types.items():
        if kind.static:
            yield from (Static(name, column.field) for column, _ in needs.fields(name))
    yield from (Aggregate("since", Events(type_)) for type_ in needs.happening)
    for name in ("count", "gap"):
        for window in needs.windows:
            yield from (Aggregate(name, Events(t), None, window) for t in needs.happening)
    yield from _of_fields(needs)


def _known(needs: _Needs) -> Iterator[Feature]:
    if needs.own is None or needs.own not in needs.types:
        return
    kinds = needs.types[needs.own].fields
    places = [
        field.removesuffix("_lat")
        for field in needs.known
        if field.endswith("_lat") and f"{field.removesuffix('_lat')}_lon" in needs.known
    ]
    for place, here in enumerate(places):
        yield from (Distance(OwnPlace(here), OwnPlace(there)) for there in places[place + 1 :])
    for field in needs.known:
        if kinds.get(field) == "time":
            yield from (Function(name, Own(field)) for name in ("hour", "weekday"))
        elif kinds.get(field) != "text":
            yield Own(field)


def _of_fields(needs: _Needs) -> Iterator[Feature]:
    """All fields by their first function, then all by their second, and so on."""
    fields = [pair for type_ in needs.happening for pair in needs.fields(type_)]
    for turn in range(max(map(len, SIMPLE.values()))):
        for window in needs.windows:
            for column, kind in fields:
                if turn < len(SIMPLE[kind]):
                    yield Aggregate(SIMPLE[kind][turn], column, None, window)


def _stacked(needs: _Needs) -> Iterator[Feature]:
    """Over days and weeks, and when events happen on the clock."""
    for outer in OUTER:
        for window in needs.windows:
            for every in BUCKETS[:2]:
                if isinstance(window, int) and window < 4 * every:
                    continue  # fewer than four buckets are no sample
                for inner in _inner(needs, every):
                    yield Aggregate(outer, inner, None, window)
        if outer == "mean":
            yield from _clock(needs)


def _inner(needs: _Needs, every: int) -> Iterator[Aggregate]:
    for type_ in needs.happening:
        yield Aggregate("count", Events(type_), every=every)
        for column, kind in needs.fields(type_):
            yield from (Aggregate(name, column, every=every) for name in INNER[kind])


def _clock(needs: _Needs) -> Iterator[Feature]:
    for type_ in needs.happening:
        time = Column(type_, "time")
        for window in needs.windows:
            yield Aggregate("mode", Function("hour", time), None, window)
            yield Aggregate("share", Function("weekend", time), None, window)
            yield Aggregate("entropy", Function("hour", time), None, window)


def _deeper(needs: _Needs) -> Iterator[Feature]:
    """The busiest hour of each day, and what days are like."""
    for outer in OUTER[:3]:
        for window in needs.windows:
            if isinstance(window, int) and window < 4 * DAY:
                continue
            for inner in _inner(needs, HOUR):
                for middle in ("max", "std"):
                    yield Aggregate(outer, Aggregate(middle, inner, every=DAY), None, window)
