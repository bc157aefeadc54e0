"""What rounds over secret samples do to noise, at the same promise: there is hardly ever less of it
(channels/federation/options.md)."""

from __future__ import annotations

from fractions import Fraction

from tacit.privacy.promise import Promise
from tacit.programs.levels import Levels
from tacit.programs.program import Plan

__all__ = ["noise_of_samples"]


def noise_of_samples(promise: Promise, plan: Plan, rate: Fraction) -> float:
    """How many times as large the noise is as without samples, once sums are scaled up.

    All multipliers of a plan are calibrated by one factor, so all blocks have the same ratio, but
    for rounding.
    """
    if rate == 1 or not promise.is_private:
        return 1.0
    whole = Levels.planned(promise, plan).multipliers
    sampled = Levels.planned(promise, plan.sampled(rate)).multipliers
    return max(float(sampled[name] / (rate * whole[name])) for name in whole)
