"""Amplification: a secret sample, or a shuffle that hides who sent what, costs less than it looks.

Assumptions, claims and proofs are in `amplification.md`. All results are rounded upward, the one
exception being `local_epsilon_for`, where downward is the safe direction.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import PromiseError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["local_epsilon_for", "poisson", "shuffle", "shuffle_closed", "upper_quantile"]

# A few roundings of 2^-53 each; every result that must not be too small is multiplied by this.
_UP = 1 + 2.0**-50
# Bisections on epsilon stop at this relative width and return the safe end.
_TOLERANCE = 1e-7
# Binomial probabilities of scipy are good to 1e-13; the differences below cancel up to ~1e3 of it.
_BINOMIAL_ERROR = 1e-9
# The tails of C that are cut off hold this share of delta, and are charged in full.
_CUT = 1e-6


def poisson(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """(epsilon, delta) of a mechanism that sees each unit with probability `rate`. Add-remove only.

    Balle, Barthe & Gaboardi 2018, theorem 8: ε′ = ln(1 + q(e^ε − 1)), δ′ = q·δ.
    """
    _check(epsilon, delta)
    if not 0 < rate <= 1:
        raise PromiseError(f"a sampling rate lies in (0, 1], not {rate}.")
    if rate == 1:
        return epsilon, delta
    # For large ε, e^ε overflows; ln(1 + q(e^ε − 1)) = ε + ln(q + (1−q)e^−ε) does not.
    if epsilon < 1:
        amplified = math.log1p(rate * math.expm1(epsilon))
    else:
        amplified = epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))
    failing = math.nextafter(delta * rate, 1.0) if delta else 0.0
    return min(epsilon, amplified * _UP + epsilon * 2.0**-52), failing


def shuffle_closed(epsilon0: float, n: int, delta: float) -> float:
    """The central epsilon of `n` shuffled reports, each epsilon0-locally private; closed form.

    Feldman, McMillan & Talwar 2021, theorem 3.1. Where its condition on n fails: epsilon0.
    """
    _check_shuffle(epsilon0, n, delta)
    if delta == 0 or epsilon0 > math.log(n / (16 * math.log(2 / delta))):
        return epsilon0
    e = math.exp(epsilon0)
    spread = 8 * math.sqrt(e * math.log(4 / delta) / n) + 8 * e / n
    return min(epsilon0, math.log1p((e - 1) / (e + 1) * spread) * _UP)


def shuffle(epsilon0: float, n: int, delta: float) -> float:
    """The central epsilon of `n` shuffled reports, each epsilon0-locally private; numerical.

    Feldman, McMillan & Talwar 2021, theorem 3.2. `n` counts the honest reports of distinct units
    that were really mixed, the protected one among them. Never above epsilon0.
    """
    _check_shuffle(epsilon0, n, delta)
    if delta == 0:
        return epsilon0
    clones = _Clones(epsilon0, n, delta)
    if clones.delta(0.0) <= delta:
        return 0.0
    low, high = 0.0, epsilon0
    while high - low > _TOLERANCE * high:
        middle = (low + high) / 2
        if clones.delta(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def local_epsilon_for(epsilon: float, delta: float, n: int) -> float:
    """The largest local epsilon0 whose `n` shuffled reports cost at most `epsilon`, rounded down.

    Never below `epsilon`: a shuffle costs nothing.
    """
    _check_shuffle(epsilon, n, delta)
    if delta == 0:
        return epsilon
    target = epsilon * (1 - 4 * _TOLERANCE)  # so that `shuffle` of the result, rounded up, fits

    def fits(epsilon0: float) -> bool:
        return _Clones(epsilon0, n, delta).delta(target) <= delta

    low, high = epsilon, 2 * epsilon
    while fits(high):
        low, high = high, 2 * high
    while high - low > _TOLERANCE * low:
        middle = (low + high) / 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


class _Clones:
    """The pair of theorem 3.2: how well one report hides among the clones of the others.

    Each other report is with probability e^−ε0 a clone: C ~ Bin(n−1, e^−ε0) of them, A ~ Bin(C, ½)
    of which look like the first value. With Δ ~ Bern(e^ε0/(e^ε0+1)) the observer tells
    (A+Δ, C−A+1−Δ) from (A+1−Δ, C−A+Δ). Exchanging the coordinates exchanges the two, so one
    direction is enough.
    """

    def __init__(self, epsilon0: float, n: int, delta: float) -> None:
        from scipy.stats import binom

        self._epsilon0, self._binom = epsilon0, binom
        law = binom(n - 1, math.exp(-epsilon0))
        low = int(law.ppf(_CUT * delta))
        high = int(upper_quantile(n - 1, math.exp(-epsilon0), _CUT * delta))
        self._count: NDArray[np.float64] = np.arange(low, high + 1, dtype=np.float64)
        self._weight = law.pmf(self._count)
        # Below and above the range nothing is assumed: that mass counts as a failure.
        self._cut = float(law.cdf(low - 1) + law.sf(high))

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence at `epsilon`, rounded up.

        Given C = c, let X = A+Δ. P(X=x) > e^ε Q(X=x) exactly for x above (c+1)·r/(1+r) with
        r = (e^(ε+ε0) − 1)/(e^ε0 − e^ε); and for a threshold k
        P(X≥k) − e^ε Q(X≥k) = a·P(A=k−1) − (e^ε − 1)·P(A≥k),  a = (e^ε0 − e^ε)/(e^ε0 + 1).
        """
        if epsilon >= self._epsilon0:
            return self._cut
        gap = -math.expm1(epsilon - self._epsilon0)  # (e^ε0 − e^ε)/e^ε0
        a = gap / (1 + math.exp(-self._epsilon0))
        rise = math.exp(epsilon) - math.exp(-self._epsilon0)  # (e^(ε+ε0) − 1)/e^ε0
        exact = np.floor((self._count + 1) * (rise / (rise + gap))) + 1
        # Every threshold gives a lower bound, the right one the divergence itself. Where rounding
        # moves it over a whole number, it is the one below.
        each = np.maximum(self._at(exact, a, epsilon), self._at(exact - 1, a, epsilon))
        return float(self._weight @ np.maximum(each, 0)) * (1 + _BINOMIAL_ERROR) + self._cut

    def _at(self, threshold: NDArray[np.float64], a: float, epsilon: float) -> NDArray[np.float64]:
        at = self._binom.pmf(threshold - 1, self._count, 0.5)
        above = self._binom.sf(threshold - 1, self._count, 0.5)
        found: NDArray[np.float64] = a * at * (1 + _BINOMIAL_ERROR) - math.expm1(epsilon) * above
        return found


def upper_quantile(size: ArrayLike, chance: float, tail: float) -> NDArray[np.float64] | np.float64:
    """A count that Bin(size, chance) exceeds with about the probability `tail`.

    By the other end of the mirrored law: below 1e-17, scipy's own `isf` answers the whole size.
    """
    from scipy.stats import binom

    mirrored: NDArray[np.float64] | np.float64 = binom.ppf(tail, size, 1 - chance)
    return np.asarray(size) - np.maximum(mirrored, 0)


def _check(epsilon: float, delta: float) -> None:
    if not epsilon >= 0:
        raise PromiseError(f"epsilon must be at least 0, not {epsilon}.")
    if not 0 <= delta < 1:
        raise PromiseError(f"delta must lie in [0, 1), not {delta}.")


def _check_shuffle(epsilon: float, n: int, delta: float) -> None:
    _check(epsilon, delta)
    if not 0 < epsilon < math.inf:
        raise PromiseError(f"a local epsilon must be above 0 and finite, not {epsilon}.")
    if n < 1:
        raise PromiseError(f"at least one report is shuffled, not {n}.")
