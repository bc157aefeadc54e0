"""Fields and events (AnonML, table 3.1): typed, immutable, at a moment or without one.

A moment is an instant, kept as whole microseconds since 1970 in universal time. A static property,
such as a birthday or the bounds of a course, has none.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from tacit.errors import InputError, UsageError

__all__ = [
    "EPOCH",
    "MICROSECOND",
    "NAME",
    "Event",
    "EventType",
    "Field",
    "Kind",
    "Value",
    "checked",
    "moment",
]

Kind = Literal["number", "boolean", "category", "text", "time"]
Value = float | bool | str | datetime.datetime | None

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)


def moment(time: datetime.datetime) -> int:
    """Microseconds since 1970. The time must know its zone, or nobody knows when it was."""
    if time.tzinfo is None:
        raise UsageError("a time without a zone is no moment: give it one (tzinfo).")
    return (time - EPOCH) // MICROSECOND


class EventType(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What events of one name look like.

    name    small letters, digits and _: `ride`
    fields  each field's kind; a category has few values that repeat, a text has many
    static  without a moment: a property rather than something that happened
    about   one sentence for people
    words   what people call it, for questions in plain language: ("trip", "journey")
    """

    name: str
    fields: dict[str, Kind]
    static: bool = False
    about: str = ""
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.name, *self.fields):
            if not NAME.fullmatch(name):
                raise InputError(
                    f"{name[:80]!r} cannot name events or fields: small letters, digits and _, "
                    "beginning with a letter, 64 at most."
                )
        if "time" in self.fields or "source" in self.fields:
            raise InputError(f"{self.name}: `time` and `source` are taken; call the field else.")


class Field(msgspec.Struct, frozen=True):
    """A single measured value with its kind; None where nothing was measured."""

    name: str
    kind: Kind
    value: Value

    def __post_init__(self) -> None:
        checked(self.kind, self.value, self.name)


class Event(msgspec.Struct, frozen=True):
    """Something that happened at a moment, or (time None) a static property."""

    type: str
    time: datetime.datetime | None
    fields: Mapping[str, Value] = MappingProxyType({})
    source: str = ""

    def __post_init__(self) -> None:
        if self.time is not None:
            moment(self.time)  # refuses what has no zone
        msgspec.structs.force_setattr(self, "fields", MappingProxyType(dict(self.fields)))


def checked(kind: Kind, value: Value, name: str) -> Value:
    """The value, if it is of this kind; numbers as floats. The error never shows the value."""
    if value is None:
        return None
    if kind == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
    elif (
        (kind == "boolean" and isinstance(value, bool))
        or (kind in ("category", "text") and isinstance(value, str))
        or (kind == "time" and isinstance(value, datetime.datetime) and value.tzinfo is not None)
    ):
        return value
    raise InputError(f"{name}: {_SAYS[kind]} is expected, not a {type(value).__name__}.")


_SAYS: dict[Kind, str] = {
    "number": "a finite number",
    "boolean": "true or false",
    "category": "a text",
    "text": "a text",
    "time": "a time with its zone",
}
