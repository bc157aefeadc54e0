"""Which penalty and group size peers should agree on, from public numbers alone (advice.md).

Whatever is tuned on private data costs privacy, so nothing here has seen any. The penalty λ weighs
what noise and few records cost, which falls with λ², against what the penalty itself costs, which
grows with λ; a group is as large as it can be, because noise is added once for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import UsageError
from tacit.privacy.accounting import gaussian_scale
from tacit.privacy.promise import Promise, Unit
from tacit.programs.averaging import UNBOUNDED

__all__ = ["Advice", "suggested"]

CURVATURE = 0.25  # of the logistic loss, at most
SQUARE = 0.5  # of a record's gradient at the minimum, in the mean (averaging_bounds.md, claim 1)
LENGTH = 1.0  # of the model that is aimed at: odds of e for the clearest record


@dataclass(frozen=True, slots=True)
class Advice:
    """penalty      λ of averaged-logistic, for records in the unit ball
    group_size   how many peers average their models
    radius       of averaged-logistic: what longer vectors are shortened to
    deviation    the noise that each weight of the average gets
    """

    penalty: float
    group_size: int
    radius: float
    deviation: float


def suggested(
    peers: int,
    records: int,
    length: int,
    promise: Promise,
    colluding: int = 1,
    largest_group: int | None = None,
) -> Advice:
    """For a network of about so many `peers`, each of whom has at least so many `records`.

    length         of the vector that a peer trains: the number of features and one
    promise        of one aggregation
    colluding      how many members of a group may work together with its curator
    largest_group  the most that can be kept together until the last step; all, if not given
    """
    if min(peers, records, length) < 1 or colluding < 0:
        raise UsageError("peers, records and length are at least 1, and colluding at least 0.")
    group = _group_size(peers, colluding, largest_group)
    noise = _multiplier(promise, length) * math.sqrt(_surplus(group, colluding)) / group
    few = SQUARE / (group * records)
    if promise.unit is not Unit.RECORD:
        return Advice(_least(few), group, LENGTH, noise * 2 * LENGTH)
    penalty = _least((noise * 2 / records) ** 2 + few)
    return Advice(penalty, group, UNBOUNDED, noise * 2 / (records * penalty))


def _least(square: float) -> float:
    """λ at which CURVATURE/2 · square/λ² + λ/2 · LENGTH² is least."""
    return float((2 * CURVATURE * square / LENGTH**2) ** (1 / 3))


def _group_size(peers: int, colluding: int, largest: int | None) -> int:
    """As many as there are, or one, where there are too few to hide anybody."""
    most = peers if largest is None else min(peers, largest)
    return most if most >= colluding + 2 else 1


def _surplus(group: int, colluding: int) -> float:
    """How much more noise there is than the promise needs: K members add one of K − t parts."""
    return group / (group - colluding) if group > 1 else 1.0


def _multiplier(promise: Promise, length: int) -> float:
    """The standard deviation of a coordinate's noise, for a movement of 1 in L2."""
    if not promise.is_private:
        return 0.0
    if promise.delta > 0:
        return float(gaussian_scale(promise.epsilon, promise.delta))
    return math.sqrt(2 * length) / promise.epsilon
