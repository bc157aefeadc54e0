"""Linear regression from noisy sufficient statistics (proof: linear.md).

Two cheap rounds find where records are and how far apart; one asks for count, sums, second moments
and products with the label, jointly (moment_rounds.py). Directions in which the noise could be as
large as the data are held back by a ridge that follows from the noise level alone, so there is
nothing to tune (after AdaSSP: Wang 2018, algorithm 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.data.schema import Schema
from tacit.errors import InputError, SchemaError
from tacit.programs.files import OPTIONAL
from tacit.programs.moment_errors import errors_of_line
from tacit.programs.moment_rounds import MomentRounds, MomentState
from tacit.programs.prediction import Prediction, within

__all__ = ["LinearModel", "LinearRegression", "inverse", "noise_norm", "solve"]

Reals = NDArray[np.float64]
NEGLIGIBLE = 1e-12  # without noise: eigenvalues below this part of the largest are zero


@dataclass(frozen=True, slots=True)
class LinearModel:
    """coef and intercept predict the label scaled to [−1, 1], from encoded features.

    count    the noisy number of records
    floor    the least second moment that a direction was given, of records as the last round saw
             them; 0 without noise
    errors   standard errors of coefficients and intercept that the noise makes, to first order, as
             planned (moment_errors.py); None without noise, and in models of before
    """

    coef: Reals
    intercept: float
    low: float
    high: float
    count: float
    floor: float
    errors: tuple[float, ...] | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        if self.errors is not None and len(self.errors) != len(self.coef) + 1:
            raise InputError("a model has as many errors as coefficients, and one more.")

    def to_label(self, scaled: Reals) -> Reals:
        """From [−1, 1] to the label's own unit."""
        found: Reals = self.low + (scaled + 1.0) * (self.high - self.low) / 2.0
        return found

    def predict(self, X: Reals) -> Reals:
        return self.to_label(within(X) @ self.coef + self.intercept)


class LinearRegression(MomentRounds[LinearModel]):
    """The least-squares line through encoded features, with an intercept or through the origin."""

    name = "linear-regression"
    models = (LinearModel,)
    own_scale = 0.5  # between deviations, which let small noise rule, and one scale for all

    def __init__(self, fit_intercept: bool = True) -> None:
        self.fit_intercept = fit_intercept

    @property
    def _centring(self) -> bool:
        return self.fit_intercept

    def _label_bounds(self, schema: Schema) -> tuple[float, float]:
        return _label_bounds(schema)

    def result(self, state: MomentState) -> LinearModel:
        summary = self._summary(state)
        _, mean, second, noise, _ = summary
        floor = noise_norm(noise, len(mean) - 1)
        slope = solve(second[:-1, :-1], second[:-1, -1], floor)
        # Back from (x − centre)/scale, of features and label alike.
        coef = slope * state.scale[-1] / state.scale[:-1]
        middle = state.centre + state.scale * mean
        intercept = float(middle[-1] - middle[:-1] @ coef) if self.fit_intercept else 0.0
        errors = None
        if noise > 0:
            back = inverse(second[:-1, :-1], floor)
            errors = tuple(errors_of_line(state, summary, slope, back, self.fit_intercept).tolist())
        return LinearModel(coef, intercept, state.low, state.high, state.count, floor, errors)

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
    directions, inverses = _inverted(second, floor)
    found: Reals = directions @ (inverses * (directions.T @ products))
    return found


def inverse(second: Reals, floor: float) -> Reals:
    """What `solve` makes a solution of products with, as a matrix."""
    directions, inverses = _inverted(second, floor)
    return np.asarray((directions * inverses) @ directions.T)


def _inverted(second: Reals, floor: float) -> tuple[Reals, Reals]:
    """Directions, and the inverse of each one's raised eigenvalue."""
    values, directions = np.linalg.eigh(second)
    if floor > 0:
        return directions, 1.0 / np.maximum(values, floor)
    kept = values > NEGLIGIBLE * max(values[-1], 0.0)
    return directions, np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)


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
