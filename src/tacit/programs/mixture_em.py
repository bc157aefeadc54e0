"""Expectation–maximisation on noisy sufficient statistics: what all mixtures here have in common.

A record's responsibilities add up to 1, so the counts, sums and second moments of all components
are released jointly, and the bound does not grow with their number. By default each component
measures records in its own coordinates: from its centre, in its standard deviations. So the noise
is small against a component however small that is. Proofs: mixture.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Schema
from tacit.errors import InputError, UsageError
from tacit.privacy.bound import Norm, round_up
from tacit.programs.components import Components, Kind, covariance_of, shares_of
from tacit.programs.features import whole_numbers
from tacit.programs.files import OPTIONAL
from tacit.programs.moments import seen_count
from tacit.programs.prediction import Prediction, within
from tacit.programs.program import Program, Query
from tacit.programs.windows import SETTLING, at_rest, late_share

__all__ = ["STATISTICS", "MixtureModel", "MixtureState", "NoisyEM", "joint_bound", "reach_of"]

Reals = NDArray[np.float64]
Coordinates = Literal["own", "shared"]

FEWEST = 5.0  # a component whose count is within this many deviations of 0 has no data to speak of
STATISTICS = "statistics"  # the block of a round
STILL = 1e-3  # without privacy: the largest movement, in standard deviations, taken for none


@dataclass(frozen=True, slots=True)
class MixtureState:
    """The mixture so far.

    covariances   (components, d, d), (components, d) or (components,), by kind
    noise         the standard deviation of the noise on each sum, as planned; 0 without privacy
    done          rounds so far
    counted       the sum of all noisy counts that components were made of; None before the first
    """

    varies: ClassVar[tuple[str, ...]] = ("weights", "means", "covariances", "done", "counted")

    weights: Reals
    means: Reals
    covariances: Reals
    kind: str
    norm: str
    noise: float
    rounds: int
    done: int = 0
    windows: int = 0
    counted: float | None = field(default=None, metadata=OPTIONAL)

    @property
    def last(self) -> int:
        """The number of the last round; `rounds` are those of one window, if there are any."""
        return self.rounds * max(1, self.windows)

    @property
    def before(self) -> int:
        """How many rounds there are before components move."""
        return 0


@dataclass(frozen=True, slots=True)
class MixtureModel:
    """Weights, means and covariances in the encoder's coordinates, those of the unit ball.

    count   the noisy number of records, of all windows that components were made of; None without
            noise, where the noise hides it, and in models of before
    """

    weights: Reals
    means: Reals
    covariances: Reals
    kind: str
    count: float | None = field(default=None, metadata=OPTIONAL)

    def log_likelihoods(self, X: Reals) -> Reals:
        """The logarithm of the density at each vector."""
        return np.asarray(np.logaddexp.reduce(self._components.log_densities(within(X)), axis=1))

    def responsibilities(self, X: Reals) -> Reals:
        """The probability of each component, for each vector."""
        return shares_of(self._components.log_densities(within(X)))

    @property
    def _components(self) -> Components:
        return Components.of(self.weights, self.means, self.covariances)


S = TypeVar("S", bound=MixtureState)


class NoisyEM(Program[S, MixtureModel]):
    """Rounds of expectation–maximisation; where they start, and what is released, others say."""

    models = (MixtureModel,)
    settling: ClassVar[int] = SETTLING  # in windows, rounds of which nothing is averaged

    def __init__(
        self,
        components: int,
        covariance: Kind,
        rounds: int | None,
        coordinates: Coordinates,
        floor: float,
    ) -> None:
        if components < 1 or (rounds is not None and rounds < 1):
            raise UsageError(
                f"components and rounds must be at least 1, not {components} and {rounds}."
            )
        if covariance not in ("full", "diag", "spherical"):
            raise UsageError(f'covariance is "full", "diag" or "spherical", not {covariance!r}.')
        if coordinates not in ("own", "shared"):
            raise UsageError(f'coordinates are "own" or "shared", not {coordinates!r}.')
        if not 0 < floor < 1:
            raise UsageError(f"floor, the least variance, lies in (0, 1), not {floor}.")
        self.components, self.covariance, self.rounds = components, covariance, rounds
        self.coordinates, self.floor = coordinates, floor

    def encoder(self, schema: Schema) -> Encoder:
        return Encoder(schema, interval="symmetric", ball="L2")

    def admit(self, state: S) -> None:
        try:
            with np.errstate(all="ignore"):
                components = Components.of(state.weights, state.means, state.covariances)
            finite = bool(np.isfinite(components.factors).all() and (state.weights > 0).all())
        except (np.linalg.LinAlgError, ValueError):
            finite = False
        if not finite:
            raise InputError("this state's components are no Gaussian mixture.")

    def asked(self, state: S, query: Query) -> Query | None:
        return None if state.done >= state.last else query

    def prepare(self, batch: Encoded, first: S) -> Encoded:
        return batch._replace(X=whole_numbers(batch.X)) if first.noise > 0 else batch

    def result(self, state: S) -> MixtureModel:
        count = _count(state)
        return MixtureModel(state.weights, state.means, state.covariances, state.kind, count)

    def predict(self, model: MixtureModel, X: Reals) -> Prediction:
        shares = model.responsibilities(X)
        return Prediction("cluster", shares.argmax(axis=1), shares)

    @abstractmethod
    def _stretch(self, norm: Norm) -> float:
        """What off-diagonal moments are released multiplied by."""

    def _trusted(self, noise: float, state: S) -> float:
        """How much what was found counts against what was there before, where a covariance has
        so much noise relative to itself."""
        return 1.0

    @abstractmethod
    def _unseen(self, state: S, k: int, counts: Reals) -> tuple[float, Reals]:
        """Count, above 0, and covariance of a component with no noisy count to speak of."""

    def _maximised(self, total: Reals, state: S) -> S:
        """The next components, from the noisy statistics of a round."""
        components, width = state.means.shape
        sums = total.reshape(components, -1)
        counts = sums[:, 0]
        seen = counts > FEWEST * state.noise
        frame, reach = self._frame(state)
        found, weights = replace(state, means=state.means.copy()), counts.copy()
        found = replace(found, covariances=state.covariances.copy())
        spectral = math.sqrt(width / 2) if state.kind == "full" else 1.0
        for k in range(components):
            if not seen[k]:
                weights[k], found.covariances[k] = self._unseen(state, k, counts)
                continue
            mean, moments = np.split(sums[k, 1:] / counts[k], [width])
            stretch = self._stretch(Norm(state.norm))
            # Noise of deviation σ makes a symmetric matrix with eigenvalues up to about σ√(2d).
            least = state.noise * math.sqrt(width / 2) / counts[k]
            spread = covariance_of(mean, moments, state.kind, stretch, least)
            found.means[k] = _in_ball(frame.back(k, mean, reach))
            found.covariances[k] = self._bounded(frame.widened(k, spread, reach))
            share = self._trusted(state.noise * spectral * reach**2 / counts[k], state)
            if share < 1:
                self._mix(state, found, k, share)
        after = replace(
            found,
            weights=weights / weights.sum(),
            done=state.done + 1,
            counted=_counted(state, float(counts.sum())),
        )
        if state.windows:
            return self._averaged(state, after, seen)
        if self.rounds is None and state.noise == 0 and _still(state, after):
            return replace(after, done=state.last)
        return after

    def _averaged(self, before: S, found: S, seen: NDArray[np.bool_]) -> S:
        """What was found, averaged with earlier rounds: as moments, which is how EM adds records.

        A component that was not seen just now is as it was found: somewhere else.
        """
        moved, last = found.done - found.before, found.last - found.before
        share = late_share(at_rest(float(moved), last, self.settling))
        weights = (1 - share) * before.weights + share * found.weights
        for k in np.flatnonzero(seen):
            self._mix(before, found, int(k), float(share * found.weights[k] / weights[k]))
        return replace(found, weights=weights)

    def _mix(self, before: S, found: S, k: int, share: float) -> None:
        """Component k of `found` becomes that of both, with this share of its own."""
        difference = found.means[k] - before.means[k]
        found.means[k] = before.means[k] + share * difference
        found.covariances[k] = self._bounded(
            (1 - share) * before.covariances[k]
            + share * found.covariances[k]
            + share * (1 - share) * self._squared(difference)
        )

    def _squared(self, difference: Reals) -> Reals:
        if self.covariance == "full":
            return np.outer(difference, difference)
        squares = difference**2
        return np.asarray(squares.mean()) if self.covariance == "spherical" else squares

    def _frame(self, state: S) -> tuple[Components, float]:
        """Where the statistics of this round are seen from, and their unit of length."""
        if self.coordinates == "own":
            return Components.of(state.weights, state.means, state.covariances), reach_of(state)
        unit = np.broadcast_to(self._shaped(np.ones(state.means.shape[1])), state.covariances.shape)
        return Components.of(state.weights, np.zeros_like(state.means), unit), 1.0

    def _shaped(self, variances: Reals) -> Reals:
        """One component's covariance, from the variance of each coordinate."""
        if self.covariance == "full":
            return np.diag(variances)
        return np.asarray(variances.mean()) if self.covariance == "spherical" else variances

    def _bounded(self, covariance: Reals) -> Reals:
        """Variances within [floor, 1]: no larger ones exist in the unit ball."""
        if covariance.ndim < 2:
            return np.clip(covariance, self.floor, 1.0)
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        return np.asarray((vectors * np.clip(values, self.floor, 1.0)) @ vectors.T)


def joint_bound(norm: Norm, kind: str, width: int) -> Fraction:
    """The largest norm of a record's statistics when ‖s‖₂ ≤ 1 (mixture.md): √3 in L2."""
    if norm is Norm.L2:
        return round_up(math.nextafter(math.sqrt(3), 2))
    moments = Fraction(width + 1, 2) if kind == "full" else Fraction(1)
    return round_up(math.nextafter(math.sqrt(width), math.inf)) + 1 + moments


def reach_of(state: MixtureState) -> float:
    """A Gaussian record is about √d deviations from its centre, and rarely 2 farther."""
    return math.sqrt(state.means.shape[1]) + 2.0


def _counted(state: MixtureState, now: float) -> float | None:
    """Sums of counts are told of what all rounds have seen; a run that began without them goes on
    without."""
    if state.noise <= 0 or (state.counted is None and state.done > state.before):
        return None
    return (state.counted or 0.0) + now


def _count(state: MixtureState) -> float | None:
    """Each round has counted all records of its window, component by component."""
    turns = state.done - state.before
    if state.counted is None or turns < 1:
        return None
    each, noise = state.rounds, state.noise * math.sqrt(len(state.weights) * turns)
    # Before the end of the first window all its rounds so far have counted the same records.
    share = min(each, turns)
    return seen_count(state.counted / share, noise / share)


def _in_ball(mean: Reals) -> Reals:
    return mean / max(1.0, float(np.linalg.norm(mean)))


def _still(before: MixtureState, after: MixtureState) -> bool:
    """Whether no mean moved noticeably in its component's measure, and no weight did."""
    components = Components.of(before.weights, before.means, before.covariances)
    moved = [components.standardised(k, mean[None]) for k, mean in enumerate(after.means)]
    return bool(
        np.abs(moved).max() < STILL and np.abs(after.weights - before.weights).max() < STILL
    )
