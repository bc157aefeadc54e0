"""Gaussian mixture by expectation–maximisation on noisy sufficient statistics.

A record's responsibilities add up to 1, so the counts, sums and second moments of all components
are released jointly, as one vector whose length does not grow with their number. By
default each component measures records in its own coordinates: from its centre, in its standard
deviations. So the noise is small against a component however small that is. Proofs: mixture.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Schema
from tacit.errors import InputError, UsageError
from tacit.privacy.bound import Norm, round_up
from tacit.privacy.promise import Promise
from tacit.programs.components import Components, Kind, covariance_of, moments_length, statistics
from tacit.programs.contributions import Contribution, Mixed
from tacit.programs.features import FEATURE_STEP, Whole, whole_numbers
from tacit.programs.levels import Levels
from tacit.programs.prediction import Prediction, within
from tacit.programs.program import Block, Plan, Program, Query, Stage, norm_for
from tacit.programs.spread import box, made_up
from tacit.programs.windows import at_rest, late_share, over, rounds_each

__all__ = ["Mixture", "MixtureModel", "MixtureState", "in_windows", "joint_bound"]

Reals = NDArray[np.float64]
Coordinates = Literal["own", "shared"]

FEWEST = 5.0  # a component whose count is within this many deviations of 0 has no data to speak of
FARTHEST = 8.0  # in units of reach: a record that is farther is taken to be there
WEIGHT_UNIT, FEATURE_UNIT = 2**14, 2**13  # responsibilities and statistics, as whole numbers
STEP = Fraction(1, WEIGHT_UNIT * FEATURE_UNIT)
STILL = 1e-3  # without privacy: the largest movement, in standard deviations, taken for none


@dataclass(frozen=True, slots=True)
class MixtureState:
    """The mixture so far.

    covariances   (components, d, d), (components, d) or (components,), by kind
    noise         the standard deviation of the noise on each sum, as planned; 0 without privacy
    done          rounds so far
    """

    varies: ClassVar[tuple[str, ...]] = ("weights", "means", "covariances", "done")

    weights: Reals
    means: Reals
    covariances: Reals
    kind: str
    norm: str
    noise: float
    rounds: int
    done: int = 0
    windows: int = 0

    @property
    def last(self) -> int:
        """The number of the last round; `rounds` are those of one window, if there are any."""
        return self.rounds * max(1, self.windows)


@dataclass(frozen=True, slots=True)
class MixtureModel:
    """Weights, means and covariances in the encoder's coordinates, those of the unit ball."""

    weights: Reals
    means: Reals
    covariances: Reals
    kind: str

    def log_likelihoods(self, X: Reals) -> Reals:
        """The logarithm of the density at each vector."""
        components = self._components
        logs = components.log_densities(components.standardised(within(X)))
        return np.asarray(np.logaddexp.reduce(logs, axis=1))

    def responsibilities(self, X: Reals) -> Reals:
        """The probability of each component, for each vector."""
        components = self._components
        return components.responsibilities(components.standardised(within(X)))

    @property
    def _components(self) -> Components:
        return Components.of(self.weights, self.means, self.covariances)


class Mixture(Program[MixtureState, MixtureModel]):
    """A Gaussian mixture, by noisy expectation–maximisation.

    components    how many
    covariance    "full", "diag" or "spherical"
    rounds        of all windows together; by default 10, or 5 when the promise is pure, because
                  then the noise grows with the number of rounds instead of its root; in windows
                  twice as many
    coordinates   "own": each component's, where a record that is farther than √d + 2 standard
                  deviations counts less; "shared": the unit ball's, where none does
    floor         the least variance in any direction
    """

    name = "gaussian-mixture"
    states: ClassVar[tuple[type[Any], ...]] = (MixtureState,)
    models = (MixtureModel,)

    def __init__(
        self,
        components: int = 5,
        covariance: Kind = "full",
        rounds: int | None = None,
        coordinates: Coordinates = "own",
        floor: float = 1e-6,
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

    def init(self, schema: Schema, promise: Promise) -> MixtureState:
        encoder = self.encoder(schema)
        low, high = box(encoder)
        middle = (low + high) / 2
        # An average over rounds needs more of them until it has come to rest.
        rounds = self.rounds or _rounds(promise) * (2 if self._windows else 1)
        # So wide that the components cover the box between them.
        radii = (high - low) / 2 / self.components ** (1 / encoder.width)
        state = MixtureState(
            weights=np.full(self.components, 1 / self.components),
            means=middle + (made_up(encoder, self.components) - middle) / 2,
            covariances=self._first(np.maximum(radii**2, self.floor)),
            kind=self.covariance,
            norm=norm_for(promise).value,
            noise=0.0,
            rounds=rounds_each(rounds, self._windows),
            windows=self._windows,
        )
        return replace(state, noise=self._noise(state, promise)) if promise.is_private else state

    def plan(self, first: MixtureState) -> Sequence[Stage]:
        components, width = first.means.shape
        length = components * (1 + width + moments_length(first.kind, width))
        norm = Norm(first.norm)
        bound = joint_bound(norm, first.kind, width)
        return in_windows(Query((Block("statistics", length, norm, bound, STEP),)), first)

    def windowed(self, windows: int) -> Mixture:
        """Components go on from window to window, as averages over later rounds (windows.md)."""
        return over(self, windows)

    def admit(self, state: MixtureState) -> None:
        try:
            with np.errstate(all="ignore"):
                components = Components.of(state.weights, state.means, state.covariances)
            finite = bool(np.isfinite(components.factors).all() and (state.weights > 0).all())
        except (np.linalg.LinAlgError, ValueError):
            finite = False
        if not finite:
            raise InputError("this state's components are no Gaussian mixture.")

    def asked(self, state: MixtureState, query: Query) -> Query | None:
        return None if state.done >= state.last else query

    def prepare(self, batch: Encoded, first: MixtureState) -> Encoded:
        return batch._replace(X=whole_numbers(batch.X)) if first.noise > 0 else batch

    def map(self, batch: Encoded, state: MixtureState, query: Query) -> Sequence[Contribution]:
        weights, features = self._products(batch.X, state)
        return [Mixed(weights, features)]

    def _products(self, X: Reals, state: MixtureState) -> tuple[Reals, tuple[Whole, ...]]:
        """Responsibilities, and for each component the statistics of the records, in units."""
        components = Components.of(state.weights, state.means, state.covariances)
        private = state.noise > 0
        own = components.standardised_exactly(X) if private else components.standardised(X)
        shares = components.responsibilities(own)
        if self.coordinates == "own":
            seen = own / _reach(state)
        else:
            seen = np.broadcast_to(X * FEATURE_STEP if private else X, own.shape)
        return shares * WEIGHT_UNIT, tuple(self._statistics(each, state) for each in seen)

    def _statistics(self, seen: Reals, state: MixtureState) -> Whole:
        if state.noise == 0:
            return Whole(statistics(seen, state.kind, Norm(state.norm)) * FEATURE_UNIT)
        near = np.nan_to_num(np.clip(seen, -FARTHEST, FARTHEST), nan=0.0)
        found = statistics(near, state.kind, Norm(state.norm)) * FEATURE_UNIT
        return Whole(np.rint(found, out=found))

    def reduce(self, total: Reals, state: MixtureState) -> MixtureState:
        components, width = state.means.shape
        sums = total.reshape(components, -1)
        counts = sums[:, 0]
        seen_from, reach = self._frame(state)
        means, covariances = state.means.copy(), state.covariances.copy()
        for k in range(components):
            if counts[k] <= FEWEST * state.noise:
                covariances[k] = self._bounded(4 * covariances[k])  # it looks farther afield
                continue
            mean, moments = np.split(sums[k, 1:] / counts[k], [width])
            # Noise of deviation σ makes a symmetric matrix with eigenvalues up to about σ√(2d).
            least = state.noise * math.sqrt(width / 2) / counts[k]
            spread = covariance_of(mean, moments, state.kind, Norm(state.norm), least)
            means[k] = _in_ball(seen_from.back(k, mean, reach))
            covariances[k] = self._bounded(seen_from.widened(k, spread, reach))
        kept = np.maximum(counts, max(state.noise, 1e-9))
        after = replace(
            state,
            weights=kept / kept.sum(),
            means=means,
            covariances=covariances,
            done=state.done + 1,
        )
        if state.windows:
            return self._averaged(state, after, counts > FEWEST * state.noise)
        if self.rounds is None and state.noise == 0 and _still(state, after):
            return replace(after, done=state.rounds)
        return after

    def _averaged(
        self, before: MixtureState, found: MixtureState, seen: NDArray[np.bool_]
    ) -> MixtureState:
        """What was found, averaged with earlier rounds: as moments, which is how EM adds records.

        A component that was not seen just now is as it was found: somewhere else.
        """
        share = late_share(at_rest(float(found.done), found.last))
        weights = (1 - share) * before.weights + share * found.weights
        means, covariances = found.means.copy(), found.covariances.copy()
        for k in np.flatnonzero(seen):
            new = share * found.weights[k] / weights[k]
            means[k] = (1 - new) * before.means[k] + new * found.means[k]
            between = self._squared(found.means[k] - before.means[k])
            covariances[k] = self._bounded(
                (1 - new) * before.covariances[k]
                + new * found.covariances[k]
                + new * (1 - new) * between
            )
        return replace(found, weights=weights, means=means, covariances=covariances)

    def _squared(self, difference: Reals) -> Reals:
        if self.covariance == "full":
            return np.outer(difference, difference)
        squares = difference**2
        return np.asarray(squares.mean()) if self.covariance == "spherical" else squares

    def result(self, state: MixtureState) -> MixtureModel:
        return MixtureModel(state.weights, state.means, state.covariances, state.kind)

    def predict(self, model: MixtureModel, X: Reals) -> Prediction:
        shares = model.responsibilities(X)
        return Prediction("cluster", shares.argmax(axis=1), shares)

    def _frame(self, state: MixtureState) -> tuple[Components, float]:
        """Where the statistics of this round are seen from, and their unit of length."""
        if self.coordinates == "own":
            return Components.of(state.weights, state.means, state.covariances), _reach(state)
        unit = np.broadcast_to(self._first(np.ones(state.means.shape[1])), state.covariances.shape)
        return Components.of(state.weights, np.zeros_like(state.means), unit), 1.0

    def _first(self, variances: Reals) -> Reals:
        """The same covariance for every component, from the variance of each coordinate."""
        one: dict[str, Reals] = {
            "full": np.diag(variances),
            "diag": variances,
            "spherical": np.asarray(variances.mean()),
        }
        chosen = one[self.covariance]
        return np.ascontiguousarray(np.broadcast_to(chosen, (self.components, *chosen.shape)))

    def _bounded(self, covariance: Reals) -> Reals:
        """Variances within [floor, 1]: no larger ones exist in the unit ball."""
        if covariance.ndim < 2:
            return np.clip(covariance, self.floor, 1.0)
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        return np.asarray((vectors * np.clip(values, self.floor, 1.0)) @ vectors.T)

    def _noise(self, state: MixtureState, promise: Promise) -> float:
        plan = Plan(tuple(self.plan(state))).part(min(1, state.windows))
        mechanism = Levels.planned(promise, plan).mechanism(plan.stage(1).query.blocks[-1])
        return float(mechanism.scale) * (math.sqrt(2) if promise.delta == 0 else 1.0)


def in_windows(query: Query, first: MixtureState) -> list[Stage]:
    """The rounds of the plan, or of each window."""
    stage = Stage(query, first.rounds)
    if not first.windows:
        return [stage]
    return [replace(stage, window=number) for number in range(1, first.windows + 1)]


def joint_bound(norm: Norm, kind: str, width: int) -> Fraction:
    """The largest norm of a record's statistics when ‖s‖₂ ≤ 1 (mixture.md): √3 in L2."""
    if norm is Norm.L2:
        return round_up(math.nextafter(math.sqrt(3), 2))
    moments = Fraction(width + 1, 2) if kind == "full" else Fraction(1)
    return round_up(math.nextafter(math.sqrt(width), math.inf)) + 1 + moments


def _reach(state: MixtureState) -> float:
    """A Gaussian record is about √d deviations from its centre, and rarely 2 farther."""
    return math.sqrt(state.means.shape[1]) + 2.0


def _rounds(promise: Promise) -> int:
    if not promise.is_private:
        return 100
    return 5 if promise.delta == 0 else 10


def _in_ball(mean: Reals) -> Reals:
    return mean / max(1.0, float(np.linalg.norm(mean)))


def _still(before: MixtureState, after: MixtureState) -> bool:
    """Whether no mean moved noticeably in its component's measure, and no weight did."""
    components = Components.of(before.weights, before.means, before.covariances)
    moved = np.diagonal(components.standardised(after.means)).T
    return bool(
        np.abs(moved).max() < STILL and np.abs(after.weights - before.weights).max() < STILL
    )
