"""What the head of a table says: its delimiter, its columns and their kinds, and which is the time.

The kinds are those that every row of the head has; rows further down that differ are damaged.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from tacit.errors import InputError, UsageError
from tacit.personal.events import EventType, Kind
from tacit.personal.importers.export import Member
from tacit.personal.importers.importer import Reading
from tacit.personal.importers.naming import field_names, plain_name
from tacit.personal.importers.times import EPOCHS, Form, forms_of, order_option, zone_option

__all__ = ["Column", "Head", "Plan", "head_of", "kind_of", "plan_of"]

HEAD = 1 << 19  # bytes that are looked at
SAMPLE = 5000  # rows that are looked at
DELIMITERS = (",", ";", "\t", "|")
NAMED = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
UTF16 = (b"\xff\xfe", b"\xfe\xff")
TIMELY = re.compile(r"(^|_)(time|date|timestamp|datetime|ts|epoch|when|day|at)(_|$)")
WORDS = ({"true", "false"}, {"yes", "no"})
NUMERAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
CODE = re.compile(r"[-+]?(0\d+|\d{16,})", re.ASCII)  # 00123: an account or a postcode, no number
FEW, SHARE, LONG = 12, 0.1, 60  # a category has few values, or one for ten rows, and short ones


@dataclass(frozen=True)
class Head:
    """The beginning of a table: its delimiter, first row, and some of the others."""

    delimiter: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Column:
    """What is made of one column. `form` for times; `name` is "" for the events' own time."""

    header: str
    name: str
    kind: Kind
    form: Form | None = None


@dataclass(frozen=True)
class Plan:
    """How a table becomes events."""

    kind: EventType
    delimiter: str
    columns: tuple[Column, ...]
    zone: ZoneInfo
    decimal: str


def head_of(member: Member, delimiter: str | None = None) -> Head | None:
    """None if it is empty."""
    data = member.head(HEAD)
    if data[:2] in UTF16:
        raise InputError(
            f"{member.name}: is UTF-16 text. Save it as UTF-8 (spreadsheets: `CSV UTF-8`)."
        )
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    lines = list(io.StringIO(text, newline=""))
    mark = delimiter or _delimiter(lines[:50])
    rows = [tuple(row) for row in _rows(lines, mark) if row]
    if not rows:
        return None
    if len(rows) > 2 and len(rows) <= SAMPLE and not text.endswith(("\n", "\r")):
        rows.pop()  # not whole: the head ends here, or the file breaks off
    width = len(rows[0])
    return Head(mark, rows[0], tuple(row for row in rows[1:] if len(row) == width))


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        for row in csv.reader(lines, delimiter=delimiter):
            rows.append(row)
            if len(rows) > SAMPLE:
                break
    except csv.Error:  # a field without end: what came before is enough
        pass
    return rows


def _delimiter(lines: Sequence[str]) -> str:
    """The one that gives most rows as many columns as the first; of equals, the most columns."""

    def fits(mark: str) -> tuple[float, int]:
        widths = [len(row) for row in _rows(lines, mark) if row]
        if not widths or widths[0] < 2:
            return 0.0, 0
        return round(widths.count(widths[0]) / len(widths), 1), widths[0]

    return max(DELIMITERS, key=fits)


def plan_of(member: Member, reading: Reading) -> Plan | None:
    """None if the table has no rows."""
    options = reading.options
    head = head_of(member, _delimiter_option(options.get("delimiter")))
    if head is None or not head.rows:
        return None
    decimal = options.get("decimal", ".")
    if decimal not in (".", ","):
        raise UsageError("decimal: is a point or a comma.")
    order = order_option(options.get("order"))
    texts = _named(options.get("text"), head, "text")
    found = [
        (("text", None) if place in texts else kind_of(values, decimal, header, order))
        for place, (header, values) in enumerate(zip(head.headers, _columns(head), strict=True))
    ]
    time = _time(member, head, found, options)
    names = field_names(h for place, h in enumerate(head.headers) if place != time)
    names.insert(time, "")
    columns = tuple(
        Column(header, name, kind, form)
        for header, name, (kind, form) in zip(head.headers, names, found, strict=True)
    )
    kind = _event_type(member, columns, options)
    zone = zone_option(options.get("zone"), reading.zone)
    return Plan(kind, head.delimiter, columns, zone, decimal)


def _columns(head: Head) -> list[list[str]]:
    """Values of each column that are there and are text."""
    return [
        [v.strip() for v in column if v.strip() and v.isprintable()]
        for column in ([row[i] for row in head.rows] for i in range(len(head.headers)))
    ]


def kind_of(
    values: Sequence[str], decimal: str, header: str, order: Form | None
) -> tuple[Kind, Form | None]:
    """The kind that all the values have, and for times their form."""
    some = set(values)
    if not some:
        return "text", None
    if any({value.lower() for value in some} <= words for words in WORDS):
        return "boolean", None
    forms = forms_of(some)
    if forms and forms <= set(EPOCHS):
        if TIMELY.search(plain_name(header)):
            return "time", min(forms)
        forms = set()
    if forms:
        return "time", order if order in forms else _only(forms, header)
    plain = [v.replace(".", "").replace(",", ".") if decimal == "," else v for v in some]
    if all(NUMERAL.fullmatch(v) for v in plain) and not any(CODE.fullmatch(v) for v in plain):
        return "number", None
    few = len(some) <= max(FEW, SHARE * len(values)) and max(map(len, some)) <= LONG
    return ("category" if few else "text"), None


def _only(forms: set[Form], header: str) -> Form:
    if len(forms) > 1:
        raise InputError(
            f"column {header[:60]!r}: 03/04 may be 3 April or 4 March. Say which with the option "
            "order: dmy (day first) or mdy (month first)."
        )
    return min(forms)


def _time(
    member: Member,
    head: Head,
    found: Sequence[tuple[Kind, Form | None]],
    options: Mapping[str, str],
) -> int:
    """Which column says when an event happened."""
    times = [place for place, (kind, _) in enumerate(found) if kind == "time"]
    if "time" in options:
        (place,) = _named(options["time"], head, "time") or {-1}
        if place not in times:
            raise InputError(f"{member.name}: column {options['time'][:60]!r} holds no times.")
        return place
    if len(times) == 1:
        return times[0]
    which = ", ".join(head.headers[place][:60] for place in times) or "none"
    raise InputError(
        f"{member.name}: one column must say when things happened, and those with times are: "
        f"{which}. Name it with the option time."
    )


def _named(names: str | None, head: Head, option: str) -> set[int]:
    """Places of columns that an option names, by header or by field name."""
    if names is None:
        return set()
    headers = [header.strip() for header in head.headers]
    places = set()
    for name in [names.strip()] if names.strip() in headers else names.split(","):
        same = [p for p, h in enumerate(headers) if name.strip() in (h, plain_name(h))]
        if not same:
            known = ", ".join(h[:40] for h in headers[:40])
            raise InputError(
                f"option {option}: there is no column {name.strip()[:60]!r}. Known: {known}."
            )
        places.add(same[0])
    return places


def _delimiter_option(text: str | None) -> str | None:
    mark = NAMED.get(text or "", text)
    if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '\n\r"'):
        raise UsageError(f"delimiter: one character, or one of {', '.join(NAMED)}.")
    return mark


def _event_type(member: Member, columns: Sequence[Column], options: Mapping[str, str]) -> EventType:
    stem = member.name.rpartition("/")[2].rpartition(".")[0] or member.name
    renamed = [f"{c.header.strip()} → {c.name}" for c in columns if c.name not in ("", c.header)]
    about = "Rows of a table" + (f"; columns {', '.join(renamed)}" if renamed else "")
    return EventType(
        name=options.get("type") or plain_name(stem) or "row",
        fields={column.name: column.kind for column in columns if column.name},
        about=f"{about[:400]}.",
    )
