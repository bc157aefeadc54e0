"""Statements of banks as CSV.

The decimal mark and the order of days and months are found by looking through the statement before
it is read.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from zoneinfo import ZoneInfo

from tacit.errors import UsageError
from tacit.personal.importers import json_values as of
from tacit.personal.importers.bank_layout import COLUMNS, Layout, layout_of
from tacit.personal.importers.csv_rows import decoded_rows
from tacit.personal.importers.days import end_of_day
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import records
from tacit.personal.importers.json_values import Item, Unreadable
from tacit.personal.importers.payments import PAYMENT, Decimal, amount_of, decimal_among
from tacit.personal.importers.times import Form, form_among, instant

__all__ = ["Bank"]

OUT = {"s", "d", "debit", "dbit", "soll"}


class Bank:
    name = "bank"
    title = "Bank statement (CSV)"
    hint = "Your bank's site: the account's transactions, export as CSV. For OFX files: ofx."
    types = (PAYMENT,)
    options: Mapping[str, str] = {
        "order": "dmy or mdy, where 03/04/2024 could be both",
        "decimal": "a comma or a point, where amounts do not show it",
        "currency": "of the account, where the statement does not say",
    }

    def recognises(self, export: Export) -> bool:
        return any(layout_of(member) for member in export.find("*.csv")[:200])

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        for member in export.find("*.csv"):
            layout = layout_of(member)
            if layout is not None:
                convert = _converter(member, layout, reading)
                yield from records(_rows(member, layout, reading), convert, reading)


def _rows(member: Member, layout: Layout, reading: Reading) -> Iterator[tuple[str, dict[str, str]]]:
    """Cells by what they are. Rows may lack the last cells; empty ones are no rows."""
    rows = decoded_rows(member, reading, layout.encoding, layout.delimiter, layout.skipped + 1)
    for place, row in rows:
        cells = {w: row[p].strip() for w, p in layout.columns.items() if p < len(row)}
        if any(cells.values()):
            yield place, cells


def _converter(
    member: Member, layout: Layout, reading: Reading
) -> Callable[[Item, str], Iterable[Record]]:
    decimal, form = _forms(member, layout, reading)
    currency = reading.options.get("currency")

    def convert(row: Item, place: str) -> Iterable[Record]:
        said = {key: row.get(key) or None for key in COLUMNS}
        values = {
            "amount": _amount(row, decimal),
            "currency": said["currency"] or currency,
            **{key: said[key] for key in ("counterparty", "description", "method", "category")},
            "balance": amount_of(row.get("balance", ""), decimal),
        }
        yield Record(PAYMENT, _time(row.get("date", ""), form, reading.zone), values, place)

    return convert


def _forms(member: Member, layout: Layout, reading: Reading) -> tuple[Decimal, Form | None]:
    """The decimal mark and the form of days, from the whole statement."""
    said = reading.options.get("decimal")
    if said not in (None, ".", ","):
        raise UsageError("decimal: is a point or a comma.")
    quiet = Reading(reading.zone, skip_damaged=True)
    amounts = (
        row.get(key, "")
        for _, row in _rows(member, layout, quiet)
        for key in ("amount", "debit", "credit")
    )
    decimal: Decimal = said or decimal_among(amounts)  # type: ignore[assignment]
    days = (row.get("date", "") for _, row in _rows(member, layout, quiet))
    # Nobody who writes 1,50 for one and a half puts the month first.
    order = reading.options.get("order") or ("dmy" if decimal == "," else None)
    return decimal, form_among(days, order, member.name)


def _amount(row: Item, decimal: Decimal) -> float:
    if "amount" in row:
        amount = of.needed(amount_of(row["amount"], decimal), "amount")
        return -abs(amount) if row.get("sign", "").lower() in OUT else amount
    debit = amount_of(row.get("debit", ""), decimal)
    credit = amount_of(row.get("credit", ""), decimal)
    if debit is None and credit is None:
        raise Unreadable("it has no amount.")
    return abs(credit or 0.0) - abs(debit or 0.0)


def _time(text: str, form: Form | None, zone: ZoneInfo) -> datetime.datetime:
    time = instant(text, form, zone) if form else None
    if time is None:
        raise Unreadable("its date is no date, or not in the form that the others have.")
    local = time.astimezone(zone)
    return time if ":" in text else end_of_day(local.date(), zone)
