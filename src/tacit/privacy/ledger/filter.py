"""Whether an account covers what is charged to it: one rule, fixed before anything is spent.

`adding` compares the sums of ε and of δ with the ceiling (E, D). `filter` divides D beforehand, and
admits what either of two privacy filters admits: sums of ε and δ within (E, D/2), or divergences of
one Rényi order within what (E, D/4) allows, beside leaks within D/4. Each is valid for studies that
are chosen after seeing the results of those before them, and so are both together, since each has
its own share of δ. Proofs, and why the shares cannot be saved: filter.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from tacit.privacy.ledger.amounts import Amount, Charge, Number

__all__ = ["Composition", "Position", "Rule", "can_filter", "rule_of"]

ADDING_SHARE, LEAK_SHARE, CONVERSION_SHARE = Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)
# One of these orders is fixed with the ceiling. Whole numbers, at which a sampled Gaussian has a
# closed form; ever wider apart, since near its best an order hardly matters.
ORDERS = (*range(2, 33), *(round(32 * 2 ** (i / 6)) for i in range(1, 55)))
_DOWN = 1 - 1e-12
_ONE = 2**60


class Composition(StrEnum):
    """How an account composes its spends."""

    ADDING = "adding"
    FILTER = "filter"
    UNDECIDED = "by its first spend"  # before which there are no results to choose by


@dataclass(frozen=True, slots=True)
class Position:
    """Where an account stands by one of the ways: a true (ε, δ) of all that was charged, and what
    is left for a spend of which nothing but (ε, δ) is known."""

    used: Amount
    ceiling: Amount

    @property
    def fits(self) -> bool:
        return self.ceiling.covers(self.used)


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one account, which follows from its ceiling and its composition alone."""

    composition: Composition
    allowed: Amount
    order: int | None = None
    budget: int = 0  # of divergence, in units of 2^-60, rounded down

    def admits(self, total: Charge) -> bool:
        return any(position.fits for position in self.positions(total))

    def positions(self, total: Charge) -> list[Position]:
        """Where the account stands, by each way that the rule has."""
        if self.order is None:
            return [Position(total.amount, self.allowed)]
        half = Amount(self.allowed.epsilon, self.allowed.delta * ADDING_SHARE)
        return [Position(total.amount, half), self._renyi(total)]

    def _renyi(self, total: Charge) -> Position:
        """The divergence, converted: it meets the ceiling exactly if it meets the budget. δ is what
        leaks, and the conversion's share."""
        epsilon: Number = math.inf
        if isinstance(total.divergence, int):
            epsilon = self.allowed.epsilon + Fraction(total.divergence - self.budget, _ONE)
        converted, leaks = (self.allowed.delta * s for s in (CONVERSION_SHARE, LEAK_SHARE))
        used = Amount(epsilon, total.leak + converted)
        return Position(used, Amount(self.allowed.epsilon, leaks + converted))


def can_filter(allowed: Amount) -> bool:
    """A ceiling without δ, or without an end, can only be kept by adding."""
    return bool(allowed.delta) and 0 < allowed.epsilon < math.inf


@lru_cache(maxsize=256)
def rule_of(composition: Composition, allowed: Amount) -> Rule:
    """The rule that follows from a ceiling."""
    if composition is not Composition.FILTER or not can_filter(allowed):
        return Rule(Composition.ADDING, allowed)
    epsilon, delta = float(allowed.epsilon), float(allowed.delta * CONVERSION_SHARE) * _DOWN
    order = max(ORDERS, key=lambda a: (_budget(a, epsilon, delta) / a, -a))
    budget = max(0.0, _budget(order, epsilon, delta) * _DOWN)
    return Rule(composition, allowed, order, math.floor(Fraction(budget) * _ONE))


def _budget(order: int, epsilon: float, delta: float) -> float:
    """The divergence of this order that is (ε, δ)-private (Canonne, Kamath & Steinke 2020,
    proposition 12), solved for the divergence; a little below it, for rounding."""
    cost = math.log1p(-1 / order) - math.log(delta * order) / (order - 1)
    return epsilon - cost - 1e-12 * (1 + abs(cost))
