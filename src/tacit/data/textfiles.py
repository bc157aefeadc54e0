"""Delimited text files as Arrow batches, in bounded memory, with every fault placed.

All cells are read as bytes: Arrow's own conversions would stop at the first bad cell with a message
that holds the cell, and could not say whose fault it is.
"""

from __future__ import annotations

import bz2
import csv
import lzma
from collections.abc import Callable
from contextlib import contextmanager
from io import BufferedReader, BytesIO, RawIOBase, TextIOWrapper
from typing import TYPE_CHECKING, Any

from tacit.data.arrow import pa, pacsv
from tacit.errors import NoRecords, TableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.data.schema import Layout

__all__ = ["BLOCK_BYTES", "Ragged", "first_cells", "open_bytes", "text_batches"]

# Told of a row with too few or too many cells: which one, how many, how many there should be.
Ragged = Callable[[int, int, int], None]

# A row must fit a block. Arrow reads some dozens of blocks ahead, whatever the file's size.
BLOCK_BYTES = 1 << 19
PEEK_BYTES = 1 << 20
# A file's first bytes say what it is; its name may lie.
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
BZ2, XZ = b"BZh", b"\xfd7zXZ\x00"
ARCHIVES = {b"PK\x03\x04": "a ZIP archive (or a spreadsheet)", b"7z\xbc\xaf": "a 7z archive"}


def open_bytes(path: str) -> Any:
    """The file's uncompressed bytes as a stream."""
    try:
        with open(path, "rb") as file:
            head = file.read(8)
    except FileNotFoundError:
        raise TableError("there is no such file.", file=path, remedy="Check the path.") from None
    except IsADirectoryError:
        raise TableError("is a folder.", file=path, remedy="Name one file in it.") from None
    except OSError as error:
        raise TableError(f"cannot be read ({error.strerror}).", file=path) from None
    for mark, what in ARCHIVES.items():
        if head.startswith(mark):
            remedy = "Unpack it, or save the sheet as CSV, and name the file itself."
            raise TableError(f"is {what}.", file=path, remedy=remedy)
    if head.startswith(BZ2):
        return bz2.open(path)
    if head.startswith(XZ):
        return lzma.open(path)
    kind = next((kind for mark, kind in MAGIC.items() if head.startswith(mark)), None)
    return pa.input_stream(path, compression=kind)


def first_cells(path: str, layout: Layout) -> list[str]:
    """The cells of the first line that is not skipped: the header, or the first row."""
    with _faults(path), _opened(path, layout) as stream:
        head = stream.read(PEEK_BYTES)
    text = TextIOWrapper(BytesIO(head), encoding="utf-8-sig", errors="replace", newline="")
    for _ in range(layout.skip_rows):
        text.readline()
    lines = (line for line in text if line.strip("\r\n"))
    for cells in csv.reader(lines, **_dialect(layout)):
        return [c.strip() for c in cells] if layout.strip else cells
    raise NoRecords("is empty.", file=path, remedy="Give a file with at least one row.")


def text_batches(
    path: str, layout: Layout, width: int, wanted: list[int], on_ragged: Ragged | None = None
) -> Iterator[Any]:
    """Batches with the `wanted` of `width` columns, as bytes, without the header.

    A row with other than `width` cells is refused; or told to `on_ragged`, and left out.
    """
    ragged: list[tuple[int, int]] = []
    skip = 1 if layout.header else 0
    done = 0

    def note(row: Any) -> str:
        if on_ragged is not None and row.number is not None:
            on_ragged(row.number - skip, row.actual_columns, width)
            return "skip"
        ragged.append((row.number, row.actual_columns))
        return "error"

    names = [f"f{i}" for i in range(width)]
    with _faults(
        path,
        ragged=lambda: _ragged_error(path, ragged, width, skip, done),
        broken=lambda: _first_unreadable(path, layout),
    ):
        stream = _opened(path, layout)
        with pacsv.open_csv(stream, **_options(layout, names, wanted, note)) as reader:
            for batch in reader:
                rows = batch.slice(skip) if done == 0 else batch
                done += batch.num_rows
                if rows.num_rows:
                    yield rows


def _options(
    layout: Layout, names: list[str], wanted: list[int], note: Callable[[Any], str]
) -> dict[str, Any]:
    return {
        # One thread: rows are numbered only then, and blocks are not read ahead.
        "read_options": pacsv.ReadOptions(
            use_threads=False,
            block_size=BLOCK_BYTES,
            skip_rows=layout.skip_rows,
            column_names=names,
        ),
        "parse_options": pacsv.ParseOptions(
            delimiter=layout.delimiter,
            quote_char=layout.quote or False,
            newlines_in_values=bool(layout.quote),
            invalid_row_handler=note,
        ),
        "convert_options": pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            include_columns=[names[i] for i in wanted],
            strings_can_be_null=False,
        ),
    }


def _dialect(layout: Layout) -> dict[str, Any]:
    if not layout.quote:
        return {"delimiter": layout.delimiter, "quoting": csv.QUOTE_NONE}
    return {"delimiter": layout.delimiter, "quotechar": layout.quote}


def _opened(path: str, layout: Layout) -> Any:
    stream = open_bytes(path)
    if layout.comment:
        return BufferedReader(_WithoutComments(stream, layout.comment.encode()), BLOCK_BYTES)
    return stream


@contextmanager
def _faults(
    path: str,
    ragged: Callable[[], TableError | None] = lambda: None,
    broken: Callable[[], int | None] = lambda: None,
) -> Iterator[None]:
    """Turn what Arrow and the decompressors raise into a TableError without any cell in it."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise (ragged() or _invalid(path, str(error))) from None
    except (OSError, EOFError, lzma.LZMAError):
        raise TableError(
            "ends in the middle of its compressed data, or is damaged.",
            file=path,
            row=broken(),
            remedy="Copy or download it again, and check it (gzip -t, zstd -t).",
        ) from None


def _invalid(path: str, message: str) -> TableError:
    if "straddl" in message:
        return TableError(
            f"a row is longer than {BLOCK_BYTES >> 10} KB: a quote is probably never closed.",
            file=path,
            remedy='Close it, or say quote = "" in the schema if quotes are plain characters.',
        )
    if "Empty CSV" in message:
        return NoRecords("is empty.", file=path, remedy="Give a file with at least one row.")
    return TableError("is not a delimited text file.", file=path, remedy="Check its format.")


def _first_unreadable(path: str, layout: Layout) -> int:
    """About the row at which a damaged file ends; Arrow reads ahead and stops far before it."""
    lines = 0
    try:
        with _opened(path, layout) as stream:
            while block := stream.read(1 << 12):
                lines += block.count(b"\n")
    except (OSError, EOFError, lzma.LZMAError):
        pass
    return max(1, lines + 1 - layout.skip_rows - layout.header)


def _ragged_error(
    path: str, ragged: list[tuple[int, int]], width: int, skip: int, done: int
) -> TableError | None:
    if not ragged:
        return None
    number, actual = ragged[0]
    return TableError(
        f"has {actual} cells, not {width}.",
        file=path,
        row=(number or done + 1) - skip,
        remedy="Check the delimiter and quotes there.",
    )


class _WithoutComments(RawIOBase):
    """A stream less the lines that begin with a mark; it holds one block and one line."""

    def __init__(self, source: Any, mark: bytes) -> None:
        self._source, self._mark = source, mark
        self._rest, self._ready = b"", b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            block = self._source.read(PEEK_BYTES)
            lines = (self._rest + block).splitlines(keepends=True)
            self._rest = lines.pop() if block and lines else b""
            self._ready = b"".join(line for line in lines if not line.startswith(self._mark))
            if not block:
                break
        part = self._ready[: len(buffer)]
        buffer[: len(part)] = part
        self._ready = self._ready[len(part) :]
        return len(part)
