"""Rows of services' tables: their places, what is damaged, and bounds on what one row may be."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers import csv_rows as module
from tacit.personal.importers.csv_rows import csv_rows, headers_of, tables_with
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading


def read(tmp_path: Path, content: bytes, **more: object) -> tuple[list[tuple[str, str]], list[str]]:
    (tmp_path / "t.csv").write_bytes(content)
    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    (member,) = Export(tmp_path / "t.csv").members
    rows = csv_rows(member, reading, **more)  # type: ignore[arg-type]
    return [(place, "/".join(row.values())) for place, row in rows], reading.places


def test_places_count_lines_also_within_quotes(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbfa,b\r\n1, 2 \r\n"x\r\ny",3\r\n\r\n4,5\r\n'
    assert read(tmp_path, content) == (
        [("t.csv, line 2", "1/2"), ("t.csv, line 3", "x\r\ny/3"), ("t.csv, line 6", "4/5")],
        [],
    )


def test_empty_cells_beyond_the_header_are_no_harm(tmp_path: Path) -> None:
    assert read(tmp_path, b"a,b\n1,2,,\n")[0] == [("t.csv, line 2", "1/2")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"1", "it has 1 columns, and the header 2."),
        (b"1,2,3", "it has 3 columns, and the header 2."),
        (b"1,\xff", "it is no UTF-8 text."),
        (b"1,\x00", "it is no UTF-8 text."),
        (b'1,"2"x', "a quotation mark is left open, or stands where none may."),
    ],
)
def test_damaged_rows_are_named_and_passed_over(tmp_path: Path, row: bytes, reason: str) -> None:
    rows, places = read(tmp_path, b"a,b\n0,0\n" + row + b"\n9,9\n")
    assert [text for _, text in rows] == ["0/0", "9/9"]
    assert places == [f"t.csv, line 3: {reason}"]


def test_a_quotation_mark_left_open_is_damaged_where_it_stands(tmp_path: Path) -> None:
    rows, places = read(tmp_path, b'a,b\n0,0\n1,"2\n9,9\n')
    assert [text for _, text in rows] == ["0/0"]
    assert [place.split(":")[0] for place in places] == ["t.csv, line 3"]


def test_a_line_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 1000)
    rows, places = read(tmp_path, b'a,b\n0,0\n1,"' + b"x" * 5500 + b"\n9,9\n")
    assert [text for _, text in rows] == ["0/0", "9/9"]
    assert places == ["t.csv, line 3: it is longer than 1,000 characters."]


def test_a_missing_column_says_that_it_is_another_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.csv: has no column 'c': is it that file\?"):
        read(tmp_path, b"a,b\n1,2\n", needed=("a", "c"))


def test_a_file_without_a_header_is_given_one(tmp_path: Path) -> None:
    assert read(tmp_path, b"1,2\n", headers=("a", "b"))[0] == [("t.csv, line 1", "1/2")]


def test_headers_may_be_renamed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"A,B\n1,2\n")
    (member,) = Export(tmp_path / "t.csv").members
    rows = list(csv_rows(member, Reading(ZoneInfo("UTC")), named=str.lower))
    assert rows == [("t.csv, line 2", {"a": "1", "b": "2"})]


def test_tables_are_found_by_their_columns(tmp_path: Path) -> None:
    for name, content in {
        "one.csv": b"a,b,c\n1,2,3\n",
        "two.csv": b"a,c\n\xff",
        "three.csv": b"\xff,a,b\n",
        "four.txt": b"a,b,c\n",
        "five.csv": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
    export = Export(tmp_path)
    assert [member.name for member in tables_with(export, "a", "c")] == ["one.csv", "two.csv"]
    assert [len(headers_of(member)) for member in export.find("three.csv", "five.csv")] == [0, 0]
