"""How large a sum may become: servers add residues modulo 2^64, and what wraps round is lost.

Honest sums stay below 2^62, noise included, so that sign and size can be read off a residue and
garbage (a uniformly random residue) is almost always recognised as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from tacit.errors import UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.mechanisms.additive import Additive
from tacit.programs.program import Block, Plan, Query

__all__ = ["LIMIT", "coarsened", "largest_contribution", "largest_noise"]

LIMIT = 2**62
# Noise may go beyond what is reckoned with, in one coordinate of one sum, with probability 2^−64.
RARE_BITS = 64
# Rounding a sum may add one part in so many to the noise (programs/coarse.md).
ROUNDING = 2**7


def largest_contribution(block: Block) -> int:
    """The largest |coordinate| of one unit's clipped contribution, in steps of the sum: no
    coordinate is longer than the whole, in any norm."""
    return block.sum_limit


def coarsened(plan: Plan, units: int, noise: Callable[[Block], int]) -> Plan:
    """The same plan, with sums rounded as little as makes those of `units` units fit.

    From public numbers alone, so that everyone finds the same. `noise` is the largest of a block,
    in steps of its sums. A block that would have to be rounded too much stays as it is: whoever
    checks the study finds that it does not fit.
    """

    def fits(block: Block) -> bool:
        return units * largest_contribution(block) + noise(block) < LIMIT

    def fitting(block: Block) -> Block:
        if fits(block):
            return block
        for shift in range(1, block.limit.bit_length()):
            coarse = replace(block, shift=shift)
            if coarse.rounding * ROUNDING > coarse.sum_limit:
                break
            try:
                if fits(coarse):
                    return coarse
            except UsageError:  # too coarse for noise in parts
                break
        return block

    stages = (
        replace(stage, query=Query(tuple(map(fitting, stage.query.blocks))))
        for stage in plan.stages
    )
    return Plan(tuple(stages))


def largest_noise(mechanism: Additive, servers: int) -> int:
    """What the noise of all servers together exceeds with probability 2^−64 at most, in steps.

    Gaussian: each part is sub-Gaussian with its own σ² (Canonne, Kamath, Steinke 2020), so the sum
    of m is with m·σ², and P[|x| > t] ≤ 2 exp(−t²/(2 m σ²)). Laplace of scale b: P[|x| ≥ t] ≤
    2 exp(−t/b), for each of m. A part of a Laplace is symmetric, and so is the rest, hence
    P[|part| ≥ t] ≤ 2 P[|whole| ≥ t] (Lévy): one more factor of 2.
    """
    scale = float(mechanism.scale / mechanism.grid.step)
    if mechanism.bound.norm is Norm.L2:
        variance = scale**2 * servers / mechanism.parts
        reach = math.sqrt(2 * variance * (RARE_BITS + 1) * math.log(2))
    else:
        reach = servers * scale * ((RARE_BITS + 2) * math.log(2) + math.log(servers))
    return math.ceil(reach)
