"""All that is wrong with a table, for `tacit data check` and `tacit study check --data`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.output import fail, people, print_document
from tacit.errors import InputError, TableError, UsageError

if TYPE_CHECKING:
    from tacit.channels.studies.study import Study
    from tacit.data.problems import TableReport
    from tacit.data.schema import Schema
    from tacit.programs.program import Learner

__all__ = ["all_problems_listed", "checked_table", "deliver_report"]


def checked_table(
    path: Path, schema: Schema, study: Study | None = None, program: Learner | None = None
) -> TableReport:
    """The whole table against the schema; the schema against what the program wants of a label,
    and the number of records against what the study takes."""
    from tacit.data.problems import TableProblem, table_problems

    report = table_problems(path, schema)
    wish = None if program is None else _wish(schema, program)
    if wish is not None:
        label = schema.label
        column = None if label is None else label.name
        report.problems.insert(0, TableProblem(wish, "", report.file, column))
    if study is None or any(problem.row is None for problem in report.problems):
        return report
    least = 1 if study.consortium is None else study.consortium.smallest
    most = study.take_part.records
    if not least <= report.records <= most:
        report.problems.append(
            TableProblem(
                f"has {report.records} records; the study takes {least} to {most} from a holder.",
                "Give other records, or agree on another study.",
                report.file,
            )
        )
    return report


@contextmanager
def all_problems_listed(path: Path, study: Study, program: Learner) -> Iterator[None]:
    """Reading for a study stops at the first fault; whoever mends the table wants to see all."""
    try:
        yield
    except InputError as first:
        report = _report_after(first, path, study, program)
        if len(report.problems) < 2:
            raise
        for problem in report.problems:
            people(as_json=True).print(str(problem), markup=False)
        raise TableError(
            f"{len(report.problems)} kinds of problems were found in {report.rows:,} rows; nothing "
            "was sent or spent.",
            file=report.file,
        ) from None


def _report_after(first: InputError, path: Path, study: Study, program: Learner) -> TableReport:
    """What cannot be read at all is told in the words of the first fault."""
    try:
        return checked_table(path, study.schema, study, program)
    except InputError:
        raise first from None


def _wish(schema: Schema, program: Learner) -> str | None:
    """What the program wants that tables of this schema do not have; None if it can learn."""
    import numpy as np

    from tacit.privacy.promise import Promise
    from tacit.programs.averaging import Averaged
    from tacit.programs.program import Program
    from tacit.programs.ranged import ranged

    try:
        if isinstance(program, Averaged):
            program.model(np.zeros(program.length(schema)), schema)
        elif isinstance(program, Program):
            ranged(program, schema).init(schema, Promise(1.0, 1e-6))
    except (UsageError, InputError) as error:
        return str(error)
    return None


def deliver_report(report: TableReport, as_json: bool, **about: Any) -> None:
    """Print every problem; leave with the code of bad input if there is one."""
    found = len(report.problems)
    if as_json:
        print_document({**about, "valid": not found, "data": report.to_dict()})
    elif found:
        for problem in report.problems:
            people(as_json=True).print(str(problem), markup=False)
    else:
        people().print(
            f"{report.file}: {report.records:,} records, nothing is wrong.", markup=False
        )
    if found:
        fail(
            TableError(f"{found} problem(s) were found in {report.rows:,} rows.", file=report.file)
        )
