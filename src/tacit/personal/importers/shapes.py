"""The kinds of values that have types of their own (JSON, SQLite), from all of them.

Such files are read twice: once to see what every key holds, and once for the events. So no record
further down is damaged for being different; a key that holds several kinds becomes a text.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from tacit.errors import InputError
from tacit.personal.events import EventType, Kind, Value
from tacit.personal.importers.csv_head import FEW, LONG, SHARE, TIMELY
from tacit.personal.importers.importer import Reading
from tacit.personal.importers.naming import field_names, plain_name
from tacit.personal.importers.times import (
    EPOCHS,
    Form,
    forms_of,
    instant,
    order_option,
    zone_option,
)

__all__ = ["OPTIONS", "Shape", "Shaped"]

MOST_KEYS = 500
COUNTED = 1000  # different values of a key that are told apart
OPTIONS: Mapping[str, str] = {
    "type": "what to call its events; by default as the file or table",
    "time": "the key or column that says when; found if only one holds times",
    "zone": "of times without one, as Europe/Paris; by default yours",
    "order": "dmy or mdy, where 03/04/2024 could be both",
}


@dataclass
class _Seen:
    """What one key held so far; `timely` if its name speaks of a time."""

    timely: bool
    kinds: set[type] = field(default_factory=set)
    forms: set[Form] | None = None
    values: set[str] = field(default_factory=set)
    count: int = 0
    longest: int = 0

    def see(self, value: Any) -> None:
        self.count += 1
        whole = isinstance(value, int) and not isinstance(value, bool)
        self.kinds.add(float if whole else type(value))
        text = value if isinstance(value, str) else None
        if text is not None:
            self.longest = max(self.longest, len(text))
            if len(self.values) < COUNTED and len(text) <= LONG:
                self.values.add(text)
        if self.forms == set():
            return
        if text is None and self.timely and not isinstance(value, bool):
            text = repr(value)
        here = forms_of([text]) if text is not None else set()
        self.forms = here if self.forms is None else self.forms & here

    def kind(self) -> Kind:
        if self.forms:
            return "time"
        if self.kinds == {bool}:
            return "boolean"
        if self.kinds == {float}:
            return "number"
        few = len(self.values) <= max(FEW, SHARE * self.count) and self.longest <= LONG
        return "category" if few and len(self.values) < COUNTED else "text"


class Shape:
    """Sees every record, then says how they become events."""

    def __init__(self) -> None:
        self._keys: dict[str, _Seen] = {}

    def see(self, record: Mapping[str, Any]) -> None:
        for key, value in record.items():
            if value is None:
                continue
            seen = self._keys.get(key)
            if seen is None:
                if len(self._keys) >= MOST_KEYS:
                    raise InputError(f"more than {MOST_KEYS} different keys: no table of events.")
                timely = bool(TIMELY.search(plain_name(key)))
                seen = self._keys[key] = _Seen(timely)
            seen.see(value)

    def shaped(self, name: str, where: str, reading: Reading) -> Shaped | None:
        """None if nothing was seen."""
        if not self._keys:
            return None
        order = order_option(reading.options.get("order"))
        time = self._time(where, reading.options.get("time"))
        rest = [key for key in self._keys if key != time]
        names = dict(zip(rest, field_names(rest), strict=True))
        kinds = {key: self._keys[key].kind() for key in rest}
        forms = {key: _form(self._keys[key].forms, key, order) for key in self._keys}
        kind = EventType(
            name=reading.options.get("type") or plain_name(name) or "row",
            fields={names[key]: kinds[key] for key in rest},
            about="Records of a file.",
        )
        zone = zone_option(reading.options.get("zone"), reading.zone)
        return Shaped(kind, time, names, kinds, forms, zone)

    def _time(self, where: str, named: str | None) -> str:
        times = [key for key, seen in self._keys.items() if seen.forms]
        if named is not None:
            for key in times:
                if named in (key, plain_name(key)):
                    return key
            raise InputError(f"{where}: there are no times under {named[:60]!r}.")
        if len(times) == 1:
            return times[0]
        which = ", ".join(key[:60] for key in times) or "none"
        raise InputError(
            f"{where}: one key must say when things happened, and those with times are: {which}. "
            "Name it with the option time."
        )


def _form(forms: set[Form] | None, key: str, order: Form | None) -> Form | None:
    if not forms:
        return None
    if order in forms:
        return order
    if len(forms) > 1:
        raise InputError(
            f"{key[:60]!r}: 03/04 may be 3 April or 4 March. Say which with the option order: dmy "
            "(day first) or mdy (month first)."
        )
    return min(forms)


@dataclass(frozen=True)
class Shaped:
    """How records become events."""

    kind: EventType
    time: str
    names: Mapping[str, str]
    kinds: Mapping[str, Kind]
    forms: Mapping[str, Form | None]
    zone: ZoneInfo

    def event(self, record: Mapping[str, Any]) -> tuple[datetime.datetime, dict[str, Value]] | None:
        """Its moment and fields; None if it has no time."""
        time = self._instant(self.time, record.get(self.time))
        if time is None:
            return None
        values = {
            name: self._value(key, record[key])
            for key, name in self.names.items()
            if record.get(key) is not None
        }
        return time, values

    def _value(self, key: str, value: Any) -> Value:
        kind = self.kinds[key]
        if kind == "number":
            return float(value)
        if kind == "boolean":
            return bool(value)
        if kind == "time":
            return self._instant(key, value)
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    def _instant(self, key: str, value: Any) -> datetime.datetime | None:
        form = self.forms[key]
        if value is None or form is None:
            return None
        return instant(value if form not in EPOCHS else str(value), form, self.zone)
