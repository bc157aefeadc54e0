"""SQLite files of any app: real tables only, read as what they are: a stranger's."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.events import EventType
from tacit.personal.importers import database as database_module
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading
from tacit.personal.importers.sqlite import Sqlite

SCRIPT = """
PRAGMA page_size = 512;
CREATE TABLE runs (id INTEGER PRIMARY KEY, started TEXT, km REAL, shoe TEXT, photo BLOB);
INSERT INTO runs VALUES (1, '2024-05-01 07:00:00', 5.5, 'red', x'0102');
INSERT INTO runs VALUES (2, '2024-05-03 07:30:00', 10, 'blue', NULL);
INSERT INTO runs VALUES (3, '2024-05-04 08:00:00', NULL, 'red', NULL);
"""


def made(script: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        with closing(sqlite3.connect(path)) as database:
            database.executescript(script)
        return path.read_bytes()


class TestContract(ImporterContract):
    importer = Sqlite()
    good: Mapping[str, bytes] = {"runs.db": made(SCRIPT)}
    events = 3


def read(
    tmp_path: Path, content: bytes, skip: bool = False, **options: str
) -> tuple[EventType | None, list[dict[str, Any]], Reading]:
    (tmp_path / "app.db").write_bytes(content)
    reading = Reading(ZoneInfo("Europe/Paris"), options, skip_damaged=skip)
    found = list(Sqlite().read(Export(tmp_path / "app.db"), reading))
    return found[0].kind if found else None, [{"time": r.time, **r.values} for r in found], reading


def test_every_cell_becomes_what_the_file_says(tmp_path: Path) -> None:
    kind, rows, _ = read(tmp_path, made(SCRIPT))
    assert kind is not None
    assert kind.name == "runs"
    assert kind.fields == {
        "id": "number",
        "km": "number",
        "shoe": "category",
        "photo_bytes": "number",
    }
    assert rows == [
        {
            "time": datetime(2024, 5, 1, 5, tzinfo=UTC),
            "id": 1.0,
            "km": 5.5,
            "shoe": "red",
            "photo_bytes": 2.0,
        },
        {"time": datetime(2024, 5, 3, 5, 30, tzinfo=UTC), "id": 2.0, "km": 10.0, "shoe": "blue"},
        {"time": datetime(2024, 5, 4, 6, tzinfo=UTC), "id": 3.0, "shoe": "red"},
    ]


def test_epochs_under_the_name_of_a_time(tmp_path: Path) -> None:
    script = "CREATE TABLE t (visit_date INTEGER, n INTEGER);"
    script += "INSERT INTO t VALUES (1700000000000000, 1);"
    _, rows, _ = read(tmp_path, made(script))
    assert rows == [{"time": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), "n": 1.0}]


def test_of_several_tables_one_is_named(tmp_path: Path) -> None:
    content = made(
        SCRIPT + "CREATE TABLE other (at TEXT); INSERT INTO other VALUES ('2024-01-01');"
    )
    with pytest.raises(InputError, match=r"say which table .* There are: runs, other\."):
        read(tmp_path, content)
    kind, rows, _ = read(tmp_path, content, table="other", type="thing", zone="UTC")
    assert kind is not None
    assert (kind.name, rows) == ("thing", [{"time": datetime(2024, 1, 1, tzinfo=UTC)}])
    with pytest.raises(InputError, match=r"there is no table 'x'\. There are: runs, other\."):
        read(tmp_path, content, table="x")


def test_no_table_or_no_rows_give_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, made("CREATE VIEW v AS SELECT 1;"))[1] == []
    assert read(tmp_path, made("CREATE TABLE t (at TEXT);"))[1] == []


def test_views_and_virtual_tables_are_no_tables(tmp_path: Path) -> None:
    script = SCRIPT + "CREATE VIEW evil AS SELECT load_extension('x');"
    script += "CREATE VIRTUAL TABLE v USING fts5(x);"
    for name in ("evil", "v"):
        with pytest.raises(InputError, match="there is no table"):
            read(tmp_path, made(script), table=name)


def test_computed_columns_are_not_computed(tmp_path: Path) -> None:
    script = "CREATE TABLE t (at TEXT, x TEXT AS (hex(zeroblob(100000000))), n INTEGER);"
    script += "INSERT INTO t (at, n) VALUES ('2024-01-01', 1);"
    _, rows, _ = read(tmp_path, made(script), zone="UTC")
    assert rows == [{"time": datetime(2024, 1, 1, tzinfo=UTC), "n": 1.0}]


def test_constraints_are_not_run(tmp_path: Path) -> None:
    swells = "CHECK (length(hex(zeroblob(100000000))) > n)"
    script = f"CREATE TABLE t (at TEXT, n INTEGER {swells});"
    script += "PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES ('2024-01-01', 1);"
    _, rows, _ = read(tmp_path, made(script), zone="UTC")
    assert rows == [{"time": datetime(2024, 1, 1, tzinfo=UTC), "n": 1.0}]


def test_an_index_in_an_order_that_only_the_app_knows_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "made.db"
    with closing(sqlite3.connect(path)) as database:
        database.create_collation("localized", lambda a, b: (a > b) - (a < b))
        database.executescript(SCRIPT + "CREATE INDEX i ON runs (shoe COLLATE localized);")
    assert len(read(tmp_path, path.read_bytes())[1]) == 3


def test_rows_in_the_log_of_a_running_app_are_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(made("PRAGMA journal_mode = WAL;" + SCRIPT))
    with closing(sqlite3.connect(path)) as running:
        running.execute("PRAGMA wal_autocheckpoint = 0")
        with running:
            running.execute("INSERT INTO runs VALUES (4, '2024-05-05', 1, 'red', NULL)")
        found = list(Sqlite().read(Export(path), Reading(ZoneInfo("UTC"))))
    assert len(found) == 4


def test_a_file_that_lacks_its_end_is_said_to(tmp_path: Path) -> None:
    for cut in (1, 511, 512):
        with pytest.raises(InputError, match=r"is cut short, .* copy the file anew"):
            read(tmp_path, made(SCRIPT)[:-cut])


def test_a_file_that_keeps_the_machine_busy_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(tmp_path, made(SCRIPT))
    monkeypatch.setattr(database_module, "STEPS", 10)
    monkeypatch.setattr(database_module, "START", 10)
    monkeypatch.setattr(database_module, "EACH", 0)
    with pytest.raises(InputError, match="or not such as apps write"):
        read(tmp_path, made(SCRIPT))


def test_rows_without_times_and_broken_texts_are_named(tmp_path: Path) -> None:
    script = (
        SCRIPT
        + """
    INSERT INTO runs VALUES (4, NULL, 1, 'red', NULL);
    INSERT INTO runs VALUES (5, '2024-05-05', 1, CAST(x'ff' AS TEXT), NULL);
    INSERT INTO runs VALUES (6, '2024-05-06', 9e999, 'red', NULL);
    """
    )
    with pytest.raises(InputError, match=r"app\.db, table runs, row 4: it has no time\."):
        read(tmp_path, made(script))
    _, rows, reading = read(tmp_path, made(script), skip=True)
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert reading.places == [
        "app.db, table runs, row 4: it has no time.",
        "app.db, table runs, row 5: it holds what is neither a text nor a finite number.",
        "app.db, table runs, row 6: it holds what is neither a text nor a finite number.",
    ]


def test_names_with_quotation_marks_are_quoted(tmp_path: Path) -> None:
    name = '"a ""b""; x"'
    script = f"CREATE TABLE {name} (at TEXT); INSERT INTO {name} VALUES ('2024-01-01');"
    kind, rows, _ = read(tmp_path, made(script))
    assert kind is not None
    assert (kind.name, len(rows)) == ("a_b_x", 1)


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    content = bytearray(made(SCRIPT))
    content[512 + 3 : 512 + 5] = b"\xff\xff"  # more cells on the page than fit
    with pytest.raises(InputError, match=r"is cut short, damaged, or not such as apps write\."):
        read(tmp_path, bytes(content))


def test_nothing_is_written_beside_the_file(tmp_path: Path) -> None:
    read(tmp_path, made("PRAGMA journal_mode = WAL;" + SCRIPT))
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["app.db"]
