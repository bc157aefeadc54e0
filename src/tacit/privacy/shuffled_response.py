"""What a shuffle makes of one known randomiser: less than of any that keeps to the same epsilon.

`amplification.shuffle` holds for every local randomiser. Those of the crowd say much less than the
worst of them: a report about many values rarely tells two of them apart, and every answer, whatever
the value, has a share of noise in which others hide. Proof: shuffled_response.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.errors import PromiseError
from tacit.privacy.amplification import local_epsilon_for, shuffle, upper_quantile
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.promise import Adjacency, Promise, Unit

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.privacy.release import Release

    Reals = NDArray[np.float64]

__all__ = ["HOPELESS", "ResponseLaw", "law_of", "local_epsilon_of_response", "shuffled_response"]

HOPELESS = 100.0  # a local epsilon so large that nobody hides anybody

# Binomial probabilities of scipy are good to 1e-13; what is subtracted cancels up to ~1e3 of it.
_BINOMIAL_ERROR = 1e-9
# A threshold is found up to so much, and rounded down.
_ROUNDING = 1e-12
# The tails of both counts that are cut off hold this share of delta, and are charged in full.
_CUT = 1e-6
# Crowds whose sizes agree in so many leading binary digits share the figure of the smallest:
# with this grid, which does not depend on n, the figure is monotone in n.
_DIGITS = 8
# The search for epsilon ends when delta is met up to this, relatively, and returns the safe end.
_TOLERANCE = 1e-7
_STEPS = 60
_FINE = 1e-4


class ResponseLaw(NamedTuple):
    """What a report tells of two values, whichever two they are.

    own      with this probability it is one that her own value makes e^ε times likelier
    other    … one that the other value makes e^ε times likelier; else it is as likely with both
    neutral  every value's report is, with this probability, a draw from those of the last kind
    """

    own: Fraction
    other: Fraction
    neutral: Fraction


def law_of(release: Release) -> ResponseLaw | None:
    """Of a release of one of the crowd's randomisers; None if it is of something else."""
    get = release.parameters.get
    m, p, q, size = get("m"), get("p"), get("q"), get("size")
    if p is None or not 0 < p < 1:
        return None
    match release.mechanism:
        case "randomised-response" if m is not None and m >= 2:
            other = (1 - p) / (m - 1)
            own, neutral = p, (m - 2) * other
        case "hadamard-response":
            own, other, neutral = p / 2, (1 - p) / 2, (1 - p) / p / 2
        case "subset-selection" if m is not None and size is not None and 0 < size < m:
            own, other = p * (m - size) / (m - 1), (1 - p) * size / (m - 1)
            neutral = (1 - own - other) * other / own
        case "pq-perturbation" if q is not None and 0 < q < 1:
            own, other = p * (1 - q), q * (1 - p)
            neutral = (1 - own - other) * other / own
        case _:
            return None
    return ResponseLaw(own, other, neutral) if own > other else None


def shuffled_response(release: Release, local: float, n: int, delta: float) -> float:
    """The central epsilon, at this delta, of `n` shuffled reports of one randomiser.

    local   what one report costs; the figure is never above it, nor above `shuffle`'s
    n       honest reports of distinct units that were really mixed, the protected one among them
    """
    if local > HOPELESS:
        return local
    general, law = shuffle(local, n, delta), law_of(release)
    if law is None or delta == 0 or general == 0:
        return general
    return _specific(law, n, delta, general)


def local_epsilon_of_response(epsilon: float, delta: float, n: int, values: int) -> float:
    """A local epsilon at which `n` shuffled answers of k-ary randomised response cost at most
    `epsilon`: the largest up to 0.01 %, never below that of any randomiser."""

    def fits(local: float) -> bool:
        promise = Promise(local, 0.0, Unit.PERSON, Adjacency.REPLACE)
        (release,) = RandomisedResponse.calibrated(values, promise).spend
        return shuffled_response(release, local, n, delta) <= epsilon

    low = high = local_epsilon_for(epsilon, delta, n)
    while high < HOPELESS and fits(high):
        low, high = high, high * 1.25
    while high - low > _FINE * low:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@lru_cache(maxsize=4096)
def _specific(law: ResponseLaw, n: int, delta: float, most: float) -> float:
    """The least epsilon at which the divergence is at most delta, rounded up; at most `most`."""
    crowd = _Crowd(law, n, delta)

    def excess(epsilon: float) -> float:
        return math.log(max(crowd.delta(epsilon) / delta, 1e-30))

    low, high, over, under = 0.0, most, excess(0.0), excess(most)
    if over <= 0 or under > 0:
        return 0.0 if over <= 0 else most
    # Regula falsi, by squares: log delta is nearly linear in those. An end that stays twice counts
    # half (the Illinois rule), and where it still is slow the interval is halved. The upper end is
    # always one at which delta was met.
    last_above: bool | None = None
    for step in range(_STEPS):
        if high - low <= _TOLERANCE * high or under >= -_TOLERANCE:
            break
        share = over / (over - under) if step < _STEPS // 3 else 0.5
        middle = math.sqrt(low**2 + (high - low) * (high + low) * min(max(share, 0.01), 0.99))
        found = excess(middle)
        if found <= 0:
            high, under, over = middle, found, over / 2 if last_above is True else over
        else:
            low, over, under = middle, found, under / 2 if last_above is False else under
        last_above = found <= 0
    return high


class _Crowd:
    """The pair that dominates: one report among T, of which it is known that T − 1 are noise.

    Each of the n − 1 others is noise with probability b = 2·other + neutral: T = 1 + Bin(n−1, b).
    Of T such reports S point to either value, S ~ Bin(T, 2·other/b), and A ~ Bin(S, ½) of these to
    the first. The counts of T reports with the protected one among them have this law times
    (b/T)(p·A + (S − A) + κ(T − S)), κ = (1 − own − other)/neutral; with the other value A and S − A
    are exchanged.
    """

    def __init__(self, law: ResponseLaw, n: int, delta: float) -> None:
        from scipy.stats import binom

        if n < 1 or not 0 < delta < 1:
            raise PromiseError(f"nothing is shuffled with n = {n} and delta = {delta}.")
        self._binom = binom
        noise = 2 * law.other + law.neutral
        self._ratio = float(law.own / law.other)
        self.local = math.log(self._ratio)
        self._kappa = float((1 - law.own - law.other) / law.neutral) if law.neutral else 0.0
        sizes, masses, below = _sizes(n, float(noise), delta)
        law_of_s = binom(sizes, float(2 * law.other / noise))
        first = np.maximum(law_of_s.ppf(_CUT * delta), 0)
        last = upper_quantile(sizes, float(2 * law.other / noise), _CUT * delta)
        self._cut = below + float(masses @ (law_of_s.cdf(first - 1) + law_of_s.sf(last)))
        counts = (last - first + 1).astype(np.int64)
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        self._total = np.repeat(sizes, counts)
        self._pointing: Reals = np.repeat(first, counts) + offsets
        chance = binom.pmf(self._pointing, self._total, float(2 * law.other / noise))
        self._weight = np.repeat(masses, counts) * chance * float(noise) / self._total
        some = (self._weight > 0) & (self._pointing > 0)  # if none points, nothing is told
        self._total, self._pointing = self._total[some], self._pointing[some]
        self._weight = self._weight[some]

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence at `epsilon`, rounded up.

        Given T and S = s, the first law exceeds e^ε times the second by a straight line in A, of
        slope (p − 1)(1 + e^ε), that is positive above one threshold.
        """
        if epsilon >= self.local:
            return self._cut
        p, s, rise = self._ratio, self._pointing, math.expm1(epsilon)
        slope, idle = (p - 1) * (2 + rise), self._kappa * (self._total - s)
        threshold = ((p * (1 + rise) - 1) * s + rise * idle) / slope
        k = np.floor(threshold * (1 - _ROUNDING)) + 1
        gap = -p * math.expm1(epsilon - self.local)  # p − e^ε
        gain = s * (gap * (1 + _BINOMIAL_ERROR) + 2 * _ROUNDING * slope) - rise * idle
        loss = rise * ((p + 1) * s / 2 + idle)
        at = self._binom.pmf(k - 1, s - 1, 0.5)
        above = self._binom.sf(k - 1, s - 1, 0.5)
        each = np.maximum(np.maximum(gain, 0) * at / 2 - loss * above, 0)
        return float(self._weight @ each) * (1 + _BINOMIAL_ERROR) + self._cut


def _sizes(n: int, noise: float, delta: float) -> tuple[Reals, Reals, float]:
    """How many reports are noise, with the protected one: at least so many, with which probability;
    and the probability of fewer than the first."""
    from scipy.stats import binom

    chance = min(noise, 1.0)
    others = binom(n - 1, chance)
    low, high = (
        1 + int(max(others.ppf(_CUT * delta), 0)),
        1 + int(upper_quantile(n - 1, min(noise, 1.0), _CUT * delta)),
    )
    starts = [low]
    while (following := _rounded(starts[-1]) + _step(starts[-1])) <= high:
        starts.append(following)
    before = others.cdf(np.array(starts) - 2)  # one of T is the protected one's
    masses = np.append(np.diff(before), others.sf(starts[-1] - 2))
    return np.array([_rounded(start) for start in starts], float), masses, float(before[0])


def _step(size: int) -> int:
    return 1 << max(0, size.bit_length() - _DIGITS)


def _rounded(size: int) -> int:
    return size - size % _step(size)
