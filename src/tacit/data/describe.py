"""Drafting a schema from a file, without copying what is private in it.

Names and types are guessed from the first rows. Bounds and categories are left as TODO for a
person who knows what is public, unless the whole data set is itself public.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from tacit.data.arrow import pa, pc
from tacit.data.columns import DECIMAL, decoded
from tacit.data.dates import day_of_text
from tacit.data.schema import TODO, Column, Layout, Schema
from tacit.data.sources import open_file, open_table
from tacit.errors import TableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.data.sources import OpenFile

__all__ = ["Decisions", "describe", "draft"]

DELIMITERS = (",", ";", "\t", "|")
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
SAMPLE_ROWS = 10_000
MOST_CATEGORIES = 50
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
MOST_PUBLIC_CATEGORIES = 1000


@dataclass(frozen=True)
class Decisions:
    """What a person has decided, by column: public bounds, categories, the label, the person."""

    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    label: str | None = None
    person: str | None = None


def describe(
    path: str,
    *,
    header: bool = True,
    delimiter: str | None = None,
    decisions: Decisions | None = None,
    public_data: bool = False,
) -> Schema:
    """A draft: what nobody has decided yet stands there as TODO.

    public_data  the data set is itself public, so its own bounds and categories are read off it;
                 the draft says so in `bounds_from`
    """
    decisions = decisions or Decisions()
    layout = Layout(header=header, delimiter=delimiter or _delimiter(path))
    file = open_file(path, layout)
    sample = _sample(path, file)
    if file.plain and header:
        _refuse_data_as_header(path, file.names or [], sample)
    if file.plain:
        layout = _with_missing(layout, sample)
    names = file.names or [f"column{i + 1}" for i in range(file.width)]
    _refuse_unknown(names, decisions)
    columns = [_draft(name, sample[i], layout) for i, name in enumerate(names)]
    if public_data:
        columns = _read_off(file, columns, layout)
    columns = [_decided(column, decisions) for column in columns]
    return Schema(
        columns=tuple(columns),
        bounds_from="public data: read off the file itself" if public_data else "",
        file=layout,
    )


def draft(frame: Any, decisions: Decisions | None = None) -> Schema:
    """A draft for a table in memory, whose bounds and categories stay TODO."""
    decisions = decisions or Decisions()
    file = open_table(frame)
    if file is None or file.names is None:
        raise UsageError(
            f"cannot draft a schema for {type(frame).__name__}: give a pandas, polars or pyarrow "
            "table, or a dict of columns. For a file: tacit data describe FILE."
        )
    twice = sorted({name for name in file.names if file.names.count(name) > 1})
    if twice:
        raise TableError(f"has {twice[0]!r} twice.", remedy="Give every column a name of its own.")
    sample = _sample("table", file)
    layout = _with_missing(Layout(), [c for c in sample if pa.types.is_string(c.type)])
    _refuse_unknown(file.names, decisions)
    columns = [
        _draft(name, values, layout) for name, values in zip(file.names, sample, strict=True)
    ]
    return Schema(columns=tuple(_decided(column, decisions) for column in columns), file=layout)


def _delimiter(path: str) -> str:
    """The one of the usual delimiters that cuts the first line into the most cells."""
    widths = {d: open_file(path, Layout(header=False, delimiter=d)).width for d in DELIMITERS}
    return max(DELIMITERS, key=lambda d: widths[d])


def _sample(path: str, file: OpenFile) -> list[Any]:
    """The first rows of every column."""
    first = next(file.read(list(range(file.width))), None)
    if first is None:
        raise TableError("has no rows.", file=path, remedy="Give at least one record.")
    return [_values(array) for array in first.slice(0, SAMPLE_ROWS).columns]


def _values(array: Any) -> Any:
    """Text columns stripped, other columns as they are."""
    if pa.types.is_dictionary(array.type):
        array = decoded(array)
    if pa.types.is_binary(array.type):
        texts = [v.decode("utf-8", "replace").strip() for v in array.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_large_string(array.type) or array.type == pa.string_view():
        return array.cast(pa.string())
    return array


def _refuse_data_as_header(path: str, names: list[str], sample: list[Any]) -> None:
    """A record taken for a header would be copied into the schema, which is public."""
    odd = [not n or DECIMAL.fullmatch(n) is not None for n in names]
    known = [n in set(column.to_pylist()) for n, column in zip(names, sample, strict=True)]
    if any(odd) or 2 * sum(known) >= len(names) or len(set(names)) < len(names):
        raise TableError(
            "its first line looks like a record, not like a header.",
            file=path,
            remedy="Use --no-header (header=False), or give every column a name of its own.",
        )


def _with_missing(layout: Layout, sample: list[Any]) -> Layout:
    present = {m for m in MISSING for column in sample if m in set(column.unique().to_pylist())}
    spelt = tuple(m for m in MISSING if m == "" or m in present)
    return Layout(header=layout.header, delimiter=layout.delimiter, missing=spelt)


def _refuse_unknown(names: list[str], decisions: Decisions) -> None:
    named = [*decisions.bounds, *decisions.categories, decisions.label, decisions.person]
    for name in named:
        if name is not None and name not in names:
            raise UsageError(f"there is no column {name!r}. There are: {', '.join(names)}.")


def _draft(name: str, values: Any, layout: Layout) -> Column:
    kind = _guess(values, layout)
    if kind in ("number", "integer", "date"):
        return Column(name=name, type=kind, bounds=TODO)  # type: ignore[arg-type]
    if kind == "category":
        return Column(name=name, type="category", categories=TODO)
    if kind == "boolean":
        return Column(name=name, type="boolean")
    note = "free text: a category, the person id, or ignored?"
    return Column(name=name, type="text", role="ignore", note=note)


def _guess(values: Any, layout: Layout) -> str:
    kind = values.type
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    if not pa.types.is_string(kind):
        return "text"
    texts = {t for t in values.unique().to_pylist() if t is not None and t not in layout.missing}
    if texts and texts <= {"0", "1", "true", "false", "True", "False", "TRUE", "FALSE"}:
        return "boolean"
    if texts and all(DECIMAL.fullmatch(t) for t in texts):
        return "integer" if all(float(t).is_integer() for t in texts) else "number"
    if texts and all(ISO_DATE.match(t) and day_of_text(t) is not None for t in texts):
        return "date"
    return "category" if len(texts) <= MOST_CATEGORIES else "text"


def _decided(column: Column, decisions: Decisions) -> Column:
    """The draft with what a person has said about it."""
    changes: dict[str, Any] = {}
    if column.name in decisions.categories:
        wanted = tuple(decisions.categories[column.name])
        kind = "boolean" if column.type == "boolean" and len(wanted) == 2 else "category"
        changes = {"type": kind, "categories": wanted, "bounds": None, "role": "feature"}
    if column.name in decisions.bounds:
        kind = column.type if column.is_number else "number"
        changes = {"type": kind, "bounds": decisions.bounds[column.name], "role": "feature"}
        changes["categories"] = None
    if column.name == decisions.label:
        changes["role"] = "label"
        if column.type == "text" and not changes.get("categories"):
            changes |= {"type": "category", "categories": TODO, "note": ""}
    if column.name == decisions.person:
        kind = "integer" if column.type == "integer" else "text"
        changes |= {"role": "person", "type": kind, "bounds": None, "categories": None, "note": ""}
    return _replace(column, **changes)


def _replace(column: Column, **changes: Any) -> Column:
    return msgspec.structs.replace(column, **changes)


def _read_off(file: OpenFile, columns: list[Column], layout: Layout) -> list[Column]:
    """Bounds and categories from all rows, for data that is itself public."""
    lows: dict[int, float] = {}
    highs: dict[int, float] = {}
    seen: dict[int, set[str]] = {i: set() for i, c in enumerate(columns) if c.categories == TODO}
    for batch in file.read(list(range(file.width))):
        for i, column in enumerate(columns):
            values = _values(batch.columns[i])
            if column.bounds == TODO:
                low, high = _range(values, layout)
                lows[i], highs[i] = min(low, lows.get(i, low)), max(high, highs.get(i, high))
            elif i in seen and len(seen[i]) <= MOST_PUBLIC_CATEGORIES:
                seen[i] |= {str(v) for v in values.unique().to_pylist() if v is not None}
    return [
        _filled(c, lows.get(i), highs.get(i), seen.get(i), layout) for i, c in enumerate(columns)
    ]


def _range(values: Any, layout: Layout) -> tuple[float, float]:
    if pa.types.is_string(values.type):
        values = values.filter(
            pc.invert(pc.is_in(values, value_set=pa.array(layout.missing, pa.string())))
        )
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:
            raise TableError(
                "a column that begins with numbers holds text further on.",
                remedy="Correct it, or describe the file without reading bounds off it.",
            ) from None
    values = values.cast(pa.float64(), safe=False)
    values = values.filter(pc.is_finite(values))
    ends = pc.min_max(values)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return (float("inf"), float("-inf")) if low is None else (low, high)


def _filled(
    column: Column,
    low: float | None,
    high: float | None,
    seen: set[str] | None,
    layout: Layout,
) -> Column:
    if low is not None and high is not None and low <= high:
        return _replace(column, bounds=(low, high if high > low else low + 1))
    if seen is not None and 0 < len(found := seen - set(layout.missing)) <= MOST_PUBLIC_CATEGORIES:
        return _replace(column, categories=tuple(sorted(found)))
    return column
