"""The contract accepts a sound importer and tells what is wrong with an unsound one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest

from tacit import children
from tacit.errors import InputError
from tacit.personal.events import EventType
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record

STEP = EventType(name="step", fields={"count": "number"}, about="Steps in a minute.")
LINES = b"STEPS\n" + b"".join(b'{"at": %d, "n": %d}\n' % (60 * i, i) for i in range(6))


class Steps:
    """A sound importer of an invented format: a heading, then JSON lines."""

    name, title, hint = "steps", "Invented steps", "Press the button."
    types: tuple[EventType, ...] = (STEP,)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        return any(m.head(6) == b"STEPS\n" for m in export.members)

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in export.members:
            with member.open() as lines:
                for number, line in enumerate(iter(lambda: lines.readline(1 << 16), b""), 1):
                    if number > 1:
                        yield from self._record(line, f"{member.name}, line {number}", reading)

    def _record(self, line: bytes, place: str, reading: Reading) -> Iterator[Record]:
        try:
            data = json.loads(line)
            time = datetime.fromtimestamp(data["at"], UTC)
            yield Record(STEP, time, {"count": float(data["n"])}, place)
        except (ValueError, KeyError, TypeError, OverflowError, OSError):
            reading.damaged(place, "is not a record of steps.")


class TestSound(ImporterContract):
    importer = Steps()
    good: Mapping[str, bytes] = {"steps.txt": LINES}
    events = 6
    huge_name = "steps.txt"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b"STEPS\n"
        for i in range(n):
            yield b'{"at": %d, "n": 7}\n' % (60 * i)


class Greedy(Steps):
    def recognises(self, export: Export) -> bool:
        return True


class Whole(Steps):
    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        everything = [member.open().read() for member in export.members]
        yield from super().read(export, reading)
        del everything


class Eager(Steps):
    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        return iter(list(super().read(export, reading)))


class Fragile(Steps):
    def _record(self, line: bytes, place: str, reading: Reading) -> Iterator[Record]:
        data = json.loads(line)
        time = datetime.fromtimestamp(data["at"], UTC)
        yield Record(STEP, time, {"count": float(data["n"])}, place)


class Talkative(Steps):
    def _record(self, line: bytes, place: str, reading: Reading) -> Iterator[Record]:
        try:
            yield from super()._record(line, place, Reading(reading.zone))
        except InputError:
            reading.damaged(place, f"cannot read {line!r}.")


class Undeclared(Steps):
    types = (EventType(name="stride", fields={}, about="Another."),)


class Inventive(Steps):
    """Fills what it cannot read with something."""

    def _record(self, line: bytes, place: str, reading: Reading) -> Iterator[Record]:
        try:
            yield from super()._record(line, place, Reading(reading.zone))
        except InputError:
            yield Record(STEP, datetime(2020, 1, 1, tzinfo=UTC), {"count": 0.0}, place)


@pytest.mark.parametrize(
    ("importer", "test"),
    [
        (Greedy(), "test_other_things_are_not_recognised"),
        (Whole(), "test_memory_does_not_grow_with_the_export"),
        (Eager(), "test_reading_does_not_begin_before_the_first_event_is_asked_for"),
        (Fragile(), "test_broken_content_is_only_ever_an_input_error"),
        (Fragile(), "test_a_cut_export_gives_what_came_before_the_cut"),
        (Inventive(), "test_a_cut_export_gives_what_came_before_the_cut"),
        (Talkative(), "test_damage_is_reported_without_the_values"),
        (Undeclared(), "test_events_are_of_the_declared_types"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_an_unsound_importer_fails(importer: Steps, test: str) -> None:
    contract = TestSound()
    contract.importer = importer  # type: ignore[misc]
    with pytest.raises(AssertionError):
        getattr(contract, test)()


def test_the_count_of_events_is_checked() -> None:
    contract = TestSound()
    contract.events = 7  # type: ignore[misc]
    with pytest.raises(AssertionError):
        contract.test_every_wrapping_gives_the_same_events()


def test_the_contract_needs_no_pytest() -> None:
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "from tacit.personal.importers.contract import ImporterContract\n"
    )
    children.run([sys.executable, "-c", code], check=True, timeout=60)
