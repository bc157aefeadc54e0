"""Rows of the CSV files of services, one by one, each with its place.

For a service's own tables, whose columns are known. Any other table is for the importer `csv`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from tacit.errors import InputError
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading

__all__ = ["all_rows", "csv_rows", "decoded_rows", "headers_of", "tables_with"]

LONGEST = 1 << 17  # characters of a line, or of a row of many lines
PEEKED = 200  # members of an export whose headers are looked at

Named = Callable[[str], str]


def headers_of(member: Member) -> tuple[str, ...]:
    """The header, from the first bytes; empty if that is no text."""
    text = member.head(1 << 13).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    try:
        first = next(csv.reader(io.StringIO(text, newline="")), [])
    except csv.Error:
        return ()
    if not all(map(_sound, first)):
        return ()
    return tuple(name.strip() for name in first)


def tables_with(export: Export, *columns: str, named: Named = str) -> list[Member]:
    """The CSV files whose header has all of these columns."""
    return [
        member
        for member in export.find("*.csv")[:PEEKED]
        if set(columns) <= set(map(named, headers_of(member)))
    ]


def csv_rows(
    member: Member,
    reading: Reading,
    needed: Sequence[str] = (),
    *,
    headers: Sequence[str] | None = None,
    named: Named = str,
) -> Iterator[tuple[str, dict[str, str]]]:
    """Place, and column → cell without spaces around it.

    needed   columns without which it is another file
    headers  where the file has none of its own
    named    what a header is called in the rows
    """
    with member.text() as lines:
        rows = _rows(lines, member.name, reading)
        if headers is None:
            first = next(rows, None)
            if first is None:
                return
            headers = [named(name.strip()) for name in first[1]]
            missing = [name for name in needed if name not in headers]
            if missing:
                raise InputError(f"{member.name}: has no column {missing[0]!r}: is it that file?")
        for place, row in rows:
            while len(row) > len(headers) and not row[-1]:
                row.pop()
            if len(row) != len(headers):
                had = f"it has {len(row)} columns, and the header {len(headers)}."
                reading.damaged(place, had)
                continue
            yield place, dict(zip(headers, (cell.strip() for cell in row), strict=True))


def all_rows(export: Export, columns: Sequence[str], reading: Reading) -> Iterator[dict[str, str]]:
    """The rows of every file with these columns."""
    for member in tables_with(export, *columns):
        for _, row in csv_rows(member, reading, columns):
            yield row


def decoded_rows(
    member: Member, reading: Reading, encoding: str, delimiter: str, skipped: int
) -> Iterator[tuple[str, list[str]]]:
    """Place and cells of each row, in any encoding, below lines that are skipped."""
    with (
        member.open() as stream,
        io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="") as lines,
    ):
        yield from _rows(lines, member.name, reading, delimiter, skipped)


def _rows(
    lines: TextIO, name: str, reading: Reading, delimiter: str = ",", skipped: int = 0
) -> Iterator[tuple[str, list[str]]]:
    """Rows that are sound; those that are not are damaged, and reading goes on after them."""
    bounded = _Lines(lines)
    for _ in range(skipped):
        next(bounded, None)
    reader = csv.reader(bounded, delimiter=delimiter, strict=True)
    while True:
        place = f"{name}, line {bounded.number + 1}"
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            reading.damaged(place, "a quotation mark is left open, or stands where none may.")
            continue
        if bounded.cut:
            bounded.cut = False
            reading.damaged(place, f"it is longer than {LONGEST:,} characters.")
        elif any(not _sound(cell) for cell in row):
            reading.damaged(place, "it is no UTF-8 text.")
        elif any(row):
            yield place, row


def _sound(cell: str) -> bool:
    """No NUL, and no lone surrogate, which stands for a byte that is no UTF-8."""
    if cell.isascii():
        return "\0" not in cell
    return not any("\ud800" <= letter <= "\udfff" for letter in cell)


class _Lines:
    """Lines of bearable length: a longer one is empty, and `cut` says so."""

    def __init__(self, lines: TextIO) -> None:
        self._lines, self.number, self.cut = lines, 0, False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._lines.readline(LONGEST)
        if not line:
            raise StopIteration
        self.number += 1
        rest = line
        while len(rest) == LONGEST and not rest.endswith(("\n", "\r")):
            self.cut = True
            rest = self._lines.readline(LONGEST)
        return "\n" if self.cut else line
