"""What a run among a roster of parties costs: computed from the study by everyone alike."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.channels.consortium.validity import farthest
from tacit.channels.studies.capacity import LIMIT, largest_noise
from tacit.channels.studies.study import Study
from tacit.data.schema import Schema
from tacit.errors import CheckFailed, InputError, UsageError
from tacit.privacy.accounting import SpendCost, cost
from tacit.privacy.bound import Bound, Grid, Norm
from tacit.privacy.certificate import Participation
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Promise
from tacit.privacy.release import Release
from tacit.programs.averaging import Averaged
from tacit.programs.model_file import model_bytes

__all__ = ["FINE", "JointTerms", "Terms", "joint_cost"]

# Where nothing is private the grid must come from somewhere: it is as fine as with this promise.
FINE = Promise(1.0, 1e-6)


@dataclass(frozen=True)
class Terms(ABC):
    """What follows from the study and the roster: known to all before the first step.

    From the answer to the step before `reveals_at` on, parties reveal what makes a release
    possible: it is paid.
    """

    study: Study
    roster: tuple[str, ...]

    steps: ClassVar[int]
    reveals_at: ClassVar[int]
    promise_holds: ClassVar[bool] = True
    remarks: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """On which vectors are rounded and noise is drawn."""

    @property
    @abstractmethod
    def releases(self) -> tuple[Release, ...]:
        """What the run costs; nothing without privacy."""

    @property
    @abstractmethod
    def trust(self) -> str:
        """Who must be trusted, in words."""

    @property
    @abstractmethod
    def trust_before(self) -> str:
        """The same, in the words of certificates of format 2."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """What the noise in the sum of all vectors hardly ever exceeds, in grid steps."""

    @property
    @abstractmethod
    def validity_bound(self) -> float:
        """What the length of an honest noisy average hardly ever exceeds (validity.py)."""

    @property
    def averaged(self) -> Averaged:
        return self.study.averaged()

    @cached_property
    def length(self) -> int:
        return self.averaged.length(self.study.schema)

    @property
    def participation(self) -> Participation:
        return Participation(len(self.roster), len(self.roster), 1)

    @property
    def accountant(self) -> str:
        promise = self.study.promise
        if not self.releases:
            return "none"
        return cost(self.releases, promise.delta, promise.adjacency).accountant

    @property
    def largest(self) -> int:
        """The largest integer that a coordinate of an honest sum can have, noise included."""
        vector = Fraction(self.averaged.largest(self.study.schema)) / self.grid.step + 1
        found = len(self.roster) * math.ceil(vector) + self.reach
        if found >= LIMIT:
            raise UsageError(
                f"study {self.study.name}: a sum of {len(self.roster)} models does not fit 62 "
                "bits, noise included: take a larger epsilon, or a smaller `smallest`."
            )
        return found

    def encoded(self, vector: NDArray[np.float64]) -> NDArray[np.int64]:
        """A party's trained vector on the grid."""
        largest = self.averaged.largest(self.study.schema)
        if len(vector) != self.length or not np.abs(vector).max() <= largest:
            raise InputError("the trained vector is not as long, or not as short, as it must be.")
        return self.grid.encode(vector)

    def model_file(self, total: NDArray[np.int64]) -> bytes:
        """What the noisy sum of all vectors gives."""
        if max(int(total.max()), -int(total.min())) > self.largest:  # −2^63 is its own absolute
            raise CheckFailed(
                "the sum lies outside what its parties could have sent, noise included: a party "
                "does not follow the protocol. There is no model."
            )
        average = self.grid.decode(total) / len(self.roster)
        schema = self.study.schema
        return model_bytes(self.averaged.model(average, schema), self.averaged, schema)


@dataclass(frozen=True)
class JointTerms(Terms):
    """Of K parties at most t work together with the curator: the noise is divided into K − t parts,
    and each party adds one, so what the honest ones add is enough."""

    steps = 3
    reveals_at = 3

    @property
    def parts(self) -> int:
        return len(self.roster) - self.study.agreed_consortium.colluding

    @cached_property
    def mechanism(self) -> Gaussian | Laplace | None:
        """On the sum of the parties' vectors; None without privacy."""
        promise = self.study.promise
        if not promise.is_private:
            return None
        return replace(_calibrated(self._bound, promise, self.length), parts=self.parts)

    @property
    def _bound(self) -> Bound:
        smallest = self.study.agreed_consortium.smallest
        return self.averaged.bound(smallest, self.study.promise.unit)

    @cached_property
    def grid(self) -> Grid:
        found = self.mechanism
        return _calibrated(self._bound, FINE, self.length).grid if found is None else found.grid

    @property
    def releases(self) -> tuple[Release, ...]:
        return () if self.mechanism is None else self.mechanism.spend

    @property
    def trust(self) -> str:
        t = self.study.agreed_consortium.colluding
        return (
            f"Of the {len(self.roster)} parties at most {t} work together with the curator or with "
            "one another; these, and the curator, may deviate from the protocol as they like. All "
            "parties drew the noise together, and none of them knows it."
        )

    @property
    def trust_before(self) -> str:
        t = self.study.agreed_consortium.colluding
        return (
            f"Of the {len(self.roster)} parties at most {t} work together with the curator or with "
            "one another. All parties drew the noise together, and none of them knows it."
        )

    @property
    def reach(self) -> int:
        return 0 if self.mechanism is None else largest_noise(self.mechanism, len(self.roster))

    @property
    def validity_bound(self) -> float:
        smallest, members = self.study.agreed_consortium.smallest, len(self.roster)
        rounding = math.sqrt(self.length) * float(self.grid.step)
        return farthest(self.averaged, smallest, self.mechanism, members) + rounding


def joint_cost(
    averaged: Averaged, schema: Schema, promise: Promise, smallest: int
) -> SpendCost | None:
    """What a run costs one party, in a form that composes; None without privacy.

    The same for every roster: however many parts the noise has, their sum has one law.
    """
    if not promise.is_private:
        return None
    bound = averaged.bound(smallest, promise.unit)
    mechanism = _calibrated(bound, promise, averaged.length(schema))
    return SpendCost.of(mechanism.spend, promise.adjacency)


@lru_cache(maxsize=64)  # every party of every group of peers asks for the same
def _calibrated(bound: Bound, promise: Promise, length: int) -> Gaussian | Laplace:
    """Gaussian noise at the L2 bound; pure promises have Laplace noise, whose bound is in L1, and
    in L1 a vector can move √length times as far."""
    if promise.delta > 0:
        return Gaussian.calibrated(bound, promise, length)
    root = Fraction(math.isqrt(length * 10**12) + 1, 10**6)
    return Laplace.calibrated(Bound(Norm.L1, bound.value * root), promise, length)
