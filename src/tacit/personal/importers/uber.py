"""Uber: the trips of an account's data, in the forms that the download has had over the years.

    City, Product Type, Trip or Order Status, Request Time, ...    `2019-10-25 10:57:20 +0000 UTC`
    city, product_type, status, request_time, ...                  `2023-04-10T10:11:31.000Z`
    city_name, ..., request_timestamp_local, request_timestamp_utc, ...

A time in 1970 stands for none. Only the columns in universal time are read where there are two.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from zoneinfo import ZoneInfo

from tacit.personal.events import EventType
from tacit.personal.importers import json_values as of
from tacit.personal.importers.csv_rows import csv_rows, headers_of
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import records
from tacit.personal.importers.json_values import Item, Unreadable
from tacit.personal.importers.naming import plain_name
from tacit.personal.importers.rides import RIDE, cell, length, metres, money
from tacit.personal.importers.times import instant

__all__ = ["Uber"]

ORDER = EventType(
    name="delivery",
    fields={
        "product": "category",
        "status": "category",
        "city": "category",
        "amount": "number",
        "currency": "category",
    },
    about="An order that was delivered by Uber Eats.",
    words=("order", "meal", "food"),
)
COLUMNS = {
    "asked": ("request_time", "request_timestamp_utc", "request_time_utc"),
    "began": ("begin_trip_time", "begintrip_timestamp_utc", "begin_trip_time_utc"),
    "ended": ("dropoff_time", "dropoff_timestamp_utc", "dropoff_time_utc"),
    "product": ("product_type", "global_product_name", "product_type_name"),
    "status": ("trip_or_order_status", "status"),
    "city": ("city", "city_name"),
    "amount": ("fare_amount", "original_fare_local", "client_upfront_fare_local"),
    "currency": ("fare_currency", "currency_code"),
    "distance": ("distance_miles", "trip_distance_miles", "distance"),
    "surge": ("surge_multiplier",),
    "pickup": ("begin_trip_address", "begintrip_address", "begintrip_string"),
    "pickup_lat": ("begin_trip_lat", "begintrip_lat"),
    "pickup_lon": ("begin_trip_lng", "begintrip_lng"),
    "dropoff": ("dropoff_address", "destination_string"),
    "dropoff_lat": ("dropoff_lat",),
    "dropoff_lon": ("dropoff_lng",),
}


class Uber:
    name = "uber"
    title = "Uber trips"
    hint = "Uber's app or site: Privacy Center, Download your data; it comes with trips_data.csv."
    types = (RIDE, ORDER)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        return bool(_trips(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in _trips(export):
            rows = csv_rows(member, reading, named=plain_name)
            yield from records(rows, _converter(reading.zone), reading)


def _trips(export: Export) -> list[Member]:
    return [m for m in export.find("*.csv")[:200] if _is_trips(set(map(plain_name, headers_of(m))))]


def _is_trips(headers: set[str]) -> bool:
    return all(headers & set(COLUMNS[one]) for one in ("began", "ended", "status"))


def _converter(zone: ZoneInfo) -> Callable[[Item, str], Iterable[Record]]:
    def convert(row: Item, place: str) -> Iterable[Record]:
        said = {key: cell(row, names) for key, names in COLUMNS.items()}
        asked, began, ended = (_moment(said[key], zone) for key in ("asked", "began", "ended"))
        product = said["product"]
        amount, currency = money(said["amount"])
        values = {
            "product": product,
            "status": (said["status"] or "").lower() or None,
            "city": said["city"],
            "amount": amount,
            "currency": said["currency"] or currency,
        }
        time = of.needed(asked or began or ended, "Request Time")
        if product is not None and "eats" in product.lower():
            yield Record(ORDER, time, values, place)
            return
        pickup, dropoff = (_place(said, end) for end in ("pickup", "dropoff"))
        more = {
            "service": "uber",
            "metres": metres(row, COLUMNS["distance"]),
            "seconds": length(began, ended),
            "wait_seconds": length(asked, began),
            "surge": of.number(said, "surge"),
        }
        yield Record(RIDE, time, {**values, **more, **pickup, **dropoff}, place)

    return convert


def _moment(text: str | None, zone: ZoneInfo) -> datetime.datetime | None:
    if text is None:
        return None
    time = instant(text, "iso", zone)
    if time is None:
        raise Unreadable("one of its times is no time.")
    return time if time.year > 1970 else None


def _place(said: Item, end: str) -> dict[str, str | float | None]:
    lat, lon = of.number(said, f"{end}_lat"), of.number(said, f"{end}_lon")
    lat, lon = of.place(lat, lon, end) if (lat, lon) != (0, 0) else (None, None)
    return {end: said[end], f"{end}_lat": lat, f"{end}_lon": lon}
