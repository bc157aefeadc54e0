"""Rows of OULAD's files as events, with their days as dates."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from zoneinfo import ZoneInfo

from tacit.errors import UsageError
from tacit.personal.events import Value
from tacit.personal.importers import json_values as of
from tacit.personal.importers import oulad_types as types
from tacit.personal.importers.csv_rows import all_rows
from tacit.personal.importers.days import end_of_day
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_values import Item, Unreadable

__all__ = [
    "ASSESSMENTS",
    "CLICKED",
    "EARLY",
    "INFO",
    "REGISTERED",
    "SUBMITTED",
    "Made",
]

Course = tuple[str, str]

# The files, by columns that no other of them has.
INFO = ("code_module", "code_presentation", "id_student", "final_result")
REGISTERED = ("code_module", "code_presentation", "id_student", "date_registration")
ASSESSMENTS = ("code_module", "code_presentation", "id_assessment", "assessment_type", "date")
COURSES = ("code_module", "code_presentation", "module_presentation_length")
SUBMITTED = ("id_assessment", "id_student", "date_submitted", "score")
VLE = ("id_site", "code_module", "code_presentation", "activity_type")
CLICKED = ("code_module", "code_presentation", "id_student", "id_site", "date", "sum_click")
EARLY = ("code_module", "code_presentation", "id_student", "pre_course_clicks")

MONTHS = {"B": 2, "J": 10}
LENGTH = 269  # days of the longest presentation: no result was known later
PASSED = {"Pass": True, "Distinction": True, "Fail": False, "Withdrawn": False}


class Made:
    """Rows made into events. Courses and assessments, which are few, are kept in memory."""

    def __init__(self, export: Export, reading: Reading) -> None:
        self._zone: ZoneInfo = reading.zone
        self._student = reading.options.get("student")
        self._start = _start_option(reading.options.get("start"))
        quiet = Reading(reading.zone, skip_damaged=True)
        self._lengths = {_course(row): row[COURSES[2]] for row in all_rows(export, COURSES, quiet)}
        self._tests = {row["id_assessment"]: row for row in all_rows(export, ASSESSMENTS, quiet)}
        self._sites = {row["id_site"]: row["activity_type"] for row in all_rows(export, VLE, quiet)}
        taken = all_rows(export, INFO, quiet) if self._student else ()
        self._taken = {_course(row) for row in taken if row["id_student"] == self._student}

    def enrolled(self, row: Item, place: str) -> Iterable[Record]:
        if not self._is_of(row):
            return
        start = datetime.datetime.combine(self._day_0(_course(row)), datetime.time(), self._zone)
        values: dict[str, Value] = {
            **_taken(row),
            "gender": _said(row, "gender"),
            "region": _said(row, "region"),
            "education": _said(row, "highest_education"),
            "deprivation": _said(row, "imd_band"),
            "age": _said(row, "age_band"),
            "previous_attempts": of.number(row, "num_of_prev_attempts"),
            "credits": of.number(row, "studied_credits"),
            "disability": {"Y": True, "N": False}.get(row.get("disability", "")),
        }
        result = of.needed(_said(row, "final_result"), "final_result")
        yield Record(types.ENROLMENT, start.astimezone(datetime.UTC), values, place)
        ended: dict[str, Value] = {**_taken(row), "result": result, "passed": PASSED.get(result)}
        yield Record(types.RESULT, self._last_day(_course(row)), ended, place)

    def registered(self, row: Item, place: str) -> Iterable[Record]:
        if not self._is_of(row):
            return
        came, left = (_days(row, key) for key in ("date_registration", "date_unregistration"))
        if came is not None:
            values: dict[str, Value] = {**_taken(row), "days_before": -came}
            yield Record(types.REGISTRATION, self._day(_course(row), came), values, place)
        if left is not None:
            yield Record(types.UNREGISTRATION, self._day(_course(row), left), _taken(row), place)

    def due(self, row: Item, place: str) -> Iterable[Record]:
        course = _course(row)
        if self._student is not None and course not in self._taken:
            return
        day = _days(row, "date")
        time = self._last_day(course) if day is None else self._day(course, day)
        values: dict[str, Value] = {"module": course[0], "presentation": course[1], **_test(row)}
        yield Record(types.DEADLINE, time, values, place)

    def submitted(self, row: Item, place: str) -> Iterable[Record]:
        if not self._is_of(row):
            return
        test = self._tests.get(row["id_assessment"])
        if test is None:
            raise Unreadable("its assessment is not in assessments.csv, which is needed for it.")
        day, due = of.needed(_days(row, "date_submitted"), "date_submitted"), _days(test, "date")
        values: dict[str, Value] = {
            **_taken({**test, "id_student": row["id_student"]}),
            **_test(test),
            "score": of.number({"score": _said(row, "score")}, "score"),
            "banked": {"1": True, "0": False}.get(row.get("is_banked", "")),
            "days_early": None if due is None else due - day,
        }
        yield Record(types.SUBMISSION, self._day(_course(test), day), values, place)

    def clicked(self, row: Item, place: str) -> Iterable[Record]:
        if not self._is_of(row):
            return
        day = of.needed(_days(row, "date"), "date")
        values: dict[str, Value] = {
            **_taken(row),
            "site": row["id_site"],
            "activity": self._sites.get(row["id_site"]),
            "clicks": of.number(row, "sum_click"),
        }
        yield Record(types.CLICKS, self._day(_course(row), day), values, place)

    def clicked_early(self, row: Item, place: str) -> Iterable[Record]:
        if self._is_of(row):
            values: dict[str, Value] = {
                **_taken(row),
                "clicks": of.number(row, "pre_course_clicks"),
                "visits": of.number(row, "pre_course_interaction_rows"),
            }
            yield Record(types.EARLY_CLICKS, self._day(_course(row), -1), values, place)

    def _is_of(self, row: Item) -> bool:
        return self._student is None or row["id_student"] == self._student

    def _day(self, course: Course, after: float) -> datetime.datetime:
        return end_of_day(self._day_0(course), self._zone, after)

    def _last_day(self, course: Course) -> datetime.datetime:
        if self._lengths and course not in self._lengths:
            raise Unreadable("its course is not in courses.csv.")
        length = of.number({"length": self._lengths.get(course)}, "length")
        return self._day(course, LENGTH if length is None else length)

    def _day_0(self, course: Course) -> datetime.date:
        if self._start is not None:
            return self._start
        year, month = course[1][:4], MONTHS.get(course[1][4:])
        if month is None or not (year.isascii() and year.isdigit()) or int(year) < 1:
            raise Unreadable("its presentation is no year with B or J.")
        return datetime.date(int(year), month, 1)


def _course(row: Item) -> Course:
    return row["code_module"], row["code_presentation"]


def _taken(row: Item) -> dict[str, Value]:
    module, presentation = _course(row)
    return {"student": row["id_student"], "module": module, "presentation": presentation}


def _test(row: Item) -> dict[str, Value]:
    return {
        "assessment": row["id_assessment"],
        "form": _said(row, "assessment_type"),
        "weight": of.number(row, "weight"),
    }


def _said(row: Item, key: str) -> str | None:
    """Some copies of the data set write ? where nothing is known."""
    said = row.get(key, "")
    return None if said in ("", "?") else str(said)


def _days(row: Item, key: str) -> float | None:
    days = of.number({key: _said(row, key)}, key)
    if days is not None and (days != int(days) or abs(days) > 10_000):
        raise Unreadable(f"`{key}` is no number of days.")
    return days


def _start_option(text: str | None) -> datetime.date | None:
    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"start: is a date as 2013-10-05, not {text[:20]!r}.") from None
