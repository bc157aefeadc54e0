"""The ledger of one holder: reserve, then draw noise, then commit.

What is asked is checked against the holder's ceiling and written to the disk *before* noise is
drawn, and a reservation counts as spent until it is given back. So a crash at any moment can only
leave too much charged, never too little.
"""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tacit.errors import LedgerTampered, Refused, UsageError
from tacit.privacy.ledger.chain import VERSION, Entry, LedgerFile, Transaction
from tacit.privacy.ledger.owner import Fate, Surroundings
from tacit.privacy.ledger.state import Balance, Spend, State
from tacit.privacy.promise import Promise, Unit

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["Ledger", "Reservation"]

log = logging.getLogger("tacit.ledger")

Draft = tuple[str, dict[str, Any]]  # kind and body of an entry to be


class Ledger:
    """A holder's ledger in one file, shared safely by any number of processes and threads.

    Opening it checks the whole chain; a path that does not exist yet becomes a new ledger, in which
    nothing is allowed. Copies (also in other processes) charge the same file.
    """

    def __init__(
        self, path: str | os.PathLike[str], surroundings: Surroundings | None = None
    ) -> None:
        self.path = Path(path).expanduser().resolve()
        self._file = LedgerFile(self.path)
        self._surroundings = surroundings or Surroundings()
        self._state = State()
        self._open_or_create()
        self._report_interrupted()

    # ── the holder's side ──

    def allow(self, dataset: str, unit: Unit | str, epsilon: float, delta: float = 0.0) -> Balance:
        """Set the ceiling of one budget; the newest ceiling holds, also if it is below what is
        spent (then nothing is left). Zero closes the budget."""
        # A ceiling may be 0, which a promise may not; all else is checked alike.
        promise = Promise(epsilon if epsilon != 0 else 1.0, delta, _unit(unit))
        body = {
            "dataset": _label("dataset", dataset),
            "unit": str(promise.unit),
            **_amount_text(promise.epsilon if epsilon != 0 else 0.0, promise.delta),
        }
        self._append(lambda state: ("allow", body))
        return self._state.balance(dataset, promise.unit)

    def settle(self, reservation_id: int, spent: bool) -> None:
        """Charge an interrupted reservation, or give it back, by the holder's word."""

        def decide(state: State) -> Draft:
            spend = state.spend(reservation_id)
            if self._surroundings.fate(spend.owner) is Fate.RUNNING:
                raise Refused(
                    f"reservation {reservation_id} belongs to process {spend.owner.pid}, which "
                    "still runs and will settle it itself; stop that process first."
                )
            if spent:
                return _commit(spend, spend.promise, None, settled=True)
            return _release(spend, settled=True)

        self._append(decide)

    # ── the spender's side ──

    def reserve(
        self, promise: Promise, dataset: str, purpose: str, part: str | None = None
    ) -> Reservation:
        """Set `promise` aside, or raise BudgetExceeded; on return it is on the disk.

        `part` names a disjoint part of the data set's units, for parallel composition.
        """
        body = {
            "dataset": _label("dataset", dataset),
            **_amount_text(promise.epsilon, promise.delta),
            "unit": str(promise.unit),
            "adjacency": str(promise.adjacency),
            "purpose": _label("purpose", purpose),
            "part": None if part is None else _label("part", part),
            "owner": self._surroundings.owner().as_body(),
        }

        def decide(state: State) -> Draft:
            state.check(dataset, promise, part)
            return "reserve", body

        return Reservation(self, self._append(decide), promise, dataset)

    def resume(
        self, promise: Promise, dataset: str, purpose: str, part: str | None = None
    ) -> Reservation | None:
        """Take over the open reservation of a process that is gone, or None if there is none.

        For work that goes on after a crash: it was paid for once, and is not paid for again.
        """
        wanted = (dataset, promise, purpose, part)
        found: list[int] = []

        def decide(state: State) -> Draft | None:
            found.clear()
            for spend in state.open.values():
                if (spend.dataset, spend.promise, spend.purpose, spend.part) != wanted:
                    continue
                if self._surroundings.fate(spend.owner) is Fate.RUNNING:
                    raise Refused(
                        f"process {spend.owner.pid} is at work on {purpose} already (reservation "
                        f"{spend.id}). Wait for it, or stop it first."
                    )
                found.append(spend.id)
                owner = self._surroundings.owner().as_body()
                return "adopt", {"reservation": spend.id, "owner": owner}
            return None

        self._append(decide)
        return Reservation(self, found[0], promise, dataset) if found else None

    # ── reading ──

    @property
    def id(self) -> str:
        """A random name given when the ledger was made."""
        return self._state.ledger

    @property
    def head(self) -> str:
        """The hash of the newest entry: it stands for the whole history. Note it elsewhere."""
        return self._now().head

    def balance(self, dataset: str, unit: Unit | str) -> Balance:
        return self._now().balance(dataset, _unit(unit))

    def balances(self) -> list[Balance]:
        state = self._now()
        return [state.balance(*key) for key in sorted(state.accounts)]

    def entries(self) -> list[Entry]:
        with self._file.reading() as transaction:
            return list(transaction.newer(*_START))

    def affords(self, promise: Promise, dataset: str, part: str | None = None) -> bool:
        """Whether `reserve` would succeed now. Nothing is set aside."""
        try:
            self._now().check(dataset, promise, part)
        except Refused:
            return False
        return True

    def open_spends(self) -> list[Spend]:
        """Reservations that are neither committed nor released."""
        return list(self._now().open.values())

    def interrupted(self) -> list[Spend]:
        """Open reservations whose process is gone, or cannot be seen from here.

        They count as spent until `settle` says what became of them.
        """
        fate = self._surroundings.fate
        return [s for s in self.open_spends() if fate(s.owner) is not Fate.RUNNING]

    def verify(self, head: str | None = None) -> None:
        """Check the file and every entry anew; LedgerTampered says where it breaks.

        With `head`, a hash noted earlier, also check that it is still part of the history.
        """
        with self._file.reading() as transaction:
            transaction.check_pages()
            hashes = {entry.hash for entry in self._replayed(transaction, State())}
            transaction.check_schema()
        if head is not None and head not in hashes:
            raise LedgerTampered(
                f"{self.path}: no entry has the hash {head[:16]}…, which was noted before: the "
                "history was rewritten, or an older copy was put in its place."
            )

    # ── the one way in ──

    def _append(self, decide: Callable[[State], Draft | None]) -> int:
        """Catch up with other processes, decide, write, and only then believe it.

        All of it happens under the file's write lock; nothing of the caller's runs there. Returns
        the number of the newest entry, which is the one written unless the decision was None.
        """
        at = self._timestamp()
        with self._file.writing() as transaction:
            state = self._caught_up(transaction)
            draft = decide(state)
            if draft:
                entry = Entry.following(state.seq, state.head, at, *draft)
                state.apply(entry)  # what the fold would not accept is never written
                transaction.append(entry)
        self._state = state
        return state.seq

    def _now(self) -> State:
        with self._file.reading() as transaction:
            self._state = self._caught_up(transaction)
        return self._state

    def _caught_up(self, transaction: Transaction) -> State:
        """A copy, so that a failed write or an interrupt leaves what we know untouched."""
        state = self._state.copy()
        self._replayed(transaction, state)
        return state

    def _replayed(self, transaction: Transaction, state: State) -> list[Entry]:
        newer = []
        for entry in transaction.newer(state.seq, state.head):
            state.apply(entry)
            newer.append(entry)
        return newer

    def _open_or_create(self) -> None:
        self._file.touch()
        with self._file.reading() as transaction:
            is_new = transaction.is_new()
        if is_new:
            self._create()
        self._file.use_rollback_journal()
        with self._file.reading() as transaction:
            self._state = self._caught_up(transaction)
            transaction.check_schema()

    def _create(self) -> None:
        body = {"ledger": secrets.token_hex(16), "version": VERSION}
        entry = Entry.following(*_START, self._timestamp(), "open", body)
        with self._file.writing() as transaction:
            if transaction.is_new():  # still: another process may have been first
                transaction.create()
                transaction.append(entry)

    def _timestamp(self) -> str:
        return self._surroundings.now().isoformat(timespec="milliseconds")

    def _report_interrupted(self) -> None:
        for spend in self.interrupted():
            log.warning(
                "reservation %d (%s on %s, %s) was interrupted and counts as spent; settle it: "
                "tacit budget settle %d --spent | --unspent",
                spend.id,
                spend.purpose,
                spend.dataset,
                spend.amount,
                spend.id,
            )


class Reservation:
    """A spend that is set aside. As a context manager it commits on leaving; after an exception it
    gives back if no noise was drawn, and commits if it was."""

    def __init__(self, ledger: Ledger, number: int, promise: Promise, dataset: str) -> None:
        self._ledger = ledger
        self.id, self.promise, self.dataset = number, promise, dataset

    def __repr__(self) -> str:
        return f"<Reservation {self.id}: {self.promise} on {self.dataset}>"

    def mark_drawn(self) -> None:
        """Noise is drawn from here on, so this can no longer be given back. On the disk on return,
        so that a crash right after it is known to have spent."""

        def decide(state: State) -> Draft | None:
            drawn = state.spend(self.id).drawn
            return None if drawn else ("draw", {"reservation": self.id})

        self._ledger._append(decide)

    def commit(self, spent: Promise | None = None, certificate: str | None = None) -> None:
        """Charge it for good: all of it, or `spent` if the study ended early.

        `certificate` names the certificate that left with the result, by its digest.
        """
        if certificate is not None:
            _label("certificate", certificate)
        cost = self._no_more_than_reserved(spent) if spent else self.promise
        self._ledger._append(lambda state: _commit(state.spend(self.id), cost, certificate))

    def release(self) -> None:
        """Give it back; UsageError once noise was drawn."""
        self._ledger._append(lambda state: _release(state.spend(self.id)))

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
                return _commit(spend, self.promise, None)
            return _release(spend)

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


_START = (State().seq, State().head)


def _commit(spend: Spend, cost: Promise, certificate: str | None, settled: bool = False) -> Draft:
    return "commit", {
        "reservation": spend.id,
        **_amount_text(cost.epsilon, cost.delta),
        "certificate": certificate,
        "settled": settled,
    }


def _release(spend: Spend, settled: bool = False) -> Draft:
    if spend.drawn:
        problem = (
            f"reservation {spend.id} cannot be given back: noise was drawn under it, so "
            f"{spend.amount} may have been spent. "
        )
        if settled:
            raise Refused(problem + f"Charge it: tacit budget settle {spend.id} --spent")
        raise UsageError(problem + "Commit it.")
    return "release", {"reservation": spend.id, "settled": settled}


def _amount_text(epsilon: float, delta: float) -> dict[str, str]:
    # The shortest decimal that names the float; read back exactly by Amount.read.
    return {"epsilon": repr(epsilon), "delta": repr(delta)}


def _unit(unit: Unit | str) -> Unit:
    return Promise(1.0, unit=unit).unit  # type: ignore[arg-type]  # raises what to do


def _label(name: str, text: object) -> str:
    """Names are shown on terminals and hashed: one printable line, short, without stray blanks."""
    if not isinstance(text, str) or not text or text != text.strip():
        raise UsageError(f"{name} must be a text without blanks at its ends, not {text!r}.")
    if len(text) > 200 or not text.isprintable():
        raise UsageError(f"{name} must be one printable line of at most 200 characters.")
    return text
