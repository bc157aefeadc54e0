"""One raw column against its schema: Arrow values in, typed and bounded numpy values out.

A fault is reported by its place and its kind. The value itself is private and is never shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.data.arrow import pa, pc
from tacit.data.dates import day_of_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.data.schema import Column, Layout

__all__ = ["BadCell", "Checked", "check_column", "decoded"]

DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
FALSE_TRUE = {
    **dict.fromkeys(("0", "false", "False", "FALSE"), "false"),
    **dict.fromkeys(("1", "true", "True", "TRUE"), "true"),
}
MAX_DIGITS = 30  # more than any 64-bit integer has
TREAT_MISSING = (
    'Say in the schema what a missing value means: when_missing = "drop", "category" or "fill".'
)


class BadCell(Exception):
    """The first cell of a column that the schema does not allow, counted from 0.

    bad   all cells that have this fault; None: the whole column
    """

    def __init__(
        self, index: int, problem: str, remedy: str, bad: NDArray[np.bool_] | None = None
    ) -> None:
        self.index, self.problem, self.remedy, self.bad = index, problem, remedy, bad
        super().__init__(problem)


class Checked(NamedTuple):
    """`raw`: as it stood there, if something was clipped or filled."""

    values: NDArray[Any]
    drop: NDArray[np.bool_] | None
    raw: NDArray[Any] | None = None


def check_column(array: Any, column: Column, layout: Layout) -> Checked:
    """Type, fill, clip and check the values of one column, or raise BadCell."""
    array = _plain(array)
    tokens = layout.missing if column.missing is None else column.missing
    if _is_text(array) and layout.strip:
        array = pc.utf8_trim_whitespace(array)
    missing = _missing(array, tokens)
    if column.when_missing == "refuse":
        _refuse(missing, "is missing.", TREAT_MISSING)
    drop = missing if column.when_missing == "drop" else None
    if column.role == "person":
        return Checked(_person_ids(array, column, missing), drop)
    if column.is_number:
        numbers, numbers_read = _numbers(array, column, missing)
        return Checked(numbers, drop, numbers_read)
    codes, codes_read = _codes(array, column, missing)
    return Checked(codes, drop, codes_read)


def _refuse(bad: NDArray[np.bool_], problem: str, remedy: str) -> None:
    if bad.any():
        raise BadCell(int(np.argmax(bad)), problem, remedy, bad)


def _plain(array: Any) -> Any:
    """Dictionaries unpacked, all texts as one type, valid UTF-8."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _plain(decoded(array))
    if pa.types.is_null(kind):
        return array.cast(pa.string())
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return array.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        try:
            return array.cast(pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            _refuse(_not_utf8(array), "is not UTF-8 text.", "Save the table as UTF-8.")
            raise BadCell(0, "is not text.", "Save the table as UTF-8.") from None
    return array


def decoded(array: Any) -> Any:
    """A dictionary's values; polars' are of a type that Arrow cannot look up by itself."""
    values = array.dictionary
    if values.type == pa.string_view():
        values = values.cast(pa.string())
    return pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()


def _not_utf8(array: Any) -> NDArray[np.bool_]:
    def broken(value: bytes | None) -> bool:
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            return True
        return False

    return np.fromiter((broken(v) for v in array.to_pylist()), dtype=bool, count=len(array))


def _is_text(array: Any) -> bool:
    return bool(pa.types.is_string(array.type))


def _missing(array: Any, tokens: tuple[str, ...]) -> NDArray[np.bool_]:
    """Nulls; texts spelt as missing; NaN where "NaN" is such a spelling."""
    if _is_text(array) and tokens:
        return _mask(pc.is_in(array, value_set=pa.array([*tokens, None], pa.string())))
    as_null = any(token.lower() == "nan" for token in tokens)
    return _mask(array.is_null(nan_is_null=as_null))


def _mask(array: Any) -> NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)


def _numbers(
    array: Any, column: Column, missing: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Within their bounds, and as they stood there if that is something else."""
    values = _dates(array, missing) if column.type == "date" else _floats(array, missing)
    _refuse(
        ~missing & np.isnan(values),
        "is NaN.",
        'Remove it, or list "NaN" among the spellings of missing.',
    )
    _refuse(~missing & np.isinf(values), "is infinite.", "Write a finite number.")
    if column.type == "integer":
        whole = np.equal(np.floor(values), values, where=~missing, out=missing.copy())
        _refuse(~whole, "is not a whole number.", 'Round it, or set type = "number".')
    values += 0.0  # minus zero is zero
    if missing.any():
        values[missing] = np.nan
    bounded = values
    if column.when_missing == "fill" and missing.any():
        filling = float(column.fill)  # type: ignore[arg-type]  # checked by the schema
        bounded = np.where(missing, filling, values)
    if isinstance(column.bounds, tuple):
        low, high = column.bounds
        if ((bounded < low) | (bounded > high)).any():
            bounded = np.clip(bounded, low, high)
    return bounded + 0.0, None if bounded is values else values


def _floats(array: Any, missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    if _is_text(array):
        return _parsed(array, missing)
    kind = array.type
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    if not any(test(kind) for test in known):
        raise BadCell(0, f"is of type {kind}, not a number.", "Convert the column to numbers.")
    array = array.cast(pa.float64(), safe=False)  # a float64 is all that an encoding keeps
    return np.array(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _dates(array: Any, missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Days since 1970 (dates.py): timestamps with a zone are Arrow's moments in UTC already."""
    kind = array.type
    if _is_text(array):
        texts = array.to_pylist()
        known = {text: day_of_text(text) for text in set(texts) if text is not None}
        days = [None if skip else known[t] for t, skip in zip(texts, missing, strict=True)]
        bad = np.fromiter((d is None for d in days), dtype=bool, count=len(days)) & ~missing
        _refuse(bad, "is not a date.", "Write dates as 2024-05-31, or 2024-05-31T14:30:00+02:00.")
        return np.array([np.nan if d is None else d for d in days], dtype=np.float64)
    if pa.types.is_date(kind):
        array = array.cast(pa.timestamp("ms"))
    elif not pa.types.is_timestamp(kind):
        remedy = "Convert the column to dates, or set another type in the schema."
        raise BadCell(0, f"is of type {kind}, not a date.", remedy)
    unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[array.type.unit]
    ticks = array.cast(pa.int64()).cast(pa.float64(), safe=False)
    values = np.array(ticks.to_numpy(zero_copy_only=False), dtype=np.float64)
    return values / (unit * 86_400.0)


def _parsed(array: Any, missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    if missing.any():
        array = pc.if_else(pa.array(missing), pa.scalar(None, pa.string()), array)
    try:
        array = pc.cast(array, pa.float64())
    except pa.ArrowInvalid:  # its message holds the value: drop it, and look for the place
        texts = array.to_pylist()
        bad = (t is not None and not DECIMAL.fullmatch(t) for t in texts)
        _refuse(
            np.fromiter(bad, dtype=bool, count=len(texts)),
            "is not a number.",
            "Write numbers as 1234.5; if this spelling means missing, list it under `missing`.",
        )
        array = pa.array([None if t is None else float(t) for t in texts], pa.float64())
    return np.array(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _codes(
    array: Any, column: Column, missing: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    spellings = _spellings(column)
    order = list(dict.fromkeys(spellings.values()))
    found = pc.index_in(_texts(array, column), value_set=pa.array([*spellings], pa.string()))
    known = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    remedy = "Correct it, or add it to the categories (or aliases) if it is a public value."
    if column.type == "boolean":
        remedy = "Write true or false, or name the two spellings: categories = [false, true]."
    _refuse(~known & ~missing, f"is not one of the {len(order)} values in the schema.", remedy)
    places = np.array([order.index(meant) for meant in spellings.values()], dtype=np.int32)
    codes = places[found.fill_null(0).to_numpy(zero_copy_only=False)]
    raw = None
    if missing.any():
        codes[missing] = len(order)
        if column.fill is not None:
            raw, codes = codes, np.where(missing, order.index(_filling(column)), codes)
    return np.asarray(codes, dtype=np.int32), raw


def _spellings(column: Column) -> dict[str, str]:
    """Every accepted spelling → the category it means, the categories first, in their order."""
    if not isinstance(column.categories, tuple):
        return FALSE_TRUE
    return {**{c: c for c in column.categories}, **column.aliases}


def _filling(column: Column) -> str:
    if not isinstance(column.fill, bool):
        return str(column.fill)
    if isinstance(column.categories, tuple):
        return column.categories[int(column.fill)]
    return "true" if column.fill else "false"


def _texts(array: Any, column: Column) -> Any:
    """Values as the schema spells them: 1 and 1.0 in a typed table are the category "1"."""
    kind = array.type
    if _is_text(array):
        return array
    if pa.types.is_boolean(kind) and isinstance(column.categories, tuple):
        if column.type == "boolean":
            false, true = column.categories
            return pc.if_else(array, true, false)
    elif pa.types.is_floating(kind):
        return _whole_texts(array)
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise BadCell(0, f"is of type {kind}, not a category.", "Convert the column to text.")
    return array.cast(pa.string())


def _whole_texts(array: Any) -> Any:
    # pandas turns integers with gaps into floats, so 1.0 means 1.
    values = array.to_numpy(zero_copy_only=False)
    whole = np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) < 2.0**53)
    integers = pa.array(np.where(whole, values, 0).astype(np.int64), mask=~whole)
    return integers.cast(pa.string())


def _whole(value: str | int) -> int:
    """Python refuses to read very long numbers; leading zeros do not count."""
    if isinstance(value, int):
        return value
    digits = value.lstrip("+-").lstrip("0") or "0"
    size = int(digits) if len(digits) < MAX_DIGITS else 2**64
    return -size if value.startswith("-") else size


def _person_ids(array: Any, column: Column, missing: NDArray[np.bool_]) -> NDArray[Any]:
    if column.type == "text":
        texts = array if _is_text(array) else _texts(array, column)
        return np.array(texts.to_numpy(zero_copy_only=False), dtype=object)
    if _is_text(array):
        digits = pc.match_substring_regex(array, r"^[+-]?[0-9]+$").fill_null(False)
        _refuse(~_mask(digits) & ~missing, "is not a whole number.", 'Set type = "text".')
    elif not pa.types.is_integer(array.type):
        raise BadCell(0, f"is of type {array.type}, not an integer.", "Convert the column.")
    array = pc.if_else(pa.array(missing), pa.scalar(None, array.type), array)
    try:
        ids = array.cast(pa.int64()).fill_null(0)
    except pa.ArrowInvalid:  # its message holds the value: +7, or many zeros before it
        numbers = [0 if v is None else _whole(v) for v in array.to_pylist()]
        beyond = np.array([not -(2**63) <= n < 2**63 for n in numbers], dtype=bool)
        _refuse(beyond, "is an id beyond 64 bits.", 'Set type = "text".')
        ids = pa.array(numbers, pa.int64())
    return np.array(ids.to_numpy(zero_copy_only=False), dtype=np.int64)
