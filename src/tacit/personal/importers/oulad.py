"""The Open University Learning Analytics Dataset (Kuzilek, Hlosta, Zdrahal, Scientific Data 2017).

Its days are counted from the start of a presentation, which the data set keeps to the month: B
begins in February, J in October. Day 0 is the first of that month here, unless the option says.

That a student unregistered tells that the result is `Withdrawn`: unregistrations are events of
their own type, so that a problem can leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tacit.personal.importers import oulad_rows as rows
from tacit.personal.importers.csv_rows import csv_rows, tables_with
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import records
from tacit.personal.importers.json_values import Item
from tacit.personal.importers.oulad_types import TYPES

__all__ = ["Oulad"]

Convert = Callable[[Item, str], Iterable[Record]]


class Oulad:
    name = "oulad"
    title = "Open University courses (OULAD)"
    hint = "The data set's CSV files, in a folder or zip; say the student with the option."
    types = TYPES
    options: Mapping[str, str] = {
        "student": "only the events of the student with this id_student",
        "start": "the date of day 0, as 2013-10-05; by default the first of the month",
    }

    def recognises(self, export: Export) -> bool:
        return any(
            tables_with(export, *columns)
            for columns in (rows.INFO, rows.REGISTERED, rows.SUBMITTED, rows.CLICKED)
        )

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        made = rows.Made(export, reading)
        tables: tuple[tuple[tuple[str, ...], Convert], ...] = (
            (rows.INFO, made.enrolled),
            (rows.REGISTERED, made.registered),
            (rows.ASSESSMENTS, made.due),
            (rows.SUBMITTED, made.submitted),
            (rows.EARLY, made.clicked_early),
            (rows.CLICKED, made.clicked),
        )
        for columns, convert in tables:
            for member in tables_with(export, *columns):
                yield from records(csv_rows(member, reading, columns), convert, reading)
