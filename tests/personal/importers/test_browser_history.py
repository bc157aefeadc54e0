"""The history of browsers, and databases that were made to do harm."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError, UsageError
from tacit.personal.importers.browser_history import site_of
from tacit.personal.importers.chrome import Chrome
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.firefox import Firefox
from tacit.personal.importers.importer import Importer, Reading, Record

CHROME = """
CREATE TABLE urls(id INTEGER PRIMARY KEY AUTOINCREMENT, url LONGVARCHAR, title LONGVARCHAR,
    visit_count INTEGER DEFAULT 0 NOT NULL, typed_count INTEGER DEFAULT 0 NOT NULL,
    last_visit_time INTEGER NOT NULL, hidden INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE visits(id INTEGER PRIMARY KEY AUTOINCREMENT, url INTEGER NOT NULL,
    visit_time INTEGER NOT NULL, from_visit INTEGER, transition INTEGER DEFAULT 0 NOT NULL,
    segment_id INTEGER, visit_duration INTEGER DEFAULT 0 NOT NULL);
CREATE INDEX visits_url_index ON visits (url);
CREATE INDEX urls_url_index ON urls (url);
"""
FIREFOX = """
CREATE TABLE moz_places(id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR,
    rev_host LONGVARCHAR, visit_count INTEGER DEFAULT 0, hidden INTEGER DEFAULT 0 NOT NULL,
    typed INTEGER DEFAULT 0 NOT NULL, frecency INTEGER DEFAULT -1 NOT NULL,
    last_visit_date INTEGER, guid TEXT);
CREATE TABLE moz_historyvisits(id INTEGER PRIMARY KEY, from_visit INTEGER, place_id INTEGER,
    visit_date INTEGER, visit_type INTEGER, session INTEGER, source INTEGER DEFAULT 0 NOT NULL,
    triggeringPlaceId INTEGER);
CREATE INDEX moz_historyvisits_placedateindex ON moz_historyvisits (place_id, visit_date);
"""
PAGES = [
    (1, "https://www.example.org/private?token=Zyx", "Bread"),
    (2, "http://news.example.com:8080/", ""),
    (3, "chrome://settings/", "Settings"),
    (4, "file:///diary.txt", None),
]
START = datetime(2024, 1, 31, 7, 59, 1, 500_000, UTC)
CHROME_0 = (START - datetime(1601, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
FIREFOX_0 = (START - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def chrome(path: Path, visits: int = 0) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(CHROME)
        database.executemany("INSERT INTO urls VALUES (?, ?, ?, 1, 0, 0, 0)", PAGES)
        made = [(1, 0x30000001, 2_500_000), (2, 0x800000, 0), (3, 8, 5), (4, 0, 0), (1, 77, 1)]
        made += [(1, 0, 0)] * visits
        database.executemany(
            "INSERT INTO visits VALUES (NULL, ?, ?, 0, ?, 0, ?)",
            [(url, CHROME_0 + 1_000_000 * i, way, t) for i, (url, way, t) in enumerate(made)],
        )
    return path


def firefox(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA page_size = 4096")
        database.executescript(FIREFOX)
        database.executemany("INSERT INTO moz_places(id, url, title) VALUES (?, ?, ?)", PAGES)
        made = [(1, 2), (2, 1), (3, 1), (4, 1), (1, 99)]
        database.executemany(
            "INSERT INTO moz_historyvisits VALUES (NULL, 0, ?, ?, ?, 0, 0, NULL)",
            [(page, FIREFOX_0 + 1_000_000 * i, way) for i, (page, way) in enumerate(made)],
        )
    return path


def made(make: Callable[[Path], Path]) -> bytes:
    """A database has no bytes to write down here."""
    with tempfile.TemporaryDirectory() as folder:
        return make(Path(folder) / "made").read_bytes()


def read(importer: Importer, path: Path, **options: str) -> list[Record]:
    reading = Reading(ZoneInfo("Europe/Vienna"), options)
    return [part for part in importer.read(Export(path), reading) if isinstance(part, Record)]


class TestChrome(ImporterContract):
    importer = Chrome()
    good: Mapping[str, bytes] = {"Default/History": made(chrome)}
    events = 3


class TestFirefox(ImporterContract):
    importer = Firefox()
    good: Mapping[str, bytes] = {"profile/places.sqlite": made(firefox)}
    events = 3


def test_visits_of_chrome(tmp_path: Path) -> None:
    records = read(Chrome(), chrome(tmp_path / "History"))
    bread = {"site": "example.org", "title": "Bread", "address": None}
    news = {"site": "news.example.com", "title": None, "address": None}
    assert [(record.time, dict(record.values)) for record in records] == [
        (START + timedelta(seconds=2.5), {**bread, "way": "typed", "seconds": 2.5}),
        (START + timedelta(seconds=1), {**news, "way": "link", "seconds": None}),
        (
            START + timedelta(seconds=4, microseconds=1),
            {**bread, "way": None, "seconds": 1e-6},
        ),
    ]
    assert [record.place for record in records] == [f"History, visit {i}" for i in (1, 2, 5)]


def test_visits_of_firefox(tmp_path: Path) -> None:
    records = read(Firefox(), firefox(tmp_path / "places.sqlite"))
    bread = {"site": "example.org", "title": "Bread", "address": None}
    news = {"site": "news.example.com", "title": None, "address": None}
    assert [(record.time, dict(record.values)) for record in records] == [
        (START, {**bread, "way": "typed", "seconds": None}),
        (START + timedelta(seconds=1), {**news, "way": "link", "seconds": None}),
        (START + timedelta(seconds=4), {**bread, "way": None, "seconds": None}),
    ]


@pytest.mark.parametrize(
    ("importer", "make", "name"),
    [(Chrome(), chrome, "History"), (Firefox(), firefox, "places.sqlite")],
)
def test_addresses_are_kept_only_when_asked_for(
    tmp_path: Path, importer: Importer, make: object, name: str
) -> None:
    assert callable(make)
    path = make(tmp_path / name)
    assert "token" not in str(read(importer, path))
    records = read(importer, path, addresses="yes")
    assert records[0].values["address"] == "https://www.example.org/private?token=Zyx"
    with pytest.raises(UsageError, match="yes or no"):
        read(importer, path, addresses="perhaps")


def test_one_browser_is_not_taken_for_the_other(tmp_path: Path) -> None:
    path = chrome(tmp_path / "History")
    assert Chrome().recognises(Export(path))
    assert not Firefox().recognises(Export(path))
    path = firefox(tmp_path / "places.sqlite")
    assert Firefox().recognises(Export(path))
    assert not Chrome().recognises(Export(path))


@pytest.mark.parametrize("whole_folder", [True, False])
def test_visits_in_the_log_of_a_running_browser_are_read(
    tmp_path: Path, whole_folder: bool
) -> None:
    path = chrome(tmp_path / "History")
    with closing(sqlite3.connect(path)) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.execute("PRAGMA wal_autocheckpoint = 0")
        with running:
            running.execute(f"INSERT INTO visits VALUES (NULL, 1, {CHROME_0}, 0, 0, 0, 0)")
        running.execute("BEGIN IMMEDIATE")  # locked, as by a browser
        assert (tmp_path / "History-wal").stat().st_size
        before = path.read_bytes()
        records = read(Chrome(), tmp_path if whole_folder else path)
        assert path.read_bytes() == before
        running.rollback()
    assert len(records) == 4


def changed(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    return path


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE urls", "CREATE VIEW urls AS SELECT 1 AS id, 'http://a.b' AS url, '' AS title"),
        ("DROP TABLE urls", "CREATE VIRTUAL TABLE urls USING fts4(id, url, title)"),
        ("DROP TABLE visits",),
        ("ALTER TABLE urls RENAME COLUMN url TO other",),
        ("ALTER TABLE visits RENAME COLUMN transition TO other",),
        ("ALTER TABLE urls ADD COLUMN swollen AS (zeroblob(1000000000))",),
        ("ALTER TABLE urls RENAME TO u", "CREATE TABLE urls(id, url AS (hex(title)), title)"),
    ],
)
def test_what_only_looks_like_a_history_is_refused(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    path = changed(chrome(tmp_path / "History"), *statements)
    with pytest.raises(InputError):
        read(Chrome(), path)


def test_a_query_that_would_not_end_is_stopped(tmp_path: Path) -> None:
    """Without its key, each visit looks through all pages: 25 million looks."""
    path = changed(
        chrome(tmp_path / "History", visits=5_000),
        "DROP TABLE urls",
        "CREATE TABLE urls(id, url, title)",
        "INSERT INTO urls SELECT 10 + id, 'http://a.b', '' FROM visits",
        "UPDATE visits SET url = 1",
    )
    with pytest.raises(InputError, match="damaged"):
        read(Chrome(), path)


def test_a_title_beyond_reason_is_refused(tmp_path: Path) -> None:
    path = changed(
        chrome(tmp_path / "History"),
        "UPDATE urls SET title = replace(hex(zeroblob(9000000)), '0', 'x') WHERE id = 1",
    )
    with pytest.raises(InputError, match="damaged"):
        read(Chrome(), path)


@pytest.mark.parametrize("moment", ["'soon'", "9223372036854775807", "x'00'", "1.5"])
def test_visits_without_a_moment_are_damaged(tmp_path: Path, moment: str) -> None:
    path = changed(
        chrome(tmp_path / "History"), f"UPDATE visits SET visit_time = {moment} WHERE id = 2"
    )
    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    records = list(Chrome().read(Export(path), reading))
    assert len(records) == 2
    assert reading.places == ["History, visit 2: has no moment."]


@pytest.mark.parametrize("column", ["title", "url"])
def test_texts_that_are_none_are_damaged_and_the_rest_is_read(tmp_path: Path, column: str) -> None:
    path = changed(
        chrome(tmp_path / "History"), f"UPDATE urls SET {column} = CAST(x'ff' AS TEXT) WHERE id = 1"
    )
    reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
    (record,) = Chrome().read(Export(path), reading)
    assert record.place == "History, visit 2"
    assert reading.places == [
        f"History, visit {i}: its address or title is no text." for i in (1, 5)
    ]


@pytest.mark.parametrize(("importer", "make"), [(Chrome(), chrome), (Firefox(), firefox)])
def test_no_flipped_byte_does_more_than_damage(
    tmp_path: Path, importer: Importer, make: object
) -> None:
    assert callable(make)
    name = "History" if make is chrome else "places.sqlite"
    good = make(tmp_path / name).read_bytes()
    places = [*range(16, 100, 3), *range(100, 4096, 173), *range(4096, len(good), 997)]
    for place in places:
        (tmp_path / name).write_bytes(
            good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :]
        )
        reading = Reading(ZoneInfo("UTC"), skip_damaged=True)
        with suppress(InputError):
            list(importer.read(Export(tmp_path / name), reading))


def test_a_log_that_is_none_is_harmless(tmp_path: Path) -> None:
    path = chrome(tmp_path / "History")
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    (tmp_path / "History-wal").write_bytes(bytes(range(256)) * 64)
    assert len(read(Chrome(), tmp_path)) == 3


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("https://WWW.Example.org:444/x#y", "example.org"),
        ("http://user:secret@example.org/", "example.org"),
        ("http://[::1]:80/", "::1"),
        ("http://[broken", None),
        ("https:///nowhere", None),
        ("about:blank", None),
        ("javascript:alert(1)", None),
        ("", None),
    ],
)
def test_of_an_address_the_site_is_kept(address: str, site: str | None) -> None:
    assert site_of(address) == site
