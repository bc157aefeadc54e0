"""What is said of ranges that were found under the promise, and of those that were not."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.data.schema import Schema
from tacit.programs.range_search import SHARE

__all__ = ["not_found", "range_remarks", "remarks_possible", "warned"]

NOT_FOUND = "Ranges could not be found, and were guessed, of: "
MOST_NAMES = 8


def not_found(learned: Schema) -> tuple[str, ...]:
    """The columns whose range the search could not know."""
    return tuple(c.name for c in learned.used if c.range_found is False)


def range_remarks(agreed: Schema, learned: Schema) -> tuple[str, ...]:
    """For a certificate; nothing where all bounds were stated."""
    return _remarks(agreed, not_found(learned))


def remarks_possible(agreed: Schema, remarks: Sequence[str]) -> bool:
    """Whether these could be the remarks of some run under this schema."""
    told = next((r for r in remarks if r.startswith(NOT_FOUND)), "")
    named = tuple(c.name for c in agreed.private if repr(c.name) in told)
    return tuple(remarks) == _remarks(agreed, named)


def _remarks(agreed: Schema, missed: Sequence[str]) -> tuple[str, ...]:
    if not agreed.private:
        return ()
    found = (
        f"Ranges of {_columns(len(agreed.private))} were searched for under this promise, each "
        f"meant to leave out {100 * SHARE:g} % of the records at each end, or as few as the noise "
        "lets see."
    )
    if not missed:
        return (found,)
    return found, NOT_FOUND + ", ".join(map(repr, missed)) + "."


def warned(missed: Sequence[str], total: int) -> str:
    """The words of a RangeWarning."""
    shown = ", ".join(missed[:MOST_NAMES])
    more = f" and {len(missed) - MOST_NAMES} more" if len(missed) > MOST_NAMES else ""
    return (
        f"The range of {len(missed)} of {_columns(total)} could not be found under this promise: "
        f"{shown}{more}. Too few records lie in any one place for the noise, or all have one "
        "value or lie close together far from zero, or they are beyond ±10^12 or within ±10^-6. A "
        "guess was used, and the model may be useless. State what is public knowledge "
        "(bounds=(low, high), label_bounds=, or a schema), or give more records, fewer columns "
        "or a larger epsilon."
    )


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"
