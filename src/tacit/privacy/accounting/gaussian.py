"""Gaussians without sampling, exactly: any number of them is one Gaussian.

N(0, 1) against N(μ₁, 1), then against N(μ₂, 1), … is as hard as N(0, 1) against N(√Σμᵢ², 1)
(Dong, Roth & Su 2022, corollary 3.3), and for one Gaussian
δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) is exact (Balle & Wang 2018, theorem 8).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache

from tacit.privacy.accounting.losses import GaussianLoss, Loss

__all__ = ["delta", "epsilon", "hockey_stick", "largest_mu", "smallest_epsilon", "total"]

_UNIT = 2.0**-52
# Relative width at which bisections stop; they return the safe end.
_TOLERANCE = 1e-12
# δ is inflated by this much: for the special functions' rounding (below 1e-14) and for the
# difference between discrete and continuous Gaussian (gaussian.md, corollary 2: below 1e-13).
_SLACK = 1e-12


def total(losses: Sequence[Loss]) -> float | None:
    """μ of the one Gaussian that all losses are together, rounded up; None if it does not apply."""
    squares = []
    for loss in losses:
        if not isinstance(loss, GaussianLoss) or loss.sampling < 1:
            return None
        squares.append(loss.count * loss.mu**2)
    return math.sqrt(math.fsum(squares)) * (1 + 4 * _UNIT)


def epsilon(losses: Sequence[Loss], delta: float) -> float:
    mu = total(losses)
    return math.inf if mu is None else smallest_epsilon(mu, delta)


def delta(losses: Sequence[Loss], epsilon: float) -> float:
    mu = total(losses)
    return 1.0 if mu is None else hockey_stick(mu, epsilon)


def hockey_stick(mu: float, epsilon: float) -> float:
    """δ(ε) of one Gaussian, rounded up.

    With t = ε/μ − μ/2 and the Mills ratio M(t) = Φ(−t)/φ(t), and since e^ε φ(t+μ) = φ(t),
    δ = φ(t)·(M(t) − M(t+μ)): no overflow for large ε, all digits for tiny δ.
    """
    from scipy.special import erfcx, ndtr

    if mu == 0:
        return 0.0
    t = epsilon / mu - mu / 2
    # t carries the rounding of its two terms, and the exponent t²/2 multiplies it by t.
    error = 4 * _UNIT * (t * t + abs(t) * (epsilon / mu + mu / 2) + 2)
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    right = _mills(erfcx, t + mu)
    if t < 0:  # M(t) would overflow; φ(t)·M(t) = Φ(−t) does not
        found = float(ndtr(-t)) - density * right + (1 + density * right) * error
    else:  # for small μ the difference cancels; its largest rounding error is added
        left = _mills(erfcx, t)
        found = density * (left - right + 8 * _UNIT * left) * (1 + error)
    return min(1.0, found * (1 + _SLACK) + sys.float_info.min)  # never 0 by underflow


def _mills(erfcx: Callable[[float], float], t: float) -> float:
    return math.sqrt(math.pi / 2) * float(erfcx(t / math.sqrt(2)))


def smallest_epsilon(mu: float, delta: float) -> float:
    """The smallest ε with δ(ε) ≤ `delta` for N(0, 1) against N(mu, 1), rounded up."""
    if delta <= 0:
        return math.inf if mu > 0 else 0.0
    if hockey_stick(mu, 0.0) <= delta:
        return 0.0
    # zCDP of ρ = μ²/2 (Bun & Steinke 2016, proposition 1.3): an ε that surely suffices.
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + _TOLERANCE
    while high - low > _TOLERANCE * high:
        middle = (low + high) / 2
        if hockey_stick(mu, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=256)  # games and simulations keep one promise thousands of times
def largest_mu(epsilon: float, delta: float) -> float:
    """The largest μ for which N(0, 1) against N(μ, 1) is (epsilon, delta)-private, rounded down."""
    low, high = 0.0, 1.0
    while hockey_stick(high, epsilon) <= delta:
        low, high = high, 2 * high
    while low == 0.0:
        if hockey_stick(high / 2, epsilon) <= delta:
            low = high / 2
        else:
            high /= 2
    while high - low > _TOLERANCE * low:
        middle = (low + high) / 2
        if hockey_stick(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low
