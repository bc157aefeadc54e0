"""KDD Cup 2015 (XuetangX): who took which course, what they did, and whether they dropped out.

Two forms: daily counts (enrolments with a start date, and counts of seven actions for each day),
and the cup's own files (enrollment_train.csv, log_train.csv, truth_train.csv, date.csv).

A student dropped out who did nothing in the ten days after a course's thirty: that is known forty
days after its start.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from zoneinfo import ZoneInfo

from tacit.personal.events import EventType, Kind, Value
from tacit.personal.importers import json_values as of
from tacit.personal.importers.csv_rows import all_rows, csv_rows, headers_of, tables_with
from tacit.personal.importers.days import end_of_day
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import records
from tacit.personal.importers.json_values import Item, Unreadable

__all__ = ["Kddcup"]

ACTIONS = ("access", "discussion", "navigate", "page_close", "problem", "video", "wiki")
TAKEN: dict[str, Kind] = {"enrolment": "category", "course": "category"}
BEGUN = EventType(
    name="mooc_start",
    fields=TAKEN,
    about="An online course began for a student.",
    words=("course", "class", "mooc"),
)
DROPOUT = EventType(
    name="mooc_result",
    fields={**TAKEN, "dropped_out": "boolean"},
    about="Whether a student was gone ten days after an online course of thirty.",
    words=("dropout", "drop out", "quit", "finish"),
)
DAY = EventType(
    name="mooc_day",
    fields={**TAKEN, **dict.fromkeys(ACTIONS, "number")},
    about="How often a student did what in an online course on one day.",
    words=("study", "activity"),
)
ACTION = EventType(
    name="mooc_action",
    fields={**TAKEN, "action": "category", "origin": "category", "object": "text"},
    about="One thing that a student did in an online course.",
    words=("click", "video", "problem"),
)

STARTED = ("enrollment_id", "course", "start_date", "label")
COUNTED = ("enrollment_id", "day", *ACTIONS)
ENROLLED = ("enrollment_id", "username", "course_id")
LOGGED = ("enrollment_id", "time", "source", "event", "object")
DATES = ("course_id", "from", "to")
KNOWN = 40  # days after the start at which it is known who dropped out


class Kddcup:
    name = "kddcup"
    title = "KDD Cup 2015 courses (XuetangX)"
    hint = "The cup's CSV files, in a folder or zip; say the enrolment with the option."
    types = (BEGUN, DROPOUT, DAY, ACTION)
    options: Mapping[str, str] = {"enrollment": "only the events of this enrollment_id"}

    def recognises(self, export: Export) -> bool:
        return any(tables_with(export, *one) for one in (STARTED, COUNTED, ENROLLED, LOGGED))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        made = _Made(export, reading)
        tables: tuple[tuple[tuple[str, ...], Callable[[Item, str], Iterable[Record]]], ...] = (
            (STARTED, made.begun),
            (COUNTED, made.day),
            (ENROLLED, made.begun),
            (LOGGED, made.action),
        )
        for columns, convert in tables:
            for member in tables_with(export, *columns):
                if columns == ENROLLED and set(LOGGED) <= set(headers_of(member)):
                    continue  # an older form of the log, with who and which course in every row
                yield from records(csv_rows(member, reading, columns), convert, reading)
        for member in export.find("truth_train.csv"):  # the one file without a header
            found = csv_rows(member, reading, headers=("enrollment_id", "label"))
            yield from records(found, made.result, reading)


class _Made:
    """Rows made into events. Which course an enrolment is of, and since when, is kept in memory."""

    def __init__(self, export: Export, reading: Reading) -> None:
        self._zone: ZoneInfo = reading.zone
        self._only = reading.options.get("enrollment")
        quiet = Reading(reading.zone, skip_damaged=True)
        starts = {row["course_id"]: row["from"] for row in all_rows(export, DATES, quiet)}
        self._taken: dict[str, tuple[str, str | None]] = {}
        for row in all_rows(export, STARTED, quiet):
            if self._is_of(row):
                self._taken[row["enrollment_id"]] = row["course"], row["start_date"]
        for row in all_rows(export, ENROLLED, quiet):
            if self._is_of(row):
                course = row["course_id"]
                self._taken[row["enrollment_id"]] = course, starts.get(course)

    def begun(self, row: Item, place: str) -> Iterable[Record]:
        if not self._is_of(row):
            return
        start = datetime.datetime.combine(self._start(row), datetime.time(), self._zone)
        yield Record(BEGUN, start.astimezone(datetime.UTC), self._of(row), place)
        if "label" in row:
            yield from self.result(row, place)

    def result(self, row: Item, place: str) -> Iterable[Record]:
        if self._is_of(row):
            if row["label"] not in ("0", "1"):
                raise Unreadable("its label is neither 0 nor 1.")
            values: dict[str, Value] = {**self._of(row), "dropped_out": row["label"] == "1"}
            yield Record(DROPOUT, end_of_day(self._start(row), self._zone, KNOWN), values, place)

    def day(self, row: Item, place: str) -> Iterable[Record]:
        if self._is_of(row):
            after = of.needed(of.number(row, "day"), "day")
            time = end_of_day(self._start(row), self._zone, after)
            values: dict[str, Value] = {action: of.number(row, action) for action in ACTIONS}
            yield Record(DAY, time, {**self._of(row), **values}, place)

    def action(self, row: Item, place: str) -> Iterable[Record]:
        if self._is_of(row):
            time = of.needed(of.instant(row, "time", self._zone), "time")
            values: dict[str, Value] = {
                **self._of(row),
                "action": of.text(row, "event"),
                "origin": of.text(row, "source"),
                "object": of.text(row, "object"),
            }
            yield Record(ACTION, time, values, place)

    def _is_of(self, row: Item) -> bool:
        return self._only is None or row["enrollment_id"] == self._only

    def _of(self, row: Item) -> dict[str, Value]:
        enrolment = row["enrollment_id"]
        course, _ = self._taken.get(enrolment, (row.get("course_id"), None))
        return {"enrolment": enrolment, "course": course}

    def _start(self, row: Item) -> datetime.date:
        _, start = self._taken.get(row["enrollment_id"], (None, None))
        try:
            return datetime.date.fromisoformat(start or "")
        except ValueError:
            raise Unreadable(
                "nothing says when its course began: the enrolments, or date.csv, are needed."
            ) from None
