"""Linear regression from noisy sufficient statistics (proof: linear.md).

One round asks for count, sums, second moments and products with the label, jointly. Directions in
which the noise could be as large as the data are held back by a ridge that follows from the noise
level alone, so there is nothing to tune (after AdaSSP: Wang 2018, algorithm 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.errors import SchemaError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.layout import owners
from tacit.programs.moments import Moments, noise_std, without_impossible
from tacit.programs.pairs import Pairs
from tacit.programs.prediction import Prediction, within
from tacit.programs.program import Program, Query, Stage, norm_for

__all__ = ["LinearModel", "LinearRegression", "LinearState", "noise_norm", "solve"]

Reals = NDArray[np.float64]
NEGLIGIBLE = 1e-12  # without noise: eigenvalues below this part of the largest are zero


@dataclass(frozen=True, slots=True)
class LinearState:
    """low, high    the label's public bounds
    owner        the column of each coordinate
    noise        standard deviation of the noise on each released number
    total        the noisy triangle, empty before the round
    """

    varies: ClassVar[tuple[str, ...]] = ()
    grows: ClassVar[tuple[str, ...]] = ("total",)

    columns: int
    norm: str
    private: bool
    noise: float
    low: float
    high: float
    owner: NDArray[np.int64]
    total: Reals

    @property
    def moments(self) -> Moments:
        return Moments(self.columns, len(self.owner), True, Norm(self.norm), self.private)


@dataclass(frozen=True, slots=True)
class LinearModel:
    """coef and intercept predict the label scaled to [−1, 1], from encoded features.

    count    the noisy number of records
    floor    the least second moment that a direction was given; 0 without noise
    """

    coef: Reals
    intercept: float
    low: float
    high: float
    count: float
    floor: float

    def to_label(self, scaled: Reals) -> Reals:
        """From [−1, 1] to the label's own unit."""
        found: Reals = self.low + (scaled + 1.0) * (self.high - self.low) / 2.0
        return found

    def predict(self, X: Reals) -> Reals:
        return self.to_label(within(X) @ self.coef + self.intercept)


class LinearRegression(Program[LinearState, LinearModel]):
    """The least-squares line through encoded features, with an intercept or through the origin."""

    name = "linear-regression"
    states = (LinearState,)
    models = (LinearModel,)

    def __init__(self, fit_intercept: bool = True) -> None:
        self.fit_intercept = fit_intercept

    def init(self, schema: Schema, promise: Promise) -> LinearState:
        low, high = _label_bounds(schema)
        owner, columns = owners(schema), len(schema.features)
        norm, private = norm_for(promise), promise.is_private
        block = Moments(columns, len(owner), True, norm, private).block("moments")
        noise = noise_std(promise, block)
        return LinearState(columns, norm, private, noise, low, high, owner, np.zeros(0))

    def plan(self, first: LinearState) -> Sequence[Stage]:
        return [Stage(Query((first.moments.block("moments"),)))]

    def map(self, batch: Encoded, state: LinearState, query: Query) -> Sequence[Pairs]:
        assert batch.y is not None  # the schema has a label
        scaled = 2.0 * (batch.y - state.low) / (state.high - state.low) - 1.0
        return [state.moments.contribution(batch.X, scaled)]

    def reduce(self, total: Reals, state: LinearState) -> LinearState:
        return replace(state, total=total)

    def result(self, state: LinearState) -> LinearModel:
        whole = state.moments.matrix(state.total)
        count = max(float(whole[0, 0]), 1.0)
        second = without_impossible(whole[1:-1, 1:-1], state.owner)
        products = whole[1:-1, -1]
        mean_x, mean_y = whole[0, 1:-1] / count, float(whole[0, -1]) / count
        if not self.fit_intercept:
            mean_x, mean_y = np.zeros_like(mean_x), 0.0
        centred = second - count * np.outer(mean_x, mean_x)
        floor = noise_norm(state.noise, len(mean_x))
        coef = solve(centred, products - count * mean_x * mean_y, floor)
        intercept = mean_y - float(mean_x @ coef)
        return LinearModel(coef, intercept, state.low, state.high, count, floor)

    def predict(self, model: LinearModel, X: Reals) -> Prediction:
        return Prediction("value", model.predict(X))


def noise_norm(noise: float, width: int) -> float:
    """How far symmetric noise can stretch a direction.

    A symmetric matrix of independent entries has spectral norm about 2σ√d (Bai & Yin 1988); the
    one more is for its fluctuation, which matters for small d.
    """
    return 2.0 * noise * (math.sqrt(width) + 1.0)


def solve(second: Reals, products: Reals, floor: float) -> Reals:
    """The solution of second · w = products, with second's eigenvalues raised to `floor`.

    AdaSSP adds one ridge to all directions, as large as the worst one needs. Raising each
    eigenvalue by what itself needs repairs indefinite matrices the same way and leaves directions
    that rise above the noise unshrunk. Without noise: the shortest least-squares solution.
    """
    values, directions = np.linalg.eigh(second)
    if floor > 0:
        inverse = 1.0 / np.maximum(values, floor)
    else:
        kept = values > NEGLIGIBLE * max(values[-1], 0.0)
        inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    found: Reals = directions @ (inverse * (directions.T @ products))
    return found


def _label_bounds(schema: Schema) -> tuple[float, float]:
    label = schema.label
    if label is not None and label.type == "boolean":
        return 0.0, 1.0
    if label is None or not label.is_number or label.edges or not isinstance(label.bounds, tuple):
        raise SchemaError(
            "linear regression needs a number with public bounds, or a boolean, as label: give "
            'that column role = "label".'
        )
    return label.bounds
