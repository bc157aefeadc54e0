"""A holder's ledger in a study: reserve before the first share, charge what was begun."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Protocol

from tacit.channels.roles.store import BEFORE_IDENTITIES
from tacit.channels.studies.agreement import Named
from tacit.channels.studies.asked import asked_by
from tacit.channels.studies.study import Study
from tacit.crypto.signing import digest
from tacit.errors import BudgetExceeded, Refused, TacitError
from tacit.privacy.accounting import SpendCost
from tacit.privacy.ledger import Ledger, RecordDigests, Reservation, Spend
from tacit.privacy.policy import Asked, LeftOut
from tacit.privacy.promise import Promise

__all__ = ["Budget", "LedgerBudget", "NoBudget", "PlannedCost", "drawn_by", "purpose_of"]

log = logging.getLogger("tacit.ledger")

PlannedCost = Callable[[int], SpendCost | None]


class Budget(Protocol):
    """A holder's ledger, as far as one study needs it."""

    def belongs_to(self, identity: str) -> None:
        """Say which outbox or journal draws, and for which key (`drawn_by`), before anything else:
        what it drew earlier is its own to go on with, and nobody else's."""

    def reserve(self, number: int) -> bool | None:
        """Set aside what round `number` needs, or find that it was; Refused if it cannot be had.

        True if something was drawn under it in an earlier life: a journal that has not noted that
        must not draw again."""

    def spend(self, number: int) -> None:
        """Shares leave from here on; on the disk on return."""

    def settle(self, certificate: str | None) -> None:
        """Charge what was spent for good, and give back what was not."""


def drawn_by(journal: str, key: str) -> str:
    """The identity of a reservation: one journal's, for one key."""
    return journal if journal == BEFORE_IDENTITIES else f"{journal} {key}"


class LedgerBudget:
    """The whole study is one spend; in an online study each window is one, of its own part.

    A holder that starts again after a crash goes on with the reservation it had, if it still has
    what was drawn under it. One that has lost it starts afresh, and pays again; where a study is
    one release (`once`), it first has to leave what it has lost.
    """

    def __init__(
        self,
        promise: Promise,
        purpose: str,
        ledger: Ledger,
        dataset: str,
        windows: bool = False,
        cost: PlannedCost = lambda number: None,
        asked: Asked | None = None,
        once: bool = False,
    ) -> None:
        self._once, self._drawn_before = once, set[str | None]()
        self._promise, self._purpose, self._windows = promise, purpose, windows
        self._ledger, self._dataset, self._cost = ledger, dataset, cost
        self._asked = asked
        self._held: dict[str | None, Reservation] = {}
        self._identity = secrets.token_hex(16)  # until we are told whose we are
        self._records: RecordDigests | None = None
        self.begins: Callable[[], None] = lambda: None  # called before anything is drawn

    @classmethod
    def of(
        cls, study: Study, ledger: Ledger, dataset: str, cost: PlannedCost | None = None
    ) -> LedgerBudget:
        """What a holder of this study pays from `dataset`; by the study's plan, if it has one."""
        return cls(
            study.promise,
            purpose_of(study),
            ledger,
            dataset,
            windows=study.online is not None,
            cost=cost or (lambda number: _planned(study, number)),
            asked=asked_by(study),
            once=study.consortium is not None,
        )

    def pays_for(self, records: RecordDigests) -> None:
        """Say which records all rounds are about, before anything is reserved."""
        self._records = records

    def pays_now_for(self, records: RecordDigests) -> None:
        """Say which records an open window is about, before anything is drawn; Refused if they are
        known as another data set's."""
        self._ledger.know(self._dataset, records)

    def check(self) -> None:
        """Refused if the holder's policy forbids it, however little was spent."""
        if self._asked is not None:
            self._ledger.decisions.check(self._promise, self._dataset, self._asked)

    def left_out(self) -> LeftOut:
        """Whose records are not used, as of now."""
        return self._ledger.decisions.left_out(self._dataset)

    def belongs_to(self, identity: str) -> None:
        """Windows that a crash left open were begun: they are charged when we settle."""
        self._identity = identity
        for spend in self._open():
            if spend.belongs_to(self._ledger_identity):
                self._hold(spend.part, 0)

    def reserve(self, number: int) -> bool:
        part = self._part(number)
        if part not in self._held:
            self._hold(part, number)
        return part in self._drawn_before

    def _hold(self, part: str | None, number: int) -> None:
        wanted = (self._promise, self._dataset, self._purpose, part)
        resumed = self._ledger.resume(*wanted, identity=self._ledger_identity)
        if resumed is not None:
            if self._records is not None:
                self._ledger.know(self._dataset, self._records)  # a crash may have come before
            if any(spend.id == resumed.id and spend.drawn for spend in self._open()):
                self._drawn_before.add(part)
        self._held[part] = resumed or self._reserved(part, number)

    def _reserved(self, part: str | None, number: int) -> Reservation:
        # Windows of another outbox were cut in another way: they are not parts of this partition.
        partition = None if part is None else f"{self._purpose} by {self._identity[:16]}"
        self._give_back_abandoned()
        self._refuse_second()
        try:
            return self._ledger.reserve(
                self._promise,
                self._dataset,
                self._purpose,
                part,
                partition=partition,
                cost=self._cost(number),
                identity=self._identity,
                records=self._records,
                asked=self._asked,
            )
        except BudgetExceeded as error:
            lost = [spend.id for spend in self._open() if spend.drawn]
            if not lost or self._held:
                raise
            raise BudgetExceeded(
                f"{error} Reservation {lost[0]} is of an earlier run of this study, which has "
                "drawn noise under it; only the folder of that run can go on with it. Start with "
                "that folder.",
                asked=error.asked,
                left=error.left,
                shortfall=error.shortfall,
            ) from None

    def _refuse_second(self) -> None:
        """The same key has drawn in this study, and what was drawn is in another folder."""
        lost = [s.id for s in self._open() if s.drawn and self._same_key(s)] if self._once else []
        if lost:
            raise Refused(
                f"reservation {lost[0]} is of an earlier run of {self._purpose}, which has "
                "revealed its part; only the folder of that run can go on with it. Start with that "
                "folder. If it is lost, leave the study (--leave), which charges what was "
                "revealed: taking part again is a second release then, and a second spend."
            )

    def _same_key(self, spend: Spend) -> bool:
        """What does not say for which key it was drawn may be ours."""
        own, other = (text.partition(" ")[2] for text in (self._identity, spend.identity or ""))
        return not other or own == other

    def _give_back_abandoned(self) -> None:
        """What runs with other folders had reserved and never drawn."""
        for spend in self._ledger.interrupted():
            ours = self._is_ours(spend) and not spend.belongs_to(self._ledger_identity)
            if ours and not spend.drawn:
                self._ledger.settle(spend.id, spent=False)

    def spend(self, number: int) -> None:
        self.begins()
        self._held[self._part(number)].mark_drawn()

    def settle(self, certificate: str | None) -> None:
        named = None if certificate is None else digest(certificate.encode())
        for part, reservation in list(self._held.items()):
            reservation.settle(named)
            del self._held[part]

    def refuse_running(self) -> None:
        """Whoever leaves while a process of its own still takes part would come back at once."""
        interrupted = {spend.id for spend in self._ledger.interrupted()}
        for spend in self._open():
            if spend.id not in interrupted:
                raise Refused(
                    f"process {spend.owner.pid} still takes part in {self._purpose}: stop it first "
                    "(Ctrl-C), then leave."
                )

    def leave(self) -> None:
        """For good: charge what any run of this study has begun, and give back what none has."""
        self.settle(None)
        for spend in self._ledger.interrupted():
            if self._is_ours(spend):
                self._ledger.settle(spend.id, spent=spend.drawn)

    def pause(self) -> None:
        """We stop and may come back: give back what was not begun, keep the rest reserved."""
        for part, reservation in list(self._held.items()):
            if reservation.give_back_undrawn():
                del self._held[part]

    def stop(self, error: BaseException) -> None:
        """A run has ended with an error: only a final one settles, after any other we may come
        back. A ledger that cannot be written now is left as it is: all stays reserved, and is
        found again by who comes back."""
        try:
            if isinstance(error, TacitError) and error.final:
                self.settle(None)
            else:
                self.pause()
        except (TacitError, OSError) as problem:
            log.warning("what was reserved for %s stays reserved: %s", self._purpose, problem)

    def _open(self) -> list[Spend]:
        return [spend for spend in self._ledger.open_spends() if self._is_ours(spend)]

    def _is_ours(self, spend: Spend) -> bool:
        return (spend.purpose, spend.dataset) == (self._purpose, self._dataset)

    @property
    def _ledger_identity(self) -> str | None:
        """Reservations of version 0.1 bear none; a store that it began has drawn under them."""
        return None if self._identity == BEFORE_IDENTITIES else self._identity

    def _part(self, number: int) -> str | None:
        return f"{self._purpose} window {number}" if self._windows else None


def _planned(study: Study, number: int) -> SpendCost | None:
    """What the whole study, or its window `number`, can reveal of a unit at one holder."""
    if study.consortium is not None or not study.promise.is_private:
        return None
    levels = study.levels(number if study.online is not None else 0)
    return SpendCost.of(levels.planned_releases(), study.promise.adjacency)


def purpose_of(study: Named) -> str:
    """What a study's spend is called in the ledger."""
    return f"study {study.name} {study.digest[:16]}"


class NoBudget:
    """For holders without a ledger: comparisons, simulations."""

    def belongs_to(self, identity: str) -> None: ...

    def reserve(self, number: int) -> None: ...

    def spend(self, number: int) -> None: ...

    def settle(self, certificate: str | None) -> None: ...
