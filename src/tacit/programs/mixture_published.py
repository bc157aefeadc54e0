"""The mixture report's ways of learning a Gaussian mixture, for comparison with ours.

    PublishedMixture   each of the 2K + 1 parameters of a round has a release and an equal share of
                       (ε, δ) of its own, and shares add up (linear composition)
    perturbed          noise on the records themselves, by whoever owns them (local model)

Both keep the promise, the first at far more noise than it needs (mixture.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import SYSTEM, Randomness
from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Bound, Norm, round_up
from tacit.privacy.clipping import clip_to_ball
from tacit.privacy.mechanisms import Gaussian, Laplace
from tacit.privacy.promise import Adjacency, Promise
from tacit.programs.components import Components, Kind, moments_length, shares_of, statistics
from tacit.programs.contributions import Contribution, Products
from tacit.programs.features import FEATURE_STEP, Whole
from tacit.programs.levels import Levels
from tacit.programs.mixture_em import MixtureState, NoisyEM
from tacit.programs.program import Block, Plan, Query, Stage, norm_for
from tacit.programs.spread import box, made_up
from tacit.programs.windows import over, rounds_each

__all__ = ["PublishedMixture", "PublishedState", "perturbed"]

Reals = NDArray[np.float64]

# About √(2 ln(1.25/δ))² for the δ of one release: how much larger the report's Gaussians are than
# its Laplace noise of the same ε. It only shapes the tight accounting.
LAPLACE_WEIGHT = Fraction(32)
FARTHEST = 8.0  # a record that is farther from the middle of the ball is taken to be there
WEIGHT_UNIT, FEATURE_UNIT = 2**14, 2**13  # responsibilities and statistics, as whole numbers
STEP = Fraction(1, WEIGHT_UNIT * FEATURE_UNIT)


@dataclass(frozen=True, slots=True)
class PublishedState(MixtureState):
    """`excess_weights`, `excess`: how many times the noise is published as larger than needed."""

    excess_weights: float = 1.0
    excess: float = 1.0


class PublishedMixture(NoisyEM[PublishedState]):
    """Perturbed parameters as in the report (Park et al. 2017, section 3.2, linear composition).

    weights_noise   "laplace": Laplace on the weights and Gaussian on means and covariances;
                    "gaussian": Gaussian everywhere
    composition     "linear", as published; "tight": the same releases, accounted for as well as
                    can be, which shows what the separate releases alone cost
    """

    name = "gaussian-mixture-as-published"
    states = (PublishedState,)

    def __init__(
        self,
        components: int = 5,
        covariance: Kind = "full",
        rounds: int = 10,
        weights_noise: str = "laplace",
        composition: str = "linear",
    ) -> None:
        super().__init__(components, covariance, rounds, "shared", 1e-6)
        if weights_noise not in ("laplace", "gaussian") or composition not in ("linear", "tight"):
            raise UsageError(
                'weights_noise is "laplace" or "gaussian" and composition "linear" or "tight", '
                f"not {weights_noise!r} and {composition!r}."
            )
        self.weights_noise, self.composition = weights_noise, composition

    def init(self, schema: Schema, promise: Promise) -> PublishedState:
        if promise.is_private and promise.delta == 0:
            raise UsageError(
                "the report's Gaussian noise needs delta > 0: give the promise a delta, or take "
                "the program Mixture."
            )
        # The plan's norms are the report's, whatever the promise.
        state = self._first(schema)
        if promise.is_private and self.composition == "linear":
            weights, others = self._excess(state, promise)
            state = replace(state, excess_weights=weights, excess=others)
        return replace(state, noise=self._noise(state, promise)) if promise.is_private else state

    def _first(self, schema: Schema) -> PublishedState:
        """First means are made-up records; components are so wide that they cover the box."""
        encoder = self.encoder(schema)
        low, high = box(encoder)
        middle = (low + high) / 2
        assert self.rounds is not None
        radii = (high - low) / 2 / self.components ** (1 / encoder.width)
        one = self._shaped(np.maximum(radii**2, self.floor))
        return PublishedState(
            weights=np.full(self.components, 1 / self.components),
            means=middle + (made_up(encoder, self.components) - middle) / 2,
            covariances=np.array([one] * self.components),
            kind=self.covariance,
            norm=norm_for(Promise(math.inf)).value,
            noise=0.0,
            rounds=rounds_each(self.rounds, self._windows),
            windows=self._windows,
        )

    def windowed(self, windows: int) -> PublishedMixture:
        return over(self, windows)

    def plan(self, first: PublishedState) -> Sequence[Stage]:
        laplace = self.weights_noise == "laplace"
        width = first.means.shape[1]
        lengths = {"mean": width, "covariance": moments_length(first.kind, width)}
        # A bound wider than what is needed is how a program asks for more noise than is needed.
        weights = Block(
            "weights",
            self.components,
            Norm.L1 if laplace else Norm.L2,
            round_up(first.excess_weights),
            Fraction(1, WEIGHT_UNIT),
            LAPLACE_WEIGHT if laplace else Fraction(1),
        )
        others = [
            Block(f"{what} {k}", length, Norm.L2, round_up(first.excess), STEP)
            for k in range(self.components)
            for what, length in lengths.items()
        ]
        return in_windows(Query((weights, *others)), first)

    def _products(self, X: Reals, state: PublishedState) -> tuple[Reals, tuple[Whole, ...]]:
        """Responsibilities, and for each component the statistics of the records, in units."""
        components = Components.of(state.weights, state.means, state.covariances)
        private, logs = state.noise > 0, np.empty((len(X), len(state.means)))
        see = components.standardised_exactly if private else components.standardised
        for k in range(len(state.means)):
            logs[:, k] = components.log_density(k, see(k, X))
        found = statistics(self._near(X, private), state.kind, math.sqrt(2)) * FEATURE_UNIT
        features = Whole(np.rint(found, out=found) if private else found)
        return shares_of(logs) * WEIGHT_UNIT, (features,) * len(state.means)

    @staticmethod
    def _near(X: Reals, private: bool) -> Reals:
        if not private:
            return X
        return np.nan_to_num(np.clip(X * FEATURE_STEP, -FARTHEST, FARTHEST), nan=0.0)

    def map(self, batch: Encoded, state: PublishedState, query: Query) -> Sequence[Contribution]:
        weights, features = self._products(batch.X, state)
        width = state.means.shape[1]
        found: list[Contribution] = [Products(weights, Whole(np.ones((len(weights), 1))))]
        for weight, each in zip(weights.T, features, strict=True):
            for part in (each.values[:, 1 : 1 + width], each.values[:, 1 + width :]):
                found.append(Products(weight[:, None], Whole(part)))
        return found

    def reduce(self, total: Reals, state: PublishedState) -> PublishedState:
        ours = np.empty_like(total)
        ours[self._order(state)] = total
        return self._maximised(ours, state)

    def _stretch(self, norm: Norm) -> float:
        return math.sqrt(2)

    def _unseen(self, state: PublishedState, k: int, counts: Reals) -> tuple[float, Reals]:
        """It keeps its place and looks farther afield."""
        count = max(float(counts[k]), state.noise, 1e-9)
        return count, self._bounded(4 * state.covariances[k])

    def _noise(self, state: PublishedState, promise: Promise) -> float:
        plan = Plan(tuple(self.plan(state))).part(min(1, state.windows))
        mechanism = Levels.planned(promise, plan).mechanism(plan.stage(1).query.blocks[-1])
        return float(mechanism.scale) * (math.sqrt(2) if promise.delta == 0 else 1.0)

    def settings(self) -> dict[str, Any]:
        """Only what this constructor takes: coordinates and floor are not free here."""
        known = super().settings()
        return {k: v for k, v in known.items() if k not in ("coordinates", "floor")}

    def _order(self, state: MixtureState) -> NDArray[np.intp]:
        """Where the blocks stand in our vector of statistics: all counts first, then the rest."""
        width = state.means.shape[1]
        places = np.arange(self.components * (1 + width + moments_length(state.kind, width)))
        table = places.reshape(self.components, -1)
        return np.concatenate([table[:, 0], table[:, 1:].ravel()])

    def _excess(self, state: PublishedState, promise: Promise) -> tuple[float, float]:
        """The report's noise over that of tight accounting, for the weights and for the rest.

        ε and δ are divided evenly; Laplace of scale Δ/ε, Gaussian of deviation
        Δ·√(2 ln(1.25/δ))/ε (the report's equations 14, 16, 17).
        """
        laplace = self.weights_noise == "laplace"
        releases = state.rounds * (2 * self.components + 1)
        gaussians = releases - state.rounds if laplace else releases
        epsilon, delta = promise.epsilon / releases, promise.delta / gaussians
        gaussian = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        plan = Plan(tuple(self.plan(state))).part(min(1, state.windows))
        needed = Levels.planned(promise, plan).multipliers
        weights = 1 / epsilon if laplace else gaussian
        return (
            max(1.0, weights / float(needed["weights"])),
            max(1.0, gaussian / float(needed["mean 0"])),
        )


def in_windows(query: Query, first: MixtureState) -> list[Stage]:
    """The rounds of the plan, or of each window."""
    stage = Stage(query, first.rounds)
    if not first.windows:
        return [stage]
    return [replace(stage, window=number) for number in range(1, first.windows + 1)]


def perturbed(X: Reals, promise: Promise, randomness: Randomness = SYSTEM) -> Reals:
    """Vectors of the unit ball with noise of their owners: input perturbation, the local model.

    Whatever is learned from them, also by `Mixture` without further noise, keeps the promise. It
    covers replacing a record; how many there are is not hidden.
    """
    width = X.shape[1]
    mechanism: Laplace | Gaussian
    if promise.delta == 0:
        longest = math.nextafter(math.sqrt(width), math.inf)  # ‖x‖₁ ≤ √d·‖x‖₂
        bound = Bound.of_contribution(Norm.L1, longest, Adjacency.REPLACE)
        mechanism = Laplace.calibrated(bound, promise, width)
    else:
        bound = Bound.of_contribution(Norm.L2, 1, Adjacency.REPLACE)
        mechanism = Gaussian.calibrated(bound, promise, width)
    integers = mechanism.grid.encode(clip_to_ball(X, 1.0, Norm.L2))
    return mechanism.grid.decode(mechanism.perturb(integers, randomness))
