"""All that is wrong with a table, in one reading: what its owner mends before anybody signs.

Reading for a study stops at the first fault. Here every fault is counted by its column and kind,
with the first row that has it. Values are private, and are not shown.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tacit.data.arrow import pa
from tacit.data.columns import BadCell, check_column
from tacit.data.sources import open_source
from tacit.errors import NoRecords, SchemaError, TableError

if TYPE_CHECKING:
    from tacit.data.schema import Column, Schema

__all__ = ["TableProblem", "TableReport", "table_problems"]

NO_ROWS = NoRecords("has no rows.", remedy="Give at least one record.")


@dataclass(frozen=True)
class TableProblem:
    """One kind of fault; `row` is the first that has it, of `count` in all; None: not of rows."""

    problem: str
    remedy: str = ""
    file: str | None = None
    column: str | None = None
    row: int | None = None
    count: int = 1

    def __str__(self) -> str:
        place = [self.file or "table"]
        if self.column is not None:
            place.append(f"column {self.column!r}")
        if self.row is not None:
            place.append(f"row {self.row}")
        more = f" ({self.count:,} rows in all)" if self.count > 1 else ""
        return f"{', '.join(place)}: {self.problem}{more} {self.remedy}".rstrip()


@dataclass
class TableReport:
    """What a table has: its rows, as far as they could be read, and its faults."""

    file: str
    rows: int = 0
    dropped: int = 0
    problems: list[TableProblem] = field(default_factory=list)

    @property
    def records(self) -> int:
        """Rows that are used: but for those that lack a value which is dropped if missing."""
        return self.rows - self.dropped

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "rows": self.rows,
            "records": self.records,
            "problems": [asdict(problem) for problem in self.problems],
        }


def table_problems(source: Any, schema: Schema, *, name: str | None = None) -> TableReport:
    """Every fault of a table that the schema does not allow."""
    schema.require_complete()
    found = _Faults(TableReport(name or str(source)))
    found.read(source, schema)
    return found.report()


class _Faults:
    def __init__(self, report: TableReport) -> None:
        self._report = report
        self._ragged: dict[int, int] = {}  # rows with too few or too many cells: how many
        self._width = 0
        # By column and problem: the first row among those that could be read, how many, the remedy.
        self._cells: dict[tuple[str, str], tuple[int, int, str]] = {}

    def read(self, source: Any, schema: Schema) -> None:
        try:
            known = self._columns(source, schema)
            if known is None:
                return
            opened = open_source(source, known, ragged=self._note_ragged)
            for raw in opened.batches:
                self._batch(raw, known)
            if not self._report.rows and not self._ragged:
                self._add(NO_ROWS)
        except TableError as error:  # it cannot be read further
            self._add(error)

    def _columns(self, source: Any, schema: Schema) -> Schema | None:
        """The schema of those columns that are there; None if nothing can be read of them."""
        faults: list[TableError] = []
        open_source(source, schema, faults=faults)
        for fault in faults:
            self._add(fault)
        absent = {c for fault in faults for c in getattr(fault, "absent", ())}
        if any(getattr(fault, "fatal", False) for fault in faults):
            return None
        try:
            columns = tuple(c for c in schema.columns if c.name not in absent)
            if not any(c in columns for c in schema.used):
                return None  # another delimiter, say: there is nothing to read by
            return msgspec.structs.replace(schema, columns=columns, extra_columns="ignore")
        except SchemaError:  # no column is left, say
            return None

    def _note_ragged(self, row: int, cells: int, width: int) -> None:
        self._ragged[row], self._width = cells, width

    def _batch(self, raw: Any, schema: Schema) -> None:
        drop = np.zeros(raw.num_rows, dtype=bool)
        for array, column in zip(raw.columns, schema.used, strict=True):
            self._column(array, column, schema, drop)
        self._report.rows += raw.num_rows
        self._report.dropped += int(drop.sum())

    def _column(self, array: Any, column: Column, schema: Schema, drop: Any) -> None:
        """Take out the cells of one kind of fault after another, until none is left."""
        rows = np.arange(len(array))
        while len(rows):
            try:
                checked = check_column(array, column, schema.file)
            except BadCell as bad:
                wrong = np.ones(len(rows), dtype=bool) if bad.bad is None else bad.bad
                self._count(column.name, bad, int(rows[wrong][0]), int(wrong.sum()))
                array, rows = array.filter(pa.array(~wrong)), rows[~wrong]
                continue
            if checked.drop is not None:
                drop[rows] |= checked.drop
            return

    def _count(self, column: str, bad: BadCell, first: int, count: int) -> None:
        key = column, bad.problem
        place, before, _ = self._cells.get(key, (self._report.rows + first, 0, ""))
        self._cells[key] = place, before + count, bad.remedy

    def _add(self, error: TableError) -> None:
        words = str(error).partition(": ")[2].removesuffix(f" {error.remedy}")
        self._report.problems.append(
            TableProblem(
                words, error.remedy or "", error.file or self._report.file, error.column, error.row
            )
        )

    def report(self) -> TableReport:
        report, ragged = self._report, sorted(self._ragged)
        if ragged:
            report.problems.append(
                TableProblem(
                    f"has {self._ragged[ragged[0]]} cells, not {self._width}.",
                    "Check the delimiter and quotes there.",
                    report.file,
                    row=ragged[0],
                    count=len(ragged),
                )
            )
        for (column, problem), (place, count, remedy) in self._cells.items():
            row = place + 1
            for skipped in ragged:  # they were not among the rows that were counted
                row += skipped <= row
            report.problems.append(TableProblem(problem, remedy, report.file, column, row, count))
        report.rows += len(ragged)
        return report
