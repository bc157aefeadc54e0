"""What a run as published costs, and how its numbers are represented (published.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.channels.consortium.terms import FINE, Terms
from tacit.channels.consortium.validity import farthest
from tacit.channels.studies.capacity import largest_noise
from tacit.crypto.blind_permute import HIDING_BITS
from tacit.crypto.packing import Packing
from tacit.crypto.prg import Randomness
from tacit.privacy.bound import Bound, Grid, Norm, round_up
from tacit.privacy.mechanisms import Laplace
from tacit.privacy.release import Release
from tacit.programs.logistic_output import PUBLISHED

__all__ = ["NOISE_BITS", "PublishedTerms"]

NOISE_BITS = 64  # noise is int64, so whatever is drawn fits
SCALE = (
    "The release is listed with the scale that a party of `smallest` records would have drawn at. "
    "The noise was drawn at that of the smallest party's own number of records, which is secret, "
    "and is less if that party has more."
)


@dataclass(frozen=True)
class PublishedTerms(Terms):
    """The smallest party draws all noise, at the scale of its own number of records.

    That number is secret, so the certificate lists the scale of the public `smallest` instead. It
    lists something, and not nothing, because the ratio of bound to scale, all that the published
    proof counts with, is ε whatever the number is.
    """

    steps = 9
    reveals_at = 9
    promise_holds = False
    remarks = (PUBLISHED, SCALE)

    @cached_property
    def grid(self) -> Grid:
        """Fine enough for the noise of the largest party that may take part: a public number."""
        bound = self._bound(self.study.take_part.records)
        return Laplace.calibrated(bound, FINE, self.length).grid

    @property
    def releases(self) -> tuple[Release, ...]:
        found = self.mechanism(self.study.agreed_consortium.smallest)
        return () if found is None else found.spend

    @property
    def trust(self) -> str:
        return (
            f"All {len(self.roster)} parties and the curator follow the protocol: they are "
            "curious, but honest, and none works together with another. The smallest party drew "
            "all noise, and knows it."
        )

    @property
    def trust_before(self) -> str:
        return (
            f"None of the {len(self.roster)} parties works together with the curator or with "
            "another. The smallest of them drew all noise, and knows it."
        )

    @property
    def reach(self) -> int:
        """As many times the noise as there are parties: the average gets it, not the sum."""
        found = self.mechanism(self.study.agreed_consortium.smallest)
        return 0 if found is None else len(self.roster) * largest_noise(found, 1)

    @property
    def validity_bound(self) -> float:
        """The average, not the sum, gets the noise, and at most that of the smallest party."""
        smallest = self.study.agreed_consortium.smallest
        rounding = math.sqrt(self.length) * float(self.grid.step)
        return farthest(self.averaged, smallest, self.mechanism(smallest)) + rounding

    @cached_property
    def packing(self) -> Packing:
        """Two terms: noise, and a mask of it that is 128 bits longer (one more for the sign)."""
        bits = self.study.agreed_consortium.key_bits
        return Packing(bits, NOISE_BITS + HIDING_BITS + 1, terms=2)

    def mechanism(self, records: int) -> Laplace | None:
        """A party's own, scaled to its own number of records; None without privacy."""
        promise = self.study.promise
        if not promise.is_private:
            return None
        bound = self.grid.widen(self._bound(records), self.length)
        scale = round_up(bound.value / Fraction(promise.epsilon))
        return Laplace(bound, scale, self.grid, self.length)

    def noise(self, records: int, randomness: Randomness) -> NDArray[np.int64]:
        """What a party with so many records would add to the average, in grid steps."""
        nothing = np.zeros(self.length, dtype=np.int64)
        mechanism = self.mechanism(records)
        return nothing if mechanism is None else mechanism.perturb(nothing, randomness)

    def _bound(self, records: int) -> Bound:
        """As published: a bound that holds in L2 is called one in L1."""
        return Bound(Norm.L1, self.averaged.bound(records).value)
