"""The components of an iCalendar file, one at a time, and of each only what is used.

Lines are unfolded before they are decoded, since a fold may fall inside a letter (RFC 5545, section
3.1). Descriptions, attachments and the addresses of people are passed over unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from tacit.personal.importers.export import Member

__all__ = ["Component", "components"]

LONGEST = 1 << 16  # bytes of one line, unfolded
MOST = 5_000  # lines of one component
KEPT = frozenset(
    b"UID DTSTART DTEND DURATION SUMMARY LOCATION CATEGORIES STATUS RRULE RDATE EXDATE DTSTAMP "
    b"CREATED LAST-MODIFIED RECURRENCE-ID".split()
)


class Component(NamedTuple):
    name: str  # VEVENT or VTIMEZONE
    text: str  # as iCalendar, with its BEGIN and END
    line: int
    attendees: int


def components(member: Member, damaged: Callable[[str, str], None]) -> Iterator[Component]:
    """Events and time zones, in order; `damaged` is told of those that are not whole."""
    with member.open() as stream:
        yield from _Split(member.name, damaged).read(stream)


class _Split:
    def __init__(self, file: str, damaged: Callable[[str, str], None]) -> None:
        self._file, self._damaged = file, damaged
        self._name = b""  # of the component that is open
        self._lines: list[bytes] = []
        self._start = self._attendees = self._inside = 0

    def read(self, stream: BinaryIO) -> Iterator[Component]:
        ended, number = True, 0
        for number, line in _unfolded(stream):
            upper = line[:20].upper().strip()
            if upper == b"BEGIN:VCALENDAR":
                ended = False
            elif upper == b"END:VCALENDAR":
                ended = True
                self._drop("the event is not closed.")
            elif upper in (b"BEGIN:VEVENT", b"BEGIN:VTIMEZONE"):
                self._drop("the event is not closed before the next begins.")
                self._open(upper[6:], number)
            elif self._name and upper == b"END:" + self._name:
                yield from self._whole(line)
            elif self._name:
                self._add(line, upper)
        if not ended:
            self._drop("the file breaks off here.", number)

    def _open(self, name: bytes, number: int) -> None:
        self._name, self._start, self._inside, self._attendees = name, number, 0, 0
        self._lines = [b"BEGIN:" + name]

    def _drop(self, reason: str, number: int = 0) -> None:
        if self._name or number:
            self._damaged(f"{self._file}, line {self._start if self._name else number}", reason)
        self._name = b""

    def _add(self, line: bytes, upper: bytes) -> None:
        if self._name == b"VEVENT":
            if upper.startswith((b"BEGIN:", b"END:")):  # an alarm: not the event's own lines
                self._inside += 1 if upper.startswith(b"B") else -1
                return
            name = line.partition(b":")[0].partition(b";")[0].upper()
            self._attendees += name == b"ATTENDEE" and not self._inside
            if self._inside or name not in KEPT:
                return
        self._lines.append(line)
        if len(self._lines) > MOST:
            self._drop(f"the event has more than {MOST:,} lines.")

    def _whole(self, line: bytes) -> Iterator[Component]:
        name, self._name = self._name.decode(), b""
        try:
            text = b"\r\n".join([*self._lines, line, b""]).decode()
        except UnicodeDecodeError:
            self._damaged(f"{self._file}, line {self._start}", "the event is not written in UTF-8.")
            return
        yield Component(name, text, self._start, self._attendees)


def _unfolded(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Lines with the number of their first; what is beyond LONGEST of one is cut away."""
    held, first = b"", 0
    for number, line in _physical(stream):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line[:1] in (b" ", b"\t") and first:
            held = (held + line[1:])[:LONGEST]
            continue
        if first:
            yield first, held
        held, first = line, number
    if first:
        yield first, held


def _physical(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(LONGEST):
        number += 1
        while line and not line.endswith(b"\n"):  # the rest of a line that is too long
            more = stream.readline(LONGEST)
            if not more:
                break
            line = line[:LONGEST] + more[-1:] if more.endswith(b"\n") else line
        yield number, line.rstrip(b"\r\n")
