"""Whatever holds a table, as Arrow batches of the schema's columns.

Files are told apart by their first bytes. Nothing here looks into a cell.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from tacit.data.arrow import pa
from tacit.data.textfiles import Ragged, first_cells, open_bytes, text_batches
from tacit.errors import TableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tacit.data.schema import Layout, Schema

__all__ = [
    "BATCH_BYTES",
    "ColumnFault",
    "OpenFile",
    "Source",
    "as_array",
    "column_faults",
    "open_file",
    "open_source",
    "open_table",
]

BATCH_BYTES = 8 << 20  # of one batch, about: enough to be quick, little enough for any machine
MOST_ROWS = 1 << 16


@dataclass(frozen=True)
class Source:
    """A table's name for error messages, and its batches: the schema's used columns, in order."""

    name: str
    batches: Iterator[Any]


def open_source(
    source: Any,
    schema: Schema,
    *,
    faults: list[TableError] | None = None,
    ragged: Ragged | None = None,
) -> Source:
    """Find out what `source` is and check its columns; rows are read when asked for.

    With `faults`, wrong columns of a file are added to that list instead of being raised, and there
    is nothing to read; with `ragged`, rows of other lengths are told and left out.
    """
    if isinstance(source, (str, os.PathLike)):
        return _file(os.fspath(source), schema, faults, ragged)
    library = type(source).__module__.partition(".")[0]
    if library == "pandas":
        return _frame(source, schema)
    if isinstance(source, Mapping):
        return _arrays(source, schema)
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        batches = source.to_batches() if isinstance(source, pa.Table) else [source]
        return _named("table", source.schema.names, batches, schema)
    if library == "polars" and hasattr(source, "collect_batches"):  # a LazyFrame
        stream = (b.to_arrow() for b in source.collect_batches())
        parts = chain.from_iterable(t.to_batches() for t in stream)
        return _named("lazy frame", source.collect_schema().names(), parts, schema)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return _named("table", reader.schema.names, reader, schema)
    raise UsageError(
        f"cannot read a table from {type(source).__name__}: give a path, a pyarrow, pandas or "
        "polars table, or a dict of arrays."
    )


def open_table(source: Any) -> OpenFile | None:
    """A table in memory, as a file whose columns are known; None if it is none."""
    if isinstance(source, Mapping):
        names = [str(name) for name in source]
        values = list(source.values())
        if len({_length(v, n) for n, v in zip(names, values, strict=True)}) > 1:
            raise TableError("the columns differ in length.", remedy="Give one value per row.")
        return _in_memory(names, lambda i: values[i])
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return _in_memory([str(n) for n in source.columns], lambda i: source.iloc[:, i])
    if hasattr(source, "collect_schema") and hasattr(source, "collect"):  # polars' lazy frame
        source = source.collect()
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        table = pa.table(source) if isinstance(source, pa.RecordBatch) else source
    elif hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns"):
        table = pa.RecordBatchReader.from_stream(source).read_all()
    else:
        return None
    return _in_memory(table.schema.names, table.column)


def _in_memory(names: list[str], column: Callable[[int], Any]) -> OpenFile:
    def read(places: list[int]) -> Iterator[Any]:
        chosen = [names[i] for i in places]
        arrays = [as_array(column(i), names[i]) for i in places]
        yield from pa.Table.from_arrays(arrays, names=chosen).combine_chunks().to_batches()

    return OpenFile(names, len(names), plain=False, read=read)


def as_array(values: Any, name: str) -> Any:
    """A column as Arrow has it; a TableError if it holds what no column can."""
    return values if isinstance(values, pa.ChunkedArray) else _array(values, name)


def _length(values: Any, name: str) -> int:
    try:
        return len(values)
    except TypeError:
        remedy = "Give a list or an array with one value per row."
        raise TableError("is no column.", column=name, remedy=remedy) from None


@dataclass(frozen=True)
class OpenFile:
    """A file whose columns are known and whose rows are still unread.

    names  the columns' names; None for a text file without a header
    width  how many there are
    plain  whether it is a text file: what it calls a name may then be somebody's value
    read   batches with the columns at the given places; rows of other lengths may be told and left
           out (of a text file)
    """

    names: list[str] | None
    width: int
    plain: bool
    read: Callable[..., Iterator[Any]]


def open_file(path: str, layout: Layout) -> OpenFile:
    """Open a Parquet, Arrow or text file by its first bytes."""
    open_bytes(path).close()  # says what is wrong with a path
    with open(path, "rb") as file:
        head = file.read(8)
    if head.startswith(b"PAR1"):
        return _parquet(path)
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return _ipc(path, seekable=head.startswith(b"ARROW1"))
    if head.startswith(b"FEA1"):
        remedy = "Save it again with a newer library, or as Parquet."
        raise TableError("is a Feather file of version 1.", file=path, remedy=remedy)
    cells = first_cells(path, layout)
    width = len(cells)
    return OpenFile(
        cells if layout.header else None,
        width,
        plain=True,
        read=lambda places, ragged=None: text_batches(path, layout, width, places, ragged),
    )


def _file(
    path: str,
    schema: Schema,
    faults: list[TableError] | None = None,
    ragged: Ragged | None = None,
) -> Source:
    file = open_file(path, schema.file)
    try:
        if file.names is None:
            places = _numbered(path, file.width, schema)
        else:
            found = column_faults(path, file.names, schema, names_are_public=not file.plain)
            if faults is not None:
                faults += found
                return Source(path, iter(()))
            places = _places(path, file.names, schema, names_are_public=not file.plain)
    except ColumnFault as fault:
        if faults is None:
            raise
        faults.append(fault)
        return Source(path, iter(()))
    return Source(path, file.read(places, ragged) if file.plain else file.read(places))


def _numbered(path: str, width: int, schema: Schema) -> list[int]:
    """Without a header, columns are known by their places."""
    expected = len(schema.columns)
    if width < expected or (width > expected and schema.extra_columns == "refuse"):
        raise ColumnFault(
            f"has {width} cells, but the schema has {expected} columns.",
            file=path,
            row=1,
            fatal=width < expected,
            remedy='Check the delimiter; list every column, unused ones with role = "ignore".',
        )
    return [i for i, column in enumerate(schema.columns) if column.role != "ignore"]


def _parquet(path: str) -> OpenFile:
    import pyarrow.parquet as pq

    try:
        # Not buffered ahead: a row group may be as large as the file.
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowInvalid, OSError):
        raise _damaged(path, "Parquet") from None
    names = file.schema_arrow.names
    meta = file.metadata
    size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    rows = max(1, min(MOST_ROWS, BATCH_BYTES * max(1, meta.num_rows) // max(1, size)))

    def read(places: list[int]) -> Iterator[Any]:
        chosen = [names[i] for i in places]
        return _pieces(file.iter_batches(rows, columns=chosen), chosen, path, "Parquet")

    return OpenFile(names, len(names), plain=False, read=read)


def _ipc(path: str, seekable: bool) -> OpenFile:
    def opened() -> Any:
        try:
            return pa.ipc.open_file(pa.memory_map(path)) if seekable else pa.ipc.open_stream(path)
        except (pa.ArrowInvalid, OSError):
            raise _damaged(path, "Arrow") from None

    names = opened().schema.names

    def read(places: list[int]) -> Iterator[Any]:
        file = opened()
        batches = map(file.get_batch, range(file.num_record_batches)) if seekable else file
        return _pieces(batches, [names[i] for i in places], path, "Arrow")

    return OpenFile(names, len(names), plain=False, read=read)


def _frame(frame: Any, schema: Schema) -> Source:
    """pandas: converted piece by piece, so that the copy stays small; its NaN is Arrow's null."""
    names = [str(name) for name in frame.columns]
    wanted = _places("data frame", names, schema)
    part = frame.iloc[:, wanted]

    def pieces() -> Iterator[Any]:
        for start in range(0, len(part), MOST_ROWS):
            rows = part.iloc[start : start + MOST_ROWS]
            yield pa.RecordBatch.from_arrays(
                [_array(rows.iloc[:, i], names[place]) for i, place in enumerate(wanted)],
                names=[names[place] for place in wanted],
            )

    return Source("data frame", pieces())


def _arrays(arrays: Mapping[str, Any], schema: Schema) -> Source:
    """A dict of numpy arrays or lists."""
    names = [str(name) for name in arrays]
    lengths = {len(values) for values in arrays.values()}
    if len(lengths) > 1:
        raise TableError("the columns differ in length.", remedy="Give one value per row.")
    by_name = dict(zip(names, arrays.values(), strict=True))
    chosen = [names[i] for i in _places("table", names, schema)]

    def pieces() -> Iterator[Any]:
        for start in range(0, max(lengths, default=0), MOST_ROWS):
            parts = [_array(by_name[n][start : start + MOST_ROWS], n) for n in chosen]
            yield pa.RecordBatch.from_arrays(parts, names=chosen)

    return Source("table", pieces())


def _array(values: Any, name: str) -> Any:
    from_pandas = type(values).__module__.startswith("pandas")
    if hasattr(values, "sparse"):  # pandas' own kind of column, of which Arrow knows nothing
        values = values.sparse.to_dense()
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return values
    if not from_pandas and _has_gaps(values):
        from_pandas = True  # a text and a NaN: people's tables have such gaps
    try:
        return pa.array(values, from_pandas=from_pandas)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise TableError(  # Arrow's own message holds the value
            "holds values of mixed or unknown types.",
            column=name,
            remedy="Convert the column to one type: numbers, booleans or text.",
        ) from None


def _has_gaps(values: Any) -> bool:
    """Whether these are texts (or the like), some of them missing as a NaN."""
    if not isinstance(values, (list, tuple)) and str(getattr(values, "dtype", "")) != "object":
        return False
    gaps = any(isinstance(v, float) and v != v for v in values)
    return gaps and any(v is not None and not isinstance(v, (int, float)) for v in values)


def _named(name: str, names: list[str], batches: Iterable[Any], schema: Schema) -> Source:
    chosen = [names[i] for i in _places(name, names, schema)]
    return Source(name, _pieces(batches, chosen, name))


def _pieces(batches: Iterable[Any], chosen: list[str], name: str, kind: str = "") -> Iterator[Any]:
    """The chosen columns in slices of bounded size; `kind` is the format of a file."""
    try:
        for batch in batches:
            rows = max(1, min(MOST_ROWS, batch.num_rows * BATCH_BYTES // max(1, batch.nbytes)))
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows).select(chosen)
    except (pa.ArrowInvalid, OSError):
        if not kind:
            raise
        raise _damaged(name, kind) from None


def _damaged(path: str, kind: str) -> TableError:
    problem = f"is a damaged or unfinished {kind} file."
    return TableError(problem, file=path, remedy="Copy it again, or write it again.")


class ColumnFault(TableError):
    """The columns are not the schema's.

    absent   columns that are not there
    fatal    whether nothing can be said of the others
    """

    def __init__(
        self, problem: str, *, absent: Sequence[str] = (), fatal: bool = False, **place: Any
    ) -> None:
        self.absent, self.fatal = tuple(absent), fatal
        super().__init__(problem, **place)


def _places(
    file: str, names: list[str], schema: Schema, names_are_public: bool = True
) -> list[int]:
    """Where the schema's used columns stand in the table."""
    for fault in column_faults(file, names, schema, names_are_public):
        raise fault
    return [names.index(c.name) for c in schema.used]


def column_faults(
    file: str, names: list[str], schema: Schema, names_are_public: bool = True
) -> list[ColumnFault]:
    """All that is wrong with the names of a table's columns.

    What a text file calls its header may be a person's record, if there is none. So columns that
    the schema does not know are named by their places there.
    """
    found: list[ColumnFault] = []
    hint = "" if names_are_public else " If the file has no header line, say header = false."
    twice = sorted({i + 1 for i, n in enumerate(names) if n in names[:i]})
    if twice:
        problem = f"column {twice[0]} has the name of an earlier one."
        remedy = "Rename one of them." + hint
        found.append(ColumnFault(problem, fatal=True, file=file, remedy=remedy))
    absent = [c.name for c in schema.used if c.name not in names]
    if absent:
        problem = f"has no column {', '.join(map(repr, absent))}."
        remedy = "Compare its columns with the schema's." + hint
        place: dict[str, Any] = {"file": file, "column": absent[0]}
        found.append(ColumnFault(problem, absent=absent, remedy=remedy, **place))
    known = {c.name for c in schema.columns}
    extra = [
        repr(name) if names_are_public else str(place)
        for place, name in enumerate(names, start=1)
        if name not in known
    ]
    if extra and schema.extra_columns == "refuse":
        found.append(
            ColumnFault(
                f"{len(extra)} column(s) are not in the schema: {', '.join(extra[:20])}.",
                file=file,
                remedy='List them with role = "ignore", or say extra_columns = "ignore".' + hint,
            )
        )
    return found
