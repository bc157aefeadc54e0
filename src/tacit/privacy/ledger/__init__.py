"""The ledger: what every release has cost, and the refusal of what its holder did not allow.

ledger.py   Ledger and Reservation: what callers use
state.py    what the entries add up to, and the rule by which spends compose; no input, no output
chain.py    the SQLite file and the hash chain in it
owner.py    the clock, and which process made a reservation
"""

from __future__ import annotations

from tacit.privacy.ledger.chain import Entry
from tacit.privacy.ledger.ledger import Ledger, Reservation
from tacit.privacy.ledger.owner import Owner, Surroundings
from tacit.privacy.ledger.state import Amount, Balance, Spend

__all__ = [
    "Amount",
    "Balance",
    "Entry",
    "Ledger",
    "Owner",
    "Reservation",
    "Spend",
    "Surroundings",
]
