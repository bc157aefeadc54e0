"""Everything that tacit raises on purpose.

    TacitError                      exit code
    ├── InternalFault               1   a defect of tacit: please report it
    ├── UsageError                  2   the call itself is wrong
    │   └── PromiseError            2   … an impossible epsilon, delta, unit, adjacency or bound
    ├── InputError                  3   a file or table is not what it should be
    │   ├── SchemaError             3   … the schema
    │   ├── TableError              3   … the data: carries file, row and column
    │   │   └── NoRecords           3   … a table without any
    │   ├── DatasetError            3   … a public data set cannot be had, or is not the pinned one
    │   └── Leakage                 3   … a problem whose features would see what is to be predicted
    ├── Refused                     4   a budget or policy says no
    │   ├── BudgetExceeded          4   … carries asked, left and shortfall
    │   ├── RecordsChanged          4   … in the middle of a study; back as they were, it goes on
    │   └── StudyStopped            4   … the study has ended for good, without a result
    ├── Unreachable                 5   others could not be reached in time
    ├── CheckFailed                 6   something was verified and is not true
    │   ├── CertificateInvalid      6   … a certificate
    │   ├── LedgerTampered          6   … a ledger
    │   └── AuditFailed             6   … a mechanism leaks more than it claims
    └── StorageError                7   a disk is full or cannot be written: nothing is lost

    TacitWarning (UserWarning)          a result that may not be what its user takes it for
    ├── PromiseWarning                  … a promise that is legal but unwise
    ├── RangeWarning                    … columns whose range could not be found privately
    ├── UtilityWarning                  … a model that will hardly be better than guessing
    ├── CalibrationWarning              … probabilities that are not calibrated
    └── PreprocessingWarning            … a step before the fit that read the records without noise

A message says what was asked, what is allowed, and what to do next. It never holds a private value,
a share, a key or noise. Exceptions also derive from the built-in that Python users expect.

Only an error that is `final` ends a holder's part in a study: what it has begun is charged then.
After any other, expected or not, the reservation stays and the holder goes on when started again.
"""

from __future__ import annotations

__all__ = [
    "AuditFailed",
    "BudgetExceeded",
    "CalibrationWarning",
    "CertificateInvalid",
    "CheckFailed",
    "DatasetError",
    "InputError",
    "InternalFault",
    "Leakage",
    "LedgerTampered",
    "NoRecords",
    "PreprocessingWarning",
    "PromiseError",
    "PromiseWarning",
    "RangeWarning",
    "RecordsChanged",
    "Refused",
    "SchemaError",
    "StorageError",
    "StudyStopped",
    "TableError",
    "TacitError",
    "TacitWarning",
    "Unreachable",
    "UsageError",
    "UtilityWarning",
]


class TacitError(Exception):
    """The root: catch this to catch everything tacit raises on purpose."""

    exit_code = 1
    final = False  # whether a holder that meets it can never go on
    statement = ""  # what a peer has signed of it, for others to check (channels/roles/standing.py)


class InternalFault(TacitError, RuntimeError):
    """A defect of tacit, not of its user."""


class UsageError(TacitError, ValueError):
    exit_code = 2


class PromiseError(UsageError):
    pass


class TacitWarning(UserWarning):
    """The root of all warnings: what tacit gives, but would not have its user rely on unread."""


class PromiseWarning(TacitWarning):
    pass


class RangeWarning(TacitWarning):
    """Names the columns whose range is not known well enough, and what to do."""


class UtilityWarning(TacitWarning):
    """The promise, the number of records and the width leave little but noise."""


class CalibrationWarning(TacitWarning):
    """Predicted probabilities are too sure, or not sure enough, at this size."""


class PreprocessingWarning(TacitWarning):
    """A step was fitted on the records without noise: the promise does not cover it."""


class InputError(TacitError, ValueError):
    exit_code = 3


class SchemaError(InputError):
    pass


class TableError(InputError):
    """Bad data, with its place. `row` counts data rows from 1."""

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        row: int | None = None,
        column: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.file, self.row, self.column, self.remedy = file, row, column, remedy
        place = [file or "table"]
        if row is not None:
            place.append(f"row {row}")
        if column is not None:
            place.append(f"column {column!r}")
        super().__init__(f"{', '.join(place)}: {problem}" + (f" {remedy}" if remedy else ""))


class NoRecords(TableError):
    pass


class DatasetError(InputError):
    pass


class Leakage(InputError):
    """A model that was allowed to see the answer looks splendid, and knows nothing (Kaufman,
    Rosset, Perlich and Stitelman 2012, section 3): a mistake to refuse, never to warn of."""


class Refused(TacitError):
    exit_code = 4


class BudgetExceeded(Refused):
    """A spend that the holder's budget does not cover."""

    def __init__(self, message: str, *, asked: float, left: float, shortfall: float) -> None:
        self.asked, self.left, self.shortfall = asked, left, shortfall
        super().__init__(message)


class RecordsChanged(Refused):
    """Records changed after a masked model of them had left, and it is too late for another."""


class StudyStopped(Refused):
    """Its centre has stopped the study: nobody will get a model, whoever starts again."""

    final = True


class Unreachable(TacitError, ConnectionError):
    exit_code = 5


class CheckFailed(TacitError):
    exit_code = 6


class CertificateInvalid(CheckFailed):
    pass


class LedgerTampered(CheckFailed):
    pass


class AuditFailed(CheckFailed):
    pass


class StorageError(TacitError, OSError):
    exit_code = 7
