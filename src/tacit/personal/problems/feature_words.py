"""A feature in plain words, for people who decide whether to use it."""

from __future__ import annotations

from tacit.personal.durations import DAY, HOUR, MINUTE, SECOND, WEEK
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
    Window,
    number_text,
)

__all__ = ["feature_words", "length_words"]

AGGREGATES = {
    "count": "the number of",
    "sum": "the sum of",
    "mean": "the average of",
    "min": "the least",
    "max": "the greatest",
    "std": "the spread (standard deviation) of",
    "median": "the median of",
    "last": "the last",
    "first": "the first",
    "trend": "the trend (slope) of",
    "range": "the range (greatest less least) of",
    "distinct": "the number of different values of",
    "mode": "the most frequent",
    "share": "the share of those with",
    "entropy": "the variety (entropy) of",
    "since": "the seconds since the last",
    "gap": "the average seconds between",
}
FUNCTIONS = {
    "abs": "the size of",
    "log": "the logarithm of 1 +",
    "is_missing": "whether nothing is known of",
    "hour": "the hour of",
    "weekday": "the day of the week (Monday is 0) of",
    "month": "the month of",
    "weekend": "whether on a weekend:",
}
OPERATORS = {
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "divided by",
    "=": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
    "and": "and",
    "or": "or",
}
UNITS = (("week", WEEK), ("day", DAY), ("hour", HOUR), ("minute", MINUTE), ("second", SECOND))


def feature_words(feature: Feature) -> str:
    """`sum(flow.litres, 7d)` → `the sum of litres of flow, in the week before`."""
    match feature:
        case Number(value):
            return number_text(value)
        case Text(value):
            return f"“{value}”"
        case Truth(value):
            return "true" if value else "false"
        case Moment():
            return "the moment it is about"
        case Own(field):
            return f"its own {_plain(field)}"
        case Static(type_, field):
            return f"{_plain(field)} of {_plain(type_)}"
        case Events(type_):
            return f"{_plain(type_)} events"
        case Column(type_, field):
            return f"{_plain(field)} of {_plain(type_)}"
        case Aggregate():
            return _aggregate(feature)
        case _:
            return _composed(feature)


def _composed(feature: Feature) -> str:
    match feature:
        case Function(name, of):
            return f"{FUNCTIONS.get(name, name)} {feature_words(of)}"
        case Binary(op, left, right):
            return f"{_inner(left)} {OPERATORS[op]} {_inner(right)}"
        case Not(of):
            return f"not ({feature_words(of)})"
        case Among(of, values):
            among = ", ".join(feature_words(value) for value in values)
            return f"{_inner(of)} is one of {among}"
        case Distance(here, there):
            return f"the metres from {_place(here)} to {_place(there)}"
        case _:
            return str(feature)


def _inner(feature: Feature) -> str:
    words = feature_words(feature)
    return f"({words})" if isinstance(feature, Binary) else words


def _aggregate(feature: Aggregate) -> str:
    each = f" in each {length_words(feature.every)}" if feature.every is not None else ""
    of = _inner(feature.of)
    if feature.name == "since":  # of one event, not of many
        of = of.removesuffix("s")
    words = f"{AGGREGATES.get(feature.name, feature.name)} {of}{each}"
    if feature.where is not None:
        words += f" where {feature_words(feature.where)}"
    return words + _window(feature.window)


def _window(window: Window) -> str:
    if window is None:
        return ""
    return " since its start" if window == "own" else f", in the {length_words(window)} before"


def _place(place: Place) -> str:
    match place:
        case FixedPlace(latitude, longitude):
            return f"{number_text(latitude)}, {number_text(longitude)}"
        case OwnPlace(name):
            return f"its own {_plain(name) or 'place'}"
        case RowPlace(type_, name):
            return f"the {_plain(name) or 'place'} of {_plain(type_)}"
        case PickedPlace(which, row, where, window):
            condition = "" if where is None else f" where {feature_words(where)}"
            name = _plain(row.name) or "place"
            return f"the {which} {name} of {_plain(row.type)}{condition}{_window(window)}"


def length_words(length: int) -> str:
    """`week`, `3 days`, `90 minutes`."""
    for name, unit in UNITS:
        if length >= unit and length % unit == 0:
            return name if length == unit else f"{length // unit} {name}s"
    return f"{length // SECOND} seconds"


def _plain(name: str) -> str:
    return name.replace("_", " ")
