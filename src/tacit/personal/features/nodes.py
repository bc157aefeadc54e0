"""What can be said in the language of features: a small tree, and its one canonical text.

A feature is its text: `parse(str(feature)) == feature`. There are three places to stand in:

    the instance      `own.pickup_lat`, `moment`, and aggregates
    rows              inside an aggregate: `ride.price`, one value for each event
    buckets           inside an aggregate: `count(ride per 1d)`, one value for each day

What is missing stays missing: arithmetic and comparison with something missing give nothing,
`and`, `or` and `not` follow Kleene (as SQL does), a condition holds only where it is true, and
aggregates pass over what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tacit.personal.durations import written

__all__ = [
    "KEYWORDS",
    "Aggregate",
    "Among",
    "Binary",
    "Column",
    "Distance",
    "Events",
    "Feature",
    "FixedPlace",
    "Function",
    "Moment",
    "Node",
    "Not",
    "Number",
    "Own",
    "OwnPlace",
    "PickedPlace",
    "Place",
    "RowPlace",
    "Static",
    "Text",
    "Truth",
    "Window",
    "children",
    "coordinates",
    "leaves",
    "number_text",
    "type_of",
]

KEYWORDS = frozenset({"and", "or", "not", "in", "where", "per", "own", "moment", "true", "false"})

Window = int | Literal["own"] | None
"""How far back from the cut-off: microseconds, to the instance's own start, or to the beginning."""


class Node:
    """Anything in the tree. Its text is canonical."""

    __slots__ = ()

    def __str__(self) -> str:
        return _text(self, None)


@dataclass(frozen=True, slots=True)
class Number(Node):
    value: float


@dataclass(frozen=True, slots=True)
class Text(Node):
    value: str


@dataclass(frozen=True, slots=True)
class Truth(Node):
    value: bool


@dataclass(frozen=True, slots=True)
class Moment(Node):
    """The moment the instance is about."""


@dataclass(frozen=True, slots=True)
class Own(Node):
    """A field of the instance's own event; only what is known beforehand."""

    field: str


@dataclass(frozen=True, slots=True)
class Static(Node):
    """The last known value of a static property; of the instance's group, if it has groups."""

    type: str
    field: str


@dataclass(frozen=True, slots=True)
class Events(Node):
    """The events of a type themselves, as they are counted."""

    type: str


@dataclass(frozen=True, slots=True)
class Column(Node):
    """A field of each event; `time` is when it happened."""

    type: str
    field: str


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """+ - * / = != < <= > >= and or."""

    op: str
    left: Feature
    right: Feature


@dataclass(frozen=True, slots=True)
class Not(Node):
    of: Feature


@dataclass(frozen=True, slots=True)
class Among(Node):
    """x in (1, 2), x in ("a", "b")."""

    of: Feature
    values: tuple[Number | Text, ...]


@dataclass(frozen=True, slots=True)
class Function(Node):
    """abs, log (of 1 + x), is_missing; hour, weekday (Monday 0), month, weekend of a time."""

    name: str
    of: Feature


@dataclass(frozen=True, slots=True)
class FixedPlace:
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class OwnPlace:
    """Fields p_lat and p_lon of the own event; lat and lon if the name is empty."""

    name: str


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Fields p_lat and p_lon of each event; lat and lon if the name is empty."""

    type: str
    name: str


@dataclass(frozen=True, slots=True)
class PickedPlace:
    """Where the first or the last of some events was, of those that know."""

    name: Literal["first", "last"]
    place: RowPlace
    where: Feature | None
    window: Window


Place = FixedPlace | OwnPlace | RowPlace | PickedPlace


@dataclass(frozen=True, slots=True)
class Distance(Node):
    """Metres between two places along the surface of the earth."""

    here: Place
    there: Place


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """One value out of many rows or buckets.

    of      what each row or bucket says; Events if the events themselves count
    where   which rows
    window  how far back
    every   if set, this is itself one value for each bucket so long, inside another aggregate.
            Buckets are counted back from the cut-off, so that no bucket is half over. One that the
            window cuts is left out. Without a window, the first event is in the first bucket
    """

    name: str
    of: Feature
    where: Feature | None = None
    window: Window = None
    every: int | None = None


Feature = (
    Number
    | Text
    | Truth
    | Moment
    | Own
    | Static
    | Events
    | Column
    | Binary
    | Not
    | Among
    | Function
    | Distance
    | Aggregate
)


def children(node: Feature) -> Iterator[Feature]:
    """What a node is made of, without what stands in an aggregate's condition."""
    match node:
        case Binary(_, left, right):
            yield left
            yield right
        case Not(of) | Among(of, _) | Function(_, of) | Aggregate(_, of):
            yield of
        case Distance(here, there):
            yield from coordinates(here)
            yield from coordinates(there)
        case _:
            pass


def leaves(node: Feature) -> Iterator[Events | Column | Aggregate]:
    """What a value inside an aggregate is made of: fields, or aggregates for each bucket."""
    if isinstance(node, Events | Column | Aggregate):
        yield node
        return
    for child in children(node):
        yield from leaves(child)


def type_of(node: Feature) -> str | None:
    """The type whose rows a value is of; None if it is of buckets, or of nothing."""
    for leaf in leaves(node):
        return None if isinstance(leaf, Aggregate) else leaf.type
    return None


def coordinates(place: Place) -> tuple[Feature, Feature]:
    """Latitude and longitude, in degrees, as features of their own."""
    match place:
        case FixedPlace(latitude, longitude):
            return Number(latitude), Number(longitude)
        case OwnPlace(name):
            return Own(_field(name, "lat")), Own(_field(name, "lon"))
        case RowPlace(type_, name):
            return Column(type_, _field(name, "lat")), Column(type_, _field(name, "lon"))
        case PickedPlace(which, row, where, window):
            # Both coordinates of one event: of the last that knows both.
            lat, lon = coordinates(row)
            known: Feature = Binary("and", _is_known(lat), _is_known(lon))
            both = known if where is None else Binary("and", known, where)
            return Aggregate(which, lat, both, window), Aggregate(which, lon, both, window)


def _is_known(node: Feature) -> Feature:
    return Not(Function("is_missing", node))


def _field(name: str, coordinate: str) -> str:
    return f"{name}_{coordinate}" if name else coordinate


# ── the canonical text ──

LEVELS = {"or": 1, "and": 2, "+": 5, "-": 5, "*": 6, "/": 6}
NEGATION, COMPARISON, ATOM = 3, 4, 7


def _level(node: Feature) -> int:
    """How tightly its outermost operator binds."""
    match node:
        case Binary(op):
            return LEVELS.get(op, COMPARISON)
        case Among():
            return COMPARISON
        case Not():
            return NEGATION
        case _:
            return ATOM


def _text(node: Node, bare: str | None) -> str:
    """`bare` is the type whose fields are written without it: we are in its condition."""
    match node:
        case Number(value):
            return number_text(value)
        case Text(value):
            return json.dumps(value, ensure_ascii=False)
        case Truth(value):
            return "true" if value else "false"
        case Moment():
            return "moment"
        case Own(field):
            return f"own.{field}"
        case Static(type_, field):
            return f"static({type_}.{field})"
        case Events(type_):
            return type_
        case Column(type_, field):
            return field if bare == type_ and field not in KEYWORDS else f"{type_}.{field}"
        case Function(name, of):
            return f"{name}({_text(of, bare)})"
        case Distance(here, there):
            return f"distance({_place(here, bare)}, {_place(there, bare)})"
        case Aggregate():
            return _aggregate(node)
        case _:
            return _operator(node, bare)


def _operator(node: Node, bare: str | None) -> str:
    match node:
        case Not(of):
            return f"not {_wrapped(of, bare, NEGATION)}"
        case Among(of, values):
            among = ", ".join(_text(value, bare) for value in values)
            return f"{_wrapped(of, bare, COMPARISON + 1)} in ({among})"
        case Binary(op, left, right):
            level = LEVELS.get(op, COMPARISON)
            # Operators lean to the left; comparisons do not chain.
            before = _wrapped(left, bare, level + (level == COMPARISON))
            return f"{before} {op} {_wrapped(right, bare, level + 1)}"
        case _:
            raise TypeError(f"no text for a {type(node).__name__}")


def _wrapped(node: Feature, bare: str | None, least: int) -> str:
    text = _text(node, bare)
    return text if _level(node) >= least else f"({text})"


def _aggregate(node: Aggregate) -> str:
    where = _where(node.where, type_of(node.of))
    per = f" per {written(node.every)}" if node.every is not None else ""
    return f"{node.name}({_text(node.of, None)}{where}{per}{_window(node.window)})"


def _where(condition: Feature | None, type_: str | None) -> str:
    return "" if condition is None else f" where {_text(condition, type_)}"


def _window(window: Window) -> str:
    if window is None:
        return ""
    return f", {window if isinstance(window, str) else written(window)}"


def _place(place: Place, bare: str | None) -> str:
    match place:
        case FixedPlace(latitude, longitude):
            return f'"{number_text(latitude)},{number_text(longitude)}"'
        case OwnPlace(name):
            return f"own.{name}" if name else "own"
        case RowPlace(type_, name):
            plain = bare == type_ and name and name != type_ and name not in KEYWORDS
            return name if plain else f"{type_}.{name}" if name else type_
        case PickedPlace(which, row, where, window):
            inside = f"{_place(row, None)}{_where(where, row.type)}{_window(window)}"
            return f"{which}({inside})"


def number_text(value: float) -> str:
    """The shortest text that reads back as this number."""
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
