"""A holder's ledger in a study: reserve before the first share, charge what was begun."""

from __future__ import annotations

from typing import Protocol

from tacit.channels.studies.agreement import Named
from tacit.channels.studies.study import Study
from tacit.crypto.signing import digest
from tacit.privacy.ledger import Ledger, Reservation
from tacit.privacy.promise import Promise

__all__ = ["Budget", "LedgerBudget", "NoBudget", "purpose_of"]


class Budget(Protocol):
    """A holder's ledger, as far as one study needs it."""

    def reserve(self, number: int) -> None:
        """Set aside what round `number` needs, or find that it was; Refused if it cannot be had."""

    def spend(self, number: int) -> None:
        """Shares leave from here on; on the disk on return."""

    def settle(self, certificate: str | None) -> None:
        """Charge what was spent for good, and give back what was not."""


class LedgerBudget:
    """The whole study is one spend; in an online study each window is one, of its own part.

    A holder that starts again after a crash goes on with the reservation it had.
    """

    def __init__(
        self, promise: Promise, purpose: str, ledger: Ledger, dataset: str, windows: bool = False
    ) -> None:
        self._promise, self._purpose, self._windows = promise, purpose, windows
        self._ledger, self._dataset = ledger, dataset
        self._held: dict[str | None, Reservation] = {}
        self._spent: set[str | None] = set()
        self._keep_interrupted()

    @classmethod
    def of(cls, study: Study, ledger: Ledger, dataset: str) -> LedgerBudget:
        """What a holder of this study pays from `dataset`."""
        return cls(
            study.promise, purpose_of(study), ledger, dataset, windows=study.online is not None
        )

    def _keep_interrupted(self) -> None:
        """Windows that a crash left open were begun: they are charged when we settle."""
        for spend in self._ledger.open_spends():
            if spend.purpose == self._purpose and spend.dataset == self._dataset:
                self._hold(spend.part)
                if spend.drawn:
                    self._spent.add(spend.part)

    def reserve(self, number: int) -> None:
        part = self._part(number)
        if part not in self._held:
            self._hold(part)

    def _hold(self, part: str | None) -> None:
        wanted = (self._promise, self._dataset, self._purpose, part)
        self._held[part] = self._ledger.resume(*wanted) or self._ledger.reserve(*wanted)

    def spend(self, number: int) -> None:
        part = self._part(number)
        self._held[part].mark_drawn()
        self._spent.add(part)

    def settle(self, certificate: str | None) -> None:
        named = None if certificate is None else digest(certificate.encode())
        for part, reservation in self._held.items():
            if part in self._spent:
                reservation.commit(certificate=named)
            else:
                reservation.release()
        self._held.clear()

    def pause(self) -> None:
        """We stop and may come back: give back what was not begun, keep the rest reserved."""
        for part in [part for part in self._held if part not in self._spent]:
            self._held.pop(part).release()

    def _part(self, number: int) -> str | None:
        return f"{self._purpose} window {number}" if self._windows else None


def purpose_of(study: Named) -> str:
    """What a study's spend is called in the ledger."""
    return f"study {study.name} {study.digest[:16]}"


class NoBudget:
    """For holders without a ledger: comparisons, simulations."""

    def reserve(self, number: int) -> None: ...

    def spend(self, number: int) -> None: ...

    def settle(self, certificate: str | None) -> None: ...
