"""What was charged when: a policy has rules about the last year, and about one study. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tacit.privacy.ledger.accounts import Charged
from tacit.privacy.ledger.amounts import Charge, Number, Tally
from tacit.privacy.promise import Adjacency

__all__ = ["Settled", "sums", "within_year"]

YEAR = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Settled:
    """A spend that is charged for good, and when; `person` is the column that said whose a record
    is."""

    at: str
    study: str | None
    charged: Charged
    person: str | None = None


def within_year(settled: Iterable[Settled], now: datetime) -> list[Charged]:
    return [one.charged for one in settled if datetime.fromisoformat(one.at) > now - YEAR]


def sums(spends: list[Charged]) -> tuple[Number, Number]:
    """Of ε and δ as they were promised, over partitions as accounts add them."""
    tally = Tally()
    for spend in spends:
        tally.add(Charge(spend.amount), spend.partition, spend.part)
    replaced = any(spend.adjacency is Adjacency.REPLACE for spend in spends)
    total = tally.total(2 if replaced else 1).amount
    return total.epsilon, total.delta
