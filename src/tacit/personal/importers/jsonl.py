"""Any app's log as JSON lines: one object a line.

Objects within become names with _ (`user.id` → `user_id`); of a list, its length (`tags_count`) and
its text are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tacit.errors import InputError
from tacit.personal.events import EventType
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.shapes import OPTIONS, Shape

__all__ = ["Jsonl"]

LONGEST = 4 << 20  # bytes of a line
DEEPEST = 8  # objects within objects; below that they stay JSON
BOM = b"\xef\xbb\xbf"


class Jsonl:
    name = "jsonl"
    title = "Any log of JSON lines"
    hint = "A file with one JSON object a line (.jsonl, .ndjson); one key must say when."
    types: tuple[EventType, ...] = ()
    options = OPTIONS

    def recognises(self, export: Export) -> bool:
        return any(_looks_like_it(member) for member in _logs(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in _logs(export):
            yield from _read(member, reading)


def _logs(export: Export) -> list[Member]:
    return export.find("*.jsonl", "*.ndjson") or (
        export.members if len(export.members) == 1 else []
    )


def _looks_like_it(member: Member) -> bool:
    line = member.head(1 << 16).removeprefix(BOM).lstrip().partition(b"\n")[0]
    return line.startswith(b"{") and bool(_object(line))


def _read(member: Member, reading: Reading) -> Iterator[Record]:
    shape = Shape()
    for _, line in _lines(member):
        found = _object(line)
        if found:
            shape.see(found)
    shaped = shape.shaped(member.name.rpartition("/")[2].partition(".")[0], member.name, reading)
    for number, line in _lines(member):
        place = f"{member.name}, line {number}"
        found = _object(line)
        event = shaped.event(found) if shaped is not None and found else None
        if found is None:
            reading.damaged(place, "it is no JSON object.")
        elif event is None:
            reading.damaged(place, "it has no time.")
        elif shaped is not None:
            yield Record(shaped.kind, *event, place)


def _lines(member: Member) -> Iterator[tuple[int, bytes]]:
    """Number and content of lines that are not blank; of one that is too long, its beginning."""
    with member.open() as stream:
        number = 0
        while line := stream.readline(LONGEST):
            number += 1
            if number == 1:
                line = line.removeprefix(BOM)
            if line.strip():
                yield number, line
            while len(line) == LONGEST and not line.endswith(b"\n"):
                line = stream.readline(LONGEST)


def _object(line: bytes) -> dict[str, Any] | None:
    """The object of a line, flat; None if there is none."""
    try:
        found = msgspec.json.decode(line)
        return _flat(found) if isinstance(found, dict) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, InputError):
        return None


def _flat(found: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in found.items():
        name = f"{prefix}_{key}" if prefix else key
        if isinstance(value, dict) and depth < DEEPEST:
            flat.update(_flat(value, name, depth + 1))
        elif isinstance(value, dict | list):
            flat[f"{name}_count"] = len(value)
            flat[name] = msgspec.json.encode(value).decode()
        elif isinstance(value, int) and abs(value) >= 1 << 53 and not isinstance(value, bool):
            flat[name] = str(value)  # a number of this size is an id, and no float holds it
        else:
            flat[name] = value
    return flat
