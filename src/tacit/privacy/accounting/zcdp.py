"""Zero-concentrated differential privacy (Bun & Steinke 2016): one number ρ that adds up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.privacy.accounting.losses import GaussianLoss, Loss, PureLoss, leak, upward
from tacit.privacy.accounting.renyi import delta_at, epsilon_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["delta", "epsilon", "rho"]

_UP = 1 + 1e-12


def rho(loss: Loss) -> float:
    """The ρ of one run: its Rényi divergence of every order α is at most ρ·α."""
    match loss:
        case GaussianLoss(mu=mu):
            # Bun & Steinke 2016, proposition 1.6. Sampling is ignored, which is sound (divergences
            # are quasi-convex) and all that a line ρα can say: its slope is μ²/2 in the limit.
            return mu**2 / 2
        case PureLoss(bounded_range=True):
            # Cesar & Rogers 2021, lemma 3.4. With L = ln(P/Q) in an interval of width ε, the
            # function K(t) = ln E_Q[e^(tL)] = (t−1)·D has K(0) = K(1) = 0 and, as the variance of
            # something in that interval, K″ ≤ ε²/4; so K(α) ≤ α(α−1)·ε²/8.
            return upward(loss.epsilon) ** 2 / 8
        case PureLoss():
            # Sharper than ε²/2 (Bun & Steinke, proposition 3.3), and the best possible (Steinke
            # 2024, "Tight RDP & zCDP bounds from pure DP"):
            # randomised response has (α−1)·D = ln cosh(√u·ε) − ln cosh(ε/2) with u = (α−½)².
            # ln cosh(√u·ε) is concave in u, so its tangent at u = ¼ lies above it; the slope
            # there is ε·tanh(ε/2), and u − ¼ = α(α−1).
            epsilon = upward(loss.epsilon)
            return epsilon * math.tanh(epsilon / 2)


def _total(losses: Sequence[Loss]) -> float:
    return math.fsum(loss.count * rho(loss) for loss in losses) * _UP


def epsilon(losses: Sequence[Loss], delta: float) -> float:
    total, rest = _total(losses), delta - leak(losses)
    if rest <= 0:
        return math.inf
    return _least(lambda orders: epsilon_at(orders, total * orders, rest)) * _UP


def delta(losses: Sequence[Loss], epsilon: float) -> float:
    total = _total(losses)
    return min(1.0, _least(lambda orders: delta_at(orders, total * orders, epsilon)) + leak(losses))


def _least(function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
    """The least value over orders α > 1. Every order is sound, so a coarse search loses nothing
    but tightness."""
    low, high = math.log(1e-4), math.log(1e9)
    for _ in range(4):
        exponents = np.linspace(low, high, 65)
        values = function(1 + np.exp(exponents))
        best, width = int(values.argmin()), (high - low) / 64
        low, high = float(exponents[best]) - width, float(exponents[best]) + width
    return float(values.min())
