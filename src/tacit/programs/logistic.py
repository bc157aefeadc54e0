"""Logistic regression, binary and multinomial, by noisy gradients (why it works: logistic.md).

Three cheap rounds learn the data's size, centre and spread; then gradient descent with momentum
runs for a fixed number of rounds and the second half of the weights is averaged. Nothing is left
to tune: clip and step follow from the noise, the number of records and the number of features.
Without privacy, the exact minimiser is found instead (logistic_exact.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.errors import InputError, UsageError
from tacit.privacy.accounting import gaussian_scale
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Adjacency, Promise
from tacit.programs.cells import Cells
from tacit.programs.contributions import Contribution, Products
from tacit.programs.features import FEATURE_STEP, Whole
from tacit.programs.logistic_exact import (
    Exact,
    exact_contributions,
    exact_query,
    exact_step,
    with_constant,
)
from tacit.programs.logistic_gradient import View, gradients, lengths, quantised
from tacit.programs.prediction import Prediction, class_names
from tacit.programs.program import Block, Program, Query, Stage, norm_for

__all__ = ["Learning", "Logistic", "LogisticModel"]

Reals = NDArray[np.float64]

BINS = 24  # of lengths, half an octave each: down to a 4,000th of the largest
INTERCEPT = 0.25  # the constant feature, in units of a typical centred record
CLIP = 0.25  # of a record's gradient, in the same units, where noise is strong
ENOUGH = 200.0  # records per unit of noise from which on the clip may grow
LARGEST_CLIP = 2.0
DRIFT = 30.0  # how far noise alone may carry the weights
LARGEST_STEP = 80.0
STABLE = 1.9  # step · curvature; momentum β is stable below 2 (1 + β)
# Vectors have a bound of 1, in so many steps: what is 1 stands for, a state says.
STEP = Fraction(1, 2**30)
UNIT = FEATURE_STEP / float(STEP)  # a weight so large makes features count as they are


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rounds, momentum, and the share of each stage in per cent, in the order they run."""

    rounds: int
    momentum: float
    shares: dict[str, int]


# The cost of Gaussian rounds grows with √rounds, so there may be many; that of Laplace rounds
# grows with their number. Noise of the first stages hardly hurts.
GAUSSIAN = Schedule(100, 0.9, {"size": 2, "mean": 3, "spread": 2, "gradient": 93})
PURE = Schedule(10, 0.8, {"size": 4, "mean": 8, "spread": 3, "reach": 3, "gradient": 82})


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """One row of `coef` per class, or a single one for two classes, in encoded features."""

    coef: Reals
    intercept: Reals
    classes: tuple[str, ...]

    def scores(self, X: Reals) -> Reals:
        return np.asarray(X @ self.coef.T + self.intercept)

    def predict(self, X: Reals) -> NDArray[np.int64]:
        """The class of each row, as its place in `classes`."""
        scores = self.scores(X)
        return scores.argmax(axis=1) if len(self.coef) > 1 else (scores[:, 0] > 0).astype(np.int64)

    def probabilities(self, X: Reals) -> Reals:
        """Of each class, one column each."""
        from scipy.special import expit, softmax

        scores = self.scores(X)
        if len(self.coef) > 1:
            return np.asarray(softmax(scores, axis=1))
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])


@dataclass(frozen=True, slots=True)
class Learning:
    """Everything in units of a typical centred record, except what says otherwise.

    classes, norm, top and noise follow from the study; all else changes from round to round.

    norm, reach      what contributions are clipped in, and how much longer records are in it
    top              largest length of an encoded record, in `norm` and in L2
    noise            standard deviation on a sum with bound 1, if it had the whole promise
    count            noisy number of records
    centre, constant, bound   in encoded features: mean, intercept feature, gradient's bound
    scale            typical distance to the centre
    """

    varies: ClassVar[tuple[str, ...]] = (
        "weights", "velocity", "gradient", "average", "centre", "stage", "round", "count",
        "scale", "reach", "constant", "bound", "step", "curvature",
    )  # fmt: skip

    classes: tuple[str, ...]
    norm: str
    top: tuple[float, float]
    noise: float
    weights: Reals
    velocity: Reals
    gradient: Reals
    average: Reals
    centre: Reals
    stage: str = "size"
    round: int = 0
    count: float = 1.0
    scale: float = 1.0
    reach: float = 1.0
    constant: float = 1.0
    bound: float = 1.0
    step: float = 0.0
    curvature: float = 0.0

    @property
    def schedule(self) -> Schedule:
        return PURE if self.norm == Norm.L1 else GAUSSIAN

    @property
    def view(self) -> View:
        """What the gradient of a record depends on."""
        weights = self.weights / self.scale
        return View(self.centre, self.constant, weights, UNIT / self.bound)

    @property
    def mean_weight(self) -> float:
        """What records are multiplied with, so that one of length `bound` has length 1."""
        return float(np.clip(np.rint(UNIT / self.bound), 1.0, Whole.LARGEST_WEIGHT))

    def noise_of(self, stage: str) -> float:
        """Standard deviation on one sum with bound 1 that is paid from the stage's share."""
        part = self.schedule.shares[stage] / 100
        count = self.schedule.rounds if stage == "gradient" else 1
        return self.noise * (count / part if self.norm == Norm.L1 else math.sqrt(count / part))


class Logistic(Program["Learning | Exact", LogisticModel]):
    """penalty and tolerance matter only without privacy: see logistic.md for the objective."""

    name = "logistic"
    states = (Learning, Exact)
    models = (LogisticModel,)

    def __init__(self, penalty: float = 1.0, tolerance: float = 1e-5) -> None:
        if not (penalty > 0 and tolerance > 0):
            raise UsageError("penalty and tolerance must be above 0.")
        self.penalty, self.tolerance = penalty, tolerance

    def init(self, schema: Schema, promise: Promise) -> Learning | Exact:
        classes = _classes(schema)
        encoder = self.encoder(schema)
        shape = (encoder.width + 1, 1 if len(classes) == 2 else len(classes))
        if not promise.is_private:
            return Exact.start(classes, shape, self.penalty, self.tolerance)
        norm = norm_for(promise)
        return Learning(
            classes,
            norm.value,
            (encoder.bound(norm), encoder.bound(Norm.L2)),
            _noise(promise),
            weights=np.zeros(shape),
            velocity=np.zeros(shape),
            gradient=np.zeros(shape),
            average=np.zeros(shape),
            centre=np.zeros(encoder.width),
        )

    def plan(self, first: Learning | Exact) -> Sequence[Stage]:
        if isinstance(first, Exact):
            return [Stage(exact_query(first), first.most)]
        return [
            Stage(Query((_block(stage, Fraction(part, 100), first),)), _count(stage, first))
            for stage, part in first.schedule.shares.items()
        ]

    def admit(self, state: Learning | Exact) -> None:
        if isinstance(state, Learning) and not (state.scale > 0 and state.bound > 0):
            raise InputError("this state has a scale or bound that is not above 0.")

    def asked(self, state: Learning | Exact, query: Query) -> Query | None:
        return None if isinstance(state, Exact) and state.done else query

    def prepare(self, batch: Encoded, first: Learning | Exact) -> Encoded:
        ready = with_constant(batch.X) if isinstance(first, Exact) else quantised(batch.X)
        return batch._replace(X=ready)

    def map(self, batch: Encoded, state: Learning | Exact, query: Query) -> Sequence[Contribution]:
        y = _labels(batch)
        if isinstance(state, Exact):
            return exact_contributions(batch.X, y, state)
        stage = query.blocks[0].name
        match stage:
            case "mean":
                weights = np.full((len(batch.X), 1), state.mean_weight)
                return [Products(weights, Whole(batch.X[:, :-1]))]
            case "gradient":
                return [gradients(batch.X, y, state.view)]
            case _:
                norm = Norm.L2 if stage == "spread" else Norm(state.norm)
                sizes = lengths(batch.X, state.centre, norm)
                places = _bins(sizes, _largest(state, stage))
                return [Cells(places[:, None], (BINS,), query.blocks[0].limit)]

    def reduce(self, total: Reals, state: Learning | Exact) -> Learning | Exact:
        if isinstance(state, Exact):
            return exact_step(total, state)
        match state.stage:
            case "size":
                count = max(1.0, float(total.sum()))
                radius = _median(total, _largest(state, "size"))
                return replace(state, stage="mean", count=count, bound=radius)
            case "mean":
                return replace(state, stage="spread", centre=_centre(total, state))
            case "spread":
                scale = _median(total, _largest(state, "spread"))
                return _started(replace(state, scale=scale, stage="reach"))
            case "reach":
                reach = _median(total, _largest(state, "reach")) / state.scale
                return _started(replace(state, reach=max(1.0, reach), stage="gradient"))
            case _:
                return _descended(total, state)

    def result(self, state: Learning | Exact) -> LogisticModel:
        if isinstance(state, Exact):
            coef, intercept = state.weights[:-1].T, state.weights[-1]
            return LogisticModel(coef.copy(), intercept.copy(), state.classes)
        # w·(x − centre)/scale + w₀·constant/scale, as coef·x + intercept
        weights = state.average / state.scale
        coef = weights[:-1].T
        intercept = state.constant * weights[-1] - coef @ state.centre
        return LogisticModel(coef.copy(), intercept, state.classes)

    def predict(self, model: LogisticModel, X: Reals) -> Prediction:
        return Prediction("class", model.predict(X), model.probabilities(X))


def _started(state: Learning) -> Learning:
    """Clip and step, from how much noise there will be; for a pure promise after `reach`."""
    if state.norm == Norm.L1 and state.stage == "reach":
        return state
    rounds, momentum = state.schedule.rounds, state.schedule.momentum
    spread = state.noise_of("gradient") * state.reach * math.sqrt(state.weights.size) / state.count
    ratio = math.sqrt(rounds) / spread  # of signal to noise, all rounds together
    clip = min(LARGEST_CLIP, CLIP * math.sqrt(max(1.0, ratio / ENOUGH)))
    step = DRIFT * (1 - momentum) / (math.sqrt(rounds) * clip * spread)
    constant = max(1.0, round(INTERCEPT * state.scale / FEATURE_STEP)) * FEATURE_STEP
    return replace(
        state,
        stage="gradient",
        bound=clip * state.reach * state.scale,
        step=min(LARGEST_STEP, step),
        constant=constant,
    )


def _descended(total: Reals, state: Learning) -> Learning:
    """One step of heavy-ball descent (Polyak 1964)."""
    schedule = state.schedule
    sums = total.reshape(state.weights.shape[::-1]).T * state.bound
    gradient = sums / (state.count * state.scale)
    curvature = max(state.curvature, _curvature(gradient, state))
    velocity = schedule.momentum * state.velocity + gradient
    moved = min(state.step, STABLE / curvature if curvature > 0 else math.inf)
    weights = state.weights - moved * velocity
    late = state.round >= schedule.rounds // 2
    share = 1 / (schedule.rounds - schedule.rounds // 2)
    done = state.round + 1 == schedule.rounds
    return replace(
        state,
        weights=weights,
        velocity=velocity,
        gradient=gradient,
        average=state.average + share * weights if late else state.average,
        curvature=curvature,
        step=moved,
        round=state.round + 1,
        stage="done" if done else "gradient",
    )


def _curvature(gradient: Reals, state: Learning) -> float:
    """What the last two gradients prove about the curvature, by three deviations of their noise.

    Where the step is too long for the data (few or equal features), iterates swing ever wider,
    and the wider they swing the surer this is. It reads noisy sums only, so it costs nothing.
    """
    move = -state.step * state.velocity
    size = float(np.linalg.norm(move))
    if size == 0.0:
        return 0.0
    seen = float(((gradient - state.gradient) * move).sum()) / size**2
    deviation = state.noise_of("gradient") * state.bound / (state.count * state.scale)
    return seen - 3 * math.sqrt(2) * deviation / size


def _centre(total: Reals, state: Learning) -> Reals:
    """The noisy mean, shortened by as much as noise has lengthened it (James & Stein 1961)."""
    mean = total * (UNIT / state.mean_weight) / state.count
    noise = state.noise_of("mean") * state.bound / state.count
    square = float(mean @ mean)
    kept = max(0.0, 1 - len(mean) * noise**2 / square) if square > 0 else 0.0
    return np.asarray(np.clip(np.rint(kept * mean / FEATURE_STEP) * FEATURE_STEP, -1.0, 1.0))


def _block(stage: str, weight: Fraction, first: Learning) -> Block:
    norm = Norm(first.norm)
    lengths = {"mean": len(first.centre), "gradient": first.weights.size}
    if stage not in lengths:
        return Block(stage, BINS, norm, Fraction(1), weight=weight)
    return Block(stage, lengths[stage], norm, Fraction(1), STEP, weight)


def _count(stage: str, first: Learning) -> int:
    return first.schedule.rounds if stage == "gradient" else 1


def _largest(state: Learning, stage: str) -> float:
    """The largest length that the stage's histogram can meet."""
    own, euclidean = state.top
    return own if stage == "size" else 2 * (euclidean if stage == "spread" else own)


def _bins(sizes: Reals, largest: float) -> NDArray[np.int64]:
    """Which bin a length falls in; bin k holds those around largest · 2^(−k/2).

    Found by comparing with the bins' ends: a comparison has no last bits that could differ.
    """
    ends = largest * 2.0 ** (-(np.arange(BINS - 1)[::-1] + 0.5) / 2)
    return np.where(np.isnan(sizes), -1, BINS - 1 - np.searchsorted(ends, sizes, side="right"))


def _median(histogram: Reals, largest: float) -> float:
    """The upper edge of the bin that the median falls in."""
    counts = np.maximum(histogram, 0.0).cumsum()
    place = int(np.searchsorted(counts, counts[-1] / 2))
    return largest * float(2.0 ** (0.25 - min(place, BINS - 1) / 2))


def _noise(promise: Promise) -> float:
    replaced = 2 if promise.adjacency is Adjacency.REPLACE else 1
    if promise.delta == 0:
        return replaced * math.sqrt(2) / promise.epsilon
    return replaced * float(gaussian_scale(promise.epsilon, promise.delta))


def _labels(batch: Encoded) -> NDArray[np.int64]:
    if batch.y is None:
        raise UsageError("logistic regression needs labels: give y, or a label column.")
    return np.asarray(batch.y)


def _classes(schema: Schema) -> tuple[str, ...]:
    label = schema.label
    if label is None:
        raise UsageError('logistic regression needs a column with role = "label" in the schema.')
    if label.is_number and label.edges is None:
        raise UsageError(f"label {label.name!r} is a number: give it edges, or make it a category.")
    classes = class_names(label)
    if len(classes) < 2:
        raise UsageError(f"label {label.name!r} needs at least two classes.")
    return classes
