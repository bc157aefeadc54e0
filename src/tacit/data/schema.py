"""The schema: what each column means, and bounds that everyone may know.

A bound that is read off private data leaks it: the largest age in a hospital is somebody's age.
So bounds, categories and bin edges stand in a file, chosen from knowledge that is
public, and values outside are clipped. A schema whose author has not decided yet says `TODO`
there; it can be shown and edited, but no data is read with it. Where nobody knows public bounds,
`bounds = "private"` has them found under the promise itself (programs/ranged.py).
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import force_setattr

from tacit import notebook
from tacit.crypto.signing import digest
from tacit.data.dates import date_text, days_of
from tacit.data.schema_file import read_document, write_toml
from tacit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["PRIVATE", "TODO", "Column", "Layout", "Schema"]

TODO: Literal["TODO"] = "TODO"
PRIVATE: Literal["private"] = "private"
LARGEST_INTEGER = 2.0**53  # above, not every integer is a float64

DATED = ("bounds", "edges", "fill")  # of a date, written as dates
SHOWN = ("column", "type", "role", "values", "when missing", "note")

ColumnType = Literal["number", "integer", "date", "category", "boolean", "text"]
Role = Literal["feature", "label", "person", "ignore"]
WhenMissing = Literal["refuse", "drop", "category", "fill"]


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One column of a table.

    type          number, integer, date (a number of days, see dates.py), category, boolean; text
                  only for a person id or ignored columns
    role          feature, label (what is learned), person (whose record it is) or ignore
    bounds        public low and high of a number; values outside are clipped to them. "private":
                  they are found under the promise, before anything else is learned
    edges         public inner edges of bins: k edges make k + 1 bins, each closed on its left
    categories    every value the column may have; for a boolean: the spelling of false, of true
    aliases       other spellings of a category, e.g. {"<=50K." = "<=50K"}
    missing       how a missing value is spelt in this column, instead of the layout's spellings
    when_missing  refuse the table, drop the record, treat it as one more category, or fill
    fill          the public value that stands in for a missing one
    note          for people
    range_found   of bounds that were searched for under the promise: whether the search found them;
                  written by tacit into the schema of a model
    """

    name: str
    type: ColumnType
    role: Role = "feature"
    bounds: tuple[float, float] | Literal["TODO", "private"] | None = None
    edges: tuple[float, ...] | None = None
    categories: tuple[str, ...] | Literal["TODO"] | None = None
    aliases: dict[str, str] = {}
    missing: tuple[str, ...] | None = None
    when_missing: WhenMissing = "refuse"
    fill: float | str | bool | None = None
    note: str = ""
    range_found: bool | None = None

    def __post_init__(self) -> None:
        """Dates as people write them become days, which is what is compared and scaled."""
        if self.type == "date":
            for name in ("bounds", "edges", "fill"):
                force_setattr(self, name, days_of(getattr(self, name)))

    @property
    def is_number(self) -> bool:
        return self.type in ("number", "integer", "date")

    @property
    def todo(self) -> str | None:
        """What its author still has to decide, or None."""
        if self.bounds == TODO:
            return "bounds"
        return "categories" if self.categories == TODO else None


class Layout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a text file is written. It says nothing about what the columns mean.

    skip_rows  lines before the header (or before the first row), whatever they hold
    comment    lines that begin with this mark are skipped
    strip      remove blanks around every value
    missing    how a missing value is spelt
    """

    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    comment: str = ""
    skip_rows: int = 0
    strip: bool = True
    missing: tuple[str, ...] = ("",)


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Columns in the order of the table.

    bounds_from    where the bounds come from, in words, for whoever reviews them
    extra_columns  what to do with columns of the table that are not listed here
    """

    columns: tuple[Column, ...]
    title: str = ""
    bounds_from: str = ""
    extra_columns: Literal["refuse", "ignore"] = "refuse"
    file: Layout = Layout()

    def __post_init__(self) -> None:
        _check_schema(self)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file, or a JSON file by its ending."""
        return cls.from_dict(read_document(Path(path)), where=str(path))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "schema") -> Schema:
        """A schema from plain data: {"columns": {name: {"type": …}, …}, "file": {…}, …}."""
        return _from_dict(document, where)

    @classmethod
    def draft(
        cls,
        frame: Any,
        *,
        bounds: Mapping[str, tuple[Any, Any]] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        label: str | None = None,
        person: str | None = None,
    ) -> Schema:
        """A schema for a table in memory: names and types are the table's. Bounds and categories
        that are not given here stay TODO: they are not read off the records."""
        from tacit.data.describe import Decisions, draft

        return draft(frame, Decisions(bounds or {}, categories or {}, label, person))

    def with_column(self, name: str, **changes: Any) -> Schema:
        """The same with other fields of one column: with_column("age", bounds=(0, 120))."""
        body = {**_set_fields(self.column(name), skip=("name",)), **changes}
        body = {key: value for key, value in body.items() if value is not None}
        changed = _read_column(name, body, "schema")
        columns = tuple(changed if c.name == name else c for c in self.columns)
        return msgspec.structs.replace(self, columns=columns)

    def with_private_bounds(self) -> Schema:
        """The same, where every bound that is TODO is to be found under the promise."""
        undecided = [name for name, what in self.todo.items() if what == "bounds"]
        found = self
        for name in undecided:
            found = found.with_column(name, bounds=PRIVATE)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` reads back; what has its default value is left out."""
        head = _set_fields(self, skip=("columns", "file"))
        layout = _set_fields(self.file)
        if layout:
            head["file"] = layout
        head["columns"] = {c.name: _set_fields(c, skip=("name",)) for c in self.columns}
        return head

    def to_toml(self) -> str:
        return write_toml(self.to_dict())

    def __repr__(self) -> str:
        """Short: a schema of a thousand columns stands among an estimator's parameters."""
        label = "" if self.label is None else f", label {self.label.name!r}"
        open_points = f", {len(self.todo)} still TODO" if self.todo else ""
        left_out = [repr(c.name) for c in self.columns if c.role == "ignore"]
        more = ", …" if len(left_out) > 3 else ""
        ignored = f", ignored: {', '.join(left_out[:3])}{more}" if left_out else ""
        return f"<Schema: {len(self.features)} feature(s){label}{ignored}{open_points}>"

    def _repr_html_(self) -> str:
        rows = [[c.name, c.type, c.role, _allowed(c), c.when_missing, c.note] for c in self.columns]
        return notebook.grid(self.title or "Schema", SHOWN, rows)

    @property
    def digest(self) -> str:
        """SHA-256 of what the columns mean: the same for holders whose files are laid out apart.

        Titles, notes and the file layout are left out; numbers are hashed as text, so that no
        reader's floating point can change them.
        """
        return digest([{"name": c.name, **_meaning(c)} for c in self.columns])

    @property
    def features(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.role == "feature")

    @property
    def label(self) -> Column | None:
        return next((c for c in self.columns if c.role == "label"), None)

    @property
    def person(self) -> Column | None:
        return next((c for c in self.columns if c.role == "person"), None)

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that are read: all but the ignored ones."""
        return tuple(c for c in self.columns if c.role != "ignore")

    @property
    def todo(self) -> dict[str, str]:
        """Column → what its author still has to decide."""
        return {c.name: c.todo for c in self.used if c.todo}

    @property
    def private(self) -> tuple[Column, ...]:
        """The features and the label whose bounds are to be found under the promise."""
        return tuple(c for c in self.used if c.role != "person" and c.bounds == PRIVATE)

    def with_ranges(self, found: Mapping[str, tuple[float, float, bool]]) -> Schema:
        """The same with bounds (low, high, whether they were found) of some columns."""
        columns = []
        for column in self.columns:
            if column.name in found:
                low, high, known = found[column.name]
                column = msgspec.structs.replace(column, bounds=(low, high), range_found=known)
            columns.append(column)
        return msgspec.structs.replace(self, columns=tuple(columns))

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(f"schema: there is no column {name!r}. It has: {_listed(self.columns)}.")

    def require_complete(self) -> None:
        """Refuse a schema that still says TODO: with it, no data may be read."""
        if self.todo:
            open_points = ", ".join(f"{name} ({what})" for name, what in self.todo.items())
            raise SchemaError(
                f"schema: still TODO: {open_points}. Write in values that are public knowledge. "
                "They must not be read off the private data: the largest value in it is "
                "somebody's value, and would be given away without any noise."
            )


def _from_dict(document: Mapping[str, Any], where: str) -> Schema:
    raw = document.get("columns")
    if not isinstance(raw, dict) or not raw:
        raise SchemaError(
            f"{where}: no columns. Add one table per column, in the file's order: "
            '[columns.age], then type = "integer" and bounds = [0, 120].'
        )
    columns = tuple(_read_column(name, body, where) for name, body in raw.items())
    head = {key: value for key, value in document.items() if key != "columns"}
    try:
        fields = msgspec.convert({**head, "columns": []}, _Head)
        return Schema(
            columns=columns,
            title=fields.title,
            bounds_from=fields.bounds_from,
            extra_columns=fields.extra_columns,
            file=fields.file,
        )
    except msgspec.ValidationError as error:
        raise SchemaError(f"{where}: {_explained(error)}") from None
    except SchemaError as error:
        raise SchemaError(f"{where}: {str(error).removeprefix('schema: ')}") from None


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    """A schema before its columns are known."""

    columns: list[Any]
    title: str = ""
    bounds_from: str = ""
    extra_columns: Literal["refuse", "ignore"] = "refuse"
    file: Layout = Layout()


def _read_column(name: str, body: Any, where: str) -> Column:
    place = f"{where}, column {name!r}"
    if not isinstance(body, dict):
        raise SchemaError(f'{place}: must be a table, such as {{type = "number"}}.')
    if "name" in body:
        raise SchemaError(f"{place}: the name is the table's own; remove `name`.")
    body = dict(body)
    if body.get("type") == "date":
        try:
            body.update({name: days_of(body[name]) for name in DATED if name in body})
        except SchemaError as error:
            raise SchemaError(f"{place}: {error}") from None
    if isinstance(body.get("categories"), list):
        # People write categories = [1, 2, 3]; a cell of a text file is the text "1".
        body["categories"] = [str(c) if type(c) is int else c for c in body["categories"]]
    try:
        return msgspec.convert({"name": name, **body}, Column)
    except msgspec.ValidationError as error:
        raise SchemaError(f"{place}: {_explained(error)}") from None


def _explained(error: msgspec.ValidationError) -> str:
    """msgspec's message as a sentence, with the remedy for the commonest slip."""
    text = str(error).replace(" - at `$.", " in `").replace("Object", "it")
    if "unknown field" in text:
        known = ", ".join(f for f in Column.__struct_fields__ if f != "name")
        text += f" (a column knows: {known}; the schema: title, bounds_from, extra_columns, file)"
    return text + "."


def _check_schema(schema: Schema) -> None:
    names = [c.name for c in schema.columns]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise SchemaError(f"schema: column {twice[0]!r} is there twice. Keep one of them.")
    for role in ("label", "person"):
        found = [c.name for c in schema.columns if c.role == role]
        if len(found) > 1:
            raise SchemaError(f"schema: {len(found)} columns are the {role}: {found}. Keep one.")
    for problem in _layout_problems(schema.file):
        raise SchemaError(f"schema, file layout: {problem}")
    for column in schema.columns:
        for problem in [*_column_problems(column), *_spelling_problems(column, schema.file)]:
            raise SchemaError(f"schema, column {column.name!r}: {problem}")


def _layout_problems(layout: Layout) -> Iterable[str]:
    if len(layout.delimiter) != 1 or layout.delimiter in "\r\n":
        yield f"delimiter must be one character, not {layout.delimiter!r}."
    if len(layout.quote) > 1 or layout.quote == layout.delimiter:
        yield "quote must be one character other than the delimiter, or empty for none."
    if not layout.delimiter.isascii() or not layout.quote.isascii():
        yield "delimiter and quote must be ASCII characters."
    if layout.skip_rows < 0:
        yield "skip_rows must be 0 or more."
    if any(c in layout.comment for c in "\r\n"):
        yield "comment is a mark at the beginning of a line; it cannot hold a line end."


def _column_problems(column: Column) -> Iterable[str]:
    if not column.name:
        yield "a column needs a name."
    if column.role == "ignore":
        return
    if column.type == "text" and column.role != "person":
        yield (
            "free text cannot be a feature or label: list its values as a category, "
            'or set role = "ignore".'
        )
    if column.role == "person" and column.type not in ("text", "integer"):
        yield "a person id has type text or integer."
    if column.role == "person" and column.when_missing not in ("refuse", "drop"):
        yield "a record without a person id can only be refused or dropped."
    yield from _number_problems(column)
    yield from _category_problems(column)
    yield from _missing_problems(column)


def _number_problems(column: Column) -> Iterable[str]:
    if not column.is_number:
        if column.bounds is not None or column.edges is not None:
            yield f"bounds and edges are for numbers; its type is {column.type}."
        return
    if column.role == "person":
        return
    if column.bounds is None and column.edges is None:
        yield (
            "a number needs public bounds = [low, high] (or edges of bins): from the unit, the "
            'instrument, the law or common sense, not from the data. "TODO" keeps the place, '
            'and "private" has them found under the promise.'
        )
    if column.bounds == PRIVATE and column.edges is not None:
        yield 'its edges are bins without any bounds: leave out bounds = "private".'
    if column.range_found is not None and not isinstance(column.bounds, tuple):
        yield "range_found is said of bounds that were searched for: remove it."
    values = [*(column.edges or ()), *(column.bounds if isinstance(column.bounds, tuple) else ())]
    if not all(math.isfinite(v) and abs(v) <= LARGEST_INTEGER for v in values):
        yield "bounds and edges must be finite numbers of at most 2**53."
        return
    if isinstance(column.bounds, tuple) and not column.bounds[0] < column.bounds[1]:
        yield "the low bound must be below the high one."
    if column.type == "integer" and any(not float(v).is_integer() for v in values):
        yield "bounds and edges of an integer must be whole numbers."
    yield from _edge_problems(column)


def _edge_problems(column: Column) -> Iterable[str]:
    if column.edges is None:
        return
    if not column.edges or any(a >= b for a, b in pairwise(column.edges)):
        yield "edges must be one or more rising numbers."
    elif isinstance(column.bounds, tuple):
        low, high = column.bounds
        if not (low < column.edges[0] and column.edges[-1] <= high):
            yield "edges must lie inside the bounds: each bin needs room."


def _category_problems(column: Column) -> Iterable[str]:
    named = column.categories
    if column.type == "category" and named is None:
        yield 'a category needs categories = [...], all that may occur; "TODO" keeps the place.'
    if column.type not in ("category", "boolean") and named is not None:
        yield f"categories are for categories and booleans; its type is {column.type}."
    if column.aliases and not isinstance(named, tuple):
        yield "aliases need categories."
    if not isinstance(named, tuple):
        return
    if len(set(named)) != len(named) or not named:
        yield "categories must be one or more different values."
    if column.type == "boolean" and len(named) != 2:
        yield "a boolean has two categories: the spelling of false, then of true."
    for alias, meant in column.aliases.items():
        if meant not in named or alias in named:
            yield f"alias {alias!r} must be a new spelling of one of the categories."


def _missing_problems(column: Column) -> Iterable[str]:
    if (column.when_missing == "fill") != (column.fill is not None):
        yield 'fill = VALUE and when_missing = "fill" go together.'
    if column.role == "label" and column.when_missing in ("category", "fill"):
        yield "a record without a label can only be refused or dropped."
    if column.fill is None:
        return
    if column.is_number:
        if isinstance(column.fill, (bool, str)) or not math.isfinite(column.fill):
            yield "fill must be a finite number here."
        elif column.type == "integer" and not float(column.fill).is_integer():
            yield "fill must be a whole number here."
        elif isinstance(column.bounds, tuple) and not (
            column.bounds[0] <= column.fill <= column.bounds[1]
            or column.range_found is not None  # bounds that were found may leave it out: clipped
        ):
            yield "fill must lie inside the bounds."
    elif column.type == "boolean":
        if not isinstance(column.fill, bool):
            yield "fill must be true or false here."
    elif isinstance(column.categories, tuple) and column.fill not in column.categories:
        yield "fill must be one of the categories."


def _spelling_problems(column: Column, layout: Layout) -> Iterable[str]:
    missing = layout.missing if column.missing is None else column.missing
    named = column.categories if isinstance(column.categories, tuple) else ()
    both = [c for c in named if c in missing]
    if both and column.role != "ignore":
        yield (
            f"{both[0]!r} is both a category and the spelling of a missing value. Take it out of "
            'the categories and set when_missing = "category", or set missing = [] for the column.'
        )


@cache
def _defaults(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {f.name: f.default for f in msgspec.structs.fields(kind)}


def _set_fields(record: msgspec.Struct, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields that differ from their defaults, as plain data."""
    defaults = _defaults(type(record))
    out = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if name in skip or value == defaults[name] or (name == "aliases" and not value):
            continue
        out[name] = list(value) if isinstance(value, tuple) else value
    if out.get("type") == "date":
        out.update({name: dated(out[name]) for name in DATED if name in out})
    return out


def dated(value: Any) -> Any:
    """Days as dates, alone or in a list; words ("TODO") as they are."""
    if isinstance(value, list):
        return [date_text(part) for part in value]
    return value if isinstance(value, str) else date_text(value)


def written(column: Column, value: float) -> str:
    """A number of the column, as people read it."""
    return str(date_text(value)) if column.type == "date" else f"{value:g}"


def _meaning(column: Column) -> dict[str, Any]:
    fields = _set_fields(column, skip=("name", "note", "missing", "range_found"))
    return {name: _exact(value) for name, value in fields.items()}


def _exact(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return repr(float(value) + 0.0)  # + 0.0: minus zero is zero
    return [_exact(v) for v in value] if isinstance(value, list) else value


def _allowed(column: Column) -> str:
    """What values it may have, in a few words."""
    if column.todo:
        return f"{column.todo}: TODO"
    if column.bounds == PRIVATE:
        return "bounds: found under the promise"
    if isinstance(column.categories, tuple):
        names = ", ".join(column.categories[:8])
        return names if len(column.categories) <= 8 else f"{names}, … ({len(column.categories)})"
    ends = ""
    if isinstance(column.bounds, tuple):
        low, high = (written(column, value) for value in column.bounds)
        ends = f"[{low}, {high}]"
    bins = f" in {len(column.edges) + 1} bins" if column.edges else ""
    return ends + bins


def _listed(columns: Iterable[Column]) -> str:
    return ", ".join(c.name for c in columns)
