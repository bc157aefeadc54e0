"""Which kind of value a feature is, checked against the events there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from tacit.errors import InputError, Leakage
from tacit.personal.events import EventType, Kind
from tacit.personal.features.nodes import (
    Aggregate,
    Among,
    Binary,
    Column,
    Distance,
    Events,
    Feature,
    Function,
    Moment,
    Node,
    Not,
    Number,
    Own,
    Static,
    Text,
    Truth,
    children,
)
from tacit.personal.features.tokens import nearest
from tacit.personal.features.vocabulary import AGGREGATES, CLOCK

__all__ = ["check_condition", "kind_of"]

Made = Literal["number", "boolean", "category"]
Catalogue = Mapping[str, EventType]

MADE: dict[Kind, Made] = {
    "number": "number",
    "boolean": "boolean",
    "category": "category",
    "text": "category",
    "time": "number",  # seconds since 1970
}


def kind_of(
    feature: Feature, types: Catalogue, own: str | None = None, known: Collection[str] = ()
) -> Made:
    """Number, boolean or category; an InputError for names and kinds that do not fit.

    own    the type of the instances' own events, if they have one
    known  what may be read of it: anything else is a Leakage
    """
    return MADE[_Reader(types, own, known).kind(feature)]


def check_condition(condition: Feature, types: Catalogue) -> None:
    """Raise unless it is a condition on events of these types."""
    _Reader(types, None, ()).condition(condition)


class _Reader:
    def __init__(self, types: Catalogue, own: str | None, known: Collection[str]) -> None:
        self.types, self.own, self.known = types, own, known

    def kind(self, node: Feature) -> Kind:
        match node:
            case Number():
                return "number"
            case Text():
                return "category"
            case Truth():
                return "boolean"
            case Moment():
                return "time"
            case Own(field):
                return self._own(field)
            case Column(type_, field):
                return self._column(type_, field)
            case Static(type_, field):
                return self._static(type_, field)
            case Aggregate():
                return self._aggregate(node)
            case Function(name, of):
                return self._function(name, of)
            case Distance():
                return self._distance(node)
            case _:
                return self._operator(node)

    def condition(self, node: Feature) -> None:
        if (found := self.kind(node)) != "boolean":
            raise _wrong(node, f"is a {found}; a condition is true or false.")

    # ── names ──

    def _type(self, name: str) -> EventType:
        if name not in self.types:
            raise InputError(f"there are no events of type {name}.{nearest(name, self.types)}")
        return self.types[name]

    def _column(self, type_: str, field: str) -> Kind:
        kind = self._type(type_)
        if field == "time" and not kind.static:
            return "time"
        if field not in kind.fields:
            raise InputError(f"{type_} has no field {field}.{nearest(field, kind.fields)}")
        return kind.fields[field]

    def _own(self, field: str) -> Kind:
        if self.own is None:
            raise InputError(
                f"`own.{field}`: these instances have no event of their own. Only instances per "
                "event do."
            )
        if field == "time":
            raise InputError("`own.time`: write `moment`.")
        kind = self._column(self.own, field)
        if field not in self.known:
            raise _leak(field, self.own, self.known)
        return kind

    def _static(self, type_: str, field: str) -> Kind:
        if not self._type(type_).static:
            raise InputError(
                f"`static({type_}.{field})`: {type_} is no static property, it happens. Take "
                f"last({type_}.{field})."
            )
        return self._column(type_, field)

    # ── functions ──

    def _aggregate(self, node: Aggregate) -> Kind:
        means = AGGREGATES[node.name]
        self._check_happens(node.of)
        if node.where is not None:
            self.condition(node.where)
        if isinstance(node.of, Events):
            return "number"  # how many, how long
        kind = self.kind(node.of)
        if kind not in means.takes:
            takes = " or a ".join(sorted(means.takes))
            raise _wrong(node, f"{node.of} is a {kind}; {node.name} takes a {takes}.")
        return means.gives or kind

    def _check_happens(self, node: Feature) -> None:
        if isinstance(node, Events | Column) and self._type(node.type).static:
            raise InputError(
                f"{node.type} is a static property: it has no time to look back from. Take "
                f"static({node.type}.field)."
            )
        for child in children(node):
            self._check_happens(child)

    def _function(self, name: str, of: Feature) -> Kind:
        kind = self.kind(of)
        if name == "is_missing":
            return "boolean"
        needed: Kind = "time" if name in CLOCK else "number"
        if kind != needed:
            raise _wrong(of, f"is a {kind}; {name} takes a {needed}.")
        return CLOCK.get(name, "number")

    def _distance(self, node: Distance) -> Kind:
        for coordinate in children(node):
            if (kind := self.kind(coordinate)) != "number":
                raise _wrong(node, f"{coordinate} is a {kind}; coordinates are numbers.")
        return "number"

    # ── operators ──

    def _operator(self, node: Feature) -> Kind:
        match node:
            case Not(of):
                self.condition(of)
                return "boolean"
            case Among(of, values):
                kind, wanted = self.kind(of), Number if self.kind(of) == "number" else Text
                if kind not in ("number", "category", "text") or not all(
                    isinstance(value, wanted) for value in values
                ):
                    raise _wrong(node, f"{of} is a {kind}; the list must be of its kind.")
                return "boolean"
            case Binary("and" | "or", left, right):
                self.condition(left)
                self.condition(right)
                return "boolean"
            case Binary("+" | "-" | "*" | "/"):
                return self._arithmetic(node)
            case Binary():
                return self._comparison(node)
            case _:
                raise _wrong(node, "events themselves have no value.")

    def _arithmetic(self, node: Binary) -> Kind:
        kinds = (self.kind(node.left), self.kind(node.right))
        if kinds == ("number", "number"):
            return "number"
        if node.op == "-" and kinds == ("time", "time"):
            return "number"  # seconds
        if kinds == ("time", "number") and node.op in "+-":
            return "time"
        raise _wrong(node, f"a {kinds[0]} {node.op} a {kinds[1]} means nothing.")

    def _comparison(self, node: Binary) -> Kind:
        left, right = (_plain(self.kind(side)) for side in (node.left, node.right))
        if left != right:
            raise _wrong(node, f"a {left} cannot be compared with a {right}.")
        if node.op not in ("=", "!=") and left not in ("number", "time"):
            raise _wrong(node, f"a {left} is neither less nor more: compare with = or !=.")
        return "boolean"


def _plain(kind: Kind) -> Kind:
    return "category" if kind == "text" else kind


def _wrong(node: Node, problem: str) -> InputError:
    return InputError(f"`{node}`: {problem}")


def _leak(field: str, own: str, known: Collection[str]) -> Leakage:
    there = ", ".join(f"own.{name}" for name in sorted(known)) or "nothing"
    return Leakage(
        f"`own.{field}`: this would look at what is to be predicted. Known beforehand: {there}. If "
        f"{field} is known before the {own} happens, name it in `known`; if not, look at earlier "
        f"events: last({own}.{field})."
    )
