"""How many reports a report is hidden among, when people choose circuits at random (relay.md)."""

from __future__ import annotations

from tacit.channels.crowd.layers import layers
from tacit.errors import UsageError

__all__ = ["meeting_chance", "mixed_at_least"]

SLACK = 1e-9  # more than the error of the incomplete beta function, relative


def meeting_chance(relays: int, hops: int) -> float:
    """The least probability that another's packet of the same wave comes to my honest relay.

    A relay stands at one hop, and everyone draws one of each layer: 1 / the layer's size. Which of
    the relays is the honest one is not known, so the largest layer counts.
    """
    if not 1 <= hops <= relays:
        raise UsageError(f"{relays} relays cannot be dealt out to {hops} hops.")
    return 1 / max(len(layer) for layer in layers(relays, hops))


def mixed_at_least(n: int, relays: int, hops: int, failure: float) -> int:
    """So many of the n reports of one wave, at least, are mixed at my honest relay, mine included;
    fewer with probability at most `failure`, over everyone's choice of circuits.

    The quantile of 1 + Binomial(n − 1, chance), rounded down.
    """
    if n < 1 or not 0 < failure < 1:
        raise UsageError(f"n = {n} reports and failure = {failure}: take n ≥ 1, 0 < failure < 1.")
    chance = meeting_chance(relays, hops)
    low, high = 0, n  # P[Binomial < low] is small enough; `high` is too many
    while high - low > 1:
        middle = (low + high) // 2
        if _below(middle, n - 1, chance) * (1 + SLACK) <= failure:
            low = middle
        else:
            high = middle
    return 1 + low


def _below(count: int, trials: int, chance: float) -> float:
    """P[Binomial(trials, chance) < count], for 1 ≤ count ≤ trials."""
    from scipy.special import betainc

    return float(betainc(trials - count + 1, count, 1 - chance))
