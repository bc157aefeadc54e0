"""Releases over one secret sample: one mechanism before amplification, not several (sampling.md).

Whoever is in the sample is in it for all of them. Composing them as if each had a sample of its own
would forget that, and cost many times less than the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from tacit.errors import PromiseError
from tacit.privacy.accounting.losses import (
    GaussianLoss,
    Loss,
    PureLoss,
    leak,
    loss_of,
    upward,
)
from tacit.privacy.amplification import poisson
from tacit.privacy.release import Release

__all__ = ["drawn_together", "joint_loss"]

# A sum of a few squares and its root, each off by at most 2^-53 (relatively), and the margin.
_UP = 1 + 2.0**-50


def drawn_together(releases: Sequence[Release]) -> list[list[Release]]:
    """Releases by sample. Without a name, each stands alone."""
    groups: dict[str, list[Release]] = {}
    found: list[list[Release]] = []
    for release in releases:
        if release.sample is None:
            found.append([release])
        elif release.sample in groups:
            groups[release.sample].append(release)
        else:
            groups[release.sample] = [release]
            found.append(groups[release.sample])
    return found


def joint_loss(group: Sequence[Release]) -> Loss:
    """The loss of releases that share one sample: joined first, then sampled."""
    single = [loss_of(release) for release in group]  # refuses what cannot be sampled at all
    if len(group) == 1:
        return single[0]
    count, rate = _common(group)
    whole = [
        loss_of(replace(release, count=1, sampling=Fraction(1), sample=None)) for release in group
    ]
    normal = [loss for loss in whole if isinstance(loss, GaussianLoss)]
    if len(normal) == len(whole):
        mu = math.sqrt(math.fsum(loss.mu**2 for loss in normal)) * _UP
        return GaussianLoss(mu, count, upward(rate))
    pure = [loss for loss in whole if isinstance(loss, PureLoss)]
    if len(pure) == len(whole):
        total = sum((loss.epsilon for loss in pure), Fraction(0))
        epsilon, delta = poisson(upward(total), leak(pure), upward(rate))
        return PureLoss(Fraction(epsilon), count, delta)
    raise PromiseError(
        f"sample {group[0].sample!r} has both Gaussian and other noise, which is not accounted for "
        "together: give its blocks noise of one kind, or ask for them without sampling."
    )


def _common(group: Sequence[Release]) -> tuple[int, Fraction]:
    """The count and the rate of a group; all members must agree, or it was not one sample."""
    counts, rates = {r.count for r in group}, {r.sampling for r in group}
    if len(counts) > 1 or len(rates) > 1:
        raise PromiseError(
            f"releases of one sample have one rate and one count: sample {group[0].sample!r} has "
            f"counts {sorted(counts)} and rates {', '.join(map(str, sorted(rates)))}. Give rounds "
            "that ask for other blocks another sample."
        )
    return counts.pop(), rates.pop()
