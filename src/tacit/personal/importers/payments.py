"""What the importers of bank statements have in common: the event, and amounts as banks write them.

Of an account, its number is never kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from tacit.personal.events import EventType
from tacit.personal.importers.json_values import Unreadable

__all__ = ["PAYMENT", "Decimal", "amount_of", "decimal_among"]

Decimal = Literal[".", ","]
PAYMENT = EventType(
    name="payment",
    fields={
        "amount": "number",
        "currency": "category",
        "counterparty": "category",
        "description": "text",
        "method": "category",
        "category": "category",
        "balance": "number",
        "account": "category",
        "reference": "text",
    },
    about="A payment on a bank account or card: money that came in is positive, out is negative.",
    words=("transaction", "spending", "purchase", "expense", "income", "bank", "money"),
)
AROUND = re.compile(r"[\s'’\u00a0\u202f]|[A-Z]{3}|[$€£¥]")  # blanks, apostrophes, currencies
NUMERAL = re.compile(r"\d+(\.\d+)?", re.ASCII)


def decimal_among(texts: Iterable[str]) -> Decimal:
    """How the amounts mark their decimals: what stands before the last one or two digits."""
    for text in texts:
        found = re.search(r"([.,])\d{1,2}\D*$", text)
        if found:
            return "," if found[1] == "," else "."
    return "."


def amount_of(text: str, decimal: Decimal) -> float | None:
    """`-1.234,50 €`, `1 234,50`, `$1,022.50`, `(12.00)`, `12,50-`, `+3`; None if it is empty."""
    bare = AROUND.sub("", text).replace("\u2212", "-")
    if not bare:
        return None
    negative = bare[0] in "-(" or bare[-1] == "-"
    digits = bare.strip("()+-").replace("," if decimal == "." else ".", "").replace(decimal, ".")
    if not NUMERAL.fullmatch(digits) or len(digits) > 20:
        raise Unreadable("its amount is no amount of money.")
    return -float(digits) if negative else float(digits)
