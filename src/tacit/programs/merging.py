"""A mixture from boxes with records: merged one by one, then expectation–maximisation on them.

Boxes are merged two at a time, always those two whose merging costs the least likelihood, until as
many are left as there are components (Runnalls 2007, with the entropy of weights). That needs no
starting points, and no luck. All of it is made of noisy counts, and costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.programs.count_tree import Leaves

__all__ = ["Fitted", "fitted"]

Reals = NDArray[np.float64]
ROUNDS, STILL = 100, 1e-5  # of expectation–maximisation; a smaller gain in likelihood is none
LEAST = 1e-6  # of a weight


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights (K), means (K, d), covariances (K, d, d)."""

    weights: Reals
    means: Reals
    covariances: Reals


def fitted(leaves: Leaves, components: int, shaped: Callable[[Reals], Reals]) -> Fitted:
    """`shaped` makes of a covariance matrix one that is allowed."""
    counts, means, variances = _of_number(leaves, components)
    covariances = np.array([shaped(np.diag(each)) for each in variances])
    found = Fitted(_weights(counts), means, covariances)
    last = -math.inf
    for _ in range(ROUNDS):
        likelihood, shares = _shares(found, leaves)
        if likelihood - last < STILL:
            break
        found, last = _maximised(shares, leaves, shaped), likelihood
    return found


def _of_number(leaves: Leaves, components: int) -> tuple[Reals, Reals, Reals]:
    """Counts, middles and variances of so many groups of boxes."""
    counts, means, variances = leaves.counts.copy(), leaves.middles.copy(), leaves.variances.copy()
    while len(counts) < components:  # too few: the fullest is divided along its longest side
        k, axis = counts.argmax(), variances[counts.argmax()].argmax()
        step = math.sqrt(variances[k, axis]) / 2
        counts[k] /= 2
        variances[k, axis] *= 0.75
        counts, variances = np.append(counts, counts[k]), np.vstack([variances, variances[k]])
        means = np.vstack([means, means[k]])
        means[k, axis] -= step
        means[-1, axis] += step
    costs = np.array([_costs(k, counts, means, variances) for k in range(len(counts))])
    left = np.ones(len(counts), dtype=np.bool_)
    for _ in range(len(counts) - components):
        i, j = np.unravel_index(costs.argmin(), costs.shape)
        counts[i], means[i], variances[i] = _merged(int(i), counts, means, variances, int(j))
        left[j] = False
        costs[j], costs[:, j] = math.inf, math.inf
        costs[i] = costs[:, i] = np.where(left, _costs(int(i), counts, means, variances), math.inf)
    return counts[left], means[left], variances[left]


def _merged(
    k: int, counts: Reals, means: Reals, variances: Reals, other: int | slice
) -> tuple[Reals, Reals, Reals]:
    """Count, mean and variances of group k together with another, or with each."""
    both = np.asarray(counts[k] + counts[other])
    share = np.asarray(counts[other] / both)[..., None]
    between = means[other] - means[k]
    spread = (1 - share) * variances[k] + share * variances[other]
    return both, means[k] + share * between, spread + share * (1 - share) * between**2


def _costs(k: int, counts: Reals, means: Reals, variances: Reals) -> Reals:
    """How much likelihood is lost by merging group k with each."""
    both, _, merged = _merged(k, counts, means, variances, slice(None))
    own = counts * _entropy(variances)
    cost = both * _entropy(merged) - own - own[k]
    # Fewer weights tell less of where a record is: n ln n.
    cost -= both * np.log(both) - counts * np.log(counts) - counts[k] * math.log(counts[k])
    cost[k] = math.inf
    return np.asarray(cost)


def _entropy(variances: Reals) -> Reals:
    return np.asarray(np.log(np.maximum(variances, LEAST)).sum(axis=-1) / 2)


def _shares(found: Fitted, leaves: Leaves) -> tuple[float, Reals]:
    """The mean log-likelihood of records in the boxes, and what each component has of each."""
    logs = np.empty((len(leaves.counts), len(found.weights)))
    for k, covariance in enumerate(found.covariances):
        inverse = np.linalg.inv(covariance)
        away = leaves.middles - found.means[k]
        squares = ((away @ inverse) * away).sum(axis=1) + leaves.variances @ np.diag(inverse)
        scale = np.linalg.slogdet(covariance)[1]
        logs[:, k] = math.log(found.weights[k]) - (squares + scale) / 2
    whole = np.logaddexp.reduce(logs, axis=1)
    return float(leaves.counts @ whole / leaves.counts.sum()), np.exp(logs - whole[:, None])


def _maximised(shares: Reals, leaves: Leaves, shaped: Callable[[Reals], Reals]) -> Fitted:
    counts = shares.T @ leaves.counts
    means, covariances = [], []
    for share, count in zip(shares.T, np.maximum(counts, LEAST), strict=True):
        weights = share * leaves.counts / count
        mean = weights @ leaves.middles
        away = leaves.middles - mean
        spread = (away * weights[:, None]).T @ away + np.diag(weights @ leaves.variances)
        means.append(mean)
        covariances.append(shaped(spread))
    return Fitted(_weights(counts), np.array(means), np.array(covariances))


def _weights(counts: Reals) -> Reals:
    weights = np.maximum(counts / counts.sum(), LEAST)
    return np.asarray(weights / weights.sum())
