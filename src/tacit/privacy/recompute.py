"""The cost of releases, computed a second time by other code than `accounting`.

A certificate is worth what its verifier can recompute. This file shares no line with the
accountants: exact sums for pure losses, the closed form for Gaussians, and a small numerical
privacy-loss distribution of its own for everything else (Doroshenko, Ghazi, Kamath, Kumar,
Manurangsi 2022, "connect the dots": the discrete law has the same hockey-stick divergence at the
grid points and a larger one between them, so it errs on the safe side).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tacit.errors import CertificateInvalid
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Adjacency, Unit
from tacit.privacy.release import Release

__all__ = ["recomputed_epsilon"]

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class _Pure:
    """ε-DP, `count` times; `rho` is its concentrated cost. Of a sample of rate q, until `_sampled`
    has made use of that."""

    epsilon: float
    rho: float
    count: int
    q: float = 1.0


@dataclass(frozen=True)
class _Normal:
    """N(0, 1) against N(mu, 1), each unit present with probability q, `count` times."""

    mu: float
    q: float
    count: int


_Loss = _Pure | _Normal


def recomputed_epsilon(
    releases: Sequence[Release],
    delta: float,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    unit: Unit = Unit.RECORD,
) -> float:
    """The ε of these releases together, for one unit."""
    common = [r for r in releases if r.part is None]
    parts: dict[str, list[Release]] = {}
    chosen_by_value: set[str] = set()
    for release in releases:
        if release.part is not None:
            parts.setdefault(release.part, []).append(release)
            if release.mechanism not in _ON_THE_DEVICE:
                chosen_by_value.add(release.part)
    # One unit lies in one part; an exchanged unit may leave one part and enter another, unless
    # parts are who was asked: nobody is asked something else for having another value. A person or
    # a holder has many records, and may have some in every part.
    movable = [parts[name] for name in parts if name in chosen_by_value]
    touched = min(len(movable), 1 if adjacency is Adjacency.ADD_REMOVE else 2)
    if unit is not Unit.RECORD:
        touched = len(movable)
    sets = [[parts[name]] for name in parts if name not in chosen_by_value]
    if movable or not sets:
        sets += [list(some) for some in combinations(movable, touched)]
    touching = ([*common, *(x for p in chosen for x in p)] for chosen in sets)
    return max(_epsilon(_losses(some, adjacency), delta) for some in touching)


def _losses(releases: Sequence[Release], adjacency: Adjacency) -> list[_Loss]:
    """Blocks that were asked of one sample are one mechanism, and sampled once.

    Somebody outside the sample changes none of them, somebody in it all at once: ε adds up, and the
    distances of Gaussians add as squares, *before* the chance of being in the sample counts.
    """
    samples: dict[object, list[_Loss]] = {}
    for place, release in enumerate(releases):
        if release.sampling != 1 and adjacency is not Adjacency.ADD_REMOVE:
            raise CertificateInvalid("sampling is only accounted for under add-remove adjacency.")
        own = place if release.sample is None else (release.sample,)
        samples.setdefault(own, []).append(_loss(release))
    return [_sampled(_joined(blocks)) for blocks in samples.values()]


def _joined(blocks: Sequence[_Loss]) -> _Loss:
    first = blocks[0]
    if len(blocks) == 1:
        return first
    if any((x.count, x.q) != (first.count, first.q) for x in blocks):
        raise CertificateInvalid("what was asked of one sample differs in its rate or its count.")
    if all(isinstance(x, _Normal) for x in blocks):
        distance = math.hypot(*(x.mu for x in blocks if isinstance(x, _Normal)))
        return _Normal(distance, first.q, first.count)
    if all(isinstance(x, _Pure) for x in blocks):
        total = math.fsum(x.epsilon for x in blocks if isinstance(x, _Pure))
        return _Pure(total, total**2 / 2, first.count, first.q)
    raise CertificateInvalid("Gaussian and other noise over one sample has no known cost.")


def _sampled(loss: _Loss) -> _Loss:
    """A pure loss with its sample: the odds 1 + q(e^ε − 1). Gaussians keep theirs to the end."""
    if isinstance(loss, _Normal) or loss.q == 1:
        return loss
    odds = loss.q * math.expm1(loss.epsilon) if loss.epsilon < 700 else math.inf
    epsilon = math.log1p(odds) if math.isfinite(odds) else loss.epsilon
    return _Pure(epsilon, epsilon**2 / 2, loss.count)


# ── what one release can tell ────────────────────────────────────────────────────────────────────


def _loss(release: Release) -> _Loss:
    """Of everybody: the sample, if there is one, is only noted."""
    try:
        if release.mechanism == "gaussian":
            return _normal(release)
        epsilon = _PURE[release.mechanism](release)
    except (KeyError, TypeError, ZeroDivisionError, ValueError, ArithmeticError):
        raise CertificateInvalid(
            f"the release {release.mechanism!r} lacks what its cost is computed from."
        ) from None
    if not 0 <= epsilon < math.inf:
        raise CertificateInvalid(f"the release {release.mechanism!r} cannot cost ε = {epsilon:g}.")
    if release.mechanism in _ON_THE_DEVICE and release.sampling != 1:
        raise CertificateInvalid(
            f"{release.mechanism!r} runs on a person's own device: no sample hides her there."
        )
    # ε-DP is ε²/2-zCDP (Bun & Steinke 2016, proposition 1.4), of bounded range even ε²/8.
    narrow = release.mechanism == "exponential"
    rho = epsilon**2 / (8 if narrow else 2)
    return _Pure(epsilon, rho, release.count, float(release.sampling))


def _normal(release: Release) -> _Normal:
    bound, scale = _bound(release, Norm.L2), _scale(release)
    # A discrete Gaussian is a rounding of a continuous one that is narrower by two grid steps
    # (accounting/gaussian.md).
    variance = scale**2 - 4 * release.step**2
    if variance <= 0:
        raise CertificateInvalid("a Gaussian release is not wider than its grid.")
    parts = _parts(release)
    # Parts of 8 steps and more sum to a discrete Gaussian, up to what no digit of ε shows.
    if parts > 1 and scale**2 < parts * (8 * release.step) ** 2:
        raise CertificateInvalid(
            f"a Gaussian release was drawn in {parts} parts that are too coarse for their grid: "
            "each must be at least 8 steps wide."
        )
    return _Normal(math.sqrt(bound**2 / variance), float(release.sampling), release.count)


def _bound(release: Release, norm: Norm) -> Fraction:
    if release.bound is None or (release.bound.norm is not norm and release.length > 1):
        raise CertificateInvalid(f"{release.mechanism} needs a bound in {norm}.")
    return release.bound.value


def _scale(release: Release) -> Fraction:
    if release.scale is None:
        raise CertificateInvalid(f"{release.mechanism} needs the scale of its noise.")
    return release.scale


def _parts(release: Release) -> Fraction:
    parts = release.parameters.get("parts", Fraction(1))
    if parts < 1 or parts != int(parts):
        raise CertificateInvalid(f"{release.mechanism} noise cannot be drawn in {parts} parts.")
    return parts


def _ratio(factor: int, norm: Norm) -> Callable[[Release], float]:
    def epsilon(release: Release) -> float:
        return float(factor * _bound(release, norm) / _scale(release))

    return epsilon


def _laplace(release: Release) -> float:
    _parts(release)  # they sum to the whole law exactly (noise.md, lemma 5): any number will do
    return _ratio(1, Norm.L1)(release)


def _above_threshold(release: Release) -> float:
    moved = _bound(release, Norm.LINF)
    threshold, query = (release.parameters[name] for name in ("threshold_scale", "query_scale"))
    _need(threshold > 0 and query > 0)
    return float(moved / threshold + 2 * moved / query)


def _randomised_response(release: Release) -> float:
    m, p = release.parameters["m"], release.parameters["p"]
    _need(m >= 2 and m == int(m) and 0 < p < 1)
    return abs(math.log(p * (m - 1) / (1 - p)))


def _pq_perturbation(release: Release) -> float:
    p, q = release.parameters["p"], release.parameters["q"]
    _need(0 < p < 1 and 0 < q < 1)
    return abs(math.log(p * (1 - q) / ((1 - p) * q)))


def _subset_selection(release: Release) -> float:
    m, size, p = (release.parameters[name] for name in ("m", "size", "p"))
    _need(m == int(m) and size == int(size) and 0 < size < m and 0 < p < 1)
    return abs(math.log(p / size) - math.log((1 - p) / (m - size)))


def _hadamard_response(release: Release) -> float:
    p = release.parameters["p"]
    _need(0 < p < 1)
    return abs(math.log(p / (1 - p)))


def _need(possible: bool) -> None:
    """Numbers that no such mechanism can have would give any cost, even one below 0."""
    if not possible:
        raise ValueError


# What a person runs alone, before anything leaves.
_ON_THE_DEVICE = (
    "hadamard-response",
    "pq-perturbation",
    "randomised-response",
    "subset-selection",
)

_PURE: dict[str, Callable[[Release], float]] = {
    "laplace": _laplace,
    "l2-laplace": _ratio(1, Norm.L2),
    "exponential": _ratio(2, Norm.LINF),
    "permute-and-flip": _ratio(2, Norm.LINF),
    "above-threshold": _above_threshold,
    "randomised-response": _randomised_response,
    "pq-perturbation": _pq_perturbation,
    "subset-selection": _subset_selection,
    "hadamard-response": _hadamard_response,
}


# ── what they tell together ──────────────────────────────────────────────────────────────────────


def _epsilon(losses: Sequence[_Loss], delta: float) -> float:
    pure = [x for x in losses if isinstance(x, _Pure)]
    normal = [x for x in losses if isinstance(x, _Normal)]
    total = float(sum(Fraction(x.epsilon) * x.count for x in pure))
    if not normal:
        if not delta or not total or len(pure) == pure[0].count == 1:
            return total
        return min(total, _concentrated(losses, delta), _numerical(losses, delta))
    if not delta:
        return math.inf
    # Sampling ignored and pure losses added: exact without either, an upper bound otherwise.
    mu = math.sqrt(sum(x.count * x.mu**2 for x in normal))
    simple = total + _root(lambda epsilon: _delta_normal(epsilon, mu), delta)
    if not pure and all(x.q == 1 for x in normal):
        return simple
    return min(simple, _concentrated(losses, delta), _numerical(losses, delta))


def _concentrated(losses: Sequence[_Loss], delta: float) -> float:
    """Zero-concentrated privacy, converted at the best of many orders.

    Canonne, Kamath, Steinke 2020, proposition 12: ε = ρα + ln(1 − 1/α) − ln(δα)/(α − 1).
    """
    rho = 0.0
    for loss in losses:
        if isinstance(loss, _Normal) and loss.q < 1:
            return math.inf
        single = loss.rho if isinstance(loss, _Pure) else loss.mu**2 / 2
        rho += loss.count * single
    orders = 1 + np.geomspace(1e-3, 1e6, 4000)
    found = rho * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    return max(0.0, float(found.min()))


def _upper(x: float) -> float:
    """P[N(0,1) > x]."""
    return 0.5 * math.erfc(x / math.sqrt(2))


def _delta_normal(epsilon: float, mu: float) -> float:
    """Balle & Wang 2018, theorem 5."""
    tail = _upper(epsilon / mu + mu / 2)
    weighted = math.exp(epsilon + math.log(tail)) if tail > 0 else 0.0
    return max(0.0, _upper(epsilon / mu - mu / 2) - weighted)


def _root(delta_of: Callable[[float], float], delta: float) -> float:
    """The smallest ε ≥ 0 with delta_of(ε) ≤ delta."""
    if delta_of(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_of(high) > delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
    return high


# ── a numerical privacy-loss distribution ────────────────────────────────────────────────────────

POINTS_PER_DEVIATION = 4000
DEVIATIONS = 24  # half the width of the grid


def _numerical(losses: Sequence[_Loss], delta: float) -> float:
    """Both directions: the unit's presence seen from its absence, and the reverse."""
    deviation = math.sqrt(sum(x.count * _spread(x) ** 2 for x in losses))
    if DEVIATIONS * deviation > 600:  # exp would overflow, and such a loss is no privacy anyway
        return math.inf
    step = deviation / POINTS_PER_DEVIATION
    return max(_directed(losses, delta, step, reverse) for reverse in (False, True))


def _spread(loss: _Loss) -> float:
    """Roughly the standard deviation of one privacy loss: sets the grid, not the answer."""
    if isinstance(loss, _Pure):
        return loss.epsilon
    return loss.mu if loss.q == 1 else loss.q * math.sqrt(math.expm1(min(loss.mu**2, 50)))


def _directed(losses: Sequence[_Loss], delta: float, step: float, reverse: bool) -> float:
    half = DEVIATIONS * POINTS_PER_DEVIATION
    size = 1 << (2 * half).bit_length()
    transform = np.ones(size // 2 + 1, dtype=np.complex128)
    certain = 1.0  # probability that no single loss is infinite
    for loss in losses:
        masses, infinite = _masses(loss, step, half, reverse)
        certain *= (1 - infinite) ** loss.count
        circle = np.zeros(size)
        circle[: half + 1] = masses[half:]
        circle[-half:] = masses[:half]
        transform *= np.fft.rfft(circle) ** loss.count
    total = np.maximum(np.fft.irfft(transform, size), 0)
    total = np.concatenate([total[-half:], total[: half + 1]])
    values = step * np.arange(-half, half + 1)

    def delta_of(epsilon: float) -> float:
        above = values > epsilon
        finite = float(total[above] @ -np.expm1(epsilon - values[above]))
        return finite + 1 - certain

    return _root(delta_of, delta)


def _masses(loss: _Loss, step: float, half: int, reverse: bool) -> tuple[Reals, float]:
    """A discrete loss whose hockey-stick divergence is right at the grid points."""
    grid = step * np.arange(-half, half + 1, dtype=np.float64)
    divergence = _divergence(loss, grid, reverse)
    odds = np.exp(grid)
    # −slope of δ over exp(ε) is the other distribution's mass above; its drop is the mass there.
    above = np.append((divergence[:-1] - divergence[1:]) / (odds[1:] - odds[:-1]), 0.0)
    masses = np.maximum(odds * (np.append(1 / odds[0], above[:-1]) - above), 0)
    infinite = float(divergence[-1])
    masses[0] = max(0.0, 1 - infinite - masses[1:].sum())  # lower losses are rounded up to here
    return masses, infinite


def _divergence(loss: _Loss, epsilon: Reals, reverse: bool) -> Reals:
    """The hockey-stick divergence δ(ε) of one loss at every ε."""
    odds = np.exp(epsilon)
    if isinstance(loss, _Pure):
        high = math.exp(loss.epsilon)
        inside = (high - odds) / (1 + high)
        return np.where(epsilon < -loss.epsilon, 1 - odds, np.maximum(inside, 0))
    return _divergence_normal(loss.mu, loss.q, odds, reverse)


def _divergence_normal(mu: float, q: float, odds: Reals, reverse: bool) -> Reals:
    """P = (1−q) N(0,1) + q N(μ,1) against Q = N(0,1), or Q against P."""
    from scipy.special import ndtr

    ratio = 1 / odds if reverse else odds
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = (np.log(np.maximum((ratio - (1 - q)) / q, 0)) + mu * mu / 2) / mu
    if reverse:  # Q beats odds · P where the likelihood ratio is small: left of the cut
        mixed = (1 - q) * ndtr(cut) + q * ndtr(cut - mu)
        return np.asarray(np.maximum(ndtr(cut) - odds * mixed, 0))
    mixed = (1 - q) * ndtr(-cut) + q * ndtr(mu - cut)
    return np.asarray(np.maximum(mixed - odds * ndtr(-cut), 0))
