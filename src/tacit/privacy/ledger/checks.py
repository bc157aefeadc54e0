"""What callers give to a ledger, checked; each error says what to give instead."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tacit.errors import UsageError
from tacit.privacy.accounting.compose import ACCOUNTANTS, applicable
from tacit.privacy.accounting.spend_cost import SpendCost
from tacit.privacy.ledger.accounts import Charged
from tacit.privacy.ledger.amounts import Amount
from tacit.privacy.ledger.filter import Composition
from tacit.privacy.promise import Adjacency, Promise, Unit

__all__ = [
    "adjacency_of",
    "ceiling_of",
    "charged_of",
    "composition_of",
    "distinct_of",
    "label",
    "most_of",
    "unit_of",
]


MAX_MOST = 10**6
ROUNDING = 1e-6  # between accountants that calibrate and those that check


def unit_of(unit: Unit | str) -> Unit:
    return Promise(1.0, unit=unit).unit  # type: ignore[arg-type]  # raises what to do


def adjacency_of(adjacency: Adjacency | str) -> Adjacency:
    return Promise(1.0, adjacency=adjacency).adjacency  # type: ignore[arg-type]  # the same


def ceiling_of(epsilon: Any, delta: float, unit: Unit | str) -> tuple[Promise, float]:
    """A ceiling as a promise, which checks it, and its ε: a ceiling may be 0, a promise may not."""
    # Not `epsilon == 0`: False and empty arrays are no ceilings.
    closed = isinstance(epsilon, (int, float)) and not isinstance(epsilon, bool) and epsilon == 0
    promise = Promise(1.0 if closed else epsilon, delta, unit_of(unit))
    return promise, 0.0 if closed else promise.epsilon


def composition_of(name: Composition | str) -> Composition:
    if name not in (Composition.ADDING, Composition.FILTER):
        raise UsageError(f"composition must be 'adding' or 'filter', not {name!r}.")
    return Composition(name)


def most_of(name: str, number: object) -> int | None:
    """How many of one unit another has at most; no promise survives so many steps as the limit."""
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_MOST:
        raise UsageError(f"{name} must be a whole number from 1 to {MAX_MOST}, not {number!r}.")
    return number


def distinct_of(dataset: str, other: str, reason: str) -> dict[str, str]:
    """The statement that two data sets have no records in common."""
    if dataset == other:
        raise UsageError(f"name two data sets, not {dataset!r} twice.")
    named = {"dataset": dataset, "other": other, "reason": reason}
    return {name: label(name, text) for name, text in named.items()}


def charged_of(
    promise: Promise,
    purpose: str,
    part: str | None,
    partition: str | None,
    cost: SpendCost | None,
) -> Charged:
    """A spend as accounts see it."""
    if part is None and partition is not None:
        raise UsageError(f"a spend on partition {partition!r} names its part.")
    if part is not None:
        label("part", part)
        partition = label("partition", partition or purpose)
    if cost is not None and promise.is_private and not _keeps(cost, promise.epsilon, promise.delta):
        raise UsageError(
            f"the cost of this spend is more than its promise of {promise}: accounts that add "
            "would be charged too little. Promise what the planned releases cost together."
        )
    amount = Amount.of(promise.epsilon, promise.delta)
    return Charged(promise.unit, promise.adjacency, amount, cost, partition, part)


@lru_cache(maxsize=256)
def _keeps(cost: SpendCost, epsilon: float, delta: float) -> bool:
    """Whether what a cost says is worth (ε, δ), by the best accountant, but for rounding."""
    for losses in cost.scenarios:
        names = applicable(losses, delta)
        found = min(ACCOUNTANTS[name].epsilon(losses, delta) for name in names)
        if found > epsilon * (1 + ROUNDING):
            return False
    return True


def label(name: str, text: object) -> str:
    """Names are shown on terminals and hashed: one printable line, short, without stray blanks."""
    if not isinstance(text, str) or not text or text != text.strip():
        raise UsageError(f"{name} must be a text without blanks at its ends, not {text!r}.")
    if len(text) > 200 or not text.isprintable():
        raise UsageError(f"{name} must be one printable line of at most 200 characters.")
    return text
