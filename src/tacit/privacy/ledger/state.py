"""What the entries of a ledger add up to. Pure: no file, no clock, no process.

amounts.py   what a spend costs, and sums of parts and partitions
units.py     what a spend costs an account of another unit or adjacency
filter.py    the rule by which an account composes its spends
accounts.py  one budget
history.py   what was charged when, for rules about a year or a study
decisions.py what its holder has decided beside budgets

Entries of version 0.1 have no partition, cost or identity; they are read as carried.py says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tacit.errors import LedgerTampered, Refused, UsageError
from tacit.privacy.accounting.spend_cost import SpendCost
from tacit.privacy.ledger.accounts import Account, Balance, Charged, allow_command
from tacit.privacy.ledger.amounts import Amount, Number
from tacit.privacy.ledger.carried import partition_before
from tacit.privacy.ledger.chain import GENESIS
from tacit.privacy.ledger.decisions import KINDS, Decisions
from tacit.privacy.ledger.filter import Composition, can_filter
from tacit.privacy.ledger.history import Settled, sums, within_year
from tacit.privacy.ledger.owner import Owner, later
from tacit.privacy.ledger.units import RANK, Most
from tacit.privacy.policy.policy import folded
from tacit.privacy.policy.rules import Asked, Totals
from tacit.privacy.promise import Adjacency, Promise, Unit

if TYPE_CHECKING:
    from tacit.privacy.ledger.chain import Entry

__all__ = ["Spend", "State"]


@dataclass(frozen=True, slots=True)
class Spend:
    """What was reserved, by whom, for what. `id` is the number of its entry; `identity` is that of
    the outbox or journal which draws under it."""

    id: int
    at: str
    dataset: str
    promise: Promise
    purpose: str
    partition: str | None
    part: str | None
    cost: SpendCost | None
    identity: str | None
    owner: Owner
    drawn: bool = False
    study: str | None = None  # digest of the study's file
    before_identities: bool = False  # made by version 0.1, of which no reservation bears one
    person: str | None = None  # the column that says whose a record is

    @property
    def amount(self) -> Amount:
        return Amount.of(self.promise.epsilon, self.promise.delta)

    @property
    def resumable(self) -> bool:
        """Whether the outbox or journal that reserved it can go on with it (`Ledger.resume`)."""
        return self.identity is not None

    def belongs_to(self, identity: str | None) -> bool:
        """None stands for stores of version 0.1. A later reservation without an identity is
        nobody's: whoever drew under it kept nothing that could be gone on with."""
        return self.before_identities if identity is None else self.identity == identity

    @property
    def charged(self) -> Charged:
        return self.of_amount(self.amount)

    def of_amount(self, amount: Amount) -> Charged:
        """Charged less than was reserved, its cost is still bounded by that of the whole plan."""
        unit, adjacency = self.promise.unit, self.promise.adjacency
        return Charged(unit, adjacency, amount, self.cost, self.partition, self.part)


@dataclass
class State:
    """Everything the ledger knows, folded from its entries one by one."""

    seq: int = 0
    head: str = GENESIS
    at: str = ""  # the latest time of any entry
    ledger: str = ""
    accounts: dict[tuple[str, Unit], Account] = field(default_factory=dict)
    charged: dict[str, tuple[Charged, ...]] = field(default_factory=dict)
    open: dict[int, Spend] = field(default_factory=dict)
    settled: frozenset[int] = frozenset()
    distinct: frozenset[frozenset[str]] = frozenset()
    history: dict[str, tuple[Settled, ...]] = field(default_factory=dict)
    decisions: Decisions = field(default_factory=Decisions)
    persons: dict[str, str] = field(default_factory=dict)  # the column, by the first spend with one

    def copy(self) -> State:
        accounts = {key: account.copy() for key, account in self.accounts.items()}
        return replace(
            self,
            accounts=accounts,
            charged=dict(self.charged),
            open=dict(self.open),
            history=dict(self.history),
            persons=dict(self.persons),
        )

    # ── reading entries ──

    def apply(self, entry: Entry) -> None:
        """Take in the next entry; LedgerTampered if it makes no sense after those before it."""
        try:
            self._take(entry)
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerTampered(
                f"entry {entry.seq} ({entry.kind}) cannot follow the entries before it "
                f"({type(error).__name__}: {error})."
            ) from error
        self.seq, self.head, self.at = entry.seq, entry.hash, later(self.at, entry.at)

    def _take(self, entry: Entry) -> None:
        match entry.kind:
            case "open":
                self._begin(entry)
            case "allow":
                self._allow(entry)
            case "reserve":
                self._reserve(entry)
            case "draw":
                self._draw(entry)
            case "adopt":
                self._adopt(entry)
            case "commit":
                self._commit(entry)
            case "release":
                self._release(entry)
            case "recover":
                self._recover(entry)
            case "distinct":
                self._distinguish(entry)
            case kind if kind in KINDS:
                self.decisions = self.decisions.after(entry)
            case _:
                raise ValueError("there is no such kind of entry")

    def _begin(self, entry: Entry) -> None:
        if entry.seq != 1:
            raise ValueError("a ledger is opened once")
        self.ledger = entry.body["ledger"]

    def _allow(self, entry: Entry) -> None:
        body = entry.body
        key = body["dataset"], Unit(body["unit"])
        stated = body.get("adjacency")
        account = Account(
            *key,
            Amount.read(body),
            Composition(body.get("composition", Composition.ADDING)),
            None if stated is None else Adjacency(stated),
            Most(body.get("most_records"), body.get("most_persons")),
        )
        spends = self.spends_of(key[0])
        if account.stated is Composition.UNDECIDED and spends:
            raise ValueError("the first spend was before")
        self.accounts[key] = account
        account.recount(self.charged.get(key[0], ()), account.under(spends))

    def _reserve(self, entry: Entry) -> None:
        body = entry.body
        promise = Promise(
            float(body["epsilon"]), float(body["delta"]), body["unit"], body["adjacency"]
        )
        dataset, cost = body["dataset"], body.get("cost")
        self.accounts[dataset, promise.unit]  # KeyError: reserved without a budget
        spend = Spend(
            entry.seq,
            entry.at,
            dataset,
            promise,
            body["purpose"],
            partition_before(body) if "partition" not in body else body["partition"],
            body["part"],
            None if cost is None else SpendCost.from_body(cost),
            body.get("identity"),
            Owner(**body["owner"]),
            study=body.get("study"),
            before_identities="identity" not in body,
            person=body.get("person"),
        )
        self._decide(dataset, spend.charged)
        if spend.person is not None:
            self.persons.setdefault(dataset, spend.person)
        self.open[entry.seq] = spend
        self._recount(dataset)

    def _decide(self, dataset: str, first: Charged) -> None:
        if not self.spends_of(dataset):
            for account in self.accounts_of(dataset):
                account.decide(first)

    def _recount(self, dataset: str) -> None:
        """The adjacency of an account may follow from what is spent; then so do its sums."""
        spends = self.spends_of(dataset)
        for account in self.accounts_of(dataset):
            adjacency = account.under(spends)
            if adjacency is not account.spent_under:
                account.recount(self.charged.get(dataset, ()), adjacency)

    def _draw(self, entry: Entry) -> None:
        number = entry.body["reservation"]
        self.open[number] = replace(self.open[number], drawn=True)

    def _adopt(self, entry: Entry) -> None:
        number = entry.body["reservation"]
        self.open[number] = replace(self.open[number], owner=Owner(**entry.body["owner"]))

    def _commit(self, entry: Entry) -> None:
        spend, amount = self._close(entry), Amount.read(entry.body)
        if not spend.amount.covers(amount):
            raise ValueError("it commits more than was reserved")
        charged = spend.of_amount(amount)
        self.charged[spend.dataset] = (*self.charged.get(spend.dataset, ()), charged)
        # Entries may be older than those before them: so wrote earlier versions, clock set back.
        settled = Settled(later(self.at, entry.at), spend.study, charged, spend.person)
        self.history[spend.dataset] = (*self.history.get(spend.dataset, ()), settled)
        for account in self.accounts_of(spend.dataset):
            account.add(charged)

    def _release(self, entry: Entry) -> None:
        spend = self._close(entry)
        if spend.drawn:
            raise ValueError("it gives back what noise was drawn for")
        self._forget_person(spend.dataset)
        if not self.spends_of(spend.dataset):
            for account in self.accounts_of(spend.dataset):
                account.decided = None  # nothing was drawn yet: the next spend is the first
                account.recount((), account.adjacency)
        self._recount(spend.dataset)

    def _forget_person(self, dataset: str) -> None:
        """Unless something was charged, or is reserved, under it."""
        history = [s for s in self.history.get(dataset, ()) if s.person is not None]
        if not history and all(s.person is None for s in self._open_spends(dataset)):
            self.persons.pop(dataset, None)

    def _recover(self, entry: Entry) -> None:
        """An older copy is in use. What it lacks is not known, so nothing may be spent from it; and
        noise may have been drawn since under whatever it has reserved."""
        self.decisions = self.decisions.recovered(entry.body.get("policy"), entry.seq)
        self.open = {number: replace(spend, drawn=True) for number, spend in self.open.items()}
        for key, account in self.accounts.items():
            self.accounts[key] = closed = replace(account, allowed=Amount(), decided=None)
            closed.stated = Composition.ADDING
            closed.recount(self.charged.get(key[0], ()), account.spent_under)

    def _distinguish(self, entry: Entry) -> None:
        """Two data sets have no records in common, by the holder's word."""
        body = entry.body
        pair = frozenset((str(body["dataset"]), str(body["other"])))
        if len(pair) < 2:
            raise ValueError("a data set is not distinct from itself")
        try:
            self.decisions.check_distinct(body["dataset"], body["other"], body["reason"])
        except Refused as error:
            raise ValueError(str(error)) from error
        self.distinct |= {pair}

    def _close(self, entry: Entry) -> Spend:
        number = entry.body["reservation"]
        if entry.body["settled"]:
            self.settled |= {number}
        return self.open.pop(number)

    # ── deciding ──

    def check_name(self, dataset: str) -> None:
        """UsageError for a new name that reads as a known one: it would have fresh limits."""
        decided, tables = self.decisions, self.decisions.policy
        names = {name for name, _ in self.accounts} | {*decided.revoked, *decided.left_out}
        if dataset in names:
            return
        for name in sorted(names | set(tables.datasets if tables else ())):
            if name != dataset and folded(name) == folded(dataset):
                raise UsageError(
                    f"data set {dataset!r} is called {name!r} here, but for capitals or the way "
                    "that letters are stored: write it so, or give it quite another name."
                )

    def accounts_of(self, dataset: str) -> list[Account]:
        return [account for (name, _), account in self.accounts.items() if name == dataset]

    def open_of(self, dataset: str) -> list[Charged]:
        return [spend.charged for spend in self._open_spends(dataset)]

    def spends_of(self, dataset: str) -> list[Charged]:
        """All that is charged or reserved."""
        return [*self.charged.get(dataset, ()), *self.open_of(dataset)]

    def account(self, dataset: str, unit: Unit) -> Account:
        try:
            return self.accounts[dataset, unit]
        except KeyError:
            raise Refused(
                f"no budget is set for data set {dataset!r} per {unit}, so nothing may be spent. "
                f"Its holder can set one: {allow_command(dataset, unit)} --epsilon ..."
            ) from None

    def check(
        self,
        dataset: str,
        spend: Charged,
        promise: Promise,
        asked: Asked | None,
        now: datetime,
    ) -> None:
        """Refused or BudgetExceeded, unless what the holder has decided permits the spend and every
        account of the data set covers it too."""
        totals = Totals.first(promise)
        if self.decisions.policy is not None and asked is not None:
            totals = self.totals_with(dataset, promise, asked.study, now, spend)
        self.decisions.check(dataset, promise, asked, totals, self.persons.get(dataset))
        own, others = self.account(dataset, spend.unit), self.open_of(dataset)
        trial = self.copy()
        trial._decide(dataset, spend)
        rest = [account.unit for account in self.accounts_of(dataset) if account is not own]
        before = self.spends_of(dataset)
        for unit in (own.unit, *rest):
            account = trial.accounts[dataset, unit]
            account.refuse_uncounted(before, spend.adjacency)
            account.refuse_unless(spend, others)

    def check_all(self, dataset: str, spends: Sequence[Charged]) -> None:
        """Refused or BudgetExceeded, unless every account covers all of these, one after another;
        what a policy says of each is not asked here."""
        if not spends:
            return
        self.account(dataset, spends[0].unit)
        trial, others = self.copy(), self.open_of(dataset)
        trial._decide(dataset, spends[0])
        for account in trial.accounts_of(dataset):
            account.refuse_unless_all(spends, others)

    def totals_with(
        self,
        dataset: str,
        promise: Promise,
        study: str | None,
        now: datetime,
        charged: Charged | None = None,
    ) -> Totals:
        """Sums with a spend that is asked for; disjoint parts count once, as in accounts."""
        amount = Amount.of(promise.epsilon, promise.delta)
        more = charged or Charged(promise.unit, promise.adjacency, amount, None, None, None)
        same: list[Charged] = []
        if study is not None:
            same = [s.charged for s in self.history.get(dataset, ()) if s.study == study]
            same += [s.charged for s in self._open_spends(dataset) if s.study == study]
        return Totals(sums([*same, more]), self.year(dataset, now, [more]))

    def year(
        self, dataset: str, now: datetime, more: Iterable[Charged] = ()
    ) -> tuple[Number, Number]:
        """(ε, δ) of all that is reserved or was charged in the last 365 days, whatever its unit. A
        spend counts from when it was charged: releases may have been made until then. Of a clock
        that is behind the newest entry, the year is the longer one."""
        recent = within_year(self.history.get(dataset, ()), now)
        return sums([*recent, *self.open_of(dataset), *more])

    def _open_spends(self, dataset: str) -> list[Spend]:
        return [spend for spend in self.open.values() if spend.dataset == dataset]

    def composition_for(self, dataset: str, allowed: Amount) -> Composition:
        """How an account composes if its holder does not say: by its first spend; later on, by the
        filter if it knows more of every spend than (ε, δ)."""
        spends = self.spends_of(dataset)
        if not can_filter(allowed):
            return Composition.ADDING
        if not spends:
            return Composition.UNDECIDED
        known = all(s.cost is not None or not s.amount.delta for s in spends)
        return Composition.FILTER if known else Composition.ADDING

    def check_allow(self, dataset: str, unit: Unit, body: Mapping[str, Any]) -> None:
        """UsageError if what was spent before cannot be charged to an account of this kind."""
        stated, most = body["adjacency"], Most(body["most_records"], body["most_persons"])
        spends = self.spends_of(dataset)
        if stated == Adjacency.ADD_REMOVE and any(
            spend.adjacency is Adjacency.REPLACE for spend in spends
        ):
            raise UsageError(
                f"promises under replace were spent on data set {dataset!r}, which say nothing "
                "about units that are added or removed: keep its budgets under replace."
            )
        finer = {s.unit for s in spends if RANK[s.unit] < RANK[unit] and most.of(s.unit) is None}
        if finer and Amount.read(dict(body)).epsilon:  # a budget may be closed in any case
            name = min(finer)
            raise UsageError(
                f"{name}s of data set {dataset!r} were spent on before: say how many of them one "
                f"{unit} has at most, with --most-{name}s, so that this can be charged."
            )

    def spend(self, number: int) -> Spend:
        """The open reservation of that number."""
        if number in self.open:
            return self.open[number]
        if number in self.settled:
            raise Refused(
                f"reservation {number} was settled by the holder while its process still ran: "
                "nothing may be released under it. Reserve again."
            )
        raise UsageError(
            f"reservation {number} is not open: it was committed or released before, or never "
            "made. `tacit budget show` lists the open ones."
        )

    def balance(self, dataset: str, unit: Unit) -> Balance:
        used = {spend.adjacency for spend in self.spends_of(dataset)}
        return self.account(dataset, unit).balance(self.open_of(dataset), used)
