"""How far the noisy average of local models is from the pooled one (proofs: averaging_bounds.md).

Holder j minimises J over his own records, of `sizes[j]`; J, with ‖x‖₂ ≤ 1 and λ = `penalty`, is the
objective of `logistic_output.py` (written down in logistic.md):

    J(w) = (1/n) Σᵢ log(1 + exp(−yᵢ w·xᵢ)) + (λ/2) ‖w‖²

w̄ is the plain average of their minimisers, w* the minimiser over all records together. These are
theorems 4.2 to 4.4 of Pathak, Rane & Raj (2010), put right; `as_published=True` is what they print,
which does not hold. A `failure` is the probability with which a statement may be wrong; those of
several statements add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.errors import UsageError
from tacit.privacy.mechanisms import Gaussian, L2Laplace, Laplace

__all__ = [
    "dealt_distance_bound",
    "distance_bound",
    "empirical_excess_risk",
    "noise_norm",
    "true_excess_risk",
]

LONGEST = 0.5  # of λ‖w‖ at a minimiser, and of its mean gradient
SQUARE = 0.5  # of a record's gradient at the minimiser over all, in the mean
CURVATURE = 0.25  # of the logistic loss, at most; 1 in the publication
# Sridharan, Shalev-Shwartz & Srebro 2008, theorem 1, for a loss of slope 1 and ‖x‖ ≤ 1.
FAST_RATE, FAST_RATE_CONSTANT = 8.0, 32.0


def distance_bound(sizes: Sequence[int], penalty: float, *, as_published: bool = False) -> float:
    """‖w̄ − w*‖₂ is at most this, whatever records the holders have.

    It does not fall with the number of records: holders of unlike data disagree, however many
    records they have. As published, (K − 1)/(n₍₁₎λ) with n₍₁₎ the smallest size, it would.
    """
    shares = _shares(sizes, penalty)
    parties = len(shares)
    if as_published:
        return (parties - 1) / (min(sizes) * penalty)
    each = math.fsum((1 - p) / 2 + min(LONGEST, 1 - p) for p in shares) / parties
    uneven = LONGEST * math.fsum(abs(p - 1 / parties) for p in shares)
    together = uneven + CURVATURE * (1 - 1 / parties) / penalty
    return min(each, together) / penalty


def dealt_distance_bound(sizes: Sequence[int], penalty: float, failure: float) -> float:
    """The same, where all records were dealt to the holders at random, but for `failure`.

    It falls with the root of the sizes. Drawing every holder's records from one distribution is
    such a deal, given which records were drawn.
    """
    _probability(failure)
    always = distance_bound(sizes, penalty)
    log = math.log(2 * len(sizes) / failure)
    apart = [math.sqrt(2 * SQUARE * log / size) + 2 * log / size for size in sizes]
    return min(always, math.fsum(apart) / len(sizes) / penalty)


def noise_norm(
    mechanism: Gaussian | Laplace | L2Laplace, failure: float, *, as_published: bool = False
) -> float:
    """The released vector is within this of the true one in L2, but for `failure`.

    As published: every one of d coordinates is below b·log(d/failure), and their sum is taken.
    """
    _probability(failure)
    length, scale = mechanism.length, float(mechanism.scale)
    if as_published:
        return length * scale * math.log(length / failure)
    if isinstance(mechanism, L2Laplace):
        return scale * _gamma_quantile(length, failure)
    step = math.sqrt(length) * float(mechanism.grid.step)
    if isinstance(mechanism, Gaussian):
        return scale * (math.sqrt(length) + math.sqrt(-2 * math.log(failure))) + step / 2
    by_moments = 2 * length + math.sqrt(20 * length * (1 - failure) / failure)
    largest = math.log(2 * length / failure)
    by_largest = _gamma_quantile(length, failure / 2) * largest
    return scale * math.sqrt(min(by_moments, by_largest)) + 1.5 * step


def empirical_excess_risk(
    penalty: float, distance: float, noise: float, *, as_published: bool = False
) -> float:
    """J(w̄ + noise) − J(w*) over all records, for ‖w̄ − w*‖ ≤ distance and ‖noise‖ ≤ noise."""
    _positive_penalty(penalty)
    curvature = penalty + (1.0 if as_published else CURVATURE)
    return curvature / 2 * (distance + noise) ** 2


def true_excess_risk(
    penalty: float, empirical: float, records: int, failure: float, *, as_published: bool = False
) -> float:
    """The same in expectation over a new record, but for `failure`, given the empirical bound.

    `records` are all holders' together, drawn from one distribution. Compared is J in expectation,
    penalty included, with the least there is.
    """
    _positive_penalty(penalty)
    _probability(failure)
    if records < 1:
        raise UsageError(f"risk is estimated from at least one record, not {records}.")
    sample = FAST_RATE * (FAST_RATE_CONSTANT - math.log(failure)) / (penalty * records)
    if as_published:
        return 2 * (empirical + sample)
    return (math.sqrt(empirical) + math.sqrt(sample)) ** 2


def _shares(sizes: Sequence[int], penalty: float) -> list[float]:
    _positive_penalty(penalty)
    if not sizes or min(sizes) < 1:
        raise UsageError("a model is trained by at least one holder, on at least one record each.")
    total = sum(sizes)
    return [size / total for size in sizes]


def _gamma_quantile(shape: int, failure: float) -> float:
    """What a Gamma(shape, 1) variable is above with probability `failure`."""
    from scipy.special import gammainccinv

    return float(gammainccinv(shape, failure))


def _positive_penalty(penalty: float) -> None:
    if not penalty > 0:
        raise UsageError(f"penalty must be above 0, not {penalty}: every bound divides by it.")


def _probability(failure: float) -> None:
    if not 0 < failure < 1:
        raise UsageError(f"failure is a probability above 0 and below 1, not {failure}.")
