"""Bank statements in three languages: columns, signs, decimals, days and encodings are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError, UsageError
from tacit.personal.importers.bank import Bank
from tacit.personal.importers.contract import ImporterContract
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading

ENGLISH = """\
Date,Description,Amount,Balance,Transaction ID
03/14/2024,"CORNER CAFE, OAKLAND",-4.50,"1,495.50",T1
03/14/2024,"CORNER CAFE, OAKLAND",-4.50,"1,491.00",T2
03/02/2024,PAYROLL,"1,500.00","1,500.00",T0
"""
GERMAN = """\
Umsatzanzeige;Datei erstellt am: 15.04.2024

Konto;Girokonto
Buchung;Wertstellungsdatum;Auftraggeber/Empfänger;Buchungstext;Verwendungszweck;Saldo;Währung;\
Betrag;Währung
02.04.2024;03.04.2024;Bäckerei Korn;Lastschrift;Brötchen;1.495,50;EUR;-4,50;EUR
01.04.2024;01.04.2024;Arbeit GmbH;Gutschrift;Lohn März;1.500,00;EUR;1.500,00;EUR
"""
FRENCH = """\
Compte courant

Date;Libellé;Débit Euros;Crédit Euros;
02/04/2024;"Boulangerie
Paiement par carte";4,50;
01/04/2024;Virement salaire;;1 500,00;
"""


class TestContract(ImporterContract):
    importer = Bank()
    good: Mapping[str, bytes] = {"statement.csv": ENGLISH.encode()}
    events = 3
    torn = 1
    huge_name = "statement.csv"

    def huge(self, n: int) -> Iterator[bytes]:
        yield b"Date,Description,Amount,Balance\n"
        for i in range(n):
            yield b"2024-03-01,A shop of some name %d,-4.50,%d.00\n" % (i, i)


class TestGerman(ImporterContract):
    importer = Bank()
    good: Mapping[str, bytes] = {"Umsaetze.csv": GERMAN.encode("cp1252")}
    events = 2
    torn = 1


class TestFrench(ImporterContract):
    importer = Bank()
    good: Mapping[str, bytes] = {"releve.csv": FRENCH.encode()}
    events = 2
    torn = 1


def read(
    tmp_path: Path,
    content: str | bytes,
    zone: str = "Europe/Berlin",
    skip: bool = False,
    **options: str,
) -> tuple[list[dict[str, Any]], Reading]:
    (tmp_path / "s.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    reading = Reading(ZoneInfo(zone), options, skip_damaged=skip)
    found = list(Bank().read(Export(tmp_path / "s.csv"), reading))
    rows = [{"time": r.time, "place": r.place, **r.values} for r in found]
    return [
        {key: value for key, value in row.items() if value is not None} for row in rows
    ], reading


def test_english(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, ENGLISH, zone="America/Los_Angeles", currency="USD")
    assert rows == [
        {
            "time": datetime(2024, 3, 15, 6, 59, 59, tzinfo=UTC),
            "place": "s.csv, line 2",
            "amount": -4.5,
            "currency": "USD",
            "description": "CORNER CAFE, OAKLAND",
            "balance": 1495.5,
        },
        {
            "time": datetime(2024, 3, 15, 6, 59, 59, tzinfo=UTC),
            "place": "s.csv, line 3",
            "amount": -4.5,
            "currency": "USD",
            "description": "CORNER CAFE, OAKLAND",
            "balance": 1491.0,
        },
        {
            "time": datetime(2024, 3, 3, 7, 59, 59, tzinfo=UTC),
            "place": "s.csv, line 4",
            "amount": 1500.0,
            "currency": "USD",
            "description": "PAYROLL",
            "balance": 1500.0,
        },
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_german(tmp_path: Path, encoding: str) -> None:
    rows, _ = read(tmp_path, GERMAN.encode(encoding))
    assert rows == [
        {
            "time": datetime(2024, 4, 2, 21, 59, 59, tzinfo=UTC),
            "place": "s.csv, line 5",
            "amount": -4.5,
            "currency": "EUR",
            "counterparty": "Bäckerei Korn",
            "description": "Brötchen",
            "method": "Lastschrift",
            "balance": 1495.5,
        },
        {
            "time": datetime(2024, 4, 1, 21, 59, 59, tzinfo=UTC),
            "place": "s.csv, line 6",
            "amount": 1500.0,
            "currency": "EUR",
            "counterparty": "Arbeit GmbH",
            "description": "Lohn März",
            "method": "Gutschrift",
            "balance": 1500.0,
        },
    ]


def test_french(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, FRENCH)
    assert [(row["time"].day, row["amount"], row["description"]) for row in rows] == [
        (2, -4.5, "Boulangerie\nPaiement par carte"),
        (1, 1500.0, "Virement salaire"),
    ]


def test_a_mark_for_debit_and_credit(tmp_path: Path) -> None:
    content = (
        "Auftragskonto;Buchungstag;Buchungstext;Verwendungszweck;Betrag;Waehrung;"
        "Soll/Haben-Kennzeichen\n"
        "DE00;04.08.2024;UEBERWEISUNG;Miete;800,00;EUR;H\n"
        "DE00;12.08.2024;LASTSCHRIFT;Steuer;198,00;EUR;S\n"
    )
    rows, _ = read(tmp_path, content)
    assert [row["amount"] for row in rows] == [800.0, -198.0]
    assert not any("DE00" in str(row.values()) for row in rows)  # no account number is kept


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("-1.234,50", -1234.5),
        ("1 234,50 €", 1234.5),
        ("12,50-", -12.5),
        ("(12,50)", -12.5),
        ("+3,00", 3.0),
        ("1'234,50", 1234.5),
        ("\u22123,00", -3.0),
        ("EUR 7,00", 7.0),
    ],
)
def test_amounts_as_banks_write_them(tmp_path: Path, written: str, amount: float) -> None:
    rows, _ = read(tmp_path, f"Datum;Betrag;Verwendungszweck\n13.01.2024;{written};x\n")
    assert [row["amount"] for row in rows] == [amount]


def test_whole_amounts_may_need_to_be_told_their_decimals(tmp_path: Path) -> None:
    content = "Datum;Betrag;Verwendungszweck\n13.01.2024;1.500;x\n"
    assert read(tmp_path, content)[0][0]["amount"] == 1.5
    assert read(tmp_path, content, decimal=",")[0][0]["amount"] == 1500.0
    with pytest.raises(UsageError, match="a point or a comma"):
        read(tmp_path, content, decimal="x")


def test_days_that_nobody_can_tell_are_asked_for(tmp_path: Path) -> None:
    content = "Date,Description,Amount\n03/04/2024,x,-4.50\n"
    with pytest.raises(InputError, match="option order"):
        read(tmp_path, content)
    assert read(tmp_path, content, order="dmy")[0][0]["time"].month == 4
    # Who writes a decimal comma puts the day first.
    assert read(tmp_path, content.replace("-4.50", '"-4,50"'))[0][0]["time"].month == 4


def test_a_time_of_day_is_kept(tmp_path: Path) -> None:
    content = "Type,Completed Date,Description,Amount,Currency,Balance\n"
    content += "CARD_PAYMENT,2024-07-01 10:30:00,Cafe,-4.50,EUR,10.00\n"
    rows, _ = read(tmp_path, content)
    assert rows[0]["time"] == datetime(2024, 7, 1, 8, 30, tzinfo=UTC)
    assert (rows[0]["method"], rows[0]["currency"]) == ("CARD_PAYMENT", "EUR")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("soon,x,-4.50", "its date is no date"),
        ("2024-02-31,x,-4.50", "its date is no date"),
        ("2024-02-01,x,much", "its amount is no amount"),
        ("2024-02-01,x,", "`amount` is missing"),
    ],
)
def test_damaged_rows_are_named(tmp_path: Path, row: str, reason: str) -> None:
    content = f"Date,Description,Amount\n2024-01-01,x,1.00\n{row}\n\n2024-01-02,x,2.00\n"
    with pytest.raises(InputError, match=r"s\.csv, line 3: "):
        read(tmp_path, content)
    rows, reading = read(tmp_path, content, skip=True)
    assert [row["amount"] for row in rows] == [1.0, 2.0]
    assert len(reading.places) == 1
    assert reading.places[0].startswith(f"s.csv, line 3: {reason}")


def test_neither_debit_nor_credit_is_damaged(tmp_path: Path) -> None:
    content = "Date;Libellé;Débit;Crédit\n2024-01-01;x;;\n2024-01-02;x;1,00;\n"
    rows, reading = read(tmp_path, content, skip=True)
    assert [row["amount"] for row in rows] == [-1.0]
    assert reading.places == ["s.csv, line 2: it has no amount."]


def test_a_table_of_days_and_amounts_alone_is_not_taken_for_a_bank_s(tmp_path: Path) -> None:
    (tmp_path / "rain.csv").write_text("date,amount,place\n2024-01-01,3.5,garden\n")
    assert not Bank().recognises(Export(tmp_path / "rain.csv"))
