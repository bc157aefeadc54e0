"""What a shuffle hides, computed a second time by other code than `amplification`.

Theorem 3.2 of Feldman, McMillan & Talwar (2021), evaluated directly. A report that was shuffled
among C clones, C ~ Bin(n − 1, e^−ε₀), is one of m = C + 1, of which X look like the first value.
Bin(m, ½) weighted by a straight line is the law of X, so with u = X/m the divergence at ε is

    E[2 · max(0, tanh(ε₀/2)(2u − 1) − (e^ε − 1)(q·u + p·(1 − u)))],   p = e^ε₀/(e^ε₀ + 1), q = 1 − p

(C and one more ball: b_C(x − 1) = 2u · b_m(x) and b_C(x) = 2(1 − u) · b_m(x) for binomials b with
chance ½.) More clones hide better, so neighbouring C may share the figure of the fewest; and tails
that are left out are charged in full. Both make the result larger, never smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["HOPELESS", "chance_of_fewer", "log_binomial", "shuffled_epsilon"]

Reals = NDArray[np.float64]

CUT = 1e-9  # of delta: what each tail may hold that is left out
STEP = 2e-4  # numbers of clones that differ by less, relatively, share one figure; ε moves by half
WINDOW = 1_000_000  # terms of a lower tail; below them nothing is left that a float can hold
HALVINGS = 60
HOPELESS = 100.0  # a local epsilon at which no clone is ever drawn


def shuffled_epsilon(local: float, mixed: int, delta: float) -> float:
    """The central ε, at this δ, of one of `mixed` shuffled reports that keep `local` each."""
    if local > HOPELESS:
        return local
    weights, shares = _terms(local, mixed - 1, delta)
    gap, q = math.tanh(local / 2), 1 / (1 + math.exp(local))
    gains = gap * (2 * shares - 1)
    costs = q * shares + (1 - q) * (1 - shares)
    left_out = 3 * CUT * delta
    low, high = 0.0, local
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = float(weights @ np.maximum(gains - math.expm1(middle) * costs, 0))
        low, high = (low, middle) if found + left_out <= delta else (middle, high)
    return high


def chance_of_fewer(mixed: int, others: int, chance: float) -> float:
    """P[1 + Bin(others, chance) < mixed]."""
    if mixed > others + 1:
        return 1.0
    if chance == 1:
        return 0.0
    counts = np.arange(max(0, mixed - 1 - WINDOW), mixed - 1)
    hit, miss = math.log(chance), math.log1p(-chance)
    return float(np.exp(log_binomial(others, counts, hit, miss)).sum())


def _terms(local: float, others: int, delta: float) -> tuple[Reals, Reals]:
    """The law of u, above ½ alone: below it the maximum is 0. Weights (twice the probabilities)
    and values."""
    weights, shares = [], []
    for clones, mass in _clones(local, others, CUT * delta):
        size = clones + 1
        # Hoeffding: beyond this lies less than the cut.
        reach = size / 2 + math.sqrt(size / 2 * -math.log(CUT * delta))
        values = np.arange(size // 2 + 1, min(size, math.floor(reach)) + 1)
        half = -math.log(2)
        weights.append(2 * mass * np.exp(log_binomial(size, values, half, half)))
        shares.append(values / size)
    return np.concatenate(weights), np.concatenate(shares)


def _clones(local: float, others: int, cut: float) -> Iterator[tuple[int, float]]:
    """How many clones there are at least, with which probability."""
    chance = math.exp(-local)
    mean, logs = others * chance, math.log(2 / cut)
    # Bernstein: |C − mean| is larger with probability at most `cut`.
    reach = logs / 3 + math.sqrt(logs**2 / 9 + 2 * mean * (1 - chance) * logs)
    low, high = max(0, math.ceil(mean - reach)), min(others, math.floor(mean + reach))
    log_rest = math.log(-math.expm1(-local))
    masses = np.exp(log_binomial(others, np.arange(low, high + 1), -local, log_rest))
    place = low
    while place <= high:
        width = max(1, int(place * STEP))
        yield place, float(masses[place - low : place - low + width].sum())
        place += width


def log_binomial(size: int, counts: NDArray[np.int_], log_hit: float, log_miss: float) -> Reals:
    from scipy.special import gammaln

    ways = gammaln(size + 1) - gammaln(counts + 1) - gammaln(size - counts + 1)
    return np.asarray(ways + counts * log_hit + (size - counts) * log_miss)
