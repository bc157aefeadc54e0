"""Lyft: the rides of an account's data.

Lyft does not document the columns of this table, and has renamed them; those below are the names
that its downloads and ride reports are known by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from zoneinfo import ZoneInfo

from tacit.personal.importers import json_values as of
from tacit.personal.importers.csv_rows import csv_rows, headers_of
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import records
from tacit.personal.importers.json_values import Item, Unreadable
from tacit.personal.importers.naming import plain_name
from tacit.personal.importers.rides import RIDE, cell, length, metres, money
from tacit.personal.importers.times import Form, form_among, instant

__all__ = ["Lyft"]

COLUMNS = {
    "asked": (
        "requested",
        "requested_at",
        "request_time",
        "request_timestamp",
        "ride_requested_at",
        "request_date_time",
        "ride_date",
        "date_time",
    ),
    "began": ("picked_up_at", "pickup_time", "pickup_timestamp", "pickup_date_time"),
    "ended": ("dropped_off_at", "dropoff_time", "dropoff_timestamp", "dropoff_date_time"),
    "pickup": ("pickup", "pickup_address", "pickup_location", "origin", "origin_address"),
    "pickup_lat": ("pickup_lat", "pickup_latitude", "origin_lat"),
    "pickup_lon": ("pickup_lng", "pickup_lon", "pickup_longitude", "origin_lng"),
    "dropoff": ("dropoff", "dropoff_address", "dropoff_location", "destination", "drop_off"),
    "dropoff_lat": ("dropoff_lat", "dropoff_latitude", "destination_lat"),
    "dropoff_lon": ("dropoff_lng", "dropoff_lon", "dropoff_longitude", "destination_lng"),
    "product": ("ride_type", "ride_product", "type"),
    "status": ("ride_status", "status"),
    "city": ("region", "city"),
    "amount": ("amount", "total", "total_charge", "total_amount", "fare", "price", "cost"),
    "currency": ("currency", "currency_code"),
    "distance": ("distance_miles", "ride_distance_miles", "miles", "distance"),
}
TIMES = ("asked", "began", "ended")


class Lyft:
    name = "lyft"
    title = "Lyft rides"
    hint = "account.lyft.com/privacy/data: Download your data; it comes with a table of rides."
    types = (RIDE,)
    options: Mapping[str, str] = {"order": "dmy or mdy, where 03/04/2024 could be both"}

    def recognises(self, export: Export) -> bool:
        return bool(_rides(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in _rides(export):
            rows = csv_rows(member, reading, named=plain_name)
            yield from records(rows, _converter(_form(member, reading), reading.zone), reading)


def _rides(export: Export) -> list[Member]:
    return [
        m for m in export.find("*.csv")[:200] if _is_rides(m, set(map(plain_name, headers_of(m))))
    ]


def _is_rides(member: Member, headers: set[str]) -> bool:
    """Its name alone says that it is Lyft's: the columns are anybody's."""
    lyft = "lyft" in member.name.lower() or any("lyft" in name for name in headers)
    known = [headers & set(COLUMNS[one]) for one in ("pickup", "dropoff")]
    timed = any(headers & set(COLUMNS[one]) for one in ("asked", "began"))
    return lyft and all(known) and timed


def _form(member: Member, reading: Reading) -> Form:
    """The form of the file's times."""
    quiet = Reading(reading.zone, skip_damaged=True)
    rows = csv_rows(member, quiet, named=plain_name)
    times = (cell(row, COLUMNS[key]) or "" for _, row in rows for key in TIMES)
    return form_among(times, reading.options.get("order"), member.name) or "iso"


def _converter(form: Form, zone: ZoneInfo) -> Callable[[Item, str], Iterable[Record]]:
    def convert(row: Item, place: str) -> Iterable[Record]:
        said = {key: cell(row, names) for key, names in COLUMNS.items()}
        times = {key: instant(said[key] or "", form, zone) for key in TIMES}
        if any(said[key] and times[key] is None for key in TIMES):
            raise Unreadable("one of its times is no time.")
        amount, currency = money(said["amount"])
        values = {
            "service": "lyft",
            "product": said["product"],
            "status": (said["status"] or "").lower() or None,
            "city": said["city"],
            "amount": amount,
            "currency": said["currency"] or currency,
            "metres": metres(row, COLUMNS["distance"]),
            "seconds": length(times["began"], times["ended"]),
            "wait_seconds": length(times["asked"], times["began"]),
        }
        for end in ("pickup", "dropoff"):
            lat, lon = of.number(said, f"{end}_lat"), of.number(said, f"{end}_lon")
            values[f"{end}_lat"], values[f"{end}_lon"] = of.place(lat, lon, end)
            values[end] = said[end]
        time = of.needed(times["asked"] or times["began"] or times["ended"], "requested")
        yield Record(RIDE, time, values, place)

    return convert
