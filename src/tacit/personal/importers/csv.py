"""Any app's table as comma-separated values: the kinds are found in its head.

Arrow parses and converts whole columns at once. Only a block with a value that does not fit its
column is looked at row by row, so that the row can be named.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from tacit.errors import InputError
from tacit.personal.events import EventType
from tacit.personal.importers.csv_columns import converted
from tacit.personal.importers.csv_head import Plan, head_of, plan_of
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Csv"]

BLOCK = 2 << 20  # bytes read at once; no row is longer. Arrow reads some thirty ahead
WAITING = 100_000  # ragged rows without a good one between them


class Csv:
    name = "csv"
    title = "Any table (CSV, TSV)"
    hint = "Save the table as CSV, with a header, in UTF-8; one column must say when."
    types: tuple[EventType, ...] = ()
    options: Mapping[str, str] = {
        "type": "what to call its events; by default as the file",
        "time": "the column that says when; found if only one holds times",
        "delimiter": "comma, semicolon, tab, pipe, or another character; found by itself",
        "zone": "of times without one, as Europe/Paris; by default yours",
        "order": "dmy or mdy, where 03/04/2024 could be both",
        "decimal": "a comma where 1,5 is one and a half; by default a point",
        "text": "columns, with commas between, to take as text whatever they hold",
    }

    def recognises(self, export: Export) -> bool:
        return any(_is_table(member) for member in _tables(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Rows]:
        for member in _tables(export):
            plan = plan_of(member, reading)
            if plan is not None:
                yield from _read(member, plan, reading)


def _tables(export: Export) -> list[Member]:
    return export.find("*.csv", "*.tsv", "*.tab") or (
        export.members if len(export.members) == 1 else []
    )


def _is_table(member: Member) -> bool:
    try:
        head = head_of(member)
    except InputError:  # a table in an encoding that reading will refuse, with a remedy
        return member.name.lower().endswith((".csv", ".tsv", ".tab"))
    start = member.head(1000).removeprefix(b"\xef\xbb\xbf").lstrip()
    other = b"\0" in start or start[:1] in (b"{", b"[", b"<")  # SQLite, JSON, XML
    return head is not None and len(head.headers) > 1 and bool(head.rows) and not other


def _read(member: Member, plan: Plan, reading: Reading) -> Iterator[Rows]:
    ragged: deque[tuple[int, str]] = deque()
    row = 2  # the first is the header
    for batch, broken in _batches(member, plan, ragged):
        start = 0
        while start < batch.num_rows:
            while ragged and ragged[0][0] <= row:
                number, reason = ragged.popleft()
                reading.damaged(f"{member.name}, row {number}", reason)
                row = number + 1
            until = min(batch.num_rows, start + ragged[0][0] - row) if ragged else batch.num_rows
            piece = converted(batch.slice(start, until - start), plan, broken)
            yield from _rows(*piece, plan.kind, member.name, row, reading)
            row, start = row + until - start, until
    for number, reason in ragged:
        reading.damaged(f"{member.name}, row {min(number, row)}", reason)


def _batches(
    member: Member, plan: Plan, ragged: deque[tuple[int, str]]
) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Blocks of rows, every cell as text; rows of another width are noted with their number."""
    import pyarrow as pa

    def note(bad: Any) -> str:
        had = f"it has {bad.actual_columns} columns, and the header {bad.expected_columns}."
        ragged.append((bad.number, had))
        return "skip" if len(ragged) < WAITING else "error"

    with member.open() as stream:
        text = _Text(stream)
        last: pa.RecordBatch | None = None
        try:
            for batch in _parsed(text, plan, note):
                if last is not None:
                    yield last, text.broken
                last = batch
        except pa.ArrowInvalid:
            raise InputError(
                f"{member.name}: a row has no end within {BLOCK >> 20} MB, or far too many rows "
                "differ from the header. Is a quotation mark left open, or the delimiter another?"
            ) from None
        if last is not None and text.open and "\n" in (last.column(-1)[-1].as_py() or ""):
            # Everything after the mark was taken for one cell.
            ragged.append((sys.maxsize, "a quotation mark is left open."))
            last = last.slice(0, last.num_rows - 1)
        if last is not None:
            yield last, text.broken


def _parsed(stream: _Text, plan: Plan, note: Any) -> Any:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    names = [str(place) for place in range(len(plan.columns))]
    return arrow_csv.open_csv(
        stream,
        # One thread: rows are numbered only then, and it is fast enough.
        read_options=arrow_csv.ReadOptions(
            use_threads=False, block_size=BLOCK, column_names=names, skip_rows_after_names=1
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=plan.delimiter, newlines_in_values=True, invalid_row_handler=note
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            check_utf8=False,
        ),
    )


class _Text(io.RawIOBase):
    """Passes bytes on as UTF-8, whatever they are, and knows what Arrow does not say.

    open    a quotation mark is open (Arrow takes the end of the file for its end)
    broken  some bytes were no UTF-8; they are U+FFFD now (Arrow cannot report such rows)
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.open, self.broken = stream, False, False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        data = self._stream.read(-1 if size is None else size)
        self.open ^= bool(data.count(b'"') % 2)
        text = self._decoder.decode(data, final=not data)
        if text.isascii() and len(text) == len(data):
            return data
        self.broken = self.broken or "\ufffd" in text
        # A letter cut in two is held back: that must not look like the end of the file.
        return text.encode() or (self.read(size) if data else b"")


def _rows(
    table: pa.Table,
    bad: Mapping[int, str],
    kind: EventType,
    member: str,
    first: int,
    reading: Reading,
) -> Iterator[Rows]:
    """The rows as events: all at once, or, around damaged ones, in pieces that keep their place."""
    start = 0
    for index in sorted(bad):
        if index > start:
            yield Rows(kind, table.slice(start, index - start), member, first + start)
        reading.damaged(f"{member}, row {first + index}", bad[index])
        start = index + 1
    if start < table.num_rows:
        yield Rows(kind, table.slice(start), member, first + start)
