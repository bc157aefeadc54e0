"""Cells as values: a whole column at once, and which rows did not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.personal.importers.csv_head import NUMERAL, Column, Plan
from tacit.personal.importers.times import instants

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["converted"]

EXPECTED = {
    "number": "is no number.",
    "boolean": "is neither true nor false.",
    "time": "is no time in the form that the table's head has.",
}


def converted(batch: pa.RecordBatch, plan: Plan, broken: bool) -> tuple[pa.Table, dict[int, str]]:
    """The columns of events, and row → why it is damaged.

    broken  whether U+FFFD stands for bytes that were no UTF-8
    """
    import pyarrow as pa

    columns, bad = {}, dict[int, str]()
    for place, column in enumerate(plan.columns):
        texts = batch.column(place)
        if broken:
            _note_texts(bad, texts, "\ufffd", "it is no UTF-8 text. Save the file as UTF-8.")
        if _has_nul(texts):
            _note_texts(bad, texts, "\0", "it holds a NUL.")
        values = _values(texts, column, plan)
        if values.null_count > texts.null_count:
            _note(bad, texts, values, f"column {column.header[:60]!r} {EXPECTED[column.kind]}")
        if not column.name and values.null_count:
            _note(bad, None, values, "it has no time.")
        columns[column.name or "time"] = values
    return pa.table(columns), bad


def _note_texts(bad: dict[int, str], texts: pa.Array, mark: str, reason: str) -> None:
    import pyarrow.compute as pc

    for index in pc.indices_nonzero(pc.match_substring(texts, mark).fill_null(False)):
        bad.setdefault(index.as_py(), reason)


def _has_nul(texts: pa.Array) -> bool:
    """Whether there is any, in one look over the bytes of them all."""
    import numpy as np

    _, ends, content = texts.buffers()
    if content is None:
        return False
    first, last = np.frombuffer(ends, np.int32)[[texts.offset, texts.offset + len(texts)]]
    return b"\0" in content.slice(int(first), int(last - first)).to_pybytes()


def _values(texts: pa.Array, column: Column, plan: Plan) -> pa.Array:
    if column.form is not None:
        return instants(texts, column.form, plan.zone)
    if column.kind == "number":
        return _numbers(texts, plan.decimal)
    if column.kind == "boolean":
        return _booleans(texts)
    return texts


def _numbers(texts: pa.Array, decimal: str) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if decimal == ",":
        texts = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
    try:
        numbers = pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        numbers = pa.array([_number(text) for text in texts.to_pylist()], pa.float64())
    finite = pc.is_finite(numbers)
    # NaN and 1e999 are no numbers of anything: their rows are damaged.
    return numbers if pc.all(finite).as_py() is not False else pc.if_else(finite, numbers, None)


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and NUMERAL.fullmatch(text.strip()) else None


def _booleans(texts: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    said = pc.is_in(words, value_set=pa.array(["true", "yes", "false", "no"]))
    return pc.if_else(said, pc.is_in(words, value_set=pa.array(["true", "yes"])), None)


def _note(bad: dict[int, str], had: pa.Array | None, has: pa.Array, reason: str) -> None:
    """Rows that have no value now, though they had one (or: at all)."""
    import pyarrow.compute as pc

    lost = has.is_null() if had is None else pc.and_(had.is_valid(), has.is_null())
    for index in pc.indices_nonzero(lost):
        bad.setdefault(index.as_py(), reason)
