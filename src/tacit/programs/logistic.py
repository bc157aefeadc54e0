"""Logistic regression, binary and multinomial, by noisy gradients (why it works: logistic.md).

Three cheap rounds learn the data's size, centre and spread; then gradient descent with momentum
runs for a fixed number of rounds and the second half of the weights is averaged; a few last rounds
calibrate the scores (logistic_calibration.py). Nothing is left to tune: clip and step follow from
the noise, the number of records and the number of features.
Without privacy, the exact minimiser is found instead (logistic_exact.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

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
from tacit.programs.encodings import Features, checked_features, encoding_for
from tacit.programs.features import Whole
from tacit.programs.logistic_band import noise_left
from tacit.programs.logistic_calibration import (
    LARGEST_SCORE,
    deviations,
    length,
    statistics,
)
from tacit.programs.logistic_exact import (
    Exact,
    exact_contributions,
    exact_query,
    exact_step,
    with_constant,
)
from tacit.programs.logistic_gradient import gradients, lengths, quantised
from tacit.programs.logistic_model import SEEN, UNCALIBRATED, LogisticModel
from tacit.programs.logistic_state import STEP, Learning
from tacit.programs.logistic_steps import (
    calibrated,
    calibration_holds,
    calibration_started,
    descended,
    descent_resumed,
    descent_started,
    settled_line,
    shrunk_mean,
)
from tacit.programs.prediction import Prediction, class_names
from tacit.programs.program import Block, Program, Query, Stage, norm_for
from tacit.programs.windows import over

__all__ = ["Learning", "Logistic", "LogisticModel"]

Reals = NDArray[np.float64]

AGAIN = ("count", "gradient", "scores", "calibration")  # stages of later windows
BINS = 24  # of lengths, half an octave each: down to a 4,000th of the largest


class Logistic(Program["Learning | Exact", LogisticModel]):
    """penalty and tolerance matter only without privacy: see logistic.md for the objective.

    features   how numbers are seen (encodings.py): "raw" as they are, as "curves" or in "bins";
               "auto": as curves, where there are numbers
    """

    name = "logistic"
    version = 2  # 1 did not calibrate
    reads = (1,)
    states = (Learning, Exact)
    models = (LogisticModel,)
    may_remark = (*SEEN.values(), UNCALIBRATED)

    def __init__(
        self, penalty: float = 1.0, tolerance: float = 1e-5, features: Features = "raw"
    ) -> None:
        if not (penalty > 0 and tolerance > 0):
            raise UsageError("penalty and tolerance must be above 0.")
        self.penalty, self.tolerance = penalty, tolerance
        self.features = checked_features(features)

    def settings(self) -> dict[str, Any]:
        """Raw features are not named: studies and models from before there was a choice have them,
        and keep their bytes."""
        found = super().settings()
        return {k: v for k, v in found.items() if (k, v) != ("features", "raw")}

    def init(self, schema: Schema, promise: Promise) -> Learning | Exact:
        classes = _classes(schema)
        encoder = self.encoder(schema)
        encoding = encoding_for(self.features, schema)
        width = encoder.width if encoding is None else encoding.width
        shape = (width + 1, 1 if len(classes) == 2 else len(classes))
        if not promise.is_private and not self._windows:
            return Exact.start(classes, shape, self.penalty, self.tolerance, encoding)
        norm = norm_for(promise)
        top = [encoder.bound(norm), encoder.bound(Norm.L2)]
        if encoding is not None:
            top = [encoding.bound(*one) for one in zip((norm, Norm.L2), top, strict=True)]
        return Learning(
            classes,
            norm.value,
            (top[0], top[1]),
            _noise(promise),
            promise.epsilon / _replaced(promise),
            weights=np.zeros(shape),
            velocity=np.zeros(shape),
            gradient=np.zeros(shape),
            average=np.zeros(shape),
            centre=np.zeros(width),
            shift=np.zeros(shape[1]),
            settled=np.zeros(1 + shape[1]),
            seen=np.zeros(length(shape[1])),
            stage="count" if self._windows else "size",
            windows=self._windows,
            features=None if encoding is None else encoding.kind,
            roles=None if encoding is None else encoding.roles,
        )

    def windowed(self, windows: int) -> Logistic:
        """Descent goes on from window to window (logistic.md, *windows*)."""
        return over(self, windows)

    def plan(self, first: Learning | Exact) -> Sequence[Stage]:
        if isinstance(first, Exact):
            return [Stage(exact_query(first), first.most)]
        stages = {
            stage: Stage(
                Query((_block(stage, first.schedule.part(stage), first),)),
                first.schedule.count(stage),
            )
            for stage in first.schedule.shares
        }
        if not first.windows:
            return list(stages.values())
        return [
            replace(stages[stage], window=window)
            for window in range(1, first.windows + 1)
            for stage in (stages if window == 1 else AGAIN)
        ]

    def admit(self, state: Learning | Exact) -> None:
        if (
            isinstance(state, Learning)
            and not min(state.scale, state.bound, state.typical, state.slope) > 0
        ):
            raise InputError("this state has a scale, bound, score or slope that is not above 0.")

    def asked(self, state: Learning | Exact, query: Query) -> Query | None:
        return None if isinstance(state, Exact) and state.done else query

    def prepare(self, batch: Encoded, first: Learning | Exact) -> Encoded:
        encoding = first.encoding
        X = batch.X if encoding is None else encoding.of(batch.X)
        ready = with_constant(X) if isinstance(first, Exact) else quantised(X)
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
            case "scores":
                seen = deviations(batch.X, state.centre, state.matrix)
                places = _bins(np.abs(seen).max(axis=1, initial=0.0), LARGEST_SCORE)
                return [Cells(places[:, None], (BINS,), query.blocks[0].limit)]
            case "calibration":
                seen = deviations(batch.X, state.centre, state.matrix)
                limit = query.blocks[0].limit
                return [statistics(seen, y, state.line, Norm(state.norm), limit)]
            case "count":
                everyone = np.zeros((len(batch.X), 1), dtype=np.int64)
                return [Cells(everyone, (1,), query.blocks[0].limit)]
            case _:
                norm = Norm.L2 if stage == "spread" else Norm(state.norm)
                sizes = lengths(batch.X, state.centre, norm)
                places = _bins(sizes, _largest(state, stage))
                return [Cells(places[:, None], (BINS,), query.blocks[0].limit)]

    def reduce(self, total: Reals, state: Learning | Exact) -> Learning | Exact:
        if isinstance(state, Exact):
            return exact_step(total, state)
        match state.stage:
            case "count":
                counted = replace(state, count=max(1.0, float(total[0])))
                if state.round == 0:
                    return replace(counted, stage="size")
                return descent_resumed(counted)
            case "size":
                count = state.count if state.windows else max(1.0, float(total.sum()))
                radius = _median(total, _largest(state, "size"))
                return replace(state, stage="mean", count=count, bound=radius)
            case "mean":
                return replace(state, stage="spread", centre=shrunk_mean(total, state))
            case "spread":
                scale = _median(total, _largest(state, "spread"))
                return descent_started(replace(state, scale=scale, stage="reach"))
            case "reach":
                reach = _median(total, _largest(state, "reach")) / state.scale
                return descent_started(replace(state, reach=max(1.0, reach), stage="gradient"))
            case "scores":
                typical = _median(total, LARGEST_SCORE)
                return calibration_started(typical, state)
            case "calibration":
                return calibrated(total, state)
            case _:
                return descended(total, state)

    def result(self, state: Learning | Exact) -> LogisticModel:
        if isinstance(state, Exact):
            coef, intercept = state.weights[:-1].T, state.weights[-1]
            return LogisticModel.of(coef.copy(), intercept.copy(), state.classes, state.encoding)
        line = settled_line(state)
        coef = line.slope * state.matrix.T
        intercept = line.offset - coef @ state.centre
        holds = calibration_holds(state)
        more = (state.encoding, holds, state.centre, noise_left(state))
        return LogisticModel.of(coef, intercept, state.classes, *more)

    def sees(self, schema: Schema) -> str:
        encoding = encoding_for(self.features, schema)
        return "" if encoding is None else SEEN[encoding.kind]

    def remarks(self, model: LogisticModel) -> tuple[str, ...]:
        seen = () if model.features is None else (SEEN[model.features],)
        return (*seen, UNCALIBRATED) if model.calibrated is False else seen

    def predict(self, model: LogisticModel, X: Reals) -> Prediction:
        return Prediction("class", model.predict(X), model.probabilities(X))


def _block(stage: str, weight: Fraction, first: Learning) -> Block:
    norm = Norm(first.norm)
    lengths = {"mean": len(first.centre), "gradient": first.weights.size}
    if stage == "calibration":
        return Block(stage, length(first.weights.shape[1]), norm, Fraction(1), weight=weight)
    if stage not in lengths:
        cells = 1 if stage == "count" else BINS
        return Block(stage, cells, norm, Fraction(1), weight=weight, nonnegative=True)
    return Block(stage, lengths[stage], norm, Fraction(1), STEP, weight)


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
    if not promise.is_private:
        return 1e-6  # in windows alone: so little that clip and step are the largest
    if promise.delta == 0:
        return _replaced(promise) * math.sqrt(2) / promise.epsilon
    return _replaced(promise) * float(gaussian_scale(promise.epsilon, promise.delta))


def _replaced(promise: Promise) -> int:
    """One record goes and another comes: twice as much changes."""
    return 2 if promise.adjacency is Adjacency.REPLACE else 1


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
