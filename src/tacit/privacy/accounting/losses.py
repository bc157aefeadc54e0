"""What a release can reveal, reduced to a pair of laws that dominates it.

Each mechanism has one line in `LOSSES`. It reads the release's bound, scale and parameters, never a
claimed epsilon, so that anyone who has the releases can recompute the cost. Two kinds of loss
suffice:

    GaussianLoss    telling N(0, 1) from N(μ, 1), perhaps from a secret Poisson sample
    PureLoss        telling the two laws of (ε, δ) randomised response apart
                    (they dominate every (ε, δ)-DP pair: Kairouz, Oh & Viswanath 2015, section 5)

Dominating pairs compose adaptively (Zhu, Dong & Wang 2022, theorem 10). Bounds belong to the
adjacency of the promise; local randomisers (`LOCAL`) are always read as `replace`: a person who
takes part says something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.errors import PromiseError, UsageError
from tacit.privacy.amplification import poisson
from tacit.privacy.bound import Norm
from tacit.privacy.release import Release

__all__ = [
    "LOCAL",
    "LOSSES",
    "GaussianLoss",
    "Loss",
    "PureLoss",
    "leak",
    "least_steps",
    "loss_of",
    "merge",
    "upward",
]

# The continuous Gaussian that dominates the discrete one of width σ on a grid of step h has
# variance σ² − (2h)² (gaussian.md); from σ > 4h on, the difference is below 16 % of σ.
_SMOOTHING_STEPS = 2
_LEAST_STEPS = 4
# From σ > 8h for every part on, the sum of parts is a discrete Gaussian up to 1e-270 (gaussian.md).
_LEAST_PART_STEPS = 8


@dataclass(frozen=True, slots=True)
class GaussianLoss:
    """`count` times N(0, 1) against N(mu, 1), each on its own secret sample of rate `sampling`."""

    mu: float
    count: int = 1
    sampling: float = 1.0


@dataclass(frozen=True, slots=True)
class PureLoss:
    """`count` times an (epsilon, delta)-private release. Poisson sampling is already absorbed.

    epsilon         exact, so that sums of Laplace releases meet a promise exactly
    bounded_range   the privacy loss lies in an interval of width epsilon (not 2·epsilon), as for
                    the exponential mechanism (Durfee & Rogers 2019, section 4)
    """

    epsilon: Fraction
    count: int = 1
    delta: float = 0.0
    bounded_range: bool = False


Loss = GaussianLoss | PureLoss


def upward(value: Fraction) -> float:
    """The smallest float that is at least `value`."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def loss_of(release: Release) -> Loss:
    """The loss of one release, through the registry."""
    if release.mechanism not in LOSSES:
        raise UsageError(
            f"no accounting is known for the mechanism {release.mechanism!r}: use one of "
            f"{', '.join(sorted(LOSSES))}, or add its loss to accounting.losses.LOSSES."
        )
    return LOSSES[release.mechanism](release)


def merge(losses: Iterable[Loss]) -> list[Loss]:
    """Equal losses counted together, in one fixed order, so that everyone gets the same digits."""
    counts: dict[Loss, int] = {}
    for loss in losses:
        single = replace(loss, count=1)
        counts[single] = counts.get(single, 0) + loss.count
    return [replace(single, count=counts[single]) for single in sorted(counts, key=repr)]


def leak(losses: Sequence[Loss]) -> float:
    """The sum of the deltas of all pure losses, rounded up.

    A composition of (εᵢ, δᵢ) releases fails outright with probability ≤ Σδᵢ and is otherwise one of
    (εᵢ, 0) releases: the structure of the dominating pair of Kairouz et al.
    """
    return upward(sum((_leak(loss) for loss in losses), Fraction(0)))


def _leak(loss: Loss) -> Fraction:
    return loss.count * Fraction(loss.delta) if isinstance(loss, PureLoss) else Fraction(0)


# ── the mechanisms ────────────────────────────────────────────────────────────────────────────────


def _gaussian(release: Release) -> GaussianLoss:
    """Discrete Gaussian on a grid: μ = Δ / √(σ² − 4h²), rounded up (gaussian.md, theorem 1)."""
    bound, scale = _bound(release, Norm.L2), _scale(release)
    least = least_steps(release)
    if scale <= least * release.step:
        raise PromiseError(
            f"Gaussian noise of scale {float(scale):g} on a grid of step {float(release.step):g} "
            f"is too coarse to account for: take a step below {float(scale / least):g}."
        )
    variance = scale**2 - (_SMOOTHING_STEPS * release.step) ** 2
    mu = math.nextafter(math.sqrt(upward(bound**2 / variance)), math.inf)
    return GaussianLoss(mu, release.count, upward(release.sampling))


def least_steps(release: Release) -> Fraction:
    """How many steps of its grid the σ of Gaussian noise must exceed; more if drawn in parts."""
    parts = _parts(release)
    if parts == 1:
        return Fraction(_LEAST_STEPS)
    return _LEAST_PART_STEPS * Fraction(math.nextafter(math.sqrt(parts), math.inf))


def _parts(release: Release) -> int:
    """Of how many parts the noise is the sum."""
    parts = Fraction(release.parameters.get("parts", 1))
    if parts < 1 or parts.denominator != 1:
        raise PromiseError(f"noise is the sum of a whole number of parts, not of {parts}.")
    return int(parts)


def _laplace(release: Release) -> PureLoss:
    """Discrete Laplace: P(k)/P(k−Δ) ≤ e^(Δ/b) in L1 (Ghosh, Roughgarden & Sundararajan 2012).

    Its parts sum to exactly this law (noise.md, lemma 5), so they cost the same.
    """
    _parts(release)
    return _pure(release, _bound(release, Norm.L1) / _scale(release))


def _l2_laplace(release: Release) -> PureLoss:
    """Density ∝ exp(−‖x‖₂/b): the triangle inequality (Chaudhuri & Monteleoni 2008, theorem 1)."""
    return _pure(release, _bound(release, Norm.L2) / _scale(release))


def _exponential(release: Release) -> PureLoss:
    """P ∝ exp(score/s): ε = 2Δ/s (McSherry & Talwar 2007, theorem 6), of bounded range."""
    epsilon = 2 * _bound(release, Norm.LINF) / _scale(release)
    return _pure(release, epsilon, bounded_range=True)


def _permute_and_flip(release: Release) -> PureLoss:
    """ε = 2Δ/s (McKenna & Sheldon 2020, theorem 1). Its range is not bounded by ε."""
    return _pure(release, 2 * _bound(release, Norm.LINF) / _scale(release))


def _above_threshold(release: Release) -> PureLoss:
    """One positive answer: ε = Δ/b₁ + 2Δ/b₂ (Lyu, Su & Li 2017, theorem 2 with c = 1).

    `count` positives, each with a fresh threshold, are `count` runs.
    """
    bound = _bound(release, Norm.LINF)
    threshold, query = (_parameter(release, k) for k in ("threshold_scale", "query_scale"))
    if threshold <= 0 or query <= 0:
        raise PromiseError("above-threshold needs both noise scales above 0.")
    return _pure(release, bound / threshold + 2 * bound / query)


def _randomised_response(release: Release) -> PureLoss:
    """Over m values, true one kept with probability p: ε = |ln(p(m−1)/(1−p))| (Warner 1965)."""
    m, p = _parameter(release, "m"), _parameter(release, "p")
    if m < 2 or m.denominator != 1 or not 0 < p < 1:
        raise PromiseError(
            f"randomised response needs m ≥ 2 values and 0 < p < 1, not m = {m}, p = {p}."
        )
    return _local(release, p * (m - 1) / (1 - p))


def _pq_perturbation(release: Release) -> PureLoss:
    """Each bit of a one-hot vector sent as 1 with probability p if set, q if not.

    Two one-hot vectors differ in two bits: ε = |ln(p(1−q)/((1−p)q))| for the whole vector
    (Erlingsson, Pihur & Korolova 2014, theorem 2; Wang et al. 2017, section 4.2).
    """
    p, q = _parameter(release, "p"), _parameter(release, "q")
    if not (0 < p < 1 and 0 < q < 1):
        raise PromiseError(f"(p, q)-perturbation needs 0 < p, q < 1, not p = {p}, q = {q}.")
    return _local(release, p * (1 - q) / ((1 - p) * q))


def _subset_selection(release: Release) -> PureLoss:
    """A set of `size` among m values, with the true one in it with probability p.

    A set with the true value has probability p/C(m−1, size−1), any other (1−p)/C(m−1, size):
    ε = |ln(p(m−size)/((1−p)·size))| (Ye & Barg 2018).
    """
    m, size, p = (_parameter(release, name) for name in ("m", "size", "p"))
    if m.denominator != 1 or size.denominator != 1 or not (0 < size < m and 0 < p < 1):
        raise PromiseError(
            f"subset selection needs whole numbers 0 < size < m and 0 < p < 1, not m = {m}, "
            f"size = {size}, p = {p}."
        )
    return _local(release, p * (m - size) / ((1 - p) * size))


def _hadamard_response(release: Release) -> PureLoss:
    """A column where the value's row has a +1 with probability p, else one where it has a −1.

    Both are half of all columns: ε = |ln(p/(1−p))| (Acharya, Sun & Zhang 2019).
    """
    p = _parameter(release, "p")
    if not 0 < p < 1:
        raise PromiseError(f"Hadamard response needs 0 < p < 1, not {p}.")
    return _local(release, p / (1 - p))


# Run by each person alone: these never see anybody else's value.
LOCAL: dict[str, Callable[[Release], Loss]] = {
    "hadamard-response": _hadamard_response,
    "pq-perturbation": _pq_perturbation,
    "randomised-response": _randomised_response,
    "subset-selection": _subset_selection,
}

LOSSES: dict[str, Callable[[Release], Loss]] = {
    "above-threshold": _above_threshold,
    "exponential": _exponential,
    "gaussian": _gaussian,
    "l2-laplace": _l2_laplace,
    "laplace": _laplace,
    "permute-and-flip": _permute_and_flip,
    **LOCAL,
}


def _pure(release: Release, epsilon: Fraction, bounded_range: bool = False) -> PureLoss:
    if release.sampling == 1:
        return PureLoss(epsilon, release.count, bounded_range=bounded_range)
    # A sampled loss keeps neither exactness nor the bounded range.
    sampled, _ = poisson(upward(epsilon), 0.0, upward(release.sampling))
    return PureLoss(Fraction(sampled), release.count)


def _local(release: Release, odds: Fraction) -> PureLoss:
    if release.sampling != 1:
        raise UsageError(
            f"{release.mechanism} runs on a person's own device, where no secret sample amplifies: "
            "leave sampling at 1 (a shuffle does amplify: tacit.privacy.amplification.shuffle)."
        )
    odds = max(odds, 1 / odds)
    # odds − 1 is exact, so the logarithm keeps all its digits near 1; then rounded up.
    epsilon = Fraction(math.log1p(upward(odds - 1)) * (1 + 2.0**-50))
    return PureLoss(epsilon, release.count)


def _bound(release: Release, norm: Norm) -> Fraction:
    if release.bound is None:
        raise PromiseError(f"a release by {release.mechanism} needs a bound in {norm}.")
    # In one dimension all norms agree.
    if release.bound.norm is not norm and release.length > 1:
        raise PromiseError(
            f"{release.mechanism} noise covers a bound in {norm}, not in {release.bound.norm}: "
            f"state how far one unit moves the vector in {norm}, or choose another mechanism."
        )
    return release.bound.value


def _scale(release: Release) -> Fraction:
    if release.scale is None:
        raise PromiseError(f"a release by {release.mechanism} needs the scale of its noise.")
    return Fraction(release.scale)


def _parameter(release: Release, name: str) -> Fraction:
    if name not in release.parameters:
        raise PromiseError(f"a release by {release.mechanism} needs the parameter {name!r}.")
    return Fraction(release.parameters[name])
