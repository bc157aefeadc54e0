"""How large a sum may become: servers add residues modulo 2^64, and what wraps round is lost.

Honest sums stay below 2^62, noise included, so that sign and size can be read off a residue and
garbage (a uniformly random residue) is almost always recognised as such.
"""

from __future__ import annotations

import math

from tacit.privacy.bound import Norm
from tacit.privacy.mechanisms.additive import Additive
from tacit.programs.program import Block

__all__ = ["LIMIT", "largest_contribution", "largest_noise"]

LIMIT = 2**62
# Noise may go beyond what is reckoned with, in one coordinate of one sum, with probability 2^−64.
RARE_BITS = 64


def largest_contribution(block: Block) -> int:
    """The largest |coordinate| of one unit's clipped contribution, in grid steps: no coordinate is
    longer than the whole, in any norm."""
    return block.limit


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
