"""Bank and card statements as OFX (also called QFX): 1.x is SGML, 2.x is XML.

In SGML most tags are never closed. A transaction ends with its closing tag, and where banks leave
that out as well, with the next one or the end of the list.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from zoneinfo import ZoneInfo

from tacit.personal.importers import json_values as of
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import Found, records
from tacit.personal.importers.json_values import Item, Unreadable
from tacit.personal.importers.ofx_time import posted
from tacit.personal.importers.payments import PAYMENT, amount_of, decimal_among
from tacit.personal.importers.xml import elements, root_of

__all__ = ["Ofx"]

HEADER = re.compile(rb"\s*(\xef\xbb\xbf)?OFXHEADER\s*:", re.IGNORECASE)
TAG = re.compile(r"<(/?)([A-Za-z0-9.]{1,40})>([^<]*)")
CHUNK = 1 << 16
LONGEST = 1 << 14  # characters of one text
TRANSACTION, LISTS = "STMTTRN", {"BANKTRANLIST", "OFX"}
ABOUT = ("CURDEF", "ACCTTYPE")  # the account, above its transactions


class Ofx:
    name = "ofx"
    title = "Bank or card statement (OFX, QFX)"
    hint = "Your bank's site: the account's transactions, export for Quicken or Money (OFX, QFX)."
    types = (PAYMENT,)
    options: Mapping[str, str] = {}

    def recognises(self, export: Export) -> bool:
        return bool(_statements(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in _statements(export):
            found = _sgml(member, reading) if _is_sgml(member) else _xml(member, reading)
            yield from records(found, lambda item, at: _payment(item, at, reading.zone), reading)


def _statements(export: Export) -> list[Member]:
    return [m for m in export.find("*.ofx", "*.qfx") or export.members[:50] if _is_ofx(m)]


def _is_sgml(member: Member) -> bool:
    return bool(HEADER.match(member.head(200)))


def _is_ofx(member: Member) -> bool:
    return _is_sgml(member) or root_of(member.head()) == "OFX"


def _xml(member: Member, reading: Reading) -> Found:
    about: dict[str, str] = {}
    for element in elements(member, reading, {TRANSACTION, *ABOUT}, {"CCACCTFROM"}):
        if element.tag == TRANSACTION:
            said = {one.tag: one.text.strip() for one in reversed(element.inside)}
            yield f"{member.name}, line {element.line}", {**said, **about}
        elif element.tag == "CCACCTFROM":
            about["ACCTTYPE"] = "CREDITCARD"
        else:
            about[element.tag] = element.text.strip()


def _sgml(member: Member, reading: Reading) -> Found:
    about: dict[str, str] = {}
    said: dict[str, str] | None = None
    place = ""
    for line, closing, tag, text in _tags(member, reading):
        ends = (tag == TRANSACTION) or (closing and tag in LISTS)
        if said is not None and ends:
            yield place, {**said, **about}
            said = None
        if tag == TRANSACTION and not closing:
            said, place = {}, f"{member.name}, line {line}"
        elif said is not None and text:
            said.setdefault(tag, text)
        elif tag == "CCACCTFROM":
            about["ACCTTYPE"] = "CREDITCARD"
        elif tag in ABOUT and text:
            about[tag] = text
    if said is not None:
        reading.damaged(place, "the file breaks off in it.")


def _tags(member: Member, reading: Reading) -> Iterator[tuple[int, bool, str, str]]:
    """Line, whether it closes, name, and the text that follows."""
    head = member.head(1000).upper()
    unicode = b"UTF-8" in head or b"UNICODE" in head
    with (
        member.open() as stream,
        io.TextIOWrapper(stream, "utf-8" if unicode else "cp1252", "surrogateescape") as lines,
    ):
        rest, line = "", 1
        while chunk := lines.read(CHUNK):
            rest += chunk
            whole = rest.rfind("<")  # what follows the last tag may go on
            if whole < 0 or len(rest) - whole > LONGEST:
                if len(rest) > LONGEST:
                    reading.damaged(f"{member.name}, line {line}", "a text or tag has no end.")
                    line, rest = line + rest.count("\n"), ""
                continue
            yield from _found(rest[:whole], line)
            line, rest = line + rest.count("\n", 0, whole), rest[whole:]
        yield from _found(rest, line)


def _found(text: str, line: int) -> Iterator[tuple[int, bool, str, str]]:
    at = 0
    for tag in TAG.finditer(text):
        line, at = line + text.count("\n", at, tag.start()), tag.start()
        yield line, bool(tag[1]), tag[2].upper(), html.unescape(tag[3].strip())


def _payment(item: Item, place: str, zone: ZoneInfo) -> Iterable[Record]:
    if any("\udc80" <= letter <= "\udcff" for text in item.values() for letter in text):
        raise Unreadable("it is not in the encoding that the file names.")
    written = of.needed(of.text(item, "TRNAMT"), "TRNAMT")
    values = {
        "amount": amount_of(written, decimal_among([written])),
        "currency": of.text(item, "CURSYM") or of.text(item, "CURDEF"),
        "counterparty": of.text(item, "NAME"),
        "description": of.text(item, "MEMO"),
        "method": (of.text(item, "TRNTYPE") or "").lower() or None,
        "account": (of.text(item, "ACCTTYPE") or "").lower() or None,
        "reference": of.text(item, "FITID"),
    }
    yield Record(
        PAYMENT, posted(of.needed(of.text(item, "DTPOSTED"), "DTPOSTED"), zone), values, place
    )
