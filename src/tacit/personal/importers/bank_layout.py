"""Where the table of a bank's statement begins, and what its columns are.

There is no standard: the delimiter, the encoding (UTF-8 or Windows-1252) and the lines above the
header vary, and the columns are found by their names in three languages.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.personal.importers.export import Member
from tacit.personal.importers.naming import plain_name

__all__ = ["COLUMNS", "Layout", "layout_of"]

# What a column is called, best first: English, German, French. A name may go on: `amount_eur`.
COLUMNS: Mapping[str, Sequence[str]] = {
    "date": (
        *("transaction_date", "booking_date", "posting_date", "posted_date", "post_date"),
        *("completed_date", "date", "buchungstag", "buchungsdatum", "buchung", "datum"),
        *("date_operation", "date_d_operation", "date_de_comptabilisation", "date_comptable"),
    ),
    "amount": ("amount", "transaction_amount", "betrag", "umsatz", "montant"),
    "sign": ("soll_haben_kennzeichen", "debit_credit", "credit_debit", "sens"),
    "debit": ("debit", "withdrawal", "withdrawals", "paid_out", "money_out", "soll", "belastung"),
    "credit": ("credit", "deposit", "deposits", "paid_in", "money_in", "haben", "gutschrift"),
    "currency": ("currency", "wahrung", "waehrung", "devise"),
    "counterparty": (
        *("payee", "counterparty", "merchant", "beneficiary", "partner_name", "name"),
        *("beguenstigter_zahlungspflichtiger", "auftraggeber_empfanger", "zahlungsempfanger_in"),
        *("name_zahlungsbeteiligter", "empfanger", "auftraggeber", "contrepartie", "tiers"),
    ),
    "description": (
        *("description", "transaction_description", "details", "memo", "narrative", "reference"),
        *("payment_reference", "verwendungszweck", "libelle", "libelle_operation"),
    ),
    "method": ("transaction_type", "type", "buchungstext", "umsatzart", "type_operation"),
    "category": ("category", "kategorie", "categorie"),
    "balance": ("balance", "running_balance", "saldo", "saldo_nach_buchung", "solde"),
}
MONEY = {"amount", "debit", "credit"}
MORE = {"description", "counterparty", "balance"}  # else it is a table of anything
ABOVE = 30  # lines that may stand above the header


@dataclass(frozen=True)
class Layout:
    """Where a statement's table begins, and what its columns are: what → which."""

    encoding: str
    delimiter: str
    skipped: int  # lines above the header
    columns: Mapping[str, int]


def layout_of(member: Member) -> Layout | None:
    head = member.head(1 << 15)
    encoding = "utf-8-sig"
    try:
        text = head.decode(encoding, "strict")
    except UnicodeDecodeError as error:
        broken = error.start < len(head) - 4
        encoding = "cp1252" if broken else encoding
        text = head.decode(encoding, "replace")
    for number, line in enumerate(io.StringIO(text, newline="")):
        if number > ABOVE:
            return None
        for mark in (";", ",", "\t"):
            columns = _columns(line, mark)
            if "date" in columns and columns.keys() & MONEY and columns.keys() & MORE:
                return Layout(encoding, mark, number, columns)
    return None


def _columns(line: str, mark: str) -> dict[str, int]:
    """What is in which column, if this line is the header."""
    try:
        names = [plain_name(name) for name in next(csv.reader([line], delimiter=mark), [])]
    except csv.Error:
        return {}
    found: dict[str, int] = {}
    for what, known in COLUMNS.items():
        places = [p for one in known for p, name in enumerate(names) if name == one] or [
            p for one in known for p, name in enumerate(names) if name.startswith(f"{one}_")
        ]
        free = [place for place in places if place not in found.values()]
        if free:
            found[what] = free[0]
    return found if len(names) > 2 else {}
