"""The one way to read big JSON: item by item, in little memory, each with its place.

A file that breaks off, or is no JSON from some place on, has the item at that place damaged; what
came before is good. Sizes and depths are bounded, since a file may be made to exhaust its reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from tacit.errors import InputError
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_values import Item, Unreadable

__all__ = ["items", "lines", "marked", "records"]

LARGEST = 2 << 20  # bytes of one item; those of real exports stay below some 100 kB
DEEPEST = 64  # objects and lists within one another
BLOCK = 1 << 13  # bytes read at once; all that the parser finds in them is held in memory
HEAD = 1 << 16  # bytes that are looked at to tell what a member is
HEADS = 2_000  # members whose first bytes are looked at
BOM = b"\xef\xbb\xbf"
ENDS = ("end_map", "end_array")
STARTS = ("start_map", "start_array")

Found = Iterator[tuple[str, Item]]


def marked(export: Export, pattern: str, test: Callable[[bytes], bool]) -> list[Member]:
    """Members named like this whose first bytes pass a test.

    An export with very many such files, as photos have, is not searched to its end.
    """
    return [member for member in export.find(pattern)[:HEADS] if test(member.head(HEAD))]


def records(
    found: Found, convert: Callable[[Item, str], Iterable[Record]], reading: Reading
) -> Iterator[Record]:
    """What `convert` makes of each item at its place; where it cannot, the item is damaged."""
    for place, item in found:
        try:
            made = list(convert(item, place))
        except Unreadable as fault:
            reading.damaged(place, str(fault))
            continue
        yield from made


def items(member: Member, reading: Reading, *prefixes: str) -> Found:
    """The objects at these prefixes, in order of the file, each with its place.

    A prefix says which: `item` those of a list, `locations.item` those of the list under that key.
    """
    walk = _Walk(member.name, prefixes)
    with member.open() as opened:
        stream = _Stream(opened)
        events = _events(stream)
        try:
            for event, value in events:
                stream.mark = stream.total
                if walk.position not in walk.counts or event in ("map_key", *ENDS):
                    walk.step(event, value)
                    continue
                place = walk.place()
                if event == "start_map":
                    yield place, _object(events)
                else:
                    reading.damaged(place, "is no object.")
                walk.counts[walk.position] += 1
                if event == "start_array":
                    walk.step(event, value)
        except _Broken as fault:
            reading.damaged(walk.place(), str(fault))


def lines(member: Member, reading: Reading) -> Found:
    """The objects of a file with one JSON object on each line."""
    import msgspec

    with member.open() as stream:
        for number, line in enumerate(_split(stream), 1):
            place = f"{member.name}, line {number}"
            if len(line) > LARGEST:
                reading.damaged(place, _Broken.LARGE)
                continue
            if not line.strip():
                continue
            try:
                item = msgspec.json.decode(line.removeprefix(BOM) if number == 1 else line)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                item = None
            if isinstance(item, dict):
                yield place, item
            else:
                reading.damaged(place, "is no JSON object, or breaks off.")


def _split(stream: BinaryIO) -> Iterator[bytes]:
    """Lines, of which one that is too long is given without its rest."""
    while line := stream.readline(LARGEST + 1):
        rest = line
        while len(rest) > LARGEST and not rest.endswith(b"\n"):
            rest = stream.readline(LARGEST + 1)
        yield line


class _Broken(Exception):
    """The file is no JSON from here on, or not such as anyone exports."""

    CUT = "the file breaks off here, or is no JSON from here on."
    LARGE = f"is larger than {LARGEST >> 20} MB."
    DEEP = f"has more than {DEEPEST} objects and lists within one another."


class _Walk:
    """Where in the document we are, outside of the items."""

    def __init__(self, member: str, prefixes: tuple[str, ...]) -> None:
        self.counts = dict.fromkeys(prefixes, 0)
        self.position = ""
        self._member, self._last = member, prefixes[0]
        self._open: list[tuple[str, bool]] = []  # prefix, and whether it is a list

    def place(self) -> str:
        """The item that we are at or, between two, the next."""
        if self.position in self.counts:
            self._last = self.position
        under = self._last.rpartition("item")[0].replace(".", " ").replace("item ", "")
        return f"{self._member}, {under}item {self.counts[self._last] + 1}"

    def step(self, event: str, value: Any) -> None:
        if event == "map_key":
            self.position = self._below(str(value))
        elif event in STARTS:
            if len(self._open) >= DEEPEST:
                raise _Broken(_Broken.DEEP)
            self._open.append((self.position, event == "start_array"))
            self.position = self._below("item") if event == "start_array" else ""
        elif event in ENDS:
            self._open.pop()
            self.position = self._below("item") if self._open and self._open[-1][1] else ""

    def _below(self, key: str) -> str:
        above = self._open[-1][0]
        return f"{above}.{key}" if above else key


class _Stream:
    """Bytes for the parser, which must show something for them before too many have come.

    It gets them up to the end of an object: the parser in pure Python keeps every block whose last
    word goes on in the next one.
    """

    def __init__(self, opened: BinaryIO) -> None:
        self._opened, self._rest, self.total, self.mark = opened, b"", 0, 0

    def read(self, size: int) -> bytes:
        new = self._opened.read(size)
        data = self._rest + (new if self.total else new.removeprefix(BOM))
        self.total += len(new)
        if self.total - self.mark > LARGEST:
            raise _Broken(_Broken.LARGE)
        cut = data.rfind(b"}") + 1 if new else 0
        self._rest = data[cut:] if cut else b""
        return data[:cut] if cut else data


def _events(stream: _Stream) -> Iterator[tuple[str, Any]]:
    import ijson

    try:
        yield from ijson.basic_parse(stream, buf_size=BLOCK, use_float=True)
    except (InputError, _Broken):  # an archive that breaks off says so itself
        raise
    except (ijson.JSONError, ValueError, ArithmeticError, LookupError):
        raise _Broken(_Broken.CUT) from None


def _object(events: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """The object that just began, read to its end."""
    whole: dict[str, Any] = {}
    holder: Any = whole
    above: list[Any] = []
    key = ""
    for event, value in events:
        if event == "map_key":
            key = value
            continue
        if event in ENDS:
            if not above:
                return whole
            holder = above.pop()
            continue
        new = {} if event == "start_map" else [] if event == "start_array" else value
        if type(holder) is dict:
            holder[key] = new
        else:
            holder.append(new)
        if event in STARTS:
            above.append(holder)
            holder = new
            if len(above) > DEEPEST:
                raise _Broken(_Broken.DEEP)
    raise _Broken(_Broken.CUT)
