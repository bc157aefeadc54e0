"""The ledger: what every release has cost, and the refusal of what its holder did not allow.

ledger.py     Ledger, which callers use, and reservation.py: one spend that is set aside
state.py      what the entries add up to; no input, no output
accounts.py   one budget, and what is charged to it
amounts.py    exact sums over parts and partitions
units.py      what a spend costs an account of another unit or adjacency
filter.py     the rule by which spends compose, proved in filter.md
recompute.py  the same sums a second time, by other code
holder.py     what its holder decides beside budgets, and decisions.py: what follows from it
history.py    what was charged when
checks.py     what callers give, checked
chain.py      the SQLite file and the hash chain in it
known.py      which records were charged, and to which data set; known_file.py: their digests
carried.py    ledgers of older versions
seen.py       how far this machine has seen a ledger
recovery.py   what an older copy, or a new ledger, is told when it takes the place of one
owner.py      the clock, and which process made a reservation
"""

from __future__ import annotations

from tacit.privacy.ledger.accounts import Balance
from tacit.privacy.ledger.amounts import Amount
from tacit.privacy.ledger.chain import Entry
from tacit.privacy.ledger.filter import Composition
from tacit.privacy.ledger.known import RecordDigests
from tacit.privacy.ledger.ledger import Ledger
from tacit.privacy.ledger.owner import Owner, Surroundings
from tacit.privacy.ledger.reservation import Reservation
from tacit.privacy.ledger.state import Spend

__all__ = [
    "Amount",
    "Balance",
    "Composition",
    "Entry",
    "Ledger",
    "Owner",
    "RecordDigests",
    "Reservation",
    "Spend",
    "Surroundings",
]
