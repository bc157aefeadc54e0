"""A store keeps events whole or not at all, finds them, seals them, and forgets them."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from zoneinfo import ZoneInfo

import pytest

from tacit import children
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.personal.events import Event, EventType, moment
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record, Rows
from tacit.personal.importing import import_export
from tacit.personal.store.store import Kept, Store

RIDE = EventType(
    name="ride", fields={"price": "number", "city": "category", "note": "text"}, words=("trip",)
)
HOME = EventType(name="home", fields={"lat": "number"}, static=True)
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
CHEAP = 10


class Lines:
    """An importer for tests: each line is `price city note`, a day apart."""

    name, title, hint = "lines", "Lines", "Write them."
    types = (RIDE, HOME)
    options: ClassVar[dict[str, str]] = {"fail": "after so many lines"}

    def recognises(self, export: Export) -> bool:
        return True

    def read(self, export: Export, reading: Reading) -> Iterator[Record | Rows]:
        yield Record(HOME, None, {"lat": 47.0}, "home")
        for member in export.members:
            with member.text() as lines:
                for number, line in enumerate(lines):
                    if str(number) == reading.options.get("fail"):
                        raise InputError("it breaks off.")
                    price, city, note = line.split()
                    when = START + datetime.timedelta(days=number)
                    values = {"price": float(price), "city": city, "note": note}
                    yield Record(RIDE, when, values, f"line {number + 1}")


def export(folder: Path, lines: int, name: str = "export.txt") -> Path:
    path = folder / name
    path.write_text("".join(f"{i}.5 {'Bern' if i % 2 else 'Basel'} n{i}\n" for i in range(lines)))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "me.db", ZoneInfo("Europe/Zurich")) as made:
        yield made


def test_events_come_back_as_they_were(store: Store, tmp_path: Path) -> None:
    done = import_export(store, export(tmp_path, 3), Lines())
    assert (done.added, done.known, done.damaged) == ({"home": 1, "ride": 3}, 0, 0)
    assert list(store.dataset(["ride"]).events())[1] == Event(
        "ride",
        START + datetime.timedelta(days=1),
        {"price": 1.5, "city": "Bern", "note": "n1"},
        "lines",
    )
    assert [e.fields for e in store.dataset(["home"]).events()] == [{"lat": 47.0}]
    assert store.catalogue() == {"home": HOME, "ride": RIDE}
    assert store.counts() == {"home": 1, "ride": 3}
    assert store.dataset().zone == ZoneInfo("Europe/Zurich")


def test_the_same_export_twice_adds_nothing_and_a_longer_one_the_rest(
    store: Store, tmp_path: Path
) -> None:
    import_export(store, export(tmp_path, 3), Lines())
    again = import_export(store, export(tmp_path, 3), Lines())
    assert (again.added, again.known) == ({"home": 0, "ride": 0}, 4)
    longer = import_export(store, export(tmp_path, 5, "later.txt"), Lines())
    assert (longer.added, longer.known) == ({"home": 0, "ride": 2}, 4)
    (source,) = store.sources()
    assert (source.events, source.exports) == (6, ("export.txt", "later.txt"))
    assert source.until == moment(START + datetime.timedelta(days=4))


def test_equal_events_of_one_export_are_all_kept(store: Store, tmp_path: Path) -> None:
    class Twice(Lines):
        def read(self, export: Export, reading: Reading) -> Iterator[Record | Rows]:
            for record in super().read(export, reading):
                yield record
                yield record

    done = import_export(store, export(tmp_path, 2), Twice())
    assert done.added == {"home": 2, "ride": 4}
    assert import_export(store, export(tmp_path, 2), Twice()).known == 6
    assert import_export(store, export(tmp_path, 2), Lines()).known == 3


def test_events_are_found_by_type_time_and_source(store: Store, tmp_path: Path) -> None:
    import_export(store, export(tmp_path, 4), Lines())
    import_export(store, export(tmp_path, 2), Lines(), source="other")
    day = moment(START + datetime.timedelta(days=1))
    assert store.dataset(["ride"], since=day).of("ride").rows == 4
    assert store.dataset(["ride"], until=day).of("ride").rows == 2
    assert store.dataset(["ride"], sources=["other"]).of("ride").rows == 2
    assert set(store.dataset(["ride"]).tables) == {"ride"}
    assert store.dataset(["ride"], since=day * 2).of("ride").rows == 0
    prices = store.dataset(["ride"]).of("ride").numbers("price")
    assert sorted(prices) == [0.5, 0.5, 1.5, 1.5, 2.5, 3.5]
    with pytest.raises(InputError, match="no events of type rode; there are: home, ride"):
        store.dataset(["rode"])


def test_what_fails_in_the_middle_leaves_nothing(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="breaks off"):
        import_export(store, export(tmp_path, 9), Lines(), options={"fail": "7"})
    assert (store.sources(), store.catalogue(), store.counts()) == ([], {}, {})
    import_export(store, export(tmp_path, 9), Lines())
    assert store.counts()["ride"] == 9


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_store import Lines
from tacit.personal import intake
from tacit.personal.importing import import_export
from tacit.personal.store.store import Store
intake.AT_ONCE = 50
def progress(read, of, events):
    if events >= 4_000:
        print("half", flush=True)
        sys.stdin.read()  # until killed
with Store.open({store!r}) as store:
    import_export(store, {export!r}, Lines(), source="second", progress=progress)
"""


def test_an_import_that_is_killed_leaves_no_trace(store: Store, tmp_path: Path) -> None:
    import_export(store, export(tmp_path, 5), Lines())
    before = (store.sources(), store.counts())
    store.close()
    code = KILLED.format(
        tests=str(Path(__file__).parent),
        store=str(store.path),
        export=str(export(tmp_path, 8_000, "long.txt")),
    )
    child = children.start(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "half\n"
    assert Path(f"{store.path}-journal").exists()  # it was in the middle of writing
    with Store.open(store.path) as busy:
        busy._database.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(Refused, match="changing it"):
            import_export(busy, export(tmp_path, 1), Lines())
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    child.stdin.close()
    with Store.open(store.path) as opened:
        assert (opened.sources(), opened.counts()) == before
        done = import_export(opened, tmp_path / "long.txt", Lines(), source="second")
        assert done.added == {"home": 1, "ride": 8_000}


def test_a_forgotten_source_is_gone_wholly(tmp_path: Path) -> None:
    with Store.create(tmp_path / "me.db") as store:
        import_export(store, export(tmp_path, 200), Lines(), source="kept")
        file = tmp_path / "more.txt"
        file.write_text("7.5 Geheimstadt wordnobodyelsewrote\n")
        import_export(store, file, Lines(), source="gone")
        store.keep(Kept("model", "price", ("ride",)), b"learned from it")
        store.keep(Kept("model", "other", ("step",)), b"learned from else")
        store.keep(Kept("problem", "price", ("ride",)), b"a definition")
        assert store.forget("gone").events == 2
        assert [source.name for source in store.sources()] == ["kept"]
        assert store.counts() == {"home": 1, "ride": 200}
        assert (list(store.kept("model")), list(store.kept("problem"))) == (["other"], ["price"])
        with pytest.raises(UsageError, match="no source called gone; there are: kept"):
            store.forget("gone")
        store.forget("kept")
        assert store.catalogue() == {}
    assert b"Geheimstadt" not in (tmp_path / "me.db").read_bytes()
    assert b"learned from it" not in (tmp_path / "me.db").read_bytes()


def test_with_a_passphrase_nothing_can_be_read_off_the_file(tmp_path: Path) -> None:
    path = tmp_path / "me.db"
    with Store.create(path, ZoneInfo("Europe/Zurich"), "open sesame", CHEAP) as store:
        import_export(store, export(tmp_path, 50), Lines())
        store.keep(Kept("problem", "secretname"), b"secretdata")
        assert store.is_sealed
    held = path.read_bytes()
    for word in (b"ride", b"lines", b"Bern", b"Basel", b"secret", b"Zurich", b"export.txt"):
        assert word not in held
    with pytest.raises(Refused, match="passphrase"):
        Store.open(path)
    with pytest.raises(Refused, match="not the passphrase"):
        Store.open(path, "open sesamo")
    with Store.open(path, "open sesame") as store:
        assert store.counts()["ride"] == 50
        assert import_export(store, export(tmp_path, 50), Lines()).known == 51
        assert store.fetched("problem", "secretname") == b"secretdata"


def test_a_passphrase_can_be_set_changed_and_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "me.db"
    with Store.create(path) as store:
        import_export(store, export(tmp_path, 20), Lines())
        before = list(store.dataset().events())
        store.reseal("one", CHEAP)
        assert list(store.dataset().events()) == before
    assert b"Basel" not in path.read_bytes()
    with Store.open(path, "one") as store:
        store.reseal("two", CHEAP)
    with pytest.raises(Refused):
        Store.open(path, "one")
    with Store.open(path, "two") as store:
        store.reseal(None)
    with Store.open(path) as store:
        assert list(store.dataset().events()) == before
        assert import_export(store, export(tmp_path, 20), Lines()).known == 21


def test_pieces_that_were_swapped_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "me.db"
    with Store.create(path, passphrase="p", cost=CHEAP) as store:
        import_export(store, export(tmp_path, 5), Lines())
        data = store._database.execute("SELECT data FROM segment ORDER BY id").fetchall()
        store._database.execute("UPDATE segment SET data = ? WHERE id = 1", data[1])
        with pytest.raises(CheckFailed, match="segment 1 data"):
            store.dataset()


def test_types_grow_but_do_not_change(store: Store, tmp_path: Path) -> None:
    class More(Lines):
        kind = EventType(name="ride", fields={"price": "number", "tip": "number"}, words=("lift",))

        def read(self, export: Export, reading: Reading) -> Iterator[Record | Rows]:
            yield Record(self.kind, START, {"price": 1.0, "tip": 2.0}, "line 1")

    class Other(More):
        kind = EventType(name="ride", fields={"price": "category"})

        def read(self, export: Export, reading: Reading) -> Iterator[Record | Rows]:
            yield Record(self.kind, START, {"price": "much"}, "line 1")

    path = export(tmp_path, 2)
    import_export(store, path, Lines())
    import_export(store, path, More(), source="more")
    kind = store.catalogue()["ride"]
    assert list(kind.fields) == ["price", "city", "note", "tip"]
    assert kind.words == ("trip", "lift")
    tips = [event.fields["tip"] for event in store.dataset(["ride"]).events()]
    assert tips == [None, 2.0, None]
    with pytest.raises(InputError, match=r"ride\.price: is a category here, and a number"):
        import_export(store, path, Other(), source="third")
    assert len(store.sources()) == 2


def test_files_that_are_no_stores_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no store yet"):
        Store.open(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("hello" * 1000)
    with pytest.raises(InputError, match="no store of events"):
        Store.open(tmp_path / "text.db")
    Store.create(tmp_path / "me.db").close()
    with pytest.raises(UsageError, match="never overwritten"):
        Store.create(tmp_path / "me.db")
    assert (tmp_path / "me.db").stat().st_mode & 0o077 == 0
