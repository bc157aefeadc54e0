"""Rényi differential privacy (Mironov 2017): curves over fixed orders that add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.privacy.accounting.losses import GaussianLoss, Loss, PureLoss, leak, upward

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ORDERS", "curve", "delta", "delta_at", "epsilon", "epsilon_at", "sampled_at"]

# Integers, for which the sampled Gaussian has a closed form: all to 64, then ever wider apart.
# Where best orders lie between two of these, the loss of tightness is below 0.1 %.
ORDERS: NDArray[np.float64] = np.unique(
    np.concatenate([np.arange(2, 65), np.round(np.geomspace(64, 16384, 100))])
).astype(np.float64)

# Sums over up to 16384 terms with logarithms of binomial coefficients near 10⁴: rounding < 1e-10.
_UP = 1 + 1e-10


def epsilon(losses: Sequence[Loss], delta: float) -> float:
    rest = delta - leak(losses)
    return math.inf if rest <= 0 else float(epsilon_at(ORDERS, _sum(losses), rest).min())


def delta(losses: Sequence[Loss], epsilon: float) -> float:
    return min(1.0, float(delta_at(ORDERS, _sum(losses), epsilon).min()) + leak(losses))


def _sum(losses: Sequence[Loss]) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.zeros(len(ORDERS))
    for loss in losses:
        total += loss.count * curve(loss)
    return total * _UP


def epsilon_at(
    orders: NDArray[np.float64], divergences: NDArray[np.float64], delta: float
) -> NDArray[np.float64]:
    """Canonne, Kamath & Steinke 2020, proposition 12: each order gives a valid epsilon."""
    found = divergences + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    return np.maximum(found, 0.0)


def delta_at(
    orders: NDArray[np.float64], divergences: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """The same proposition, solved for delta."""
    log = (orders - 1) * (divergences - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return np.exp(np.minimum(log, 0.0)) * _UP


def curve(loss: Loss) -> NDArray[np.float64]:
    """The Rényi divergence of one run, at ORDERS, in the worse direction."""
    match loss:
        case GaussianLoss(mu=mu, sampling=1.0):
            return ORDERS * mu**2 / 2  # Mironov 2017, proposition 7
        case GaussianLoss(mu=mu, sampling=rate):
            return _sampled_gaussian(mu, rate)
        case PureLoss():
            return _pure(upward(loss.epsilon), loss.bounded_range)


def _pure(epsilon: float, bounded_range: bool) -> NDArray[np.float64]:
    """Randomised response: (α−1)·D = ln cosh((α−½)ε) − ln cosh(ε/2) (Mironov 2017, prop. 5)."""
    divergences = (_log_cosh((ORDERS - 0.5) * epsilon) - _log_cosh(np.asarray(epsilon / 2))) / (
        ORDERS - 1
    )
    # The difference cancels for tiny ε, where αε²/2 (Bun & Steinke 2016, proposition 3.3) is close.
    best = np.minimum(divergences + 2.0**-50 * epsilon, ORDERS * epsilon**2 / 2)
    if bounded_range:  # Cesar & Rogers 2021, lemma 3.4; the proof is in zcdp.py
        best = np.minimum(best, ORDERS * epsilon**2 / 8)
    return np.minimum(best, epsilon)


def _log_cosh(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.logaddexp(x, -x) - math.log(2))


@lru_cache(maxsize=256)
def _sampled_gaussian(mu: float, rate: float) -> NDArray[np.float64]:
    return np.array([sampled_at(mu, rate, int(order)) for order in ORDERS])


def sampled_at(mu: float, rate: float, order: int) -> float:
    """Mironov, Talwar & Zhang 2019, section 3.3, for integer orders; theorem 5: worse direction.

    A = Σₖ C(α,k)(1−q)^(α−k) q^k e^((k²−k)μ²/2). The binomial weights sum to 1 and the terms
    k = 0, 1 carry e⁰, so A − 1 is a sum of positive terms from k = 2 on: no digit is lost.
    """
    from scipy.special import gammaln

    k = np.arange(2, order + 1, dtype=np.float64)
    growth = (k * k - k) * mu**2 / 2
    log_terms = (
        gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
        + k * math.log(rate) + (order - k) * math.log1p(-rate)
        + growth + np.log(-np.expm1(-growth))
    )  # fmt: skip
    largest = float(log_terms.max())
    log_excess = largest + math.log(float(np.exp(log_terms - largest).sum()))
    return float(np.logaddexp(0.0, log_excess)) / (order - 1)
