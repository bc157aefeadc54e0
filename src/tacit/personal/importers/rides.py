"""What the importers of ride-sharing services have in common."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from tacit.personal.events import EventType
from tacit.personal.importers.json_values import Item, Unreadable, number

__all__ = ["METRES", "RIDE", "cell", "length", "metres", "money"]

METRES = 1609.344  # in a mile
RIDE = EventType(
    name="ride",
    fields={
        "service": "category",
        "product": "category",
        "status": "category",
        "city": "category",
        "amount": "number",
        "currency": "category",
        "metres": "number",
        "seconds": "number",
        "wait_seconds": "number",
        "surge": "number",
        "pickup": "text",
        "pickup_lat": "number",
        "pickup_lon": "number",
        "dropoff": "text",
        "dropoff_lat": "number",
        "dropoff_lon": "number",
    },
    about="A ride that was booked with a ride-sharing service, at the moment it was asked for.",
    words=("trip", "journey", "taxi", "cab", "lift", "fare"),
)
ABSENT = {"", "null", "(null)", "none", "nan", "n/a", "\\n"}
MONEY = re.compile(r"([A-Z]{3}|[$€£])? ?(-?\d[\d,]*(?:\.\d+)?) ?([A-Z]{3}|[$€£])?", re.ASCII)
SIGNS = {"$": None, "€": "EUR", "£": "GBP"}  # dollars of many countries


def cell(row: Item, names: Sequence[str]) -> str | None:
    """The first of these columns that says something: services rename theirs."""
    for name in names:
        said = row.get(name, "")
        if said.lower() not in ABSENT:
            return str(said)
    return None


def metres(row: Item, names: Sequence[str]) -> float | None:
    """A distance that the service gives in miles."""
    miles = number({"distance": cell(row, names)}, "distance")
    return None if miles is None else miles * METRES


def money(text: str | None) -> tuple[float | None, str | None]:
    """Amount, and currency if it is written with it: `$1,022.50`, `12.50 EUR`."""
    if text is None:
        return None, None
    found = MONEY.fullmatch(text)
    if found is None:
        raise Unreadable("its price is no amount of money.")
    sign = found[1] or found[3]
    return float(found[2].replace(",", "")), SIGNS.get(sign, sign) if sign else None


def length(start: datetime.datetime | None, end: datetime.datetime | None) -> float | None:
    """Seconds between; None if one is not known, or the service's clock ran backwards."""
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()
