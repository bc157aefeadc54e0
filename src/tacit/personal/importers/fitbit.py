"""Fitbit, from Google's Takeout (`Global Export Data`) or its own archive: one JSON list a file.

Moments are `01/31/24 07:00:00`, without a zone: those of nights, and of days, are by the person's
clock. Of the minutes (pulse, steps) people report both: by default they are by that clock too.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping

from tacit.errors import UsageError
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.fitbit_records import converter
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import items, records
from tacit.personal.importers.wearables import (
    ACTIVE_TIME,
    DISTANCE,
    ENERGY,
    HEART_RATE,
    RESTING_HEART_RATE,
    SLEEP_SESSION,
    STEPS,
    WORKOUT,
)

__all__ = ["Fitbit"]

NAME = re.compile(r"([a-z_]+)-\d+(-\d\d-\d\d)?\.json", re.ASCII)
KNOWN = {
    "steps",
    "calories",
    "distance",
    "heart_rate",
    "resting_heart_rate",
    "sleep",
    "exercise",
    "sedentary_minutes",
    "lightly_active_minutes",
    "moderately_active_minutes",
    "very_active_minutes",
}


class Fitbit:
    name = "fitbit"
    title = "Fitbit (Google Takeout)"
    hint = "takeout.google.com: Fitbit; or fitbit.com: Settings, Data export, account archive."
    types = (
        HEART_RATE,
        STEPS,
        ENERGY,
        DISTANCE,
        RESTING_HEART_RATE,
        ACTIVE_TIME,
        SLEEP_SESSION,
        WORKOUT,
    )
    options: Mapping[str, str] = {
        "minutes": "utc if the files by the minute are in universal time; else local"
    }

    def recognises(self, export: Export) -> bool:
        return any(b'"dateTime"' in m.head() or b'"logId"' in m.head() for m, _ in _known(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        said = reading.options.get("minutes", "local")
        if said not in ("utc", "local"):
            raise UsageError("fitbit: minutes is utc or local.")
        fine = datetime.UTC if said == "utc" else reading.zone
        for member, kind in _known(export):
            convert = converter(kind, fine, reading.zone)
            yield from records(items(member, reading, "item"), convert, reading)


def _known(export: Export) -> list[tuple[Member, str]]:
    named = ((m, NAME.fullmatch(m.name.rpartition("/")[2])) for m in export.find("*-*.json"))
    return [(member, found[1]) for member, found in named if found and found[1] in KNOWN]
