"""Naive Bayes on mixed tables, from noisy counts and sums for each class (proof: naive_bayes.md).

One joint release: how many records of each class, how many of them have each value of each
categorical column, and for numbers x in [−1, 1] the sums of x and of 1 − x². A record adds at most
1 to the squared length for each column, numbers included, since x² + (1 − x²)² ≤ 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.data.schema import Column, Schema
from tacit.errors import SchemaError
from tacit.privacy.bound import Norm, round_up
from tacit.privacy.promise import Promise
from tacit.programs.features import FEATURE_STEP
from tacit.programs.files import OPTIONAL
from tacit.programs.groups import Groups
from tacit.programs.layout import layout, owners
from tacit.programs.moments import noise_std, seen_count
from tacit.programs.prediction import Prediction, class_names, within
from tacit.programs.program import Block, Program, Query, Stage, norm_for

__all__ = ["NaiveBayes", "NaiveBayesModel", "NaiveBayesState"]

Reals = NDArray[np.float64]
Places = NDArray[np.int64]
SLACK = 1 + Fraction(1, 2**14)  # rounding 1 − x² to the grid lengthens no record beyond the bound
SMOOTHING = 1.0  # records of each value that are taken for granted, as in scikit-learn
LEAST_VARIANCE = 1e-9


@dataclass(frozen=True, slots=True)
class NaiveBayesState:
    """classes   how many
    owner     the column of each coordinate
    numbers   the coordinates that are numbers; all others count values
    missing   for each number, the coordinate that says it is missing, or −1
    open      for each column, whether one of its values has no coordinate (false; not missing)
    noise     standard deviation of the noise on each released number
    total     one row per class: count, each coordinate's sum, each number's sum of 1 − x²
    """

    varies: ClassVar[tuple[str, ...]] = ()
    grows: ClassVar[tuple[str, ...]] = ("total",)

    classes: int
    owner: Places
    numbers: Places
    missing: Places
    open: NDArray[np.bool_]
    norm: str
    private: bool
    noise: float
    total: Reals

    @property
    def statistics(self) -> int:
        """Per class."""
        return 1 + len(self.owner) + len(self.numbers)

    @property
    def step(self) -> float:
        return FEATURE_STEP if self.private else 2.0**-30

    @property
    def block(self) -> Block:
        # One joint block divides the promise equally over columns. Giving columns with many cells
        # more, as the least total error of all counts would have it, did not predict better
        # (naive_bayes.md).
        columns, numbers = len(self.open), len(self.numbers)
        if self.norm == Norm.L1:  # |x| + 1 − x² ≤ 5/4
            bound = round_up((1 + columns + Fraction(numbers, 4)) * SLACK)
        else:
            bound = round_up(Fraction(math.sqrt(1 + columns)) * SLACK)
        length = self.classes * self.statistics
        return Block("counts", length, Norm(self.norm), bound, Fraction(self.step))


@dataclass(frozen=True, slots=True)
class NaiveBayesModel:
    """One row per class, in the order of the label's categories.

    weights          what a 1 in a coordinate adds to the log-likelihood: its log-probability, or in
                     columns of which one value has no coordinate, its log-odds against that value
    offset           the log-probabilities of those values without a coordinate, added up
    mean, variance   of the numbers, one column for each of `numbers`
    missing          the coordinate that says a number is missing, or −1
    count            the noisy number of records; None without noise, where that hides it, and in
                     models of before
    """

    class_log_prior: Reals
    weights: Reals
    offset: Reals
    mean: Reals
    variance: Reals
    numbers: Places
    missing: Places
    count: float | None = field(default=None, metadata=OPTIONAL)

    def joint_log_likelihood(self, X: Reals) -> Reals:
        """log P(class, record), one row per record."""
        X = within(X)
        found = self.class_log_prior + self.offset + X @ self.weights.T
        present = _present(X, self.missing)
        for k in range(len(self.class_log_prior)):
            far = (X[:, self.numbers] - self.mean[k]) ** 2 / self.variance[k]
            each = -0.5 * (np.log(2.0 * math.pi * self.variance[k]) + far)
            found[:, k] += (each * present).sum(axis=1)
        return found

    def predict_log_proba(self, X: Reals) -> Reals:
        joint = self.joint_log_likelihood(X)
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)

    def predict(self, X: Reals) -> Places:
        """The place of the likeliest class among the label's categories."""
        return np.asarray(self.joint_log_likelihood(X).argmax(axis=1), dtype=np.int64)


class NaiveBayes(Program[NaiveBayesState, NaiveBayesModel]):
    """Values of a column are independent of other columns within a class; numbers are Gaussian."""

    name = "naive-bayes"
    states = (NaiveBayesState,)
    models = (NaiveBayesModel,)

    def init(self, schema: Schema, promise: Promise) -> NaiveBayesState:
        classes, places = _classes(schema), layout(schema)
        measured = [(c, place.start) for c, place in places if _is_measured(c)]
        state = NaiveBayesState(
            classes=classes,
            owner=owners(schema),
            numbers=np.array([start for _, start in measured], dtype=np.int64),
            missing=np.array(
                [start + 1 if c.when_missing == "category" else -1 for c, start in measured],
                dtype=np.int64,
            ),
            open=np.array([_is_measured(c) or c.type == "boolean" for c, _ in places]),
            norm=norm_for(promise),
            private=promise.is_private,
            noise=0.0,
            total=np.zeros((0, 0)),
        )
        return replace(state, noise=noise_std(promise, state.block))

    def plan(self, first: NaiveBayesState) -> Sequence[Stage]:
        return [Stage(Query((first.block,)))]

    def map(self, batch: Encoded, state: NaiveBayesState, query: Query) -> Sequence[Groups]:
        assert batch.y is not None  # the schema has a label
        return [Groups(batch.y, state.classes, _statistics(batch.X, state))]

    def reduce(self, total: Reals, state: NaiveBayesState) -> NaiveBayesState:
        return replace(state, total=total.reshape(state.classes, state.statistics))

    def result(self, state: NaiveBayesState) -> NaiveBayesModel:
        counts = np.maximum(state.total[:, 0], 1.0)
        weights, offset = _values(counts, state)
        mean, variance = _gaussians(counts, state)
        prior = np.log(counts / counts.sum())
        count = seen_count(float(state.total[:, 0].sum()), state.noise * math.sqrt(state.classes))
        return NaiveBayesModel(
            prior, weights, offset, mean, variance, state.numbers, state.missing, count
        )

    def predict(self, model: NaiveBayesModel, X: Reals) -> Prediction:
        return Prediction("class", model.predict(X), np.exp(model.predict_log_proba(X)))


def _values(counts: Reals, state: NaiveBayesState) -> tuple[Reals, Reals]:
    """Weights and offset of the model, from the noisy counts of values.

    Counts get one standard deviation of their noise as further smoothing: a value whose count is
    mostly noise is then about as likely as any other.
    """
    smoothing = SMOOTHING + state.noise
    weights = np.zeros((state.classes, len(state.owner)))
    offset = np.zeros(state.classes)
    for column, is_open in enumerate(state.open):
        cells = np.flatnonzero(state.owner == column)
        cells = cells[~np.isin(cells, state.numbers)]
        if not cells.size:
            continue
        seen = np.maximum(state.total[:, 1 + cells], 0.0)
        rest = np.maximum(counts[:, None] - seen.sum(axis=1, keepdims=True), 0.0)
        table = np.hstack([seen, rest]) if is_open else seen
        share = np.log(table + smoothing)
        share -= np.logaddexp.reduce(share, axis=1, keepdims=True)
        if is_open:
            offset += share[:, -1]
            share = share[:, :-1] - share[:, -1:]
        weights[:, cells] = share
    return weights, offset


def _gaussians(counts: Reals, state: NaiveBayesState) -> tuple[Reals, Reals]:
    """Means and variances; a variance is not below what the noise alone could make of none."""
    absent = np.where(state.missing >= 0, state.total[:, 1 + state.missing], 0.0)
    present = np.maximum(counts[:, None] - absent, 1.0)
    mean = state.total[:, 1 + state.numbers] / present
    second = 1.0 - state.total[:, 1 + len(state.owner) :] / present
    if state.private:
        mean, second = np.clip(mean, -1.0, 1.0), np.clip(second, 0.0, 1.0)
    return mean, np.maximum(second - mean**2, state.noise / present + LEAST_VARIANCE)


def _statistics(X: Reals, state: NaiveBayesState) -> Reals:
    """1, every coordinate, and 1 − x² of the numbers that are there: whatever the class; in steps.

    Beyond its public bounds nothing is learned from a value.
    """
    rows, width = X.shape
    found = np.empty((rows, 1 + width + len(state.numbers)))
    own, squares = found[:, 1 : 1 + width], found[:, 1 + width :]
    found[:, 0] = 1.0
    own[:] = np.nan_to_num(np.clip(X, -1.0, 1.0), nan=0.0) if state.private else X
    everything = len(state.numbers) == width
    np.square(own if everything else own[:, state.numbers], out=squares)
    np.subtract(1.0, squares, out=squares)
    if (state.missing >= 0).any():
        squares *= _present(own, state.missing)
    found *= 1 / state.step
    return np.rint(found, out=found) if state.private else found


def _present(X: Reals, missing: Places) -> Reals:
    """1 where a number is there, 0 where it is missing."""
    return np.where((missing >= 0) & (X[:, missing] > 0.5), 0.0, 1.0)


def _is_measured(column: Column) -> bool:
    return column.is_number and column.edges is None


def _classes(schema: Schema) -> int:
    label = schema.label
    classes = () if label is None else class_names(label)
    if not classes:
        raise SchemaError(
            "naive Bayes needs classes: give a category, a boolean or a number with edges "
            'role = "label".'
        )
    return len(classes)
