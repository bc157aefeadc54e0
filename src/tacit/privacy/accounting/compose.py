"""The cost of everything that left: the least sound figure over all accountants that apply.

Releases with different `part`s concern disjoint units. Under add-remove a unit is in one part, so
the cost is that of the common releases with the worst part (McSherry 2009, theorem 4). Under
replace a unit may leave one part and join another, so it is that with the worst two; except where
parts say who was asked, which does not depend on any value (parts.md). Releases over one secret
sample are joined before they are composed with others (sampling.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import NamedTuple

from tacit.errors import UsageError
from tacit.privacy.accounting import gaussian, pld, pure, renyi, zcdp
from tacit.privacy.accounting.losses import LOCAL, Loss, merge
from tacit.privacy.accounting.samples import drawn_together, joint_loss
from tacit.privacy.promise import Adjacency
from tacit.privacy.release import Release

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "Cost",
    "applicable",
    "cost",
    "delta_of",
    "epsilon_of",
    "losses_of",
    "scenarios",
]


class Accountant(NamedTuple):
    """`epsilon(losses, delta)` is inf and `delta(losses, epsilon)` is 1 where it does not apply."""

    epsilon: Callable[[Sequence[Loss], float], float]
    delta: Callable[[Sequence[Loss], float], float]


ACCOUNTANTS: dict[str, Accountant] = {
    "pure": Accountant(pure.epsilon, pure.delta),
    "gaussian": Accountant(gaussian.epsilon, gaussian.delta),
    "zcdp": Accountant(zcdp.epsilon, zcdp.delta),
    "renyi": Accountant(renyi.epsilon, renyi.delta),
    "pld": Accountant(pld.epsilon, pld.delta),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What releases cost together: (epsilon, delta)-privacy, as `accountant` found."""

    epsilon: float
    delta: float
    accountant: str


def cost(releases: Sequence[Release], delta: float, adjacency: Adjacency | str) -> Cost:
    """The smallest epsilon that all `releases` together meet at `delta`, and who found it."""
    _check_delta(delta)
    worst = Cost(0.0, delta, "pure")
    for scenario in scenarios(releases, adjacency):
        losses = losses_of(scenario)
        found = [(ACCOUNTANTS[n].epsilon(losses, delta), n) for n in applicable(losses, delta)]
        epsilon, name = min(found, key=lambda pair: pair[0])
        if epsilon > worst.epsilon or worst.epsilon == 0:
            worst = Cost(epsilon, delta, name)
    return worst


def epsilon_of(releases: Sequence[Release], delta: float, adjacency: Adjacency | str) -> float:
    return cost(releases, delta, adjacency).epsilon


def delta_of(releases: Sequence[Release], epsilon: float, adjacency: Adjacency | str) -> float:
    """The smallest delta that all `releases` together meet at `epsilon`."""
    if not epsilon >= 0:
        raise UsageError(f"epsilon must be at least 0, not {epsilon}.")
    if epsilon == math.inf:
        return 0.0
    worst = 0.0
    for scenario in scenarios(releases, adjacency):
        losses = losses_of(scenario)
        if pure.delta(losses, epsilon) == 0:
            continue
        names = applicable(losses)
        worst = max(worst, min(ACCOUNTANTS[name].delta(losses, epsilon) for name in names))
    return worst


def losses_of(releases: Sequence[Release]) -> list[Loss]:
    return merge(joint_loss(group) for group in drawn_together(releases))


def applicable(losses: Sequence[Loss], delta: float | None = None) -> list[str]:
    """The accountants worth asking: none that is surely beaten, so that the slow are spared."""
    if delta == 0:
        return ["pure"]
    if gaussian.total(losses) is not None:
        return ["gaussian"]  # exact
    return ["pure", "zcdp", "renyi", "pld"]


def scenarios(releases: Sequence[Release], adjacency: Adjacency | str) -> list[tuple[Release, ...]]:
    """What one changed unit can have touched; the cost is that of the worst of these."""
    adjacency = Adjacency(adjacency)
    _check_sampling(releases, adjacency)
    common = tuple(r for r in releases if r.part is None)
    parts: dict[str, list[Release]] = {}
    for release in releases:
        if release.part is not None:
            parts.setdefault(release.part, []).append(replace(release, part=None))
    if not parts:
        return [common] if common else []
    asked, placed = _split(list(parts.values()))
    moves = adjacency is Adjacency.REPLACE and len(placed) > 1
    touched = [*_touched(asked, 1), *_touched(placed, 2 if moves else 1)]
    return [(*common, *chain(*some)) for some in touched]


def _split(parts: Sequence[list[Release]]) -> tuple[list[list[Release]], list[list[Release]]]:
    """Parts that say who was asked, and parts that units are in by what they are."""
    asked: list[list[Release]] = []
    placed: list[list[Release]] = []
    for part in parts:
        (asked if all(r.mechanism in LOCAL for r in part) else placed).append(part)
    return asked, placed


def _touched(parts: Sequence[list[Release]], at_once: int) -> list[tuple[list[Release], ...]]:
    """The parts that one unit can touch. Equal ones cost the same: few of each kind are enough."""
    kinds: list[list[Release]] = []
    for part in parts:
        if kinds.count(part) < at_once:
            kinds.append(part)
    return list(combinations(kinds, at_once))


def _check_sampling(releases: Sequence[Release], adjacency: Adjacency) -> None:
    if adjacency is Adjacency.REPLACE and any(r.sampling < 1 for r in releases):
        raise UsageError(
            "Poisson sampling is accounted for under add-remove only: with adjacency 'replace' "
            "leave sampling at 1, or promise 'add-remove'."
        )


def _check_delta(delta: float) -> None:
    if not 0 <= delta < 1:
        raise UsageError(f"delta must lie in [0, 1), not {delta}.")
