"""The published test of importers, for ours and for everyone else's.

    from tacit.personal.importers.contract import ImporterContract

    class TestRunkeeper(ImporterContract):
        importer = Runkeeper()
        good = {"cardioActivities.csv": b"Date,Type,..."}
        events = 3

pytest runs every `test_` method of such a class; with `unittest`, derive from `TestCase` too. The
tests need no fixtures, no clock and no network, and write only to temporary folders.

    importer      an instance
    good          member name → content of a small export in the true format
    events        how many events `good` gives
    options       what is said for it when `good` is read
    zone          of times without one
    torn          how many events may come out different where a file breaks off: 0 where a record
                  shows its own end (JSON, XML), 1 where the last line may lack its newline
    huge(n)       yields the bytes of one member of n records, small each; with `huge_name`, the
                  contract tests that memory does not grow with the export
    huge_records  how many those are; more for an importer that reads them in big blocks
"""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import tempfile
import tracemalloc
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from tacit.errors import InputError
from tacit.personal.events import NAME, EventType, Value, checked
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Importer, Reading, Record, Rows

__all__ = ["ImporterContract", "records_of"]

CUTS, BREAKS = 24, 12  # places at which an export is broken off, or damaged, in each way
LARGE = 2_000_000  # bytes at most of the export that memory is measured on

STRANGERS: dict[str, bytes] = {
    "nothing": b"",
    "picture.png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01",
    "paper.pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
    "program": b"\x7fELF\x02\x01\x01" + bytes(60),
    "letter.txt": b"Dear all,\nthe weather is fine.\nYours\n",
    "empty.json": b"{}",
    "list.json": b"[]",
    "page.html": b"<!DOCTYPE html><html><head><title>Hi</title></head><body>Hi</body></html>",
    "feed.xml": b'<?xml version="1.0"?><feed><entry>1</entry></feed>',
}

Found = tuple[str, object, dict[str, Value]]


class ImporterContract:
    importer: Importer
    good: Mapping[str, bytes]
    events: int
    options: Mapping[str, str] = {}
    zone: str = "UTC"
    torn: int = 0
    huge_name: str = ""
    huge_records: int = 4_000

    def huge(self, n: int) -> Iterator[bytes]:
        """One member of n records."""
        raise NotImplementedError

    # --- what it says of itself ---------------------------------------------------------------

    def test_attributes_are_well_formed(self) -> None:
        importer = self.importer
        assert isinstance(importer, Importer), "it lacks an attribute or method of Importer"
        assert NAME.fullmatch(importer.name), "name: small letters, digits and _"
        assert importer.title.strip(), "title: a few words for lists"
        assert importer.hint.strip(), "hint: how to get the export"
        assert isinstance(importer.types, tuple), "types: a tuple of EventType"
        assert all(isinstance(kind, EventType) for kind in importer.types), "types: of EventType"
        names = [kind.name for kind in importer.types]
        assert len(names) == len(set(names)), "two types share a name"
        assert all(kind.about for kind in importer.types), "each type says what it is about"
        for name, text in importer.options.items():
            assert NAME.fullmatch(name), f"option {name!r}: small letters, digits and _"
            assert text.strip(), f"option {name!r}: needs a help"
        facts = (importer.name, importer.title, importer.hint, importer.types)
        msgspec.json.encode((*facts, dict(importer.options)))  # what a graphical interface gets

    # --- what it recognises -------------------------------------------------------------------

    def test_its_export_is_recognised_in_every_wrapping(self) -> None:
        for wrapping, path in self._wrapped(self.good):
            assert self.importer.recognises(Export(path)), f"not recognised as {wrapping}"

    def test_other_things_are_not_recognised(self) -> None:
        for name, content in STRANGERS.items():
            with _folder({name: content}) as folder:
                for path in (folder, folder / name):
                    assert not self.importer.recognises(Export(path)), f"takes {name} for its own"
        with _folder({}) as folder:
            assert not self.importer.recognises(Export(folder)), "takes an empty folder for its own"

    # --- what it reads ------------------------------------------------------------------------

    def test_every_wrapping_gives_the_same_events(self) -> None:
        for wrapping, path in self._wrapped(self.good):
            found = self._read(path, skip=False)
            assert len(found) == self.events, f"{len(found)} events as {wrapping}"
            if wrapping == "folder":
                first = found
            assert found == first, f"other events as {wrapping}"

    def test_reading_twice_gives_the_same(self) -> None:
        with _folder(self.good) as path:
            export = Export(path)
            once, twice = (self._all(export, skip=False) for _ in range(2))
            assert once == twice, "a second reading gives other events"

    def test_events_are_of_the_declared_types(self) -> None:
        declared = {kind.name: kind for kind in self.importer.types}
        with _folder(self.good) as path:
            for record in records_of(self.importer.read(Export(path), self._reading(False))):
                kind = record.kind
                if declared:
                    assert declared.get(kind.name) == kind, f"{kind.name} is not declared"
                _check_record(record)

    def test_reading_does_not_begin_before_the_first_event_is_asked_for(self) -> None:
        with _folder(self.good) as path:
            export = Export(path)
            events = self.importer.read(export, self._reading(False))
            assert isinstance(events, Iterator), "read gives an iterator, not a list"
            assert not export.seen, "it reads before an event is asked for"

    # --- what is damaged ----------------------------------------------------------------------

    def test_an_empty_export_gives_nothing_or_says_so(self) -> None:
        for members in ({}, dict.fromkeys(self.good, b"")):
            with _folder(members) as path:
                found, _ = self._tried(path, skip=True)
                assert not found, "events out of nothing"

    def test_a_cut_export_gives_what_came_before_the_cut(self) -> None:
        with _folder(self.good) as path:
            good = self._read(path, skip=False)
        cuts = max(4, CUTS // len(self.good))
        for name, content in self.good.items():
            for cut in sorted({len(content) * i // cuts for i in range(cuts)} | _ends(content)):
                for skip in (True, False):
                    self._cut(
                        good, {**self.good, name: content[:cut]}, skip, f"{name} cut at {cut}"
                    )

    def test_a_zip_or_gz_that_breaks_off_is_an_input_error(self) -> None:
        for wrapping, path in self._wrapped(self.good):
            if wrapping in ("zip", "gz"):
                whole = path.read_bytes()
                for part in (1, 2, 3):
                    path.write_bytes(whole[: len(whole) * part // 4])
                    self._tried(path, skip=True)

    def test_broken_content_is_only_ever_an_input_error(self) -> None:
        breaks = max(2, BREAKS // len(self.good))
        for name, content in self.good.items():
            for number, broken in enumerate(_broken(content, breaks)):
                with _folder({**self.good, name: broken}) as path:
                    self._tried(path, skip=True, what=f"{name}, breakage {number}")
                    self._tried(path, skip=False, what=f"{name}, breakage {number}")

    def test_damage_is_reported_without_the_values(self) -> None:
        secret = b"Zyx7secret9"
        for name, content in self.good.items():
            for place in (len(content) // 2, len(content) * 3 // 4):
                broken = content[:place] + b'\x00"}>' + secret + b"\xff\n" + content[place:]
                with _folder({**self.good, name: broken}) as path:
                    reading, error = self._reading(True), ""
                    try:
                        list(self.importer.read(Export(path), reading))
                    except InputError as problem:
                        error = str(problem)
                    said = error + "".join(reading.places)
                    assert secret.decode() not in said, "a report shows what stood in the record"

    # --- what is hostile ----------------------------------------------------------------------

    def test_tricks_with_archives_are_refused(self) -> None:
        for trick in ("../above", "/root", "C:\\drive", "a/../../b", "link", "bomb"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "export.zip"
                path.write_bytes(_trick(self.good, trick))
                try:
                    list(self.importer.read(Export(path), self._reading(True)))
                except InputError:
                    continue
                raise AssertionError(f"an archive with {trick} is not refused")

    def test_links_in_folders_are_refused(self) -> None:
        with _folder(self.good) as path, tempfile.TemporaryDirectory() as outside:
            (path / "elsewhere").symlink_to(outside)
            try:
                Export(path)
            except InputError:
                return
            raise AssertionError("a folder with a link is not refused")

    def test_memory_does_not_grow_with_the_export(self) -> None:
        if not self.huge_name:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self.huge_name
            path.parent.mkdir(parents=True, exist_ok=True)
            some = sum(map(len, self.huge(100)))
            n = min(self.huge_records, 100 * LARGE // some)
            (size, small), (larger, large) = self._peak(path, n // 4), self._peak(path, n)
        grown = (large - small) / (larger - size)
        assert grown < 0.5, f"memory grows by {grown:.1f} bytes for each byte of the export"

    # --- the tools for it ---------------------------------------------------------------------

    def _peak(self, path: Path, n: int) -> tuple[int, int]:
        """The bytes of an export of n records, and the most memory that reading it takes."""
        with path.open("wb") as file:
            file.writelines(self.huge(n))
        reading, export = self._reading(False), Export(path.parent)
        count = 0
        tracemalloc.start()
        try:
            for _ in self.importer.read(export, reading):
                count += 1
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert count, "the huge export gives no events"
        return path.stat().st_size, peak

    def _reading(self, skip: bool) -> Reading:
        return Reading(ZoneInfo(self.zone), self.options, skip_damaged=skip)

    def _all(self, export: Export, skip: bool) -> list[Found]:
        found = records_of(self.importer.read(export, self._reading(skip)))
        return [(record.kind.name, record.time, dict(record.values)) for record in found]

    def _read(self, path: Path, skip: bool) -> list[Found]:
        return self._all(Export(path), skip)

    def _tried(self, path: Path, skip: bool, what: str = "it") -> tuple[list[Found], bool]:
        """The events, and whether it came to the end; nothing but an InputError may escape."""
        found: list[Found] = []
        try:
            export = Export(path)
            self.importer.recognises(export)
            for record in records_of(self.importer.read(export, self._reading(skip))):
                found.append((record.kind.name, record.time, dict(record.values)))
                msgspec.json.encode(found[-1])  # refuses texts that are no Unicode
        except InputError:
            return found, False
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__} escapes") from error
        return found, True

    def _cut(self, good: list[Found], members: Mapping[str, bytes], skip: bool, what: str) -> None:
        with _folder(members) as path:
            found, _ = self._tried(path, skip, what)
        strange = _strange(found, good, whole_rest=len(members) == 1)
        assert strange <= self.torn, f"{what}: {strange} events that the whole export does not give"

    def _wrapped(self, members: Mapping[str, bytes]) -> Iterator[tuple[str, Path]]:
        """The export as a folder, as a zip, and, if it is one file, alone and in .gz."""
        with _folder(members) as folder, tempfile.TemporaryDirectory() as other:
            yield "folder", folder
            path = Path(other) / "export.zip"
            path.write_bytes(_zipped(members))
            yield "zip", path
            if len(members) == 1:
                ((name, content),) = members.items()
                name = name.rpartition("/")[2]
                yield "file", folder / next(iter(members))
                path = Path(other) / f"{name}.gz"
                path.write_bytes(gzip.compress(content, mtime=0))
                yield "gz", path


def records_of(read: Iterable[Record | Rows]) -> Iterator[Record]:
    """What an importer yields, one by one: the rows of tables as records."""
    for part in read:
        if isinstance(part, Record):
            yield part
        else:
            for index, row in enumerate(part.table.to_pylist()):
                yield Record(part.kind, row.pop("time", None), row, part.place(index))


def _check_record(record: Record) -> None:
    kind = record.kind
    assert (record.time is None) == kind.static, f"{kind.name}: a time if it is not static, or none"
    assert record.time is None or record.time.tzinfo is not None, f"{kind.name}: a time has a zone"
    strange = set(record.values) - set(kind.fields)
    assert not strange, f"{kind.name}: fields that are not declared: {sorted(strange)}"
    for name, value in record.values.items():
        checked(kind.fields[name], value, name)
    assert record.place.strip(), f"{kind.name}: every event says where it stands"


def _strange(found: list[Found], good: list[Found], whole_rest: bool) -> int:
    """How many events are not of the good ones, in their order.

    One file that breaks off gives a prefix; of several files, what comes after may still be read.
    """
    if whole_rest:
        return max(
            (len(found) - i for i, f in enumerate(found) if f not in good[i : i + 1]), default=0
        )
    strange, rest = 0, iter(good)
    for one in found:
        if not any(one == other for other in rest):
            strange += 1
            rest = iter(good)
    return strange


def _ends(content: bytes) -> set[int]:
    return {max(0, len(content) - back) for back in (1, 2, 3, 5, 9)}


def _broken(content: bytes, breaks: int) -> Iterator[bytes]:
    """The same content, damaged in many ways, the same on every run."""
    noise = hashlib.shake_256(content).digest(4096)
    yield noise
    yield content + noise
    yield noise + content
    yield content + b"x" * 3_000_000
    yield b"\xff\xfe" + content
    yield content.decode("latin-1").encode("utf-16")
    yield content.replace(b"\n", b"")
    yield content.replace(b"0", b"\x00")
    yield content.replace(b"1", b"99999999999999999999999")
    for step in range(breaks):
        place = len(content) * step // breaks
        yield content[:place] + b"\xc3\x28" + content[place:]
        yield content[:place] + noise[step : step + 9] + content[place + 9 :]
        yield content[:place] + content[place + 40 :]


def _zipped(members: Mapping[str, bytes], more: Iterable[tuple[Any, bytes]] = ()) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (*members.items(), *more):
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    return held.getvalue()


def _trick(members: Mapping[str, bytes], trick: str) -> bytes:
    if trick == "bomb":
        return _zipped(members, [("zeros", bytes(8 << 20))])
    info = zipfile.ZipInfo(trick)
    if trick == "link":
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return _zipped(members, [(info, b"/etc/hosts")])


@contextmanager
def _folder(members: Mapping[str, bytes]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in members.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield Path(folder)
