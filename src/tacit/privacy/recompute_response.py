"""What a shuffle hides of one known randomiser, computed a second time by other code.

The same pair of laws as `shuffled_response` (shuffled_response.md), summed in another order. Of T
reports that are noise but for the protected one, B point to the other value, B ~ Bin(T, x), and A
of the rest to her own, A ~ Bin(T − B, x/(1 − x)). The divergence at ε is

    E[max(0, (b/T)((p + (κ − 1)e^ε − κ)A − ((p − κ)e^ε + κ − 1)B − κ(e^ε − 1)T))],

by E[A; A ≥ k] = N·y·P[Bin(N − 1, y) ≥ k − 1] a difference of two tails for every B. Probabilities
come from how far `hit` and `miss` lie apart, and from the ratio e^ε₀, not from the randomiser's
table. Neighbouring T share the figure of the smallest, and what is left out is charged in full.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.recompute_shuffle import HOPELESS, log_binomial, shuffled_epsilon
from tacit.privacy.release import Release

__all__ = ["response_epsilon"]

Reals = NDArray[np.float64]

CUT = 1e-9  # of delta: what each tail may hold that is left out
DIGITS = 9  # numbers of noisy reports that agree in so many leading binary digits share a figure
ENOUGH = 2.5  # standard deviations above the mean, from which on all of them do
PRECISION = 1e-6  # of epsilon, upward


class _Noise(NamedTuple):
    """ratio  e^ε₀;  share  of a report that is noise;  pointing  of noise, to either of two values;
    idle  how much likelier the protected report than noise is to point to neither"""

    ratio: float
    share: float
    pointing: float
    idle: float


def response_epsilon(release: Release, local: float, mixed: int, delta: float) -> float:
    """The central ε, at this δ, of one of `mixed` reports of this randomiser that keeps `local`.

    ValueError if there is no such randomiser, or if it does not keep that much.
    """
    if local > HOPELESS:
        return local
    noise = _noise(release)
    if math.log(noise.ratio) > local * (1 + PRECISION):
        raise ValueError
    return min(shuffled_epsilon(local, mixed, delta), _specific(noise, mixed, delta))


def _noise(release: Release) -> _Noise:
    """A report that supports one of two values alone moves by hit − miss: (e^ε₀ − 1) times the
    lesser of its probabilities."""
    given = release.parameters
    p, m = given["p"], given.get("m", Fraction(2))
    if not (0 < p < 1 and m >= 2 and m == int(m)):
        raise ValueError
    if release.mechanism == "randomised-response":
        miss, ratio = (1 - p) / (m - 1), p * (m - 1) / (1 - p)
    elif release.mechanism == "hadamard-response":
        miss, ratio = Fraction(1, 2), p / (1 - p)
    elif release.mechanism == "subset-selection":
        size = given["size"]
        if not (0 < size < m and size == int(size)):
            raise ValueError
        miss, ratio = (size - p) / (m - 1), p * (m - size) / ((1 - p) * size)
    elif release.mechanism == "pq-perturbation":
        miss = given["q"]
        if not 0 < miss < 1:
            raise ValueError
        ratio = p * (1 - miss) / ((1 - p) * miss)
    else:
        raise ValueError
    if not p > miss:
        raise ValueError
    lesser = (p - miss) / (ratio - 1)
    neither = 1 - (ratio + 1) * lesser
    # In randomised response all values but the true one are alike; else the ratio bounds all.
    idle = Fraction(1) if release.mechanism == "randomised-response" else ratio
    share = 2 * lesser + neither / idle
    return _Noise(float(ratio), float(share), float(lesser / share), float(idle))


@lru_cache(maxsize=4096)
def _specific(noise: _Noise, mixed: int, delta: float) -> float:
    from scipy.optimize import brentq

    totals, others, weights = _table(noise, mixed, delta)

    def excess(epsilon: float) -> float:
        found = float(weights @ _gains(noise, totals, others, epsilon))
        return math.log((found + 4 * CUT * delta) / delta)

    most = math.log(noise.ratio)
    if excess(0.0) <= 0:
        return 0.0
    if excess(most) >= 0:
        return most
    return float(brentq(excess, 0.0, most, xtol=1e-12, rtol=PRECISION)) * (1 + 2 * PRECISION)


def _gains(noise: _Noise, totals: Reals, others: Reals, epsilon: float) -> Reals:
    """E[max(0, up·A − down)] for A ~ Bin(N, y), with N = T − B."""
    from scipy.special import betainc

    p, idle, e = noise.ratio, noise.idle, math.exp(epsilon)
    up = p - e + idle * (e - 1)
    down = (p * e - 1 - idle * (e - 1)) * others + idle * (e - 1) * totals
    sizes, chance = totals - others, min(noise.pointing / (1 - noise.pointing), 1.0)
    k = np.floor(down / up) + 1
    some = k <= sizes
    k, n = k[some], sizes[some]
    # P[Bin(n, y) ≥ k] = I_y(k, n − k + 1); one fewer of both for the mean above the threshold.
    mean = n * chance * np.where(k > 1, betainc(np.maximum(k - 1, 1), n - k + 1, chance), 1.0)
    found = np.zeros(len(totals))
    found[some] = np.maximum(up * mean - down[some] * betainc(k, n - k + 1, chance), 0)
    return found


def _table(noise: _Noise, mixed: int, delta: float) -> tuple[Reals, Reals, Reals]:
    """All T and B that matter, and their probabilities times b/T."""
    totals, others, weights = [], [], []
    for total, mass in _groups(mixed - 1, noise.share, CUT * delta):
        counts = _within(total, noise.pointing, CUT * delta)
        chances = np.exp(_binomial(total, counts, noise.pointing))
        totals.append(np.full(len(counts), float(total)))
        others.append(counts.astype(np.float64))
        weights.append(mass * noise.share / total * chances)
    return np.concatenate(totals), np.concatenate(others), np.concatenate(weights)


def _groups(others: int, share: float, cut: float) -> Iterator[tuple[int, float]]:
    """How many reports are noise at least, with the protected one, with which probability."""
    counts = _within(others, share, cut)
    masses = np.exp(_binomial(others, counts, share))
    enough = others * share + ENOUGH * math.sqrt(others * share)
    shifts = np.maximum(0, np.frexp(1.0 + np.minimum(counts, int(enough)))[1] - DIGITS)
    sizes = np.minimum(1 + counts, 1 + int(enough)) >> shifts << shifts
    for size in np.unique(sizes):
        yield int(size), float(masses[sizes == size].sum())


def _within(size: int, chance: float, cut: float) -> NDArray[np.int_]:
    """All but `cut` of either tail, by Bernstein's inequality."""
    mean, logs = size * chance, -math.log(cut)
    reach = logs / 3 + math.sqrt(logs**2 / 9 + 2 * mean * max(0.0, 1 - chance) * logs)
    return np.arange(max(0, math.ceil(mean - reach)), min(size, math.floor(mean + reach)) + 1)


def _binomial(size: int, counts: NDArray[np.int_], chance: float) -> Reals:
    if chance >= 1:
        return np.where(counts == size, 0.0, -np.inf)
    return log_binomial(size, counts, math.log(chance), math.log1p(-chance))
