"""Any table: kinds, times and names are found; what does not fit is named by its row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError, UsageError
from tacit.personal.events import EventType
from tacit.personal.importers import csv as csv_module
from tacit.personal.importers import csv_head
from tacit.personal.importers.contract import ImporterContract, records_of
from tacit.personal.importers.csv import Csv
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Rows

GOOD = b"""\
When,Fare (EUR),Kind of ride,Shared,Note,Rebooked at
2024-03-01 08:15:00,12.5,short,true,"a note, with a comma",2024-03-01 08:00:00
2024-03-01 18:40:30,7,short,false,"two
lines",
2024-03-02 09:00:00,-1.25e1,long,true,\xc3\xa9t\xc3\xa9,2024-03-01 10:00:00
2024-03-03 09:00:00,,long,,,
"""


class TestContract(ImporterContract):
    importer = Csv()
    good: Mapping[str, bytes] = {"rides.csv": GOOD}
    events = 4
    options: Mapping[str, str] = {"time": "When"}
    torn = 1
    huge_name = "rides.csv"
    huge_records = 30_000  # Arrow reads some blocks ahead

    @pytest.fixture(autouse=True)
    def _small_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_module, "BLOCK", 1 << 12)
        monkeypatch.setattr(csv_head, "HEAD", 1 << 12)

    def huge(self, n: int) -> Iterator[bytes]:
        yield b"When,amount,note\n"
        for i in range(n):
            yield b"2024-03-%02d 10:00:00,%d.5,some note of some length %d\n" % (1 + i % 28, i, i)


def read(
    tmp_path: Path,
    content: bytes | str,
    name: str = "table.csv",
    zone: str = "UTC",
    skip: bool = False,
    **options: str,
) -> tuple[EventType | None, list[dict[str, Any]], Reading]:
    """The one type, the rows with their times, and what was reported."""
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    reading = Reading(ZoneInfo(zone), options, skip_damaged=skip)
    records = list(records_of(Csv().read(Export(tmp_path / name), reading)))
    kinds = {record.kind.name: record.kind for record in records}
    assert len(kinds) <= 1
    kind = next(iter(kinds.values()), None)
    return kind, [{"time": r.time, **r.values} for r in records], reading


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


# --- values ---------------------------------------------------------------------------------------


def test_every_cell_becomes_what_the_file_says(tmp_path: Path) -> None:
    kind, rows, _ = read(tmp_path, GOOD, "My rides.csv", time="When")
    assert kind is not None
    assert kind.name == "my_rides"
    assert kind.fields == {
        "fare_eur": "number",
        "kind_of_ride": "category",
        "shared": "boolean",
        "note": "category",
        "rebooked_at": "time",
    }
    assert "Fare (EUR) → fare_eur" in kind.about
    assert rows == [
        {
            "time": at(2024, 3, 1, 8, 15),
            "fare_eur": 12.5,
            "kind_of_ride": "short",
            "shared": True,
            "note": "a note, with a comma",
            "rebooked_at": at(2024, 3, 1, 8),
        },
        {
            "time": at(2024, 3, 1, 18, 40, 30),
            "fare_eur": 7.0,
            "kind_of_ride": "short",
            "shared": False,
            "note": "two\nlines",
            "rebooked_at": None,
        },
        {
            "time": at(2024, 3, 2, 9),
            "fare_eur": -12.5,
            "kind_of_ride": "long",
            "shared": True,
            "note": "été",
            "rebooked_at": at(2024, 3, 1, 10),
        },
        {
            "time": at(2024, 3, 3, 9),
            "fare_eur": None,
            "kind_of_ride": "long",
            "shared": None,
            "note": None,
            "rebooked_at": None,
        },
    ]


def test_rows_come_as_columns_of_the_promised_types(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(GOOD)
    reading = Reading(ZoneInfo("UTC"), {"time": "When"})
    (rows,) = Csv().read(Export(tmp_path / "a.csv"), reading)
    assert isinstance(rows, Rows)
    types = {name: str(rows.table.schema.field(name).type) for name in rows.table.column_names}
    assert types == {
        "time": "timestamp[us, tz=UTC]",
        "fare_eur": "double",
        "kind_of_ride": "string",
        "shared": "bool",
        "note": "string",
        "rebooked_at": "timestamp[us, tz=UTC]",
    }
    assert rows.place(0) == "a.csv, row 2"


@pytest.mark.parametrize(
    ("written", "zone", "expected"),
    [
        ("2024-07-01T10:00:00Z", "Asia/Tokyo", at(2024, 7, 1, 10)),
        ("2024-07-01T10:00:00+02:00", "UTC", at(2024, 7, 1, 8)),
        ("2024-07-01 10:00:00.250", "Europe/Paris", at(2024, 7, 1, 8, 0, 0, 250_000)),
        ("2024-07-01 10:00", "Europe/Paris", at(2024, 7, 1, 8)),
        ("2024-07-01", "Europe/Paris", at(2024, 6, 30, 22)),
        ("31.12.2024", "UTC", at(2024, 12, 31)),
        ("31.12.2024 23:30", "Europe/Berlin", at(2024, 12, 31, 22, 30)),
        ("31/12/2024 23:30:15", "UTC", at(2024, 12, 31, 23, 30, 15)),
        ("12/31/2024", "UTC", at(2024, 12, 31)),
        ("12/31/24 11:30 PM", "UTC", at(2024, 12, 31, 23, 30)),
        ("2019-10-25 10:57:20 +0000 UTC", "Asia/Tokyo", at(2019, 10, 25, 10, 57, 20)),
        ("1700000000", "Asia/Tokyo", at(2023, 11, 14, 22, 13, 20)),
        ("1700000000250", "Asia/Tokyo", at(2023, 11, 14, 22, 13, 20, 250_000)),
    ],
)
def test_times_in_many_forms(tmp_path: Path, written: str, zone: str, expected: datetime) -> None:
    _, rows, _ = read(tmp_path, f"date,n\n{written},1\n", zone=zone)
    assert [row["time"] for row in rows] == [expected]


def test_the_option_zone_is_of_times_without_one(tmp_path: Path) -> None:
    content = "at,n\n2024-07-01 10:00,1\n"
    _, rows, _ = read(tmp_path, content)
    assert rows[0]["time"] == at(2024, 7, 1, 10)
    (tmp_path / "b.csv").write_text(content)
    reading = Reading(ZoneInfo("UTC"), {"zone": "Europe/Paris"})
    (record,) = records_of(Csv().read(Export(tmp_path / "b.csv"), reading))
    assert record.time == at(2024, 7, 1, 8)
    with pytest.raises(UsageError, match="no time zone 'Mars/Olympus'"):
        list(
            Csv().read(
                Export(tmp_path / "b.csv"), Reading(ZoneInfo("UTC"), {"zone": "Mars/Olympus"})
            )
        )


def test_a_day_and_a_month_that_nobody_can_tell_apart_are_asked_for(tmp_path: Path) -> None:
    content = "day,n\n03/04/2024,1\n05/06/2024,2\n"
    with pytest.raises(InputError, match=r"3 April or 4 March. Say which with the option order"):
        read(tmp_path, content)
    _, rows, _ = read(tmp_path, content, order="dmy")
    assert [row["time"] for row in rows] == [at(2024, 4, 3), at(2024, 6, 5)]
    _, rows, _ = read(tmp_path, content, order="mdy")
    assert [row["time"] for row in rows] == [at(2024, 3, 4), at(2024, 5, 6)]
    _, rows, _ = read(tmp_path, content + "13/06/2024,3\n")  # now it can be told
    assert [row["time"] for row in rows][-1] == at(2024, 6, 13)
    with pytest.raises(UsageError, match="dmy"):
        read(tmp_path, content, order="ymd")


def test_february_has_no_31st(tmp_path: Path) -> None:
    content = "day,n\n" + "28.02.2024,1\n" * 3 + "31.02.2024,2\n"
    with pytest.raises(InputError, match="one column must say when"):
        read(tmp_path, content)  # in the head: not a column of times at all


def test_numbers_that_are_codes_stay_texts(tmp_path: Path) -> None:
    content = "at,zip,account,seconds\n2024-01-01,01234,12345678901234567,5\n"
    kind, rows, _ = read(tmp_path, content)
    assert kind is not None
    assert kind.fields == {"zip": "category", "account": "category", "seconds": "number"}
    assert rows[0]["zip"] == "01234"


def test_few_values_are_a_category_and_many_a_text(tmp_path: Path) -> None:
    lines = [f"2024-01-01,{'ab'[i % 2]},note {i}" for i in range(100)]
    kind, _, _ = read(tmp_path, "\n".join(["at,group,note", *lines]) + "\n")
    assert kind is not None
    assert kind.fields == {"group": "category", "note": "text"}


def test_columns_may_be_forced_to_texts(tmp_path: Path) -> None:
    content = "at,n,m\n2024-01-01,1,2\n"
    kind, rows, _ = read(tmp_path, content, text="n,m")
    assert kind is not None
    assert kind.fields == {"n": "text", "m": "text"}
    assert rows[0]["n"] == "1"
    with pytest.raises(InputError, match=r"no column 'x'. Known: at, n, m"):
        read(tmp_path, content, text="x")


def test_a_decimal_comma(tmp_path: Path) -> None:
    content = "Datum;Betrag\n01.05.2024;1.234,50\n13.05.2024;-3,5\n"
    _, rows, _ = read(tmp_path, content, decimal=",")
    assert [row["betrag"] for row in rows] == [1234.5, -3.5]
    kind, _, _ = read(tmp_path, content)
    assert kind is not None
    assert kind.fields["betrag"] == "category"
    with pytest.raises(UsageError, match="a point or a comma"):
        read(tmp_path, content, decimal="x")


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path: Path, mark: str) -> None:
    _, rows, _ = read(tmp_path, f"at{mark}n{mark}m\n2024-01-01{mark}1{mark}2\n")
    assert rows == [{"time": at(2024, 1, 1), "n": 1.0, "m": 2.0}]


@pytest.mark.parametrize("said", ["#", "pipe"])
def test_the_delimiter_may_be_said(tmp_path: Path, said: str) -> None:
    mark = {"pipe": "|"}.get(said, said)
    _, rows, _ = read(tmp_path, f"at{mark}n\n2024-01-01{mark}1\n", delimiter=said)
    assert rows == [{"time": at(2024, 1, 1), "n": 1.0}]
    with pytest.raises(UsageError, match="one character"):
        read(tmp_path, "at,n\n2024-01-01,1\n", delimiter="ab")


def test_windows_ends_of_lines_and_a_mark_at_the_start(tmp_path: Path) -> None:
    _, rows, _ = read(tmp_path, b"\xef\xbb\xbfat,n\r\n2024-01-01,1\r\n")
    assert rows == [{"time": at(2024, 1, 1), "n": 1.0}]


def test_headers_become_names_each_once(tmp_path: Path) -> None:
    header = 'at,Größe,größe,,source,time,2nd,HeartRate,"a ""b"", c"'
    kind, _, _ = read(tmp_path, f"{header}\n2024-01-01,1,2,3,4,5,6,7,8\n")
    assert kind is not None
    assert list(kind.fields) == [
        "grosse",
        "grosse_2",
        "column_3",
        "source_value",
        "time_value",
        "n_2nd",
        "heart_rate",
        "a_b_c",
    ]


def test_each_table_of_a_folder_has_its_own_type(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.csv").write_text("at,n\n2024-01-01,1\n")
    (tmp_path / "x" / "b.tsv").write_text("at\tm\n2024-01-02\t2\n")
    (tmp_path / "x" / "readme.txt").write_text("hello")
    found = list(records_of(Csv().read(Export(tmp_path / "x"), Reading(ZoneInfo("UTC")))))
    assert [(r.kind.name, dict(r.values), r.place) for r in found] == [
        ("a", {"n": 1.0}, "a.csv, row 2"),
        ("b", {"m": 2.0}, "b.tsv, row 2"),
    ]


def test_the_type_may_be_said(tmp_path: Path) -> None:
    kind, _, _ = read(tmp_path, "at,n\n2024-01-01,1\n", type="ride")
    assert kind is not None
    assert kind.name == "ride"
    with pytest.raises(InputError, match="cannot name events"):
        read(tmp_path, "at,n\n2024-01-01,1\n", type="My Ride")


# --- which column says when -----------------------------------------------------------------------


def test_a_table_without_times_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"those with times are: none. Name it with the option"):
        read(tmp_path, "a,b\n1,2\n")


def test_of_two_columns_with_times_one_is_named(tmp_path: Path) -> None:
    content = "begin,end,n\n2024-01-01,2024-01-02,1\n"
    with pytest.raises(InputError, match=r"are: begin, end. Name it with the option time"):
        read(tmp_path, content)
    kind, rows, _ = read(tmp_path, content, time="end")
    assert kind is not None
    assert kind.fields == {"begin": "time", "n": "number"}
    assert rows[0]["time"] == at(2024, 1, 2)
    with pytest.raises(InputError, match="column 'n' holds no times"):
        read(tmp_path, content, time="n")
    with pytest.raises(InputError, match="no column 'x'"):
        read(tmp_path, content, time="x")


def test_a_number_is_a_time_only_under_such_a_name(tmp_path: Path) -> None:
    kind, _, _ = read(tmp_path, "at,visitors\n1700000000,1700000001\n")
    assert kind is not None
    assert kind.fields == {"visitors": "number"}


# --- what is damaged ------------------------------------------------------------------------------


def damage(tmp_path: Path, content: bytes | str, **options: str) -> tuple[list[Any], list[str]]:
    with pytest.raises(InputError, match="Nothing was imported"):
        read(tmp_path, content, **options)
    _, rows, reading = read(tmp_path, content, skip=True, **options)
    assert reading.damages == len(reading.places)
    return [row["n"] for row in rows], reading.places


def test_ragged_rows_are_named(tmp_path: Path) -> None:
    content = "at,n\n2024-01-01,1\n2024-01-02\n2024-01-03,3\n2024-01-04,4,x\n2024-01-05,5\n"
    assert damage(tmp_path, content) == (
        [1, 3, 5],
        [
            "table.csv, row 3: it has 1 columns, and the header 2.",
            "table.csv, row 5: it has 3 columns, and the header 2.",
        ],
    )


@pytest.mark.parametrize("bad", ["abc", "nan", "inf", "1e999", "--1", "0x10", "1 2"])
def test_a_column_that_stops_being_numeric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    monkeypatch.setattr("tacit.personal.importers.csv_head.SAMPLE", 4)
    content = "at,n\n" + "2024-01-01,1\n" * 5 + f"2024-01-01,{bad}\n2024-01-01, 7 \n"
    assert damage(tmp_path, content) == (
        [1, 1, 1, 1, 1, 7],
        ["table.csv, row 7: column 'n' is no number."],
    )


def test_times_that_stop_being_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.personal.importers.csv_head.SAMPLE", 2)
    content = "day,n\n28.02.2024,1\n28.02.2024,2\n31.02.2024,3\n,4\n1.3.2024,5\nsoon,6\n"
    assert damage(tmp_path, content) == (
        [1, 2, 5],
        [
            "table.csv, row 4: column 'day' is no time in the form that the table's head has.",
            "table.csv, row 5: it has no time.",
            "table.csv, row 7: column 'day' is no time in the form that the table's head has.",
        ],
    )


def test_words_that_stop_being_boolean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.personal.importers.csv_head.SAMPLE", 2)
    content = "at,ok,n\n2024-01-01,Yes,1\n2024-01-01,no,2\n2024-01-01,perhaps,3\n"
    assert damage(tmp_path, content) == (
        [1, 2],
        ["table.csv, row 4: column 'ok' is neither true nor false."],
    )


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    content = b"at,n,who\n2024-01-01,1,a\n2024-01-01,2,M\xfcller\n2024-01-01,3,b\n"
    assert damage(tmp_path, content) == (
        [1, 3],
        ["table.csv, row 3: it is no UTF-8 text. Save the file as UTF-8."],
    )


def test_a_ragged_row_that_is_no_utf8_is_named_too(tmp_path: Path) -> None:
    content = b"at,n\n2024-01-01,1\n2024-01-01,2,M\xfcller\n2024-01-01,3\n"
    assert damage(tmp_path, content) == (
        [1, 3],
        ["table.csv, row 3: it has 3 columns, and the header 2."],
    )


def test_letters_cut_in_two_by_blocks_stay_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_module, "BLOCK", 61)
    lines = [f"2024-01-01,{i},{'€' * (i % 7)}" for i in range(300)]
    _, rows, reading = read(tmp_path, "\n".join(["at,n,who", *lines]) + "\n")
    assert [row["who"] for row in rows] == ["€" * (i % 7) or None for i in range(300)]
    assert reading.damages == 0


def test_nul(tmp_path: Path) -> None:
    content = b"at,n,who\n2024-01-01,1,a\n2024-01-01,2,b\0\n2024-01-01,3,c\n"
    assert damage(tmp_path, content) == ([1, 3], ["table.csv, row 3: it holds a NUL."])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_refused_with_a_remedy(tmp_path: Path, encoding: str) -> None:
    content = "\ufeffat,n\n2024-01-01,1\n".encode(encoding)
    with pytest.raises(InputError, match=r"is UTF-16 text. Save it as UTF-8"):
        read(tmp_path, content)


def test_a_quotation_mark_left_open(tmp_path: Path) -> None:
    content = 'at,n,note\n2024-01-01,1,a\n2024-01-01,2,"b\n2024-01-01,3,c\n'
    assert damage(tmp_path, content) == (
        [1],
        ["table.csv, row 3: a quotation mark is left open."],
    )


def test_a_row_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "BLOCK", 1 << 16)
    content = "at,n,note\n2024-01-01,1,a\n2024-01-01,2," + "x" * 200_000 + "\n"
    with pytest.raises(InputError, match="a row has no end within"):
        read(tmp_path, content, skip=True)


def test_rows_keep_their_numbers_over_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_module, "BLOCK", 1 << 12)
    lines = [f"2024-01-01,{i},{'x' * (i % 90)}" for i in range(2, 3000)]
    for number in (2, 77, 78, 1500, 2999):
        lines[number - 2] = "2024-01-01,1,2,3"
    lines[999 - 2] = "2024-01-01,bad,x"
    monkeypatch.setattr("tacit.personal.importers.csv_head.SAMPLE", 20)
    (tmp_path / "a.csv").write_text("\n".join(["at,n,note", *lines]) + "\n")
    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    parts = list(Csv().read(Export(tmp_path / "a.csv"), reading))
    assert len(parts) > 10
    for part in parts:
        numbers = part.table["n"].to_pylist()
        assert [f"a.csv, row {n:.0f}" for n in numbers] == [
            part.place(i) for i in range(len(numbers))
        ]
    assert sum(part.table.num_rows for part in parts) == 2998 - 6
    assert [p.split(":")[0] for p in reading.places] == [
        f"a.csv, row {n}" for n in (2, 77, 78, 999, 1500, 2999)
    ]


def test_nothing_but_a_header_gives_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "at,n\n")[1] == []
    assert read(tmp_path, "")[1] == []
    assert read(tmp_path, "\n\n")[1] == []


def test_far_too_many_ragged_rows_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_module, "WAITING", 100)
    content = "at,n\n2024-01-01,1\n" + "a,b,c\n" * 500
    with pytest.raises(InputError, match="delimiter another"):
        read(tmp_path, content, skip=True)


def test_what_is_no_table_is_not_recognised(tmp_path: Path) -> None:
    for name, content in {
        "a.csv": b"just some words\n",
        "b.csv": b"a,b\n",
        "c.csv": b"\0\0,1\n1,2",
    }.items():
        (tmp_path / name).write_bytes(content)
        assert not Csv().recognises(Export(tmp_path / name))
    (tmp_path / "d.csv").write_bytes("\ufeffa,b\n1,2\n".encode("utf-16"))
    assert Csv().recognises(Export(tmp_path / "d.csv"))  # and reading says what to do
