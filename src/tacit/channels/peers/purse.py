"""What a peer may still spend, and the budget of one group.

A purse knows the records that models are trained on: a part of the data set, with a budget of its
own. When new records come, they are another part (parallel composition), and another purse. Parts
are those of one network as one peer's folder has counted them: what another network, or a peer
that has lost its folder, calls a part may be the same records, and is charged beside them.
"""

from __future__ import annotations

import secrets
from typing import Protocol

from tacit.channels.roles.budget import Budget
from tacit.channels.studies.checks import parallel_problem
from tacit.crypto.signing import digest
from tacit.errors import Refused
from tacit.privacy.accounting import SpendCost
from tacit.privacy.ledger import Ledger, RecordDigests, Reservation
from tacit.privacy.policy import Asked
from tacit.privacy.promise import Promise

__all__ = ["CountedPurse", "LedgerPurse", "Purse"]


class Purse(Protocol):
    """Enough for some aggregations, each of the same promise."""

    @property
    def able(self) -> bool:
        """Whether another aggregation can be paid."""

    def budget(self, group: str) -> Budget:
        """That of one group; nothing is set aside before its `reserve`."""


class LedgerPurse:
    """In the holder's ledger. `part` names the records; None: all of the data set. `identity` is
    that of the folder which knows the parts; without one, the part is nobody else's. `cost` is
    that of one aggregation. `records` are those of the table: Refused if they are known as another
    data set's."""

    def __init__(
        self,
        promise: Promise,
        ledger: Ledger,
        dataset: str,
        network: str,
        part: str | None,
        identity: str | None = None,
        cost: SpendCost | None = None,
        records: RecordDigests | None = None,
        asked: Asked | None = None,
    ) -> None:
        problem = None if part is None else parallel_problem(promise)
        if problem is not None:
            raise Refused(f"a part of the data set has no budget of its own here: {problem}.")
        self._promise, self._ledger, self._dataset = promise, ledger, dataset
        self._network, self._part, self._cost = network, part, cost
        self._records, self._asked = records, asked
        if asked is not None:
            ledger.decisions.check(promise, dataset, asked)  # refused at once, not for want of ε
        counted_by = (identity or secrets.token_hex(16))[:16]
        self._partition = None if part is None else f"peers {network[:16]} by {counted_by}"
        self._settle_interrupted()
        if records is not None:
            ledger.refuse_known(dataset, records)  # rather than in the middle of forming a group

    @property
    def able(self) -> bool:
        return self._ledger.affords(
            self._promise,
            self._dataset,
            self._part,
            partition=self._partition,
            cost=self._cost,
            asked=self._asked,
        )

    def budget(self, group: str) -> Budget:
        return _GroupBudget(self, f"peers {self._network[:16]} group {group[:32]}")

    def reserve(self, purpose: str) -> Reservation:
        return self._ledger.reserve(
            self._promise,
            self._dataset,
            purpose,
            self._part,
            partition=self._partition,
            cost=self._cost,
            records=self._records,
            asked=self._asked,
        )

    def _settle_interrupted(self) -> None:
        """Groups that a crash has broken off: what had begun is charged, the rest is given back."""
        purpose = f"peers {self._network[:16]} group "
        for spend in self._ledger.interrupted():
            if spend.dataset == self._dataset and spend.purpose.startswith(purpose):
                self._ledger.settle(spend.id, spent=spend.drawn)


class _GroupBudget:
    def __init__(self, purse: LedgerPurse, purpose: str) -> None:
        self._purse, self._purpose = purse, purpose
        self._held: Reservation | None = None

    def belongs_to(self, identity: str) -> None:
        """Groups are not gone on with: what was interrupted is settled when the purse is opened."""

    def reserve(self, number: int) -> None:
        if self._held is None:
            self._held = self._purse.reserve(self._purpose)

    def spend(self, number: int) -> None:
        assert self._held is not None  # reserved before
        self._held.mark_drawn()

    def settle(self, certificate: str | None) -> None:
        if self._held is None:
            return
        held, self._held = self._held, None
        held.settle(None if certificate is None else digest(certificate.encode()))


class CountedPurse:
    """So many aggregations, in memory: for simulations."""

    def __init__(self, aggregations: int) -> None:
        self.left, self.spent = aggregations, 0

    @property
    def able(self) -> bool:
        return self.left > 0

    def budget(self, group: str) -> Budget:
        return _Counted(self)


class _Counted:
    def __init__(self, purse: CountedPurse) -> None:
        self._purse, self._held, self._begun = purse, False, False

    def belongs_to(self, identity: str) -> None: ...

    def reserve(self, number: int) -> None:
        if not self._held:
            if self._purse.left < 1:
                raise Refused("no budget is left for another aggregation.")
            self._purse.left -= 1
            self._held = True

    def spend(self, number: int) -> None:
        self._begun = True

    def settle(self, certificate: str | None) -> None:
        if self._held:
            self._held = False
            self._purse.spent += self._begun
            self._purse.left += not self._begun
