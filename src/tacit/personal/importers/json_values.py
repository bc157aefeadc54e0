"""What services write into JSON, taken as what it should be or refused with the key's name.

Services are loose with types: numbers come as texts, moments as milliseconds, places as degrees
times ten million. A value that is absent is None; one that is of another kind makes its record
unreadable, and the reason names the key, never the value.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

__all__ = [
    "Item",
    "Unreadable",
    "day_end",
    "epoch",
    "first_of",
    "flag",
    "instant",
    "needed",
    "number",
    "objects",
    "part",
    "place",
    "text",
]

Item = Mapping[str, Any]
T = TypeVar("T")

NUMERAL = re.compile(r"[-+]?\d{1,20}(\.\d{1,20})?([eE][-+]?\d{1,3})?", re.ASCII)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Unreadable(Exception):
    """A record is not of the service's form. The message names keys and shows no value."""


def needed(value: T | None, key: str) -> T:
    if value is None:
        raise Unreadable(f"`{key}` is missing.")
    return value


def number(item: Item, key: str) -> float | None:
    value = item.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, str) and NUMERAL.fullmatch(value):
        value = float(value)
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number beyond every float
        pass
    raise Unreadable(f"`{key}` is no number.")


def text(item: Item, key: str) -> str | None:
    """The text, or None if there is none or it is empty. Half a surrogate pair becomes a mark."""
    value = item.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise Unreadable(f"`{key}` is no text.")
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode()
    return value


def flag(item: Item, key: str) -> bool | None:
    value = item.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise Unreadable(f"`{key}` is neither true nor false.")


def part(item: Item, key: str) -> Item:
    """The object under a key, so that keys of keys read on; an empty one if there is none."""
    value = item.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable(f"`{key}` is no object.")
    return value


def objects(item: Item, key: str) -> list[Item]:
    """The objects of the list under a key."""
    value = item.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise Unreadable(f"`{key}` is no list of objects.")
    return value


def first_of(item: Item, key: str) -> str | None:
    """The first text of the list of texts under a key."""
    value = item.get(key)
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise Unreadable(f"`{key}` is no list.")
    return text({key: value[0]}, key)


def instant(item: Item, key: str, zone: datetime.tzinfo = datetime.UTC) -> datetime.datetime | None:
    """A moment as ISO 8601 writes it; one without an offset is in `zone`."""
    written = text(item, key)
    if written is None:
        return None
    try:
        time = datetime.datetime.fromisoformat(written)
        return (time if time.tzinfo else time.replace(tzinfo=zone)).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise Unreadable(f"`{key}` is no time.") from None


def epoch(item: Item, key: str) -> datetime.datetime | None:
    """A moment as milliseconds since 1970."""
    since = number(item, key)
    if since is None:
        return None
    try:
        return EPOCH + datetime.timedelta(milliseconds=since)
    except OverflowError:
        raise Unreadable(f"`{key}` is no time.") from None


def day_end(item: Item, key: str, zone: datetime.tzinfo) -> datetime.datetime | None:
    """The last second of a calendar day: what sums up a day is not known before it is over."""
    written = text(item, key)
    if written is None:
        return None
    try:
        day = datetime.date.fromisoformat(written[:10])
        last = datetime.datetime.combine(day, datetime.time(23, 59, 59), zone)
        return last.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise Unreadable(f"`{key}` is no date.") from None


def place(lat: float | None, lon: float | None, key: str) -> tuple[float | None, float | None]:
    """Latitude and longitude in degrees, if both are there and on the globe."""
    if lat is None or lon is None:
        return None, None
    if abs(lat) > 90 or abs(lon) > 180:
        raise Unreadable(f"`{key}` lies off the globe.")
    return lat, lon
