"""The best local randomiser for so many values and a promise (randomisers.md)."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from tacit.privacy.mechanisms.hadamard import HadamardResponse
from tacit.privacy.mechanisms.local import Randomiser
from tacit.privacy.mechanisms.perturbation import PQPerturbation
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.mechanisms.subset import SubsetSelection
from tacit.privacy.promise import Promise

__all__ = ["Randomiser", "best_randomiser"]

# In this order where all else is equal.
KINDS = (RandomisedResponse, HadamardResponse, SubsetSelection, PQPerturbation)
NEARLY = Fraction(101, 100) ** 2  # errors within 1 %, as squares


@lru_cache(maxsize=1024)
def best_randomiser(m: int, promise: Promise) -> Randomiser:
    """The one with the least expected error; of those within 1 % of it, that of the shortest
    report. Exact arithmetic: everyone who knows m and the promise computes the same.

    The number of people does not matter: every error falls with its root.
    """
    made: list[Randomiser] = [kind.calibrated(m, promise) for kind in KINDS]
    least = min(randomiser.squared_error for randomiser in made)
    good = [x for x in made if x.squared_error <= least * NEARLY]
    return min(good, key=lambda randomiser: randomiser.report_bytes)
