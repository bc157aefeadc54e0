"""What a spend costs, and what many of them cost together. Pure: no file, no clock, no process.

Amounts are exact: each float is taken as the decimal that Python prints for it, so a hundred spends
of 0.1 are 10, not 9.99999999999998. Divergences are whole numbers of 2^-60, each rounded up once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nlargest
from typing import Any

from tacit.privacy.accounting.spend_cost import SpendCost, group_delta

__all__ = ["Amount", "Charge", "Number", "Tally", "charge", "fixed_point", "shown"]

Number = Fraction | float  # a float is only ever infinity
Whole = int | float  # the same
_ONE = 2**60


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

    def grouped(self, steps: int) -> Amount:
        """The same promise for data sets that are so many neighbours apart."""
        if steps == 1 or self.epsilon == math.inf:
            return self
        return Amount(self.epsilon * steps, group_delta(self.epsilon, self.delta, steps))

    def __str__(self) -> str:
        return f"ε = {shown(self.epsilon)}" + (f", δ = {shown(self.delta)}" if self.delta else "")


@dataclass(frozen=True, slots=True)
class Charge:
    """One spend (or several together) in one account, by both ways of composing.

    amount      (ε, δ), which add up
    divergence  the Rényi divergence at the account's order, in units of 2^-60, which adds up too,
    leak        but for this probability
    """

    amount: Amount = Amount()
    divergence: Whole = 0
    leak: Fraction = Fraction(0)

    def __add__(self, other: Charge) -> Charge:
        return Charge(
            self.amount + other.amount,
            self.divergence + other.divergence,
            self.leak + other.leak,
        )


def charge(amount: Amount, cost: SpendCost | None, steps: int, order: int | None) -> Charge:
    """A spend for data sets `steps` neighbours apart. Without a cost all that is known is (ε, δ);
    without an order the account adds, and needs no divergence."""
    more = amount.grouped(steps)
    if order is None:
        return Charge(more)
    if amount.epsilon == math.inf:
        return Charge(more, math.inf)
    assert isinstance(amount.epsilon, Fraction)  # not infinite
    known = cost or SpendCost.of_promise(amount.epsilon, float(amount.delta))
    grouped = known.grouped(steps)
    return Charge(more, fixed_point(grouped.divergence(order)), Fraction(grouped.leak))


def fixed_point(value: float) -> Whole:
    """In units of 2^-60, rounded up."""
    return math.inf if value == math.inf else math.ceil(Fraction(value) * _ONE)


@dataclass
class Tally:
    """Sums of charges: of those that touch the whole data set, and of each part of each partition.

    A unit lies in one part of a partition, so there the part that was charged most counts
    (parallel composition, McSherry 2009, theorem 4); a unit that is *replaced* may leave one part
    and appear in another, so there the two parts that were charged most count. Partitions cut up
    the same units in different ways: across them, and beside the whole, charges add.
    """

    whole: Charge = field(default_factory=Charge)
    partitions: dict[str, dict[str, Charge]] = field(default_factory=dict)

    def copy(self) -> Tally:
        return Tally(self.whole, {name: dict(parts) for name, parts in self.partitions.items()})

    def add(self, more: Charge, partition: str | None, part: str | None) -> None:
        if partition is None or part is None:
            self.whole += more
            return
        parts = self.partitions.setdefault(partition, {})
        parts[part] = parts.get(part, Charge()) + more

    def total(self, touched: int) -> Charge:
        """The most that any one unit has lost, if it touches so many parts of each partition. The
        maxima may come from different parts, which only overestimates."""
        total = self.whole
        for parts in self.partitions.values():
            charges = list(parts.values())
            total += Charge(
                Amount(
                    sum(nlargest(touched, (c.amount.epsilon for c in charges)), Fraction(0)),
                    sum(nlargest(touched, (c.amount.delta for c in charges)), Fraction(0)),
                ),
                sum(nlargest(touched, (c.divergence for c in charges))),
                sum(nlargest(touched, (c.leak for c in charges)), Fraction(0)),
            )
        return total


def shown(number: Number) -> str:
    """The shortest decimal that names it."""
    return repr(float(number)).removesuffix(".0")


def _exact(text: str) -> Number:
    number = math.inf if text == "inf" else Fraction(text)
    if number < 0:
        raise ValueError("an amount is negative")
    return number
