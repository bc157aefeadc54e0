"""The ledger of one holder: reserve, then draw noise, then commit.

What is asked is checked against the holder's ceiling and written to the disk *before* noise is
drawn, and a reservation counts as spent until it is given back. So a crash at any moment can only
leave too much charged, never too little.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tacit.errors import LedgerTampered, Refused
from tacit.privacy.accounting.spend_cost import SpendCost
from tacit.privacy.ledger import seen
from tacit.privacy.ledger.accounts import Balance
from tacit.privacy.ledger.amounts import Amount
from tacit.privacy.ledger.carried import carry_over
from tacit.privacy.ledger.chain import VERSION, Entry, LedgerFile, Transaction
from tacit.privacy.ledger.checks import (
    adjacency_of,
    ceiling_of,
    charged_of,
    composition_of,
    distinct_of,
    label,
    most_of,
    unit_of,
)
from tacit.privacy.ledger.filter import Composition
from tacit.privacy.ledger.holder import HolderDecisions
from tacit.privacy.ledger.known import KnownRecords, RecordDigests
from tacit.privacy.ledger.owner import Fate, Surroundings, entry_time
from tacit.privacy.ledger.recompute import check_recomputed
from tacit.privacy.ledger.recovery import recovery
from tacit.privacy.ledger.reservation import (
    Draft,
    Reservation,
    amount_text,
    report_interrupted,
    settle,
)
from tacit.privacy.ledger.state import Spend, State
from tacit.privacy.ledger.view import balances_html
from tacit.privacy.policy.rules import Asked
from tacit.privacy.promise import Adjacency, Promise, Unit

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from datetime import datetime

__all__ = ["Ledger", "Reservation"]


class Ledger:
    """A holder's ledger in one file, shared safely by any number of processes and threads.

    Opening it checks the whole chain; a path at which this machine has never seen a ledger becomes
    a new one, in which nothing is allowed. Copies (also in other processes) charge the same file.
    """

    def __init__(
        self, path: str | os.PathLike[str], surroundings: Surroundings | None = None
    ) -> None:
        self._prepare(path, surroundings)
        self._open_or_create()
        report_interrupted(self.interrupted())

    def _prepare(self, path: str | os.PathLike[str], surroundings: Surroundings | None) -> None:
        self.path = Path(path).expanduser().resolve()
        self._file = LedgerFile(self.path)
        self.known = KnownRecords(self.path)
        self._surroundings = surroundings or Surroundings()
        self._state = State()

    @classmethod
    def recover(
        cls, path: str | os.PathLike[str], surroundings: Surroundings | None = None
    ) -> Self:
        """Go on with an older copy, or with a new ledger where none is left, by the holder's word.

        What is missing is not known, so every budget is closed until the holder sets it anew, and
        whatever is still reserved counts as drawn. The policy that was in force stays in force.
        """
        ledger = cls.__new__(cls)
        ledger._prepare(path, surroundings)
        if ledger.path.is_file() and ledger.path.stat().st_size == 0:
            ledger.path.unlink()
        if not ledger.path.exists():
            ledger._create()
        ledger._read_all()
        # The entry first: until it is on the disk, the marks still say that something is missing.
        ledger._append(lambda state: ("recover", recovery(ledger.path, state)))
        seen.replace(ledger.path, ledger._mark())
        return ledger

    # ── the holder's side ──

    def allow(
        self,
        dataset: str,
        unit: Unit | str,
        epsilon: float,
        delta: float = 0.0,
        *,
        composition: Composition | str | None = None,
        adjacency: Adjacency | str | None = None,
        most_records: int | None = None,
        most_persons: int | None = None,
    ) -> Balance:
        """Set the ceiling of one budget; the newest ceiling holds, also if it is below what is
        spent (then nothing is left). Zero closes the budget.

        composition   `filter` or `adding` (filter.md); left out, the first spend decides
        adjacency     that the budget is kept under; left out, that of its spends
        most_records  that one unit of this account has (a person, a holder): finer spends are
        most_persons  charged so many times; left out, they are refused
        """
        promise, ceiling = ceiling_of(epsilon, delta, unit)
        stated = None if composition is None else composition_of(composition)
        body = {
            "dataset": label("dataset", dataset),
            "unit": str(promise.unit),
            **amount_text(ceiling, promise.delta),
            "adjacency": None if adjacency is None else str(adjacency_of(adjacency)),
            "most_records": most_of("most_records", most_records),
            "most_persons": most_of("most_persons", most_persons),
        }
        allowed = Amount.of(ceiling, promise.delta)

        def decide(state: State) -> Draft:
            state.check_name(dataset)
            state.check_allow(dataset, promise.unit, body)
            chosen = stated or state.composition_for(dataset, allowed)
            return "allow", {**body, "composition": str(chosen)}

        self._append(decide)
        return self._state.balance(dataset, promise.unit)

    def settle(self, reservation_id: int, spent: bool) -> None:
        """Charge an interrupted reservation, or give it back, by the holder's word."""

        def decide(state: State) -> Draft:
            spend = state.spend(reservation_id)
            return settle(spend, self._surroundings.fate(spend.owner), spent)

        self._append(decide)

    def state_distinct(self, dataset: str, other: str, reason: str) -> None:
        """Note that two data sets have no records in common, though their records look alike.

        From then on they are not compared. `reason` is for whoever reads the ledger. Under a
        policy enough approvers must have signed it (`decisions.approve`).
        """
        body = distinct_of(dataset, other, reason)

        def decide(state: State) -> Draft:
            state.decisions.check_distinct(dataset, other, reason)
            return "distinct", body

        self._append(decide)

    # ── the spender's side ──

    def reserve(
        self,
        promise: Promise,
        dataset: str,
        purpose: str,
        part: str | None = None,
        *,
        partition: str | None = None,
        cost: SpendCost | None = None,
        identity: str | None = None,
        records: RecordDigests | None = None,
        asked: Asked | None = None,
    ) -> Reservation:
        """Set `promise` aside, or raise BudgetExceeded; on return it is on the disk.

        part       names a part of the data set's units; parts of one `partition` are disjoint, and
                   their costs compose in parallel (left out, the purpose names the partition)
        cost       of all planned releases together, at most the promise; without it nothing but
                   (ε, δ) is known. That no less is drawn than it says is the caller's word, as is
                   that parts are disjoint
        identity   of the outbox or journal that will draw; only that one can `resume`
        records    that are charged: Refused if they are known as another data set's (known.py)
        asked      what it is for: demanded where a policy is in force
        """
        charged = charged_of(promise, purpose, part, partition, cost)
        body = {
            "dataset": label("dataset", dataset),
            **amount_text(promise.epsilon, promise.delta),
            "unit": str(promise.unit),
            "adjacency": str(promise.adjacency),
            "purpose": label("purpose", purpose),
            "partition": charged.partition,
            "part": charged.part,
            "cost": None if cost is None else cost.as_body(),
            "identity": None if identity is None else label("identity", identity),
            "owner": self._surroundings.owner().as_body(),
            **({} if asked is None else {"study": asked.study, "person": asked.person}),
        }

        def decide(state: State) -> Draft:
            state.check(dataset, charged, promise, asked, self._clock())
            return "reserve", body

        def reserve() -> Reservation:
            return Reservation(self, self._append(decide), promise, dataset)

        if records is None:
            return reserve()
        return self.known.charging(dataset, records, self._now().distinct, reserve)

    def refuse_known(self, dataset: str, records: RecordDigests) -> None:
        """Refused, as `reserve` would, if the records are known as another data set's."""
        with self.known.locked():
            self.known.check(dataset, records, self._now().distinct)

    def know(self, dataset: str, records: RecordDigests) -> None:
        """Note which records an open reservation is for; Refused as `reserve` would."""
        with self.known.locked():
            found = self.known.check(dataset, records, self._now().distinct, windows=True)
            self.known.add(dataset, records, found, windows=True)

    def resume(
        self,
        promise: Promise,
        dataset: str,
        purpose: str,
        part: str | None = None,
        *,
        identity: str | None,
    ) -> Reservation | None:
        """Take over the open reservation of a process that is gone, or None if there is none.

        For work that goes on after a crash: it was paid for once, and is not paid for again. Only
        who has what was drawn can go on with it, and shows that by its `identity`; one that starts
        afresh would draw a second time. Without one, only what version 0.1 reserved is found.
        """
        wanted = (dataset, promise, purpose, part)
        found: list[int] = []

        def decide(state: State) -> Draft | None:
            found.clear()
            state.decisions.refuse_revoked(dataset)
            for spend in state.open.values():
                if (spend.dataset, spend.promise, spend.purpose, spend.part) != wanted:
                    continue
                if self._surroundings.fate(spend.owner) is Fate.RUNNING:
                    raise Refused(
                        f"process {spend.owner.pid} is at work on {purpose} already (reservation "
                        f"{spend.id}). Wait for it, or stop it first."
                    )
                if not spend.belongs_to(identity):
                    continue
                found.append(spend.id)
                owner = self._surroundings.owner().as_body()
                return "adopt", {"reservation": spend.id, "owner": owner}
            return None

        self._append(decide)
        return Reservation(self, found[0], promise, dataset) if found else None

    # ── reading ──

    @property
    def decisions(self) -> HolderDecisions:
        """What the holder has decided beside budgets: policy, revocations, people left out."""
        return HolderDecisions(self)

    @property
    def id(self) -> str:
        """A random name given when the ledger was made."""
        return self._state.ledger

    @property
    def head(self) -> str:
        """The hash of the newest entry: it stands for the whole history. Note it elsewhere."""
        return self._now().head

    def balance(self, dataset: str, unit: Unit | str) -> Balance:
        return self._now().balance(dataset, unit_of(unit))

    def balances(self) -> list[Balance]:
        state = self._now()
        return [state.balance(*key) for key in sorted(state.accounts)]

    def entries(self) -> list[Entry]:
        with self._file.reading() as transaction:
            return list(transaction.newer(*_START))

    def affords(
        self,
        promise: Promise,
        dataset: str,
        part: str | None = None,
        *,
        partition: str | None = None,
        cost: SpendCost | None = None,
        asked: Asked | None = None,
        times: int = 1,
    ) -> bool:
        """Whether `reserve` would succeed now, so many `times`. Nothing is set aside."""
        state, charged = self._now(), charged_of(promise, "asked", part, partition, cost)
        try:
            state.check(dataset, charged, promise, asked, self._clock())
            state.check_all(dataset, [charged] * times)
        except Refused:
            return False
        return True

    def refuse_unless_all(
        self, dataset: str, spends: Iterable[tuple[Promise, SpendCost | None]]
    ) -> None:
        """BudgetExceeded unless the budgets cover all of these together. Nothing is set aside.

        For who knows that many spends will follow, and would rather not begin than stop half-way.
        """
        charged = [charged_of(promise, "asked", None, None, cost) for promise, cost in spends]
        self._now().check_all(dataset, charged)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # a copy charges the same file, and this one may be shared

    def __repr__(self) -> str:
        return f"<Ledger {str(self.path)!r}: {len(self._state.accounts)} budget(s)>"

    def _repr_html_(self) -> str:
        return balances_html(str(self.path), self.balances())

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
            state = State()
            entries = self._replayed(transaction, state)
            transaction.check_schema()
        hashes = {entry.hash for entry in entries}
        check_recomputed(entries, state)
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
        with self._file.writing() as transaction:
            state = self._caught_up(transaction)
            draft = decide(state)
            if draft:
                at = entry_time(self._clock(), state.at)
                entry = Entry.following(state.seq, state.head, at, *draft)
                state.apply(entry)  # what the fold would not accept is never written
                transaction.append(entry)
        self._state = state
        if draft:
            self._note()
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
        if not seen.is_there(self.path):
            self._create()
        hashes = self._read_all()
        seen.check_history(self.path, self.id, hashes, self._read_all)
        self._note()

    def _read_all(self) -> list[str]:
        """Everything in the file, from the first entry on; an older format is carried over."""
        with self._file.reading() as transaction:
            version = transaction.version()
        if version < VERSION:
            carry_over(self._file, version)
        self._file.use_rollback_journal()
        with self._file.reading() as transaction:
            state = State()
            hashes = [entry.hash for entry in self._replayed(transaction, state)]
            transaction.check_schema()
        self._state = state
        return hashes

    def _create(self) -> None:
        body = {"ledger": secrets.token_hex(16), "version": VERSION}
        at = entry_time(self._clock(), State().at)
        self._file.create(Entry.following(*_START, at, "open", body))

    def _note(self) -> None:
        seen.note(self.path, self._mark())

    def _mark(self) -> seen.Mark:
        state = self._state
        return seen.Mark(state.ledger, state.seq, state.head, state.decisions.policy_text)

    def _clock(self) -> datetime:
        return self._surroundings.now()


_START = (State().seq, State().head)
