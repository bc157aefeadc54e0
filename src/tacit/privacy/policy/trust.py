"""How many parts the noise may be divided into, for one who trusts some of the servers (trust.md).

`trust` is a number t (any t of the servers do not collude) or public keys (these do not).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Cost", "Trust", "costs", "most_parts", "noise_choice", "trusted"]

Trust = int | tuple[str, ...]


def trusted(trust: Trust, servers: Collection[str]) -> int:
    """How many of these servers do not collude, by the holder's word. 0 where it says nothing that
    could be used: no named one is among them, or more are counted than there are."""
    if isinstance(trust, tuple):
        return len(set(trust) & set(servers))
    return trust if trust <= len(servers) else 0


def most_parts(trust: Trust, servers: Collection[str]) -> int:
    """Theorem of trust.md: with t ≥ 2 honest ones, t − 1 parts at most; with one, all noise from
    each. 0: no noise suffices."""
    count = trusted(trust, servers)
    return min(count, max(1, count - 1))


def noise_choice(parts: int) -> str:
    """The words of a study's [noise] that divide the noise so."""
    return "every-server" if parts == 1 else f"honest = {parts + 1}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one holder's statement costs a study in noise. Factors are standard deviations relative
    to one trusted place; None where no noise suffices.

    alone    if only this holder's statement had to be met
    without  if this one alone were left out
    """

    holder: str
    trusted: int
    parts: int
    alone: float | None
    without: float | None


def costs(
    statements: Mapping[str, Trust], servers: Sequence[str]
) -> tuple[int, float | None, list[Cost]]:
    """Parts that suit everybody (0: nobody's noise would), the factor, and each one's cost."""
    allowed = {name: most_parts(trust, servers) for name, trust in statements.items()}
    free = max(1, len(servers) - 1)  # nobody asks for more trust than that all are honest

    def factor(parts: int) -> float | None:
        return math.sqrt(len(servers) / parts) if parts else None

    def together(names: Collection[str]) -> int:
        return min((allowed[name] for name in names), default=free)

    found = [
        Cost(
            name,
            trusted(trust, servers),
            allowed[name],
            factor(allowed[name]),
            factor(together(allowed.keys() - {name})),
        )
        for name, trust in statements.items()
    ]
    parts = together(allowed.keys())
    return parts, factor(parts), found
