"""What may enter a store: damaged records are errors, or left out and reported when asked."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tacit.errors import InputError, UsageError
from tacit.personal.events import EventType
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record, Rows
from tacit.personal.importing import import_export
from tacit.personal.intake import LONGEST
from tacit.personal.store.store import Store

NOTE = EventType(name="note", fields={"size": "number", "text": "text", "tag": "category"})
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


class Given:
    """An importer of what it is given."""

    name, title, hint = "given", "Given", ""
    types = (NOTE,)
    options: ClassVar[dict[str, str]] = {}

    def __init__(self, *items: Record | Rows) -> None:
        self._items = items

    def recognises(self, export: Export) -> bool:
        return False

    def read(self, export: Export, reading: Reading) -> Iterator[Record | Rows]:
        yield from self._items


def note(place: str, **values: object) -> Record:
    return Record(NOTE, START, values, place)  # type: ignore[arg-type]


def rows(**columns: list) -> Rows:
    size = len(next(iter(columns.values())))
    times = pa.array(columns.pop("time", [START] * size), pa.timestamp("us", tz="UTC"))
    return Rows(NOTE, pa.table({"time": times, **columns}), "notes.csv", 2)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "export").write_text("x")
    with Store.create(tmp_path / "me.db") as made:
        yield made


FORMULAS = (
    '=HYPERLINK("http://example.org","x")',
    "=cmd|'/c calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+cmd|' /C x'!A0",
    '-2+3+cmd|" /C x"!D2',
    '\t=IMPORTXML("x")',
    ' "=1+WEBSERVICE(A1)',
)
HARMLESS = (
    "=W=",
    "+41 44 000 00 00",
    "-5 (discount)",
    "@anna (work)",
    "a = f(x)",
    "- list",
    "f(x) | g!",
    "",
)


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("field", ["text", "tag"])
def test_formulas_are_refused(store: Store, tmp_path: Path, text: str, field: str) -> None:
    single = Given(note("line 1"), note("line 2", **{field: text}))
    many = Given(rows(**{field: ["a", text]}))
    for importer, place in ((single, "line 2"), (many, "notes.csv, row 3")):
        with pytest.raises(InputError, match=f"{place}: {field} holds a spreadsheet") as caught:
            import_export(store, tmp_path / "export", importer)
        assert text not in str(caught.value)
        assert store.counts() == {}


def test_texts_that_only_look_like_formulas_are_welcome(store: Store, tmp_path: Path) -> None:
    import_export(store, tmp_path / "export", Given(rows(text=list(HARMLESS))))
    assert store.dataset().of("note").codes("text")[1] == list(HARMLESS)


def test_damaged_records_are_left_out_when_asked(store: Store, tmp_path: Path) -> None:
    items = (
        note("line 1", size=1),
        note("line 2", size="one"),
        note("line 3", size=float("nan")),
        note("line 4", odd=1),
        Record(NOTE, None, {}, "line 5"),
        Record(NOTE, START.replace(tzinfo=None), {}, "line 6"),
        note("line 7", text="x" * (LONGEST + 1)),
        rows(size=[1.0, float("inf"), 3.0], time=[START, START, None]),
    )
    done = import_export(store, tmp_path / "export", Given(*items), skip_damaged=True)
    assert (done.added, done.damaged) == ({"note": 2}, 8)
    assert sorted(place.split(":")[0] for place in done.places) == [
        *(f"line {number}" for number in range(2, 8)),
        "notes.csv, row 3",
        "notes.csv, row 4",
    ]
    for item in items[1:]:
        with pytest.raises(InputError, match="Nothing was imported"):
            import_export(store, tmp_path / "export", Given(item), source="second")


def test_numbers_beyond_a_hundred_places_are_counted(store: Store, tmp_path: Path) -> None:
    items = [note(f"line {i}", size="x") for i in range(150)]
    done = import_export(store, tmp_path / "export", Given(*items), skip_damaged=True)
    assert (done.damaged, len(done.places)) == (150, 100)


def test_one_type_with_other_fields_is_kept_apart_until_written(
    store: Store, tmp_path: Path
) -> None:
    wide = EventType(name="note", fields={**NOTE.fields, "more": "boolean"})
    items = (note("1", size=1), Record(wide, START, {"more": True}, "2"), note("3", size=3))
    assert import_export(store, tmp_path / "export", Given(*items)).added == {"note": 3}
    assert [e.fields["more"] for e in store.dataset().events()] == [None, True, None]


def test_wrong_names_are_said(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "export"
    with pytest.raises(UsageError, match="given has no option speed; it has: none"):
        import_export(store, path, Given(), options={"speed": "1"})
    with pytest.raises(UsageError, match="cannot name a source"):
        import_export(store, path, Given(), source="../me")
    with pytest.raises(InputError, match="no such file"):
        import_export(store, tmp_path / "none", Given())


def test_progress_is_told(store: Store, tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []
    importer = Given(rows(size=[1.0]), rows(size=[2.0]), note("1"))
    import_export(store, tmp_path / "export", importer, progress=lambda *said: told.append(said))
    assert [events for _, _, events in told] == [1, 2, 3]


def test_the_zone_of_naive_times_is_the_stores_or_the_given_one(
    store: Store, tmp_path: Path
) -> None:
    zones: list[ZoneInfo] = []

    class Zoned(Given):
        def read(self, export: Export, reading: Reading) -> Iterator[Record | Rows]:
            zones.append(reading.zone)
            yield from ()

    import_export(store, tmp_path / "export", Zoned())
    import_export(store, tmp_path / "export", Zoned(), zone=ZoneInfo("Asia/Tokyo"))
    assert [zone.key for zone in zones] == ["UTC", "Asia/Tokyo"]
