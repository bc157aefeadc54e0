"""Expressions of the language of features, made as trees: a person's words are never pasted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tacit.personal.durations import DAY
from tacit.personal.features.nodes import (
    Aggregate,
    Binary,
    Column,
    Events,
    Feature,
    Not,
    Number,
    Own,
    Text,
    number_text,
)

__all__ = ["Condition", "aggregate", "all_of", "compared", "condition_text"]

_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SAID = {
    "=": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
}


@dataclass(frozen=True)
class Condition:
    """On a field of an event."""

    field: str
    operator: str
    value: str | float | bool

    def of_event(self, type_: str) -> Feature:
        return compared(Column(type_, self.field), self.operator, self.value)

    def of_own(self) -> Feature:
        return compared(Own(self.field), self.operator, self.value)

    def opposite(self) -> Condition:
        """What holds where this does not."""
        if isinstance(self.value, bool):
            return replace(self, value=not self.value)
        return replace(self, operator=_OPPOSITE[self.operator])

    def in_words(self) -> str:
        if isinstance(self.value, bool):
            return f"`{self.field}` is {'true' if self.value else 'false'}"
        value = f"“{self.value}”" if isinstance(self.value, str) else number_text(float(self.value))
        return f"`{self.field}` {_SAID[self.operator]} {value}"


def compared(left: Feature, operator: str, value: str | float | bool) -> Feature:
    """A truth is compared by being itself."""
    if isinstance(value, bool):
        return left if value else Not(left)
    return Binary(operator, left, Text(value) if isinstance(value, str) else Number(float(value)))


def all_of(conditions: Sequence[Condition], type_: str) -> Feature | None:
    parts = [condition.of_event(type_) for condition in conditions]
    return reduce(lambda left, right: Binary("and", left, right), parts) if parts else None


def aggregate(
    name: str, type_: str, field: str, conditions: Sequence[Condition], days: int | None = None
) -> Feature:
    """`sum(ride.price where city = "Bern")`; without a field of the events: `count(ride)`."""
    of = Column(type_, field) if field else Events(type_)
    window = None if days is None else days * DAY
    return Aggregate(name, of, all_of(conditions, type_), window)


def condition_text(conditions: Sequence[Condition], type_: str) -> str:
    """As it stands after `where`, with the fields' bare names; empty without conditions."""
    count = str(aggregate("count", type_, "", conditions))
    return count.removeprefix(f"count({type_} where ").removesuffix(")") if conditions else ""
