"""A ledger that is slow and obviously right: it keeps every spend, and asks by definition.

For each account it walks over every path that the definition of neighbours allows: which parts a
unit may touch, and how many steps lie between. No sums are kept, and nothing is shared with the
ledger but the promises themselves.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

__all__ = ["Book", "Entry"]

RANK = {"record": 0, "person": 1, "holder": 2}


@dataclass
class Entry:
    epsilon: float
    delta: float
    unit: str
    adjacency: str
    partition: str | None
    part: str | None
    mu: float | None  # of a Gaussian; None: nothing but (ε, δ) is known
    state: str = "open"  # drawn, committed, released


@dataclass
class Ceiling:
    epsilon: float
    delta: float
    composition: str  # adding, filter, or "" until the first spend
    undecided: bool
    adjacency: str | None
    most: dict[str, int | None]


@dataclass
class Book:
    """One data set."""

    ceilings: dict[str, Ceiling] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)

    def counted(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.state != "released"]

    def under(self, ceiling: Ceiling, entries: list[Entry]) -> str:
        if ceiling.adjacency:
            return ceiling.adjacency
        return "replace" if any(e.adjacency == "replace" for e in entries) else "add-remove"

    def times(self, entry: Entry, unit: str, ceiling: Ceiling, under: str) -> int | None:
        if entry.adjacency == "replace" and under == "add-remove":
            return None
        times = 1
        if RANK[entry.unit] > RANK[unit]:
            times = 2
        elif RANK[entry.unit] < RANK[unit]:
            times = ceiling.most[entry.unit]
            if times is None:
                return None
        return times * 2 if entry.adjacency != under else times

    def losses(self, unit: str, entries: list[Entry], order: int | None) -> list[float] | None:
        """ε, δ, divergence, leak of the worst unit: over all parts it can lie in, or move between,
        each figure by itself; None if an entry says nothing about this account."""
        ceiling = self.ceilings[unit]
        under = self.under(ceiling, entries)
        names: dict[str, set[str]] = {}
        for entry in entries:
            if entry.partition is not None:
                names.setdefault(entry.partition, set()).add(entry.part or "")
        choices = []
        for partition, parts in names.items():
            some = [{part} for part in parts]
            if under == "replace":
                some += [set(pair) for pair in itertools.combinations(sorted(parts), 2)]
            choices.append([(partition, place) for place in some])
        worst = [0.0] * 4
        for places in itertools.product(*choices):
            where = dict(places)
            total = [0.0] * 4
            for entry in entries:
                times = self.times(entry, unit, ceiling, under)
                if times is None:
                    return None
                if entry.partition is None or entry.part in where[entry.partition]:
                    for i, x in enumerate(costs(entry, times, order)):
                        total[i] += x
            worst = [max(a, b) for a, b in zip(worst, total, strict=True)]
        return worst

    def admits(self, unit: str, entries: list[Entry], composition: str) -> bool:
        ceiling = self.ceilings[unit]
        filters = composition == "filter" and ceiling.delta > 0 and ceiling.epsilon > 0
        order, budget = (best_order(ceiling.epsilon, ceiling.delta / 4)) if filters else (None, 0.0)
        found = self.losses(unit, entries, order)
        if found is None:
            return False
        epsilon, delta, divergence, leak = found
        near = 1 + 1e-9
        if not filters:
            return epsilon <= ceiling.epsilon * near and delta <= ceiling.delta * near
        by_adding = epsilon <= ceiling.epsilon * near and delta <= ceiling.delta / 2 * near
        return by_adding or (divergence <= budget * near and leak <= ceiling.delta / 4 * near)

    def decided(self, unit: str, entry: Entry) -> str:
        """The composition, if `entry` were the next to be spent."""
        ceiling = self.ceilings[unit]
        if not ceiling.undecided or self.counted():
            return ceiling.composition
        leaks = entry.mu is None and entry.delta > 0
        return "adding" if leaks or not self.admits(unit, [entry], "filter") else "filter"

    def fits(self, entry: Entry) -> bool:
        before = self.counted()
        entries = [*before, entry]
        for ceiling in self.ceilings.values():
            # An account that was kept under add-remove so far cannot be charged under replace.
            kept = self.under(ceiling, before) if before or ceiling.adjacency else "replace"
            if (kept, entry.adjacency) == ("add-remove", "replace"):
                return False
        return all(self.admits(u, entries, self.decided(u, entry)) for u in self.ceilings)


def costs(entry: Entry, times: int, order: int | None) -> list[float]:
    delta = sum(math.exp(i * entry.epsilon) for i in range(times)) * entry.delta
    if order is None:
        return [times * entry.epsilon, delta, 0.0, 0.0]
    if entry.mu is not None:
        return [times * entry.epsilon, delta, order * (times * entry.mu) ** 2 / 2, 0.0]
    p = 1 / (1 + math.exp(-times * entry.epsilon))
    power = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
    return [times * entry.epsilon, delta, math.log(power) / (order - 1), delta]


def best_order(epsilon: float, delta: float) -> tuple[int, float]:
    """The order at which Gaussians fit best, and the divergence that is (ε, δ)-private there."""
    orders = [*range(2, 33), *(round(32 * 2 ** (i / 6)) for i in range(1, 55))]

    def budget(a: int) -> float:
        return epsilon + math.log(a / (a - 1)) + (math.log(delta) + math.log(a)) / (a - 1)

    best = max(orders, key=lambda a: budget(a) / a)
    return best, max(0.0, budget(best))
