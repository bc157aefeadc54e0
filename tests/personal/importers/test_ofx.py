"""OFX statements: SGML with and without closing tags, XML, offsets, and what is made to harm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading
from tacit.personal.importers.ofx import Ofx

HEAD = """\
OFXHEADER:100
DATA:OFXSGML
VERSION:102
SECURITY:NONE
ENCODING:USASCII
CHARSET:1252
COMPRESSION:NONE
OLDFILEUID:NONE
NEWFILEUID:NONE

<OFX>
<SIGNONMSGSRSV1><SONRS><STATUS><CODE>0<SEVERITY>INFO</STATUS><DTSERVER>20240401120000
<LANGUAGE>ENG</SONRS></SIGNONMSGSRSV1>
<BANKMSGSRSV1><STMTTRNRS><TRNUID>1<STMTRS>
<CURDEF>USD
<BANKACCTFROM><BANKID>012345678<ACCTID>9876543210<ACCTTYPE>CHECKING</BANKACCTFROM>
<BANKTRANLIST>
<DTSTART>20240301
<DTEND>20240331
"""
TAIL = """\
</BANKTRANLIST>
<LEDGERBAL><BALAMT>1491.00<DTASOF>20240331</LEDGERBAL>
</STMTRS></STMTTRNRS></BANKMSGSRSV1>
</OFX>
"""
FIRST = """\
<STMTTRN>
<TRNTYPE>DEBIT
<DTPOSTED>20240314120000.000[-5:EST]
<TRNAMT>-4.50
<FITID>F-1
<NAME>CORNER CAF\xc9 &amp; BAR
<MEMO>Card 1234
</STMTTRN>
"""
SECOND = (
    "<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20240302<TRNAMT>1500.00<FITID>F-0<NAME>PAYROLL</STMTTRN>\n"
)
SGML = (HEAD + FIRST + SECOND + TAIL).encode("cp1252")
XML = b"""\
<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<?OFX OFXHEADER="200" VERSION="211" SECURITY="NONE" OLDFILEUID="NONE" NEWFILEUID="NONE"?>
<OFX>
<CREDITCARDMSGSRSV1><CCSTMTTRNRS><CCSTMTRS><CURDEF>EUR</CURDEF>
<CCACCTFROM><ACCTID>4000111122223333</ACCTID></CCACCTFROM>
<BANKTRANLIST>
<STMTTRN><TRNTYPE>DEBIT</TRNTYPE><DTPOSTED>20240314153000</DTPOSTED><TRNAMT>-12.34</TRNAMT>
<FITID>C-1</FITID><NAME>Bookshop &amp; Co</NAME><MEMO>caf\xc3\xa9</MEMO></STMTTRN>
<STMTTRN><TRNTYPE>DEBIT</TRNTYPE><DTPOSTED>20240315</DTPOSTED><TRNAMT>-99,90</TRNAMT>
<FITID>C-2</FITID><NAME>Hotel</NAME><CURRENCY><CURRATE>1.1</CURRATE><CURSYM>CHF</CURSYM></CURRENCY>
</STMTTRN>
</BANKTRANLIST></CCSTMTRS></CCSTMTTRNRS></CREDITCARDMSGSRSV1>
</OFX>
"""


class TestSgml(ImporterContract):
    importer = Ofx()
    good: Mapping[str, bytes] = {"march.qfx": SGML}
    events = 2
    huge_name = "march.ofx"

    def huge(self, n: int) -> Iterator[bytes]:
        yield HEAD.encode()
        yield from [SECOND.encode()] * n
        yield TAIL.encode()


class TestXml(ImporterContract):
    importer = Ofx()
    good: Mapping[str, bytes] = {"card.ofx": XML}
    events = 2
    huge_name = "card.ofx"

    def huge(self, n: int) -> Iterator[bytes]:
        start, end = XML.index(b"<STMTTRN>"), XML.index(b"</BANKTRANLIST>")
        yield XML[:start]
        yield from [XML[start:end]] * n
        yield XML[end:]


def read(
    tmp_path: Path, content: str | bytes, skip: bool = False
) -> tuple[list[dict[str, Any]], Reading]:
    data = content if isinstance(content, bytes) else content.encode("cp1252")
    (tmp_path / "s.ofx").write_bytes(data)
    reading = Reading(ZoneInfo("America/New_York"), skip_damaged=skip)
    found = list(Ofx().read(Export(tmp_path / "s.ofx"), reading))
    rows = [{"time": r.time, "place": r.place, **r.values} for r in found]
    return [
        {key: value for key, value in row.items() if value is not None} for row in rows
    ], reading


def test_sgml(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, SGML)
    assert rows == [
        {
            "time": datetime(2024, 3, 14, 17, tzinfo=UTC),
            "place": "s.ofx, line 20",
            "amount": -4.5,
            "currency": "USD",
            "counterparty": "CORNER CAFÉ & BAR",
            "description": "Card 1234",
            "method": "debit",
            "account": "checking",
            "reference": "F-1",
        },
        {
            "time": datetime(2024, 3, 3, 4, 59, 59, tzinfo=UTC),
            "place": "s.ofx, line 28",
            "amount": 1500.0,
            "currency": "USD",
            "counterparty": "PAYROLL",
            "method": "credit",
            "account": "checking",
            "reference": "F-0",
        },
    ]


def test_xml(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, XML)
    assert rows == [
        {
            "time": datetime(2024, 3, 14, 15, 30, tzinfo=UTC),
            "place": "s.ofx, line 7",
            "amount": -12.34,
            "currency": "EUR",
            "counterparty": "Bookshop & Co",
            "description": "café",
            "method": "debit",
            "account": "creditcard",
            "reference": "C-1",
        },
        {
            "time": datetime(2024, 3, 16, 3, 59, 59, tzinfo=UTC),
            "place": "s.ofx, line 9",
            "amount": -99.9,
            "currency": "CHF",
            "counterparty": "Hotel",
            "method": "debit",
            "account": "creditcard",
            "reference": "C-2",
        },
    ]


def test_no_account_number_is_kept(tmp_path: Path) -> None:
    for content, number in ((SGML, "9876543210"), (XML, "4000111122223333")):
        rows, _ = read(tmp_path, content)
        assert number not in str(rows)


def test_transactions_that_are_never_closed(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, (HEAD + FIRST + SECOND + TAIL).replace("</STMTTRN>", ""))
    assert [row["reference"] for row in rows] == ["F-1", "F-0"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("20240314", datetime(2024, 3, 15, 3, 59, 59, tzinfo=UTC)),
        ("20240314120000", datetime(2024, 3, 14, 12, tzinfo=UTC)),
        ("202403141230", datetime(2024, 3, 14, 12, 30, tzinfo=UTC)),
        ("20240314120000[0:GMT]", datetime(2024, 3, 14, 12, tzinfo=UTC)),
        ("20240314120000.123[+5.5:IST]", datetime(2024, 3, 14, 6, 30, tzinfo=UTC)),
        ("20240314120000[-3]", datetime(2024, 3, 14, 15, tzinfo=UTC)),
    ],
)
def test_times_with_and_without_an_offset(tmp_path: Path, written: str, expected: datetime) -> None:
    rows, _ = read(tmp_path, HEAD + SECOND.replace("20240302", written) + TAIL)
    assert [row["time"] for row in rows] == [expected]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("20240314120000.000[-5:EST]", "20240231", "`DTPOSTED` is no time."),
        ("20240314120000.000[-5:EST]", "today", "`DTPOSTED` is no time."),
        ("20240314120000.000[-5:EST]", "20240314120000[99]", "`DTPOSTED` is no time."),
        ("<TRNAMT>-4.50", "<TRNAMT>some", "its amount is no amount of money."),
        ("<TRNAMT>-4.50\n", "", "`TRNAMT` is missing."),
        ("CORNER", "\x81", "it is not in the encoding that the file names."),
    ],
)
def test_damaged_transactions_are_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    content = (HEAD + FIRST.replace(old, new) + SECOND + TAIL).encode("cp1252", "replace")
    if new == "\x81":
        content = SGML.replace(b"CORNER", b"\x81")
    with pytest.raises(InputError, match=r"s\.ofx, line 20: "):
        read(tmp_path, content)
    rows, reading = read(tmp_path, content, skip=True)
    assert [row["reference"] for row in rows] == ["F-0"]
    assert reading.places == [f"s.ofx, line 20: {reason}"]


def test_a_file_that_breaks_off_in_a_transaction(tmp_path: Path) -> None:
    content = SGML[: SGML.index(b"<FITID>F-0")]
    rows, reading = read(tmp_path, content, skip=True)
    assert [row["reference"] for row in rows] == ["F-1"]
    assert reading.places == ["s.ofx, line 28: the file breaks off in it."]


def test_entities_are_refused(tmp_path: Path) -> None:
    bomb = b'<!DOCTYPE OFX [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n'
    content = XML.replace(b"<OFX>", bomb + b"<OFX>", 1).replace(b"Hotel", b"&b;")
    with pytest.raises(InputError):
        read(tmp_path, content, skip=True)


def test_a_text_without_end_is_passed_over(tmp_path: Path) -> None:
    content = HEAD + "<MEMO>" + "x" * 200_000 + "\n" + SECOND + TAIL
    rows, reading = read(tmp_path, content, skip=True)
    assert reading.damages > 0
    assert [row["reference"] for row in rows] in ([], ["F-0"])


def test_transactions_over_the_borders_of_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = read(tmp_path, SGML)
    for size in (1, 7, 64):
        monkeypatch.setattr("tacit.personal.importers.ofx.CHUNK", size)
        assert read(tmp_path, SGML)[0] == whole
