"""The one way in which XML from elsewhere is read: as a stream, in bounded memory, without its DTD.

The parser is expat, through the standard library: it builds no tree, so that nothing needs to be
cleared away, it fetches nothing, and it tells the very byte at which a file goes wrong. Reading can
therefore go on with the next record, where parsers that build a tree stop or guess.

A DTD is never parsed. One with declarations of elements and attributes, such as Apple Health's, is
blanked out (that of iOS 16 is not even well formed); one that declares an entity is refused, since
in an export entities only serve to swell it ("billion laughs") or to read other files (Späth et
al., SoK: XML parser vulnerabilities, WOOT 2016).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO
from xml.parsers import expat

from tacit.errors import InputError
from tacit.personal.importers.export import Member
from tacit.personal.importers.importer import Reading

__all__ = ["Element", "elements", "number", "root_of"]

CHUNK = 1 << 16
PROLOG = 1 << 18  # bytes before the first element, a DTD included
LONGEST = 1 << 20  # bytes of one tag, and characters of text in one record
DEEPEST = 64
MOST = 100_000  # elements inside one record
NO_ROOT = "_"  # stands for the first element, if that was damaged

# What comes before a DTD, the DTD, and the encodings whose markup looks like ASCII.
_BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_DOCTYPE = re.compile(rb"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_ENCODING = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([^"']*)""")
_ALLOWED = re.compile(r"utf-?8|(us-)?ascii|iso-8859-\d\d?|latin-?1|(windows-|cp)125\d", re.I)
_ROOT = re.compile(rb"<(?:[\w.-]+:)?([\w.-]+)[\s/>]")


@dataclass(slots=True)
class Element:
    """
    tag         its name, without a prefix
    line        where it opens
    parent      the name of what it stands in
    inside      of a record: everything in it, in order of opening, however deep
    whole       whether it is complete; what stands around records is also shown when it opens
    """

    tag: str
    attributes: dict[str, str]
    line: int
    parent: str
    text: str = ""
    inside: list[Element] = field(default_factory=list)
    whole: bool = False

    def said(self, *tags: str) -> str | None:
        """The text of the first element inside that has one of these names."""
        for element in self.inside:
            if element.tag in tags:
                return element.text.strip()
        return None


def elements(
    member: Member,
    reading: Reading,
    records: Collection[str],
    around: Collection[str] = (),
    mend: Callable[[bytes], bytes] = bytes,
) -> Iterator[Element]:
    """The elements named in `records`, each when it is complete.

    around  names of elements that are shown without what is in them: when they open, and when
            they close (`whole`)
    mend    corrects known faults of a service in whole lines, and leaves their number
    """
    with member.open() as stream:
        yield from _Parse(member.name, reading, frozenset(records), frozenset(around)).read(
            stream, mend
        )


def number(text: str) -> float:
    """A finite number, written as XML writes them; else a ValueError."""
    value = float(text)
    if not math.isfinite(value) or "_" in text:
        raise ValueError("not a number")
    return value


def root_of(head: bytes) -> str:
    """The name of the first element, from the first bytes of a file; empty if that is not XML."""
    start = _BEFORE.match(head)
    at = start.end() if start else 0
    if head.startswith(b"<!DOCTYPE", at):
        kind = re.compile(rb"<!DOCTYPE\s+([\w.-]+)").match(head, at)
        return kind[1].decode() if kind else ""
    root = _ROOT.match(head, at)
    return root[1].decode("ascii", "replace") if root else ""


class _BrokenError(Exception):
    """What is well formed and yet no sound record."""

    def __init__(self, reason: str, index: int, line: int) -> None:
        self.reason, self.index, self.line = reason, index, line


class _Parse:
    """One file. After damage a new parser goes on, inside the same open elements."""

    def __init__(
        self, name: str, reading: Reading, records: frozenset[str], around: frozenset[str]
    ) -> None:
        self._name, self._reading, self._records, self._around = name, reading, records, around
        self._path: list[tuple[str, Element | None]] = []  # what is open around the record
        self._open: list[Element] = []  # the record that is open, and what is open in it
        self._size = 0  # characters of text in the record
        self._ready: list[Element] = []
        self._encoding = "utf-8"
        self._parser: expat.XMLParserType | None = None  # None: lost, until a record begins
        self._fed = 0  # bytes that the parser was given
        self._lines = 0  # lines before the parser's first

    def read(self, stream: BinaryIO, mend: Callable[[bytes], bytes]) -> Iterator[Element]:
        start = stream.read(PROLOG) + stream.readline(CHUNK)
        head = start.lstrip()  # Strava writes spaces before the declaration
        if not head:
            return
        self._encoding = _encoding(head, self._name)
        above = start.count(b"\n", 0, len(start) - len(head))
        self._begin(above)
        chunk = mend(_without_dtd(head, self._name))
        while chunk:
            yield from self._feed(chunk, above)
            above += chunk.count(b"\n")
            chunk = mend(stream.read(CHUNK) + stream.readline(CHUNK))
        yield from self._end()

    def _begin(self, lines: int) -> None:
        """A parser inside the elements that are open, at the line after `lines`."""
        parser = expat.ParserCreate(self._encoding)
        parser.buffer_text = True
        opened = "".join(f"<{name}>" for name, _ in self._path).encode(self._encoding, "replace")
        parser.Parse(opened, False)
        self._fed, self._lines = len(opened), lines
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._close
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = self._refuse
        self._parser = parser

    def _feed(self, chunk: bytes, above: int) -> Iterator[Element]:
        start = 0
        while True:
            if self._parser is None:
                at = self._resume(chunk, start)
                if at is None:
                    return
                start = at
                self._begin(above + chunk.count(b"\n", 0, start))
            try:
                self._given(chunk[start:])
            except (expat.ExpatError, _BrokenError) as error:
                yield from self._taken()
                start = self._damage(error, start)
                continue
            yield from self._taken()
            return

    def _given(self, data: bytes) -> None:
        parser = self._parser
        assert parser is not None
        before, self._fed = self._fed, self._fed + len(data)
        try:
            parser.Parse(data, False)
        except (expat.ExpatError, _BrokenError):
            self._fed = before
            raise
        if self._fed - max(parser.CurrentByteIndex, 0) > LONGEST:
            line = parser.CurrentLineNumber
            self._fed = before
            raise _BrokenError("holds a tag of more than a megabyte.", before + len(data), line)

    def _taken(self) -> list[Element]:
        taken, self._ready = self._ready, []
        return taken

    def _damage(self, error: expat.ExpatError | _BrokenError, start: int) -> int:
        """Report it; where in the chunk to look for the next record."""
        parser = self._parser
        assert parser is not None
        if isinstance(error, _BrokenError):
            reason, line, index = error.reason, error.line, error.index
        else:
            reason = f"is no sound XML ({expat.ErrorString(error.code)})."
            line, index = error.lineno, parser.ErrorByteIndex + 1
        place = self._open[0].line if self._open else self._lines + line
        self._open, self._parser = [], None
        self._reading.damaged(f"{self._name}, line {place}", reason)
        return start + max(0, index - self._fed)

    def _resume(self, chunk: bytes, start: int) -> int | None:
        """Where the next record begins, or something around records opens or closes."""
        opening = "|".join(map(re.escape, self._records | self._around))
        closing = "|".join(re.escape(name) for name, _ in self._path) or "(?!)"
        pattern = rf"<(?:[\w.-]+:)?({opening})[\s/>]|</({closing})\s*>".encode()
        found = re.compile(pattern).search(chunk, start)
        if found is None:
            return None
        if found[1]:
            names = [_local(name) for name, _ in self._path]
            tag = found[1].decode()
            self._path = self._path[: names.index(tag)] if tag in names else self._path
            self._path = self._path or [(NO_ROOT, None)]
        else:
            names = [name for name, _ in self._path]
            self._path = self._path[: names.index(found[2].decode()) + 1]
        return found.start()

    def _end(self) -> Iterator[Element]:
        if self._parser is None:
            return
        line = self._open[0].line if self._open else self._lines + self._parser.CurrentLineNumber
        try:
            self._parser.Parse(b"", True)
        except (expat.ExpatError, _BrokenError):
            self._reading.damaged(f"{self._name}, line {line}", "the file breaks off here.")
        yield from self._taken()

    def _here(self) -> int:
        assert self._parser is not None
        return self._lines + self._parser.CurrentLineNumber

    def _broken(self, reason: str) -> _BrokenError:
        parser = self._parser
        assert parser is not None
        return _BrokenError(reason, parser.CurrentByteIndex, parser.CurrentLineNumber)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _local(name)
        if len(self._path) + len(self._open) >= DEEPEST:
            raise InputError(f"{self._name}: is nested more than {DEEPEST} deep: refused.")
        if not self._open:
            parent = _local(self._path[-1][0]) if self._path else ""
            element = Element(tag, attributes, self._here(), parent)
            if tag in self._records:
                self._open, self._size = [element], 0
                return
            shown = tag in self._around
            self._path.append((name, element if shown else None))
            if shown:
                self._ready.append(element)
            return
        record = self._open[0]
        if tag == record.tag:
            raise self._broken("is not closed before the next begins.")
        if len(record.inside) >= MOST:
            raise self._broken(f"holds more than {MOST:,} elements.")
        element = Element(tag, attributes, self._here(), self._open[-1].tag)
        record.inside.append(element)
        self._open.append(element)

    def _close(self, name: str) -> None:
        if self._open:
            element = self._open.pop()
            element.whole = True
            if not self._open:
                self._ready.append(element)
        else:
            shown = self._path.pop()[1]
            if shown is not None:  # its reader may not have seen it open yet: not the same object
                self._ready.append(replace(shown, whole=True))

    def _text(self, text: str) -> None:
        if self._open:
            self._size += len(text)
            if self._size > LONGEST:
                raise self._broken("holds more than a megabyte of text.")
            self._open[-1].text += text

    def _refuse(self, *_: object) -> None:
        raise InputError(f"{self._name}: declares entities or a second DTD: refused.")


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _encoding(head: bytes, name: str) -> str:
    """The declared encoding. Others than these could hide markup from the search for a DTD."""
    found = _ENCODING.match(head)
    declared = found[1].decode("ascii", "replace") if found else "utf-8"
    if (
        b"\0" in head[:4]
        or head[:2] in (b"\xff\xfe", b"\xfe\xff")
        or not _ALLOWED.fullmatch(declared)
    ):
        raise InputError(f"{name}: is XML in an encoding that is not read. Save it as UTF-8.")
    return "utf-8" if declared.lower() == "utf8" else declared


def _without_dtd(head: bytes, name: str) -> bytes:
    before = _BEFORE.match(head)
    at = before.end() if before else 0
    if not head.startswith(b"<!DOCTYPE", at):
        return head
    found = _DOCTYPE.match(head, at)
    if found is None:
        raise InputError(f"{name}: its DTD does not end within {PROLOG >> 10} KB: refused.")
    if b"<!ENTITY" in found[0]:
        raise InputError(f"{name}: declares entities: refused. No export of an app needs them.")
    return head[:at] + re.sub(rb"[^\n]", b" ", found[0]) + head[found.end() :]
