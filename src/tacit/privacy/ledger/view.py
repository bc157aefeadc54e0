"""Budgets as a notebook shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tacit import notebook

if TYPE_CHECKING:
    from tacit.privacy.ledger.accounts import Balance

__all__ = ["balances_html"]

HEAD = ("data set", "unit", "allowed", "spent", "reserved", "left", "composed by")


def balances_html(title: str, balances: Iterable[Balance]) -> str:
    rows = [
        [
            balance.dataset,
            str(balance.unit),
            *map(str, (balance.allowed, balance.spent, balance.reserved, balance.left)),
            str(balance.composition),
        ]
        for balance in balances
    ]
    return notebook.grid(title, HEAD, rows or [["no budget is set yet"]])
