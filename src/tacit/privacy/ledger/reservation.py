"""One spend that is set aside: drawn, then committed or given back."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from tacit.errors import Refused, UsageError
from tacit.privacy.ledger.checks import label
from tacit.privacy.ledger.owner import Fate
from tacit.privacy.ledger.state import Spend, State
from tacit.privacy.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from tacit.privacy.ledger.ledger import Ledger

__all__ = [
    "Draft",
    "Reservation",
    "amount_text",
    "commit",
    "release",
    "report_interrupted",
    "settle",
]

log = logging.getLogger("tacit.ledger")

Draft = tuple[str, dict[str, Any]]  # kind and body of an entry to be


class Reservation:
    """A spend that is set aside. As a context manager it commits on leaving; after an exception it
    gives back if no noise was drawn, and commits if it was."""

    def __init__(self, ledger: Ledger, number: int, promise: Promise, dataset: str) -> None:
        self._ledger = ledger
        self.id, self.promise, self.dataset = number, promise, dataset
        self._owner = ledger._surroundings.owner()

    def __repr__(self) -> str:
        return f"<Reservation {self.id}: {self.promise} on {self.dataset}>"

    def mark_drawn(self) -> None:
        """Noise is drawn from here on, so this can no longer be given back. On the disk on return,
        so that a crash right after it is known to have spent."""

        def decide(state: State) -> Draft | None:
            spend = state.spend(self.id)
            drawn = spend.drawn
            self._refuse_taken_over(spend)
            state.decisions.refuse_revoked(self.dataset)  # asked before every round
            return None if drawn else ("draw", {"reservation": self.id})

        self._ledger._append(decide)

    def _refuse_taken_over(self, spend: Spend) -> None:
        """A process elsewhere, with a copy of our folder, took us for gone: only one may draw."""
        if spend.owner != self._owner:
            raise Refused(
                f"reservation {self.id} was taken over by process {spend.owner.pid} of another "
                "start, machine or container: nothing more is released under it here."
            )

    def commit(self, spent: Promise | None = None, certificate: str | None = None) -> None:
        """Charge it for good: all of it, or `spent` if the study ended early.

        `certificate` names the certificate that left with the result, by its digest.
        """
        if certificate is not None:
            label("certificate", certificate)
        cost = self._no_more_than_reserved(spent) if spent else self.promise
        self._ledger._append(lambda state: commit(state.spend(self.id), cost, certificate))

    def release(self) -> None:
        """Give it back; UsageError once noise was drawn."""
        self._ledger._append(lambda state: release(state.spend(self.id)))

    def settle(self, certificate: str | None = None) -> None:
        """Charge it if noise was drawn under it, as the ledger knows it; else give it back."""
        if certificate is not None:
            label("certificate", certificate)

        def decide(state: State) -> Draft:
            spend = state.spend(self.id)
            return commit(spend, self.promise, certificate) if spend.drawn else release(spend)

        self._ledger._append(decide)

    def give_back_undrawn(self) -> bool:
        """Give it back unless noise was drawn under it, as the ledger knows it; whether it did."""
        drawn = False

        def decide(state: State) -> Draft | None:
            nonlocal drawn
            spend = state.spend(self.id)
            drawn = spend.drawn
            return None if drawn else release(spend)

        self._ledger._append(decide)
        return not drawn

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        def decide(state: State) -> Draft | None:
            if self.id not in state.open and (error or self.id not in state.settled):
                return None  # closed inside the block
            spend = state.spend(self.id)  # Refused, if its holder settled it meanwhile
            if error is None or spend.drawn:
                return commit(spend, self.promise, None)
            return release(spend)

        self._ledger._append(decide)

    def _no_more_than_reserved(self, spent: Promise) -> Promise:
        mine = self.promise
        same = (spent.unit, spent.adjacency) == (mine.unit, mine.adjacency)
        if not same or spent.epsilon > mine.epsilon or spent.delta > mine.delta:
            raise UsageError(
                f"cannot commit {spent}: {mine} was reserved. Commit at most that, for the same "
                "unit and adjacency; reserve the rest before spending it."
            )
        return spent


def commit(spend: Spend, cost: Promise, certificate: str | None, settled: bool = False) -> Draft:
    return "commit", {
        "reservation": spend.id,
        **amount_text(cost.epsilon, cost.delta),
        "certificate": certificate,
        "settled": settled,
    }


def release(spend: Spend, settled: bool = False) -> Draft:
    if spend.drawn:
        problem = (
            f"reservation {spend.id} cannot be given back: noise was drawn under it (or may have "
            f"been, after the copy of the ledger that is in use), so {spend.amount} may have been "
            "spent. "
        )
        if settled:
            raise Refused(problem + f"Charge it: tacit budget settle {spend.id} --spent")
        raise UsageError(problem + "Commit it.")
    return "release", {"reservation": spend.id, "settled": settled}


def settle(spend: Spend, fate: Fate, spent: bool) -> Draft:
    """By the holder's word."""
    if fate is Fate.RUNNING:
        raise Refused(
            f"reservation {spend.id} belongs to process {spend.owner.pid}, which "
            "still runs and will settle it itself; stop that process first."
        )
    if spent:
        return commit(spend, spend.promise, None, settled=True)
    return release(spend, settled=True)


def amount_text(epsilon: float, delta: float) -> dict[str, str]:
    # The shortest decimal that names the float; read back exactly by Amount.read.
    return {"epsilon": repr(epsilon), "delta": repr(delta)}


def report_interrupted(spends: Iterable[Spend]) -> None:
    for spend in spends:
        how = "start it again to go on, or settle it" if spend.resumable else "settle it"
        log.warning(
            "reservation %d (%s on %s, %s) was interrupted and counts as spent; %s: "
            "tacit budget settle %d --spent | --unspent",
            spend.id,
            spend.purpose,
            spend.dataset,
            spend.amount,
            how,
            spend.id,
        )
