"""What the entries of a ledger add up to. Pure: no file, no clock, no process.

The rule of composition. Spends add up: plain sums of epsilon and of delta are a valid privacy
filter even if each spend is chosen after seeing the results of those before it (Rogers, Roth,
Ullman & Vadhan 2016), and even if spends overlap in time (Haney et al. 2023). Tighter composition
belongs inside one spend, whose promise was calibrated as a whole: tight bounds of (epsilon, delta)
sums do not hold for adaptively chosen parameters without more care.

Parts of a data set are disjoint, so one unit lies in one part, and only the part that has spent
most counts (parallel composition, McSherry 2009, theorem 4). Where a unit may be *replaced*, it may
leave one part and appear in another: then the two parts that have spent most count.

Amounts are exact: each float is taken as the decimal that Python prints for it, so a hundred spends
of 0.1 are 10, not 9.99999999999998.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from tacit.errors import BudgetExceeded, LedgerTampered, Refused, UsageError
from tacit.privacy.ledger.chain import GENESIS
from tacit.privacy.ledger.owner import Owner
from tacit.privacy.promise import Adjacency, Promise, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.privacy.ledger.chain import Entry

__all__ = ["Amount", "Balance", "Spend", "State", "Tally"]

Number = Fraction | float  # a float is only ever infinity


@dataclass(frozen=True, slots=True)
class Amount:
    """An exact (epsilon, delta)."""

    epsilon: Number = Fraction(0)
    delta: Number = Fraction(0)

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Amount:
        return cls(_exact(repr(float(epsilon))), _exact(repr(float(delta))))

    @classmethod
    def read(cls, body: dict[str, Any]) -> Amount:
        return cls(_exact(body["epsilon"]), _exact(body["delta"]))

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta)

    def covers(self, other: Amount) -> bool:
        return other.epsilon <= self.epsilon and other.delta <= self.delta

    def __str__(self) -> str:
        return f"ε = {shown(self.epsilon)}" + (f", δ = {shown(self.delta)}" if self.delta else "")


@dataclass(frozen=True, slots=True)
class Spend:
    """What was reserved, by whom, for what. `id` is the number of its entry."""

    id: int
    at: str
    dataset: str
    promise: Promise
    purpose: str
    part: str | None
    owner: Owner
    drawn: bool = False

    @property
    def amount(self) -> Amount:
        return Amount.of(self.promise.epsilon, self.promise.delta)


@dataclass(frozen=True, slots=True)
class Balance:
    """One budget: what is allowed, spent, reserved (not yet settled either way), and left."""

    dataset: str
    unit: Unit
    allowed: Amount
    spent: Amount
    reserved: Amount
    left: Amount
    adjacencies: tuple[Adjacency, ...]


@dataclass
class Tally:
    """Sums of spends: of those that touch the whole data set, and of each part."""

    whole: Amount = field(default_factory=Amount)
    parts: dict[str, Amount] = field(default_factory=dict)
    adjacencies: set[Adjacency] = field(default_factory=set)

    def copy(self) -> Tally:
        return Tally(self.whole, dict(self.parts), set(self.adjacencies))

    def add(self, amount: Amount, part: str | None, adjacency: Adjacency) -> None:
        self.adjacencies.add(adjacency)
        if part is None:
            self.whole += amount
        else:
            self.parts[part] = self.parts.get(part, Amount()) + amount

    def total(self) -> Amount:
        """The most that any one unit has lost. The two maxima may come from different parts, which
        only overestimates."""
        touched = 2 if Adjacency.REPLACE in self.adjacencies else 1
        epsilons = nlargest(touched, (amount.epsilon for amount in self.parts.values()))
        deltas = nlargest(touched, (amount.delta for amount in self.parts.values()))
        return self.whole + Amount(sum(epsilons, Fraction(0)), sum(deltas, Fraction(0)))


@dataclass
class Account:
    """One budget: its ceiling, and what is spent for good. Open reservations are the state's."""

    allowed: Amount
    spent: Tally = field(default_factory=Tally)

    def with_open(self, spends: Iterable[Spend]) -> Tally:
        tally = self.spent.copy()
        for spend in spends:
            tally.add(spend.amount, spend.part, spend.promise.adjacency)
        return tally


@dataclass
class State:
    """Everything the ledger knows, folded from its entries one by one."""

    seq: int = 0
    head: str = GENESIS
    ledger: str = ""
    accounts: dict[tuple[str, Unit], Account] = field(default_factory=dict)
    open: dict[int, Spend] = field(default_factory=dict)
    settled: frozenset[int] = frozenset()

    def copy(self) -> State:
        accounts = {key: Account(a.allowed, a.spent.copy()) for key, a in self.accounts.items()}
        return replace(self, accounts=accounts, open=dict(self.open))

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
        self.seq, self.head = entry.seq, entry.hash

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
            case _:
                raise ValueError("there is no such kind of entry")

    def _begin(self, entry: Entry) -> None:
        if entry.seq != 1:
            raise ValueError("a ledger is opened once")
        self.ledger = entry.body["ledger"]

    def _allow(self, entry: Entry) -> None:
        key = entry.body["dataset"], Unit(entry.body["unit"])
        allowed = Amount.read(entry.body)
        if key in self.accounts:
            self.accounts[key].allowed = allowed
        else:
            self.accounts[key] = Account(allowed)

    def _reserve(self, entry: Entry) -> None:
        body = entry.body
        promise = Promise(
            float(body["epsilon"]), float(body["delta"]), body["unit"], body["adjacency"]
        )
        self.accounts[body["dataset"], promise.unit]  # KeyError: reserved without a budget
        owner = Owner(**body["owner"])
        self.open[entry.seq] = Spend(
            entry.seq, entry.at, body["dataset"], promise, body["purpose"], body["part"], owner
        )

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
        account = self.accounts[spend.dataset, spend.promise.unit]
        account.spent.add(amount, spend.part, spend.promise.adjacency)

    def _release(self, entry: Entry) -> None:
        if self._close(entry).drawn:
            raise ValueError("it gives back what noise was drawn for")

    def _close(self, entry: Entry) -> Spend:
        number = entry.body["reservation"]
        if entry.body["settled"]:
            self.settled |= {number}
        return self.open.pop(number)

    # ── deciding ──

    def account(self, dataset: str, unit: Unit) -> Account:
        try:
            return self.accounts[dataset, unit]
        except KeyError:
            raise Refused(
                f"no budget is set for data set {dataset!r} per {unit}, so nothing may be spent. "
                f"Its holder can set one: {_allow_command(dataset, unit)} --epsilon ..."
            ) from None

    def check(self, dataset: str, promise: Promise, part: str | None) -> None:
        """Refused or BudgetExceeded, unless the budget covers `promise` too."""
        account = self.account(dataset, promise.unit)
        if not promise.is_private and account.allowed.epsilon != math.inf:
            raise Refused(
                f"epsilon = inf promises nothing, and the budget of data set {dataset!r} per "
                f"{promise.unit} is finite ({account.allowed}). Ask for a finite epsilon, or run "
                "the comparison without noise on data that need no protection."
            )
        tally = account.with_open(self._open_of(dataset, promise.unit))
        before = tally.total()
        asked = Amount.of(promise.epsilon, promise.delta)
        tally.add(asked, part, promise.adjacency)
        needed = tally.total()
        if not account.allowed.covers(needed):
            raise _exceeded(dataset, promise.unit, account.allowed, before, asked, needed)

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
        account = self.account(dataset, unit)
        tally = account.with_open(self._open_of(dataset, unit))
        allowed, spent, total = account.allowed, account.spent.total(), tally.total()
        return Balance(
            dataset,
            unit,
            allowed,
            spent,
            Amount(_beyond(total.epsilon, spent.epsilon), _beyond(total.delta, spent.delta)),
            Amount(_left(allowed.epsilon, total.epsilon), _left(allowed.delta, total.delta)),
            tuple(sorted(tally.adjacencies)),
        )

    def _open_of(self, dataset: str, unit: Unit) -> list[Spend]:
        return [s for s in self.open.values() if (s.dataset, s.promise.unit) == (dataset, unit)]


def shown(number: Number) -> str:
    """The shortest decimal that names it."""
    return repr(float(number)).removesuffix(".0")


def _exact(text: str) -> Number:
    number = math.inf if text == "inf" else Fraction(text)
    if number < 0:
        raise ValueError("an amount is negative")
    return number


def _beyond(larger: Number, smaller: Number) -> Number:
    """How far `larger` lies above `smaller`, or 0."""
    return larger - smaller if larger > smaller else Fraction(0)


def _left(allowed: Number, total: Number) -> Number:
    return allowed if allowed == math.inf else _beyond(allowed, total)


def _allow_command(dataset: str, unit: Unit) -> str:
    return f"tacit budget allow {shlex.quote(dataset)} --unit {unit}"


def _exceeded(
    dataset: str, unit: Unit, allowed: Amount, before: Amount, asked: Amount, needed: Amount
) -> BudgetExceeded:
    """Names what fails: epsilon, or else delta."""
    name = "epsilon" if needed.epsilon > allowed.epsilon else "delta"
    letter = "ε" if name == "epsilon" else "δ"
    ceiling, ask = getattr(allowed, name), getattr(asked, name)
    short = getattr(needed, name) - ceiling
    # With parts, more may be left for this part than for the whole data set.
    left = Fraction(0) if getattr(before, name) > ceiling else max(Fraction(0), ask - short)
    enough = Amount(max(allowed.epsilon, needed.epsilon), max(allowed.delta, needed.delta))
    delta = f" --delta {shown(enough.delta)}" if enough.delta else ""
    smaller = f"Ask for at most {letter} = {shown(left)}, or the" if left else "The"
    return BudgetExceeded(
        f"data set {dataset!r} per {unit}: asked {letter} = {shown(ask)}, left "
        f"{letter} = {shown(left)} of {shown(ceiling)}, short by {shown(short)}. "
        f"{smaller} holder can raise the ceiling: {_allow_command(dataset, unit)} "
        f"--epsilon {shown(enough.epsilon)}{delta}",
        asked=float(ask),
        left=float(left),
        shortfall=float(short),
    )
