"""Mail: the contract, each value against the headers, and that bodies are left alone."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.mbox import Mbox

FIRST = b"""X-GM-THRID: 1789
X-Gmail-Labels: Inbox,Important
Delivered-To: ann@example.org
Received: by 2002:a05:6a10 with SMTP id abc;
        Wed, 31 Jan 2024 06:00:05 -0800 (PST)
From: =?utf-8?Q?J=C3=B6rg_M=C3=BCller?= <Joerg@Example.NET>
To: Ann <ann@example.org>, "Bo, Cy" <bo@example.org>
Cc: list@lists.example.org
Subject: =?UTF-8?B?R3LDvMOfZSBhdXM=?=
 =?UTF-8?Q?_Berlin?=
Date: Wed, 31 Jan 2024 15:00:00 +0100
Message-ID: <1@example.net>
In-Reply-To: <0@example.org>
List-Id: Hiking club <hiking.lists.example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b1"

--b1
Content-Type: text/plain; charset=utf-8

My secret: From here on, nothing is kept.

From the hill you see the sea.
>From 10:30 on in 2024

--b1
Content-Type: application/pdf; name="a.pdf"
Content-Disposition: attachment; filename="a.pdf"
Content-Transfer-Encoding: base64

JVBERi0xLjcKJeLjz9MK
--b1--
"""
SECOND = b"""From: ann@example.org
To: undisclosed-recipients:;
Subject: Hello
Date: Thu, 1 Feb 2024 08:00:00 -0000
Content-Type: text/plain

Content-Disposition: attachment
"""
GOOD = (
    b"From 1789@xxx Wed Jan 31 14:00:05 +0000 2024\n"
    + FIRST
    + b"\nFrom ann@example.org Thu Feb  1 08:00:00 2024\n"
    + SECOND
    + b"\n"
)


class TestMbox(ImporterContract):
    importer = Mbox()
    good: Mapping[str, bytes] = {"Takeout/Mail/All mail.mbox": GOOD}
    events = 2
    options: Mapping[str, str] = {"me": "Ann@example.org, a@example.com"}
    torn = 1  # a body shows no end of its own
    huge_name = "huge.mbox"

    def huge(self, n: int) -> Iterator[bytes]:
        for i in range(n):
            yield b"From a@example.org Thu Feb  1 08:00:00 2024\n" + SECOND
            yield b"%d\n" % i + (b"b" * 1000 + b"\n") * 10 + b"\n"


def read(
    tmp_path: Path, content: bytes, skip: bool = False, name: str = "mail.mbox", **options: str
) -> tuple[list[Record], Reading]:
    path = tmp_path / name
    path.write_bytes(content)
    reading = Reading(ZoneInfo("Europe/Berlin"), options, skip_damaged=skip)
    return list(Mbox().read(Export(path), reading)), reading


def mail(*headers: str, date: str | None = "Thu, 1 Feb 2024 08:00:00 +0000") -> bytes:
    lines = [*headers, *([f"Date: {date}"] if date else []), "", "body", ""]
    start = b"From a@example.org Thu Feb  1 08:00:00 2024\n"
    return start + "\n".join(lines).encode() + b"\n"


def test_each_value_is_what_the_headers_say(tmp_path: Path) -> None:
    (first, second), _ = read(tmp_path, GOOD, me="ann@EXAMPLE.org")
    assert first.time == datetime.datetime(2024, 1, 31, 14, tzinfo=datetime.UTC)
    assert first.place == "mail.mbox, line 1"
    assert first.values == {
        "sender": "joerg@example.net",
        "domain": "example.net",
        "recipients": 3.0,
        "subject": "Grüße aus Berlin",
        "list": "hiking.lists.example.org",
        "direction": "received",
        "reply": True,
        "attachment": True,
        "bytes": float(len(FIRST) + 1),
    }
    assert second.time == datetime.datetime(2024, 2, 1, 8, tzinfo=datetime.UTC)
    line = GOOD[: GOOD.index(SECOND)].count(b"\n")
    assert second.place == f"mail.mbox, line {line}"
    assert second.values == {
        "sender": "ann@example.org",
        "domain": "example.org",
        "recipients": 0.0,
        "subject": "Hello",
        "list": None,
        "direction": "sent",
        "reply": False,
        "attachment": False,  # these words stand in a body, not among headers
        "bytes": float(len(SECOND) + 1),
    }


def test_nothing_of_a_body_is_kept(tmp_path: Path) -> None:
    assert "secret" not in repr(read(tmp_path, GOOD)[0])


def test_without_me_there_is_no_direction(tmp_path: Path) -> None:
    assert [one.values["direction"] for one in read(tmp_path, GOOD)[0]] == [None, None]


@pytest.mark.parametrize("line", [b"From \n", b"From -\n", b"From - Thu Feb 01 08:00:00 2024\r\n"])
def test_separators_of_thunderbird(tmp_path: Path, line: bytes) -> None:
    content = line + SECOND + b"\n" + line + SECOND
    assert len(read(tmp_path, content, name="Inbox")[0]) == 2
    assert Mbox().recognises(Export(tmp_path))


def test_windows_ends_of_lines(tmp_path: Path) -> None:
    records, _ = read(tmp_path, GOOD.replace(b"\n", b"\r\n"))
    assert [one.values["subject"] for one in records] == ["Grüße aus Berlin", "Hello"]
    assert records[0].values["attachment"] is True


def test_single_messages(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + FIRST + b"\nFrom a@b Thu Feb  1 08:00:00 2024\nstill the body\n"
    ((one,), _) = read(tmp_path, content, name="letter.eml")
    assert one.values["subject"] == "Grüße aus Berlin"
    assert Mbox().recognises(Export(tmp_path / "letter.eml"))


@pytest.mark.parametrize(
    ("header", "subject"),
    [
        ("Subject: plain ünicode", "plain ünicode"),
        ("Subject: =?no-such-charset?Q?abc?=", "=?no-such-charset?Q?abc?="),
        ("Subject: =?utf-8?B?%%%?=", None),
        ("Subject:", None),
        ("X-Other: 1", None),
    ],
)
def test_odd_subjects_are_no_damage(tmp_path: Path, header: str, subject: str | None) -> None:
    ((one,), reading) = read(tmp_path, mail("From: a@example.org", header))
    assert (one.values["subject"], reading.damages) == (subject, 0)


def test_a_broken_date_is_that_of_receipt(tmp_path: Path) -> None:
    received = "Received: from x by y; Fri, 2 Feb 2024 10:00:00 +0200"
    ((one,), _) = read(tmp_path, mail("From: a@b.example", received, date="soon"))
    assert one.time == datetime.datetime(2024, 2, 2, 8, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "broken",
    [
        mail("From: a@b.example", date="soon"),
        mail("From: a@b.example", date=None),
        mail("From: a@b.example", date="Thu, 99 Feb 2024 08:00:00 +0000"),
        mail("From: a@b.example", date="Fri, 31 Dec 9999 23:59:59 -1200"),
        mail(*[f"X-Long-{i}: {'x' * 900}" for i in range(400)]),
    ],
)
def test_damage_is_told_with_its_place_and_left_out(tmp_path: Path, broken: bytes) -> None:
    sound = mail("From: a@b.example")
    content = sound + broken + sound
    with pytest.raises(InputError, match=r"mail\.mbox, line 7: the message"):
        read(tmp_path, content)
    records, reading = read(tmp_path, content, skip=True)
    assert (len(records), reading.damages) == (2, 1)


def test_a_message_that_breaks_off_in_its_headers(tmp_path: Path) -> None:
    _, reading = read(tmp_path, GOOD[: GOOD.rindex(b"Content-Type")], skip=True)
    line = GOOD[: GOOD.index(SECOND)].count(b"\n")
    assert reading.places == [f"mail.mbox, line {line}: the message breaks off in its headers."]


def test_long_lines_are_passed_by_in_pieces(tmp_path: Path) -> None:
    long = b"\n" + b"x" * 65536 + b"From a@b.example Thu Feb  1 08:00:00 2024\nFrom: x@y.example\n"
    assert len(read(tmp_path, GOOD + long)[0]) == 2


def test_hostile_address_lists(tmp_path: Path) -> None:
    many = "To: " + ",".join(f"a{i}@example.org" for i in range(3000))
    ((one,), _) = read(tmp_path, mail("From: a@b.example", many))
    assert one.values["recipients"] == 3000.0
    for nasty in ('"' * 5000, "(" * 5000, "<" * 5000, "a@" * 5000, "=?utf-8?q?" * 2000, "\\" * 999):
        read(tmp_path, mail(f"From: {nasty}", f"To: {nasty}", f"Subject: {nasty}"), skip=True)
