"""One budget: its ceiling, the rule that keeps it, and what is charged to it. Pure.

A spend is made for one unit under one adjacency, and charged to every account of its data set: to
each at what it costs *that* account's unit (units.py).
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.errors import BudgetExceeded, Refused
from tacit.privacy.accounting.spend_cost import SpendCost
from tacit.privacy.ledger.amounts import Amount, Charge, Number, Tally, charge, shown
from tacit.privacy.ledger.filter import Composition, Position, Rule, rule_of
from tacit.privacy.ledger.units import Most, steps
from tacit.privacy.ledger.view import balances_html
from tacit.privacy.promise import Adjacency, Unit

__all__ = ["Account", "Balance", "Charged", "allow_command"]


@dataclass(frozen=True, slots=True)
class Charged:
    """A spend as far as accounts are concerned."""

    unit: Unit
    adjacency: Adjacency
    amount: Amount
    cost: SpendCost | None
    partition: str | None
    part: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Balance:
    """One budget: what is allowed, spent, reserved (not yet settled either way), and left.

    `spent` and `reserved` are a true (ε, δ) by the account's rule: sums, as long as they fit, and
    then what the filter says. A spend of which only (ε, δ) is known may take all that is `left`,
    and one with a cost of its own perhaps much more. `added` is what sums of ε and δ say of all
    that is spent or reserved.
    """

    dataset: str
    unit: Unit
    allowed: Amount
    spent: Amount
    reserved: Amount
    left: Amount
    adjacencies: tuple[Adjacency, ...]
    composition: Composition
    added: Amount
    most: Most

    def __repr__(self) -> str:
        held = f", {self.reserved} reserved" if self.reserved != Amount() else ""
        amounts = f"{self.left} left of {self.allowed}{held}"
        return f"<Balance of {self.dataset!r} per {self.unit}: {amounts}>"

    def _repr_html_(self) -> str:
        return balances_html("Budget", [self])


@dataclass
class Account:
    """`stated` and `adjacency` are the holder's word; `decided` follows from the first spend."""

    dataset: str
    unit: Unit
    allowed: Amount
    stated: Composition = Composition.ADDING
    adjacency: Adjacency | None = None
    most: Most = field(default_factory=Most)
    decided: Composition | None = None
    # Sums of what is charged for good, under the adjacency they were made for.
    spent: Tally = field(default_factory=Tally)
    spent_under: Adjacency | None = None

    def copy(self) -> Account:
        return Account(
            self.dataset,
            self.unit,
            self.allowed,
            self.stated,
            self.adjacency,
            self.most,
            self.decided,
            self.spent.copy(),
            self.spent_under,
        )

    @property
    def rule(self) -> Rule:
        return rule_of(self.decided or self.stated, self.allowed)

    # ── what one spend costs here ──

    def under(self, spends: Iterable[Charged]) -> Adjacency | None:
        """The adjacency of this account: as stated, else as spent; None while nothing is."""
        if self.adjacency is not None:
            return self.adjacency
        used = {spend.adjacency for spend in spends}
        return Adjacency.REPLACE if Adjacency.REPLACE in used else next(iter(used), None)

    def charge(self, spend: Charged, adjacency: Adjacency) -> Charge | None:
        """None if the spend says nothing about this account's unit."""
        path = self._steps(spend, adjacency)
        if path is None:
            return None
        return charge(spend.amount, spend.cost, path, self.rule.order)

    def _steps(self, spend: Charged, adjacency: Adjacency) -> int | None:
        return steps(spend.unit, spend.adjacency, self.unit, adjacency, self.most)

    def recount(self, settled: Iterable[Charged], adjacency: Adjacency | None) -> None:
        """Sum anew: under another ceiling the order differs, under another adjacency the steps."""
        self.spent, self.spent_under = Tally(), adjacency
        for spend in settled:
            self.add(spend)

    def add(self, spend: Charged) -> None:
        """Charge it for good."""
        self._add(self.spent, spend, self.spent_under or spend.adjacency)

    def _add(self, tally: Tally, spend: Charged, adjacency: Adjacency) -> None:
        found = self.charge(spend, adjacency)
        if found is not None:  # else it was spent before accounts knew of one another
            tally.add(found, spend.partition, spend.part)

    def total(
        self, spends: Iterable[Charged] = (), otherwise: Adjacency = Adjacency.ADD_REMOVE
    ) -> Charge:
        """What is charged for good and these, not yet settled, together."""
        adjacency = self.spent_under or otherwise
        tally = self.spent.copy()
        for spend in spends:
            self._add(tally, spend, adjacency)
        return tally.total(2 if adjacency is Adjacency.REPLACE else 1)

    # ── the rule ──

    def decide(self, first: Charged) -> None:
        """Before the first spend there are no results: the rule may still follow from that spend.

        What the filter would refuse, or of which it knows nothing but (ε, δ), is better added.
        """
        if self.stated is not Composition.UNDECIDED:
            return
        self.decided = Composition.FILTER
        cost = self.charge(first, self.under([first]) or first.adjacency)
        if cost is not None and (cost.leak or not self.rule.admits(cost)):
            self.decided = Composition.ADDING

    def refuse_uncounted(self, before: Iterable[Charged], otherwise: Adjacency) -> None:
        """Refused while something was spent that this account could not be charged for, as in
        version 0.1, where accounts did not know of one another: what is left is not known."""
        adjacency = self.spent_under or otherwise
        for spend in before:
            if self._steps(spend, adjacency) is None:
                raise self._no_path(spend, adjacency)

    def refuse_unless(self, spend: Charged, others: list[Charged]) -> None:
        """Refused or BudgetExceeded, unless there is room for `spend` beside all the others."""
        adjacency = self.spent_under or spend.adjacency
        asked = self.charge(spend, adjacency)
        if asked is None:
            raise self._no_path(spend, adjacency)
        if spend.amount.epsilon == math.inf and self.allowed.epsilon != math.inf:
            raise Refused(
                f"epsilon = inf promises nothing, and the budget of data set {self.dataset!r} per "
                f"{self.unit} is finite ({self.allowed}). Ask for a finite epsilon, or run the "
                "comparison without noise on data that need no protection."
            )
        needed = self.total([*others, spend], adjacency)
        if not self.rule.admits(needed):
            raise self._exceeded(spend, asked, self.total(others), needed)

    def refuse_unless_all(self, spends: Sequence[Charged], others: list[Charged]) -> None:
        """BudgetExceeded unless there is room for all `spends` beside the others; it says for how
        many there is."""
        try:
            self.refuse_unless(spends[-1], [*others, *spends[:-1]])
        except BudgetExceeded as refusal:
            if len(spends) == 1:
                raise
            fit = self._room(spends, others)
            raise BudgetExceeded(
                f"{len(spends)} spends are asked for, and the budget of data set {self.dataset!r} "
                f"per {self.unit} ({self.allowed}) covers {fit} of them: refused before the first. "
                "Ask for fewer, or for less each, or the holder can raise the ceiling: "
                f"{self._command(self._for_all(spends, others))}",
                asked=refusal.asked * len(spends),
                left=refusal.asked * fit,
                shortfall=refusal.asked * (len(spends) - fit),
            ) from None

    def _room(self, spends: Sequence[Charged], others: list[Charged]) -> int:
        """How many of them, in their order, there is room for."""
        for count in range(len(spends), 0, -1):
            try:
                self.refuse_unless(spends[count - 1], [*others, *spends[: count - 1]])
            except BudgetExceeded:
                continue
            return count
        return 0

    def _for_all(self, spends: Sequence[Charged], others: list[Charged]) -> Amount:
        """A ceiling that covers them all, by adding."""
        adjacency = self.spent_under or spends[0].adjacency
        total = self.total([*others, *spends], adjacency).amount
        share = 1 if self.rule.order is None else 2  # of δ, half is for adding
        return Amount(
            max(self.allowed.epsilon, total.epsilon), max(self.allowed.delta, total.delta * share)
        )

    def _no_path(self, spend: Charged, adjacency: Adjacency) -> Refused:
        command = self._command(self.allowed)
        if (spend.adjacency, adjacency) == (Adjacency.REPLACE, Adjacency.ADD_REMOVE):
            return Refused(
                f"data set {self.dataset!r} per {self.unit} is kept under add-remove, and a "
                "promise under replace says nothing about a unit that is added or removed. Ask for "
                "add-remove; or its holder can keep the budget under replace, where add-remove "
                f"spends count twice: {command} --adjacency replace"
            )
        return Refused(
            f"data set {self.dataset!r} has a budget per {self.unit}, and how many {spend.unit}s "
            f"one {self.unit} has at most was not said, so a spend per {spend.unit} cannot be "
            f"charged to it. Its holder can say it: {command} --most-{spend.unit}s NUMBER"
        )

    def _exceeded(
        self, spend: Charged, asked: Charge, before: Charge, needed: Charge
    ) -> BudgetExceeded:
        """Names what fails: epsilon, or else delta; by the way that comes closest."""
        pairs = zip(self.rule.positions(before), self.rule.positions(needed), strict=True)
        was, now = min(pairs, key=lambda pair: _excess(pair[1]))
        name = "epsilon" if now.used.epsilon > now.ceiling.epsilon else "delta"
        letter = "ε" if name == "epsilon" else "δ"
        ceiling, used = getattr(now.ceiling, name), getattr(now.used, name)
        ask, short = getattr(asked.amount, name), used - ceiling
        left = _left(ceiling, getattr(was.used, name))
        if self.rule.order is None and getattr(was.used, name) <= ceiling:
            # With parts, more may be left for this part than for the whole data set.
            left = max(Fraction(0), ask - short)
        enough = self._enough(now, needed)
        smaller = f"Ask for at most {letter} = {shown(left)}, or the" if left else "The"
        return BudgetExceeded(
            f"data set {self.dataset!r} per {self.unit}: asked {letter} = {shown(ask)}"
            f"{self._counted(spend, asked)}, left {letter} = {shown(left)} of {shown(ceiling)}, "
            f"short by {shown(short)}. {smaller} holder can raise the ceiling: "
            f"{self._command(enough)}",
            asked=float(ask),
            left=float(left),
            shortfall=float(short),
        )

    def _command(self, amount: Amount) -> str:
        """Sets this ceiling, and keeps what else was stated."""
        stated = {
            "adjacency": self.adjacency,
            "most-records": self.most.records,
            "most-persons": self.most.persons,
        }
        words = [f" --{name} {value}" for name, value in stated.items() if value is not None]
        return allow_command(self.dataset, self.unit, amount) + "".join(words)

    def _enough(self, now: Position, needed: Charge) -> Amount:
        """A ceiling under which it would have been admitted."""
        allowed, summed = self.allowed, needed.amount
        if now.used != summed and now.used.delta <= now.ceiling.delta:
            # By divergence. Another ceiling has another order: a little more, to be sure of it.
            return Amount(_rounded_up(now.used.epsilon * Fraction(21, 20)), allowed.delta)
        share = 1 if self.rule.order is None else 2  # of δ, half is for adding
        return Amount(
            max(allowed.epsilon, summed.epsilon), max(allowed.delta, summed.delta * share)
        )

    def _counted(self, spend: Charged, asked: Charge) -> str:
        if asked.amount == spend.amount:
            return ""
        return f" (for a spend of {spend.amount} per {spend.unit} under {spend.adjacency})"

    # ── reading ──

    def balance(self, others: list[Charged], adjacencies: set[Adjacency]) -> Balance:
        spent, total = self.total(), self.total(others)
        pairs = zip(self.rule.positions(spent), self.rule.positions(total), strict=True)
        # By sums, as long as they fit: of equals, `min` takes the first.
        done, all_of_it = min(pairs, key=lambda pair: _excess(pair[1]))
        ceiling, allowed = all_of_it.ceiling, self.allowed
        used = all_of_it.used
        return Balance(
            self.dataset,
            self.unit,
            allowed,
            done.used,
            Amount(_beyond(used.epsilon, done.used.epsilon), _beyond(used.delta, done.used.delta)),
            Amount(_left(ceiling.epsilon, used.epsilon), _left(ceiling.delta, used.delta)),
            tuple(sorted(adjacencies)),
            self.decided or self.stated,
            total.amount,
            self.most,
        )


def _excess(position: Position) -> Number:
    """How far a position lies beyond its ceiling, as a share of it; 0 if it fits."""
    found: Number = Fraction(0)
    for name in ("epsilon", "delta"):
        used, ceiling = getattr(position.used, name), getattr(position.ceiling, name)
        if used > ceiling:
            found = max(found, used / ceiling if ceiling else math.inf)
    return found


def _rounded_up(number: Number) -> Number:
    """To three digits."""
    if number == math.inf:
        return number
    unit = Fraction(10) ** (math.floor(math.log10(number)) - 2)
    return math.ceil(number / unit) * unit


def _beyond(larger: Number, smaller: Number) -> Number:
    """How far `larger` lies above `smaller`, or 0."""
    return larger - smaller if larger > smaller else Fraction(0)


def _left(allowed: Number, total: Number) -> Number:
    return allowed if allowed == math.inf else _beyond(allowed, total)


def allow_command(dataset: str, unit: Unit, amount: Amount | None = None) -> str:
    command = f"tacit budget allow {shlex.quote(dataset)} --unit {unit}"
    if amount is None:
        return command
    delta = f" --delta {shown(amount.delta)}" if amount.delta else ""
    return f"{command} --epsilon {shown(amount.epsilon)}{delta}"
