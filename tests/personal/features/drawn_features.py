"""Random events, frames and features for the properties."""

from __future__ import annotations

import datetime
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import strategies as st

from tacit.personal.dataset import Dataset
from tacit.personal.durations import DAY, HOUR, WEEK
from tacit.personal.events import Event, EventType, Value
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
    RowPlace,
    Static,
    Text,
    Truth,
)
from tacit.personal.frame import EVER, Frame

TYPES = (
    EventType(
        name="ride",
        fields={
            "price": "number",
            "city": "category",
            "note": "text",
            "paid": "boolean",
            "end": "time",
            "pipe": "category",
            "pickup_lat": "number",
            "pickup_lon": "number",
        },
    ),
    EventType(name="click", fields={"weight": "number", "pipe": "category"}),
    EventType(name="stay", fields={"lat": "number", "lon": "number"}),
    EventType(
        name="person",
        fields={"year": "number", "town": "category", "pipe": "category"},
        static=True,
    ),
)
CATALOGUE = {kind.name: kind for kind in TYPES}
KNOWN = frozenset({"price", "city", "pickup_lat", "pickup_lon"})
BASE = datetime.datetime(2024, 3, 25, tzinfo=datetime.UTC)  # the clocks change on the 31st
ZONE = ZoneInfo("Europe/Zurich")


class World(NamedTuple):
    """Some events, and what some instances may see of them."""

    events: list[Event]
    frame: Frame


class _Dice:
    """Seeded, so that a world is one number. Dense: most of it is known and most of it is seen."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def upto(self, most: int) -> int:
        return int(self._rng.integers(0, most + 1))

    def pick(self, *values: Any) -> Any:
        return values[self.upto(len(values) - 1)]

    def maybe(self, value: Any) -> Any:
        return None if self.upto(9) == 0 else value

    def number(self) -> float:
        size = self.pick(1.0, 1.0, 100.0, 1e-3, 1e12)
        return float(self.pick(0.0, 1.0, 10.0, -3.5, self._rng.normal() * size))

    def time(self) -> datetime.datetime:
        """By hours and half hours, so that moments coincide with edges and with one another."""
        return BASE + datetime.timedelta(minutes=30 * self.upto(14 * 48))

    def degrees(self, most: int) -> float:
        return float(self._rng.uniform(-most, most))

    def event(self, type_: str, time: datetime.datetime | None = None) -> Event:
        pipe = self.pick("a", "a", "b", "b", None)
        if type_ == "ride":
            fields: dict[str, Value] = {
                "price": self.maybe(self.number()),
                "city": self.maybe(self.pick("Bern", "Basel", "Chur")),
                "note": self.maybe(self.pick("x", "y", "z")),
                "paid": self.maybe(self.pick(True, False)),
                "end": self.maybe(self.time()),
                "pipe": pipe,
                "pickup_lat": self.maybe(self.degrees(80)),
                "pickup_lon": self.maybe(self.degrees(170)),
            }
        elif type_ == "click":
            fields = {"weight": self.maybe(self.number()), "pipe": pipe}
        elif type_ == "stay":
            fields = {"lat": self.maybe(self.degrees(80)), "lon": self.maybe(self.degrees(170))}
        else:
            town = self.maybe(self.pick("Thun", "Genf"))
            fields = {"year": self.maybe(self.number()), "town": town, "pipe": pipe}
        return Event(type_, None if type_ == "person" else time or self.time(), fields)

    def frame(self, rides: int, size: int) -> Frame:
        def some(least: int, most: int) -> np.ndarray[Any, np.dtype[np.int64]]:
            return self._rng.integers(least, most + 1, size) * (HOUR // 2)

        base = int(BASE.timestamp()) * 1_000_000
        until = base + some(-10, 15 * 48)
        since = np.full(size, EVER) if self.upto(2) else until - some(0, 14 * 48)
        groups = {"pipe": tuple(self.pick("a", "b", "c", None) for _ in range(size))}
        return Frame(
            since,
            until,
            until - some(0, 14 * 48),
            base + some(0, 15 * 48),
            groups if self.upto(1) else {},
            "ride",
            self._rng.integers(-1, rides, size),
            KNOWN,
        )


def world(seed: int) -> World:
    dice = _Dice(seed)
    counts = {"ride": dice.upto(60), "click": dice.upto(60), "stay": dice.upto(8), "person": 5}
    events = [dice.event(type_) for type_, n in counts.items() for _ in range(n)]
    return World(events, dice.frame(counts["ride"], 1 + dice.upto(7)))


def another(seed: int, type_: str, time: datetime.datetime | None) -> Event:
    """An event of this type at this moment, at any if None, with any fields."""
    return _Dice(seed).event(type_, time)


worlds = st.integers(0, 10**9).map(world)


def dataset_of(events: list[Event]) -> Dataset:
    return Dataset.of_events(TYPES, events, ZONE)


# ── features that make sense ──

windows = st.sampled_from([None, None, "own", DAY, WEEK, 36 * HOUR, 2 * WEEK])
clocks = st.sampled_from(["hour", "weekday", "month"])
small = st.sampled_from([0.0, 1.0, 2.0, 10.0, -3.5]).map(Number)
comparisons = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
fixed = st.builds(FixedPlace, st.sampled_from([47.37, -10.0]), st.sampled_from([8.54, 100.0]))

FIELDS = {"ride": ["price", "pickup_lat", "pickup_lon"], "click": ["weight"], "stay": ["lat"]}


@cache
def row_times(type_: str) -> st.SearchStrategy[Any]:
    end = [Column("ride", "end")] if type_ == "ride" else []
    return st.sampled_from([Column(type_, "time"), *end])


@cache
def row_categories(type_: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(
        {
            "ride": [Column("ride", "city"), Column("ride", "note"), Column("ride", "pipe")],
            "click": [Column("click", "pipe")],
        }[type_]
    )


@cache
def row_numbers(type_: str) -> st.SearchStrategy[Any]:
    fields = st.sampled_from([Column(type_, field) for field in FIELDS[type_]])
    place = st.just(RowPlace(type_, "pickup" if type_ == "ride" else ""))
    far = [st.builds(Distance, place, fixed)] if type_ != "click" else []
    return st.one_of(
        fields,
        fields,
        fields,
        st.builds(Function, clocks, row_times(type_)),
        st.builds(Function, st.sampled_from(["abs", "log"]), fields),
        st.builds(Binary, st.sampled_from(["+", "-", "*", "/"]), fields, small),
        st.builds(Binary, st.just("-"), row_times(type_), row_times(type_)),
        *far,
    )


@cache
def conditions(type_: str) -> st.SearchStrategy[Any]:
    simple = [
        st.builds(Binary, comparisons, row_numbers(type_), small),
        st.builds(Function, st.just("weekend"), row_times(type_)),
        st.builds(Function, st.just("is_missing"), row_numbers(type_)),
        st.builds(Among, row_numbers(type_), st.tuples(small, small)),
    ]
    if type_ == "ride":
        words = st.sampled_from(["Bern", "x", "a", "nowhere"]).map(Text)
        simple += [
            st.just(Column("ride", "paid")),
            st.builds(
                Binary, st.just("="), st.just(Column("ride", "paid")), st.booleans().map(Truth)
            ),
            st.builds(Binary, st.sampled_from(["=", "!="]), row_categories(type_), words),
            st.builds(Among, row_categories(type_), st.tuples(words, words)),
            st.builds(Binary, st.just("="), row_categories(type_), row_categories(type_)),
        ]
    return st.recursive(
        st.one_of(simple),
        lambda inner: st.one_of(
            st.builds(Not, inner), st.builds(Binary, st.sampled_from(["and", "or"]), inner, inner)
        ),
        max_leaves=3,
    )


@st.composite
def row_aggregates(draw: st.DrawFn, every: int | None = None, kind: str = "number") -> Aggregate:
    type_ = draw(st.sampled_from(["ride", "ride", "click", "stay"]))
    where = draw(conditions(type_)) if draw(st.booleans()) else None
    window = None if every is not None else draw(windows)
    name, of = draw(_sources(type_, kind))
    if isinstance(of, Events) and name == "share" and where is None:
        where = draw(conditions(type_))
    return Aggregate(name, of, where, window, every)


def _named(names: list[str], of: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, Any]]:
    return st.tuples(st.sampled_from(names), of)


NUMERIC = [
    *("sum", "mean", "min", "max", "range", "std", "median", "first", "last", "trend"),
    *("distinct", "mode", "entropy", "count"),
]


@cache
def _sources(type_: str, kind: str) -> st.SearchStrategy[tuple[str, Any]]:
    truths = conditions(type_)
    if kind == "boolean":
        return _named(["first", "last", "mode"], truths)
    if kind == "category":
        return _named(["first", "last", "mode"], row_categories("ride"))
    if kind == "time":
        return _named(["first", "last", "min", "max"], row_times(type_))
    more = [row_categories(type_)] if type_ != "stay" else []
    return st.one_of(
        _named(NUMERIC, row_numbers(type_)),
        _named(NUMERIC, row_numbers(type_)),
        _named(["count", "since", "gap", "share"], st.just(Events(type_))),
        _named(["share"], truths),
        _named(["range", "distinct", "count"], row_times(type_)),
        *(_named(["distinct", "entropy", "count"], of) for of in more),
    )


@st.composite
def stacked(draw: st.DrawFn) -> Aggregate:
    every = draw(st.sampled_from([12 * HOUR, DAY, 2 * DAY]))
    inner: Feature = draw(row_aggregates(every=every))
    if draw(st.integers(0, 5)) == 0:
        deeper = draw(row_aggregates(every=6 * HOUR))
        inner = Aggregate(draw(st.sampled_from(["mean", "max", "sum"])), deeper, every=every)
    if draw(st.booleans()):
        inner = Binary(draw(st.sampled_from(["+", "/"])), inner, draw(row_aggregates(every=every)))
    window = draw(st.sampled_from([None, "own", 2 * DAY, 5 * DAY, WEEK, 9 * DAY]))
    if draw(st.booleans()):
        return Aggregate("share", Binary(draw(comparisons), inner, draw(small)), window=window)
    return Aggregate(draw(st.sampled_from(NUMERIC)), inner, window=window)


places = st.one_of(
    fixed,
    st.just(OwnPlace("pickup")),
    st.builds(
        PickedPlace,
        st.sampled_from(["first", "last"]),
        st.just(RowPlace("stay", "")),
        st.one_of(st.none(), conditions("stay")),
        windows,
    ),
    st.builds(
        PickedPlace,
        st.sampled_from(["first", "last"]),
        st.just(RowPlace("ride", "pickup")),
        st.one_of(st.none(), conditions("ride")),
        windows,
    ),
)
times = st.one_of(st.just(Moment()), row_aggregates(kind="time"))
plain_numbers = st.one_of(
    row_aggregates(),
    row_aggregates(),
    row_aggregates(),
    stacked(),
    stacked(),
    small,
    st.just(Own("price")),
    st.just(Static("person", "year")),
    st.builds(Function, clocks, times),
    st.builds(Distance, places, places),
    st.builds(Binary, st.just("-"), times, times),
)
words = st.sampled_from(["Bern", "Chur", "Thun", "nowhere"]).map(Text)


own = st.sampled_from([Own("city"), Static("person", "town")])


@st.composite
def plain_categories(draw: st.DrawFn) -> Feature:
    name, of = draw(_sources("ride", "category"))
    where = draw(conditions("ride")) if draw(st.booleans()) else None
    chosen: Feature = Aggregate(name, of, where, draw(windows))
    return draw(own) if draw(st.booleans()) else chosen


plain_truths = st.one_of(
    st.builds(Binary, comparisons, plain_numbers, small),
    st.builds(Binary, st.sampled_from(["=", "!="]), plain_categories(), words),
    st.builds(Binary, st.just("="), plain_categories(), plain_categories()),
    st.builds(Among, plain_categories(), st.tuples(words, words)),
    st.builds(Function, st.just("is_missing"), plain_numbers),
    st.builds(Function, st.just("weekend"), times),
    row_aggregates(kind="boolean"),
)
features: st.SearchStrategy[Any] = st.one_of(
    plain_numbers,
    plain_numbers,
    plain_categories(),
    plain_truths,
    st.builds(Binary, st.sampled_from(["+", "-", "*", "/"]), plain_numbers, plain_numbers),
    st.builds(Function, st.sampled_from(["abs", "log"]), plain_numbers),
    st.builds(Binary, st.sampled_from(["and", "or"]), plain_truths, plain_truths),
    st.builds(Not, plain_truths),
)
