"""What one member's own part of the noise hides, should all others of its group work together.

The promise is for groups of which at most `colluding` do. Beyond that the others know everything
but one vector and the one part of the noise that its owner has added to it (groups.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tacit.channels.peers.pact import Pact
from tacit.errors import InputError
from tacit.privacy.accounting import cost
from tacit.privacy.bound import Bound, Norm
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release

__all__ = ["Exposure", "exposure", "laplace_part_epsilon", "require_listed"]

SMALLER = 1 - 1e-9  # a part is taken to be smaller than it is, rather than larger
FAR = 20  # grid steps from which on the continuous law is right to four digits


@dataclass(frozen=True, slots=True)
class Exposure:
    """ε, at the pact's δ, of one of `parts` parts."""

    epsilon: float
    parts: int


def exposure(pact: Pact) -> Exposure | None:
    """For the largest roster, in which a part is smallest; None where there is no such promise:
    alone, and as published."""
    if pact.group_size == 1 or pact.protocol != "joint":
        return None
    parts = pact.group_size - pact.colluding
    length = pact.averaged.length(pact.schema)
    bound = pact.averaged.bound(pact.smallest, pact.promise.unit)
    if pact.promise.delta > 0:
        return Exposure(_gaussian(bound, pact.promise, length, parts), parts)
    root = Fraction(math.isqrt(length * 10**12) + 1, 10**6)
    whole = Laplace.calibrated(Bound(Norm.L1, bound.value * root), pact.promise, length)
    scale, shift = whole.scale / whole.grid.step, whole.bound.value / whole.grid.step
    return Exposure(laplace_part_epsilon(float(scale), float(shift), length, parts), parts)


def _gaussian(bound: Bound, promise: Promise, length: int, parts: int) -> float:
    """A part of Gaussian noise is Gaussian, of variance σ² / parts."""
    whole = Gaussian.calibrated(bound, promise, length)
    part = Fraction(float(whole.scale) / math.sqrt(parts) * SMALLER)
    release = Release(whole.name, whole.bound, part, whole.grid.step, length)
    return cost((release,), promise.delta, promise.adjacency).epsilon


def laplace_part_epsilon(scale: float, shift: float, length: int, parts: int) -> float:
    """The pure ε of one of several parts of discrete Laplace noise, for values that move by `shift`
    in L1; `scale` and `shift` in grid steps.

    A part is the difference X of two negative binomials of r = 1/parts. P[X = k] is, for k ≥ 0, a
    mixture of geometric laws, hence log-convex: the loss of a coordinate that moves by s is largest
    at 0, ln P[0]/P[s], and concave in s. So the worst move is an even one (groups.md).
    """
    steps = math.ceil(shift / length)
    return length * (_log_part(0, scale, parts) - _log_part(steps, scale, parts))


def _log_part(k: int, scale: float, parts: int) -> float:
    """ln P[X = k]: exactly near 0, from the continuous law (variance-gamma) farther out."""
    from scipy.special import gammaln, hyp2f1, kve

    r = 1 / parts
    if k > FAR:
        x = k / scale
        bessel = math.log(float(kve(abs(r - 0.5), x))) - x
        ends = -0.5 * math.log(math.pi) - float(gammaln(r)) - math.log(scale)
        return ends + (r - 0.5) * math.log(x / 2) + bessel
    p = math.exp(-1 / scale)
    rising = float(gammaln(r + k) - gammaln(r) - gammaln(k + 1))
    series = math.log(float(hyp2f1(r, r + k, k + 1, p * p)))
    return 2 * r * math.log1p(-p) + k * math.log(p) + rising + series


def require_listed(pact: Pact) -> None:
    """InputError for δ = 0 in a network that anybody may join."""
    found = exposure(pact)
    if found is None or pact.promise.delta > 0 or pact.members:
        return
    raise InputError(
        f"pact: delta = 0 in a network that anybody may join: one part of Laplace noise hides next "
        f"to nothing, and whoever is alone among strangers would have ε = {found.epsilon:.3g} "
        f"instead of {pact.promise.epsilon:g}. List the members (--members), or take delta above "
        "0, such as 1e-6."
    )
