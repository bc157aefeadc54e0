"""Mail: mbox files (Google Takeout, Thunderbird, Apple Mail) and single .eml files.

Only headers are read. Bodies pass by line by line, to find where the next message begins and
whether a part calls itself an attachment, and nothing of them is kept.

A message begins with a line `From `, at the start or after an empty line (RFC 4155); since mail
programs often leave such lines in bodies as they are, it must also end in a date, or be empty as
Thunderbird writes it.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import HeaderParser
from email.policy import compat32
from email.utils import getaddresses, parsedate_to_datetime
from typing import BinaryIO

from tacit.personal.events import EventType, Value
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record

__all__ = ["Mbox"]

MAIL = EventType(
    name="mail",
    fields={
        "sender": "text",
        "domain": "category",
        "recipients": "number",
        "subject": "text",
        "list": "category",
        "direction": "category",
        "reply": "boolean",
        "attachment": "boolean",
        "bytes": "number",
    },
    about="A message of electronic mail: its headers, never its text.",
    words=("email", "message", "letter"),
)
LONGEST = 1 << 16  # bytes of a line that are looked at
HEADERS = 1 << 18  # bytes of the headers of one message
_FROM = re.compile(rb"From (?:.*\d{1,2}:\d\d.*\b\d{4}\b.*|- *|)\r?\n?")
_HEADER = re.compile(rb"[!-9;-~]+:")  # RFC 5322: printable letters but the colon


class Mbox:
    name = "mbox"
    title = "Mail (mbox, eml)"
    hint = (
        "Google Takeout: choose Mail. Thunderbird, Apple Mail and others: export a mailbox as "
        "mbox. Only headers are imported: who, when, the subject, how large."
    )
    types: tuple[EventType, ...] = (MAIL,)
    options: Mapping[str, str] = {
        "me": "your own addresses, separated by commas: tells mail you sent from mail you got",
    }

    def recognises(self, export: Export) -> bool:
        return any(_is_mail(member) for member in _candidates(export)[:20])

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        me = {one.strip().lower() for one in reading.options.get("me", "").split(",")} - {""}
        for member in _candidates(export):
            if _is_mail(member):
                with member.open() as stream:
                    for message in _messages(stream, member.name, reading):
                        yield from _record(message, me, reading)


class _Message:
    """What passes by of one message."""

    def __init__(self, place: str) -> None:
        self.place, self.headers, self.size = place, bytearray(), 0
        self.whole = self.attachment = False
        self._in_part = False  # among the headers of a part

    def head(self, line: bytes) -> None:
        self.size += len(line)
        self.whole = not line.strip(b"\r\n")
        self.headers += line

    def body(self, line: bytes, starts: bool) -> None:
        """A line of the body, or a further piece of a long one."""
        self.size += len(line)
        if not starts:
            return
        if line.startswith(b"--"):
            self._in_part = True
        elif not line.strip():
            self._in_part = False
        elif self._in_part:
            lower = line[:64].lower().replace(b" ", b"")
            self.attachment |= lower.startswith(b"content-disposition:attachment")


def _candidates(export: Export) -> list[Member]:
    """Apple Mail names the file `mbox`; Thunderbird gives it no ending at all."""
    return export.find("*.mbox", "*.mbx", "*.eml", "mbox", "inbox", "sent", "archives", "drafts")


def _is_mail(member: Member) -> bool:
    head = member.head()
    if member.name.lower().endswith(".eml"):
        return _HEADER.match(head.removeprefix(b"\xef\xbb\xbf")) is not None
    first, _, second = head.partition(b"\n")
    return _begins(first) and _HEADER.match(second) is not None


def _begins(line: bytes) -> bool:
    return len(line) < 400 and _FROM.fullmatch(line) is not None


def _messages(stream: BinaryIO, name: str, reading: Reading) -> Iterator[_Message]:
    message: _Message | None = None
    number, starts, empty = 0, True, True  # whether a line starts here; whether the last was empty
    single = name.lower().endswith(".eml")
    while line := stream.readline(LONGEST):
        number += starts
        if single and starts and number == 1:
            message = _Message(f"{name}, line 1")
            line = line.removeprefix(b"\xef\xbb\xbf")
        if starts and empty and not single and _begins(line):
            if message is not None:
                yield message
            message = _Message(f"{name}, line {number}")
        elif message is not None and not message.whole:
            message.head(line)
            if len(message.headers) > HEADERS:
                reading.damaged(message.place, "the message has headers of more than 256 KB.")
                message = None
        elif message is not None:
            message.body(line, starts)
        empty = starts and not line.strip(b"\r\n")
        starts = line.endswith(b"\n")
    if message is not None:
        yield message


def _record(message: _Message, me: set[str], reading: Reading) -> Iterator[Record]:
    if not message.whole:
        reading.damaged(message.place, "the message breaks off in its headers.")
        return
    try:
        # The older policy: the newer one parses each header tenfold slower, and raises on some.
        said = HeaderParser(policy=compat32).parsestr(message.headers.decode("utf-8", "replace"))
        time, values = _time(said), _values(said, message, me)
    except Exception:  # whatever strange headers make of the library, endless recursion included
        reading.damaged(message.place, "the message has no date, or headers that cannot be read.")
        return
    yield Record(MAIL, time, values, message.place)


def _values(said: Message, message: _Message, me: set[str]) -> dict[str, Value]:
    senders = _addresses(said, "From") or _addresses(said, "Sender")
    sender = senders[0] if senders else None
    others = _addresses(said, "To", "Cc", "Bcc")
    direction = None
    if me:
        direction = "sent" if sender in me else "received"
    named = re.search(r"<([^<>]+)>", _text(said, "List-Id") or "")
    alone = (said.get_content_disposition() or "") == "attachment"
    return {
        "sender": sender,
        "domain": sender.rpartition("@")[2] or None if sender else None,
        "recipients": float(len(others)),
        "subject": _text(said, "Subject"),
        "list": named[1].strip().lower() if named else _text(said, "List-Id"),
        "direction": direction,
        "reply": "In-Reply-To" in said,
        "attachment": message.attachment or alone,
        "bytes": float(message.size),
    }


def _time(said: Message) -> datetime.datetime:
    """When it was sent, or else received: junk often has a broken Date."""
    for text in (_text(said, "Date"), (_text(said, "Received") or "").rpartition(";")[2]):
        try:
            time = parsedate_to_datetime(text or "")
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        # RFC 5322: -0000 is universal time of which the sender's own zone is not known.
        known = time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
        return known.astimezone(datetime.UTC)
    raise ValueError("no date")


def _addresses(said: Message, *names: str) -> list[str]:
    texts = [str(value) for name in names for value in said.get_all(name, [])]
    return [address.strip().lower() for _, address in getaddresses(texts) if address.strip()]


def _text(said: Message, name: str) -> str | None:
    """A header's text, its encoded words decoded and its folds undone."""
    raw = said.get(name)
    if raw is None:
        return None
    try:
        text = str(make_header(decode_header(raw)))
    except (ValueError, LookupError, HeaderParseError):  # words in no encoding that there is
        text = raw
    return " ".join(text.encode("utf-8", "replace").decode().split()) or None
