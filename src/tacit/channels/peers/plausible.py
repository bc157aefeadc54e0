"""Models that cannot have come from honest members: longer than training and noise allow.

An average of trained vectors is no longer than the longest one can be, and the noise on it hardly
ever exceeds a length that is known too. What is longer is garbage, or sabotage, and is dropped
without a look at any record. A short garbage model passes; the vote sees to that (ensemble.md).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.channels.consortium.terms import JointTerms
from tacit.data.schema import Schema
from tacit.privacy.bound import Norm
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Unit
from tacit.programs.averaging import Averaged
from tacit.programs.averaging_bounds import noise_norm

__all__ = ["farthest", "plausible", "within"]

RARE = 2.0**-40  # so often an honest model is taken for garbage


def plausible(model: Any, terms: JointTerms) -> bool:
    """Whether a group under these terms can have published this model."""
    smallest = terms.study.agreed_consortium.smallest
    limit = farthest(terms.averaged, smallest, terms.mechanism, len(terms.roster))
    return within(model, terms.averaged, terms.study.schema, limit)


def farthest(
    averaged: Averaged, smallest: int, mechanism: Gaussian | Laplace | None, members: int = 1
) -> float:
    """What the length of an honest average of `members` vectors hardly ever exceeds.

    `mechanism` is what is added to their sum: each member adds one of its parts.
    """
    longest = float(averaged.bound(smallest, Unit.HOLDER).value) / 2
    if mechanism is None:
        return longest * (1 + 1e-9)
    surplus = members / mechanism.parts
    normal = mechanism.bound.norm is Norm.L2
    # Laplace: so many whole noises are more than these parts.
    factor = math.sqrt(surplus) if normal else math.ceil(surplus)
    rounding = math.sqrt(mechanism.length) * float(mechanism.grid.step)
    return longest + rounding + factor * noise_norm(mechanism, RARE / math.ceil(surplus)) / members


def within(model: Any, averaged: Averaged, schema: Schema, limit: float) -> bool:
    """Whether this is a model of the program for the schema, and no longer than `limit`."""
    if not isinstance(model, averaged.models):
        return False
    try:
        vector = np.asarray(averaged.vector(model, schema), dtype=np.float64)
    except (TypeError, ValueError, IndexError):
        return False
    if vector.shape != (averaged.length(schema),) or not np.isfinite(vector).all():
        return False
    return float(np.linalg.norm(vector)) <= limit
