"""The least noise that keeps a promise.

Releases come with relative scales; all are multiplied by one factor, the smallest that meets the
promise in every scenario (parallel parts), and rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from tacit.errors import PromiseError, UsageError
from tacit.privacy.accounting import gaussian, pure
from tacit.privacy.accounting.compose import (
    ACCOUNTANTS,
    applicable,
    cost,
    losses_of,
    scenarios,
)
from tacit.privacy.accounting.losses import least_steps
from tacit.privacy.bound import round_up
from tacit.privacy.promise import Adjacency, Promise
from tacit.privacy.release import Release

__all__ = ["calibrate", "gaussian_scale"]

# What else in a release is a noise scale, beside `scale` itself.
_SCALE_PARAMETERS = ("query_scale", "threshold_scale")
# Searches stop when the epsilon they reach is within this share of the promise.
_CLOSE = 1e-3
_MOST_TRIALS = 60


def calibrate(promise: Promise, releases: Sequence[Release]) -> list[Release]:
    """The same releases with their scales multiplied by the smallest factor that meets `promise`.

    Releases without a scale (randomised response) keep their parameters and count as fixed.
    """
    _check_promise(promise)
    _check_releases(promise, releases)
    factor = Fraction(0)
    for scenario in scenarios(releases, promise.adjacency):
        factor = max(factor, _factor(promise, scenario))
    if factor == 0:  # no scenario holds a scale
        return list(releases)
    return [_scaled(release, factor) for release in releases]


def gaussian_scale(epsilon: float, delta: float) -> float:
    """σ/Δ of one continuous Gaussian release (Balle & Wang 2018, algorithm 1), rounded up."""
    promise = Promise(epsilon, delta)
    _check_promise(promise)
    if delta == 0:
        raise PromiseError(_NEEDS_DELTA)
    return math.nextafter(1 / gaussian.largest_mu(promise.epsilon, promise.delta), math.inf)


_NEEDS_DELTA = (
    "Gaussian noise cannot meet delta = 0: give the promise a delta (far less than one over the "
    "number of units), or use Laplace noise."
)


def _check_promise(promise: Promise) -> None:
    if not promise.is_private:
        raise UsageError("epsilon is infinite: there is no noise to calibrate.")


def _check_releases(promise: Promise, releases: Sequence[Release]) -> None:
    if promise.delta == 0 and any(r.mechanism == "gaussian" for r in releases):
        raise PromiseError(_NEEDS_DELTA)
    fixed = [r for r in releases if not _has_scale(r)]
    spent = cost(fixed, promise.delta, promise.adjacency)
    over = spent.epsilon - promise.epsilon
    if over > 0 or (over == 0 and len(fixed) < len(releases)):
        raise PromiseError(
            f"the releases with fixed parameters alone cost ε = {spent.epsilon:.4g}, which leaves "
            f"nothing of {promise} (over by {over:.4g}): give them less, or promise more."
        )


def _has_scale(release: Release) -> bool:
    return release.scale is not None or any(k in release.parameters for k in _SCALE_PARAMETERS)


def _scaled(release: Release, factor: Fraction) -> Release:
    """All its scales times `factor`, rounded up to 40 bits; the grid's step stays."""
    if not _has_scale(release):
        return release
    parameters = {
        name: round_up(value * factor) if name in _SCALE_PARAMETERS else value
        for name, value in release.parameters.items()
    }
    scale = None if release.scale is None else round_up(release.scale * factor)
    return replace(release, scale=scale, parameters=parameters)


def _factor(promise: Promise, releases: Sequence[Release]) -> Fraction:
    """The smallest factor for releases that one unit touches all."""
    if not any(_has_scale(r) for r in releases):
        return Fraction(0)
    if all(r.mechanism == "gaussian" and r.sampling == 1 for r in releases):
        return _gaussian_factor(promise, releases)
    if promise.delta == 0 and all(r.sampling == 1 for r in releases):
        return _pure_factor(promise, releases)
    return _searched_factor(promise, releases)


def _pure_factor(promise: Promise, releases: Sequence[Release]) -> Fraction:
    """Every epsilon is inversely proportional to its scale: exact, in fractions."""
    total, fixed = (
        pure.total(losses_of(some))
        for some in (releases, [r for r in releases if not _has_scale(r)])
    )
    if total is None or fixed is None:
        raise PromiseError(_NEEDS_DELTA)
    return (total - fixed) / (Fraction(promise.epsilon) - fixed)


def _gaussian_factor(promise: Promise, releases: Sequence[Release]) -> Fraction:
    """Analytic: the Gaussians are together one of μ(f)² = Σ count·Δ²/(f²σ² − 4h²)."""
    target = gaussian.largest_mu(promise.epsilon, promise.delta)
    least = _least_factor(releases)
    # Without grids, f is μ(1)/target at once; a grid is a little more.
    plain = [replace(r, step=Fraction(0)) for r in releases]
    mu = gaussian.total(losses_of(plain))
    start = max(Fraction(mu or 0.0) / Fraction(target), least)

    def fits(factor: Fraction) -> bool:
        losses = losses_of([_scaled(r, factor) for r in releases])
        return gaussian.delta(losses, promise.epsilon) <= promise.delta

    low = high = start
    step = Fraction(1, 2**40)
    while not fits(high):
        low, high = high, high * (1 + step)
        step *= 8
    while high - low > high / 2**36:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _least_factor(releases: Sequence[Release]) -> Fraction:
    """Gaussian noise must be some steps of its grid wide (gaussian.md); a hair more."""
    ratios = [
        least_steps(r) * r.step / r.scale
        for r in releases
        if r.mechanism == "gaussian" and r.scale is not None
    ]
    return max(ratios, default=Fraction(0)) * (1 + Fraction(1, 2**38))


def _searched_factor(promise: Promise, releases: Sequence[Release]) -> Fraction:
    """By trial. Fast accountants bracket the factor, the tightest one settles it."""
    least = float(_least_factor(releases))

    def spent(names: Sequence[str] | None) -> Callable[[float], float]:
        def at(factor: float) -> float:
            scaled = [_scaled(r, Fraction(factor)) for r in releases]
            if names is None:
                return cost(scaled, promise.delta, Adjacency.ADD_REMOVE).epsilon
            losses = losses_of(scaled)
            return min(ACCOUNTANTS[name].epsilon(losses, promise.delta) for name in names)

        return at

    losses = losses_of([_scaled(r, Fraction(max(1.0, 2 * least))) for r in releases])
    fast = [name for name in applicable(losses, promise.delta) if name != "pld"]
    rough = _smallest(spent(fast), promise.epsilon, 1.0, least)
    if "pld" in applicable(losses, promise.delta):
        return Fraction(_smallest(spent(None), promise.epsilon, rough, least))
    return Fraction(rough)


def _smallest(spent: Callable[[float], float], epsilon: float, start: float, least: float) -> float:
    """The smallest factor ≥ `least` with spent(factor) ≤ epsilon, up to _CLOSE, from above.

    `spent` falls with the factor, nearly as a power of it; so the root is sought by regula falsi
    on logarithms, and by halving where that is slow.
    """
    low, high, at_low, at_high = _bracket(spent, epsilon, max(start, least), least)
    for trial in range(_MOST_TRIALS):
        if at_high >= epsilon * (1 - _CLOSE) or high - low <= 1e-9 * high:
            break
        middle = math.sqrt(low * high)
        if trial % 3 < 2 and math.isfinite(at_low) and at_high > 0:
            # Aim a little inside the promise, so that the next trial fits and ends the search.
            aim = math.log(at_low / (epsilon * (1 - _CLOSE / 2))) / math.log(at_low / at_high)
            middle = low * (high / low) ** min(max(aim, 0.01), 0.99)
        at = spent(middle)
        if at <= epsilon:
            high, at_high = middle, at
        else:
            low, at_low = middle, at
    return high


def _bracket(
    spent: Callable[[float], float], epsilon: float, start: float, least: float
) -> tuple[float, float, float, float]:
    """low ≤ high near `start` with spent(low) > epsilon ≥ spent(high), or both the least factor."""
    low = high = start
    at_low = at_high = spent(start)
    growth = 1.1
    while at_high > epsilon:
        if high > 1e30:
            raise PromiseError(
                f"no noise meets epsilon = {epsilon:g}: give the releases with fixed parameters "
                "less, or promise a larger epsilon or delta."
            )
        low, at_low = high, at_high
        high *= growth
        at_high, growth = spent(high), growth**1.5
    while at_low <= epsilon and low > least:
        high, at_high = low, at_low
        low = max(low / growth, least)
        at_low, growth = spent(low), growth**1.5
    if at_low <= epsilon:  # even the least factor fits
        return low, low, at_low, at_low
    return low, high, at_low, at_high
