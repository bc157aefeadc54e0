"""Answers of a model to new rows, and how far to trust each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.personal.learning.design import Design, aligned
from tacit.personal.learning.training import Trained
from tacit.personal.matrix import FeatureMatrix

__all__ = ["Prediction", "Trust", "predict"]

Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

MOST_COMPARED = 2000  # training rows, the latest: distances to more say no more
NEAR = 0.1  # the nearest tenth of all pairs of training rows are called similar
ODD = 0.25  # so many features out of the ordinary make a row unusual


@dataclass(frozen=True)
class Trust:
    """How far a row is from what the model has learned from.

    missing   features with nothing to say here, though they said something in training
    outside   features below or above all of training, or of a category that it did not have
    similar   how many training rows are like this one, of `compared`
    usual     how many are like a training row, typically
    words     all of it in plain words
    """

    missing: tuple[str, ...]
    outside: tuple[str, ...]
    similar: int
    usual: int
    compared: int
    words: str


@dataclass(frozen=True)
class Prediction:
    """The answer to one row.

    answer    the likeliest class in words, or the number
    chances   of each class, in the order of the report's classes; empty for numbers
    low, high the range of a number, which should hold it in `coverage` of all cases
    """

    key: str
    answer: str | float
    chances: tuple[float, ...]
    low: float | None
    high: float | None
    coverage: float | None
    trust: Trust


def predict(trained: Trained, matrix: FeatureMatrix) -> tuple[Prediction, ...]:
    """One prediction for each row, whether or not its label is known already."""
    if not matrix.rows:
        return ()
    answers, trust = trained.answers(matrix), _trust(trained, matrix)
    if trained.report.task == "number":
        found = [_number(trained, float(value)) for value in answers]
    else:
        found = [_class(trained, tuple(row.tolist())) for row in answers]
    return tuple(
        Prediction(key, *answer, each)
        for key, answer, each in zip(matrix.keys, found, trust, strict=True)
    )


Answer = tuple[str | float, tuple[float, ...], float | None, float | None, float | None]


def _number(trained: Trained, value: float) -> Answer:
    span = trained.report.range
    if span is None:
        return value, (), None, None, None
    return value, (), value + span.low, value + span.high, span.coverage


def _class(trained: Trained, chances: tuple[float, ...]) -> Answer:
    return trained.report.classes[int(np.argmax(chances))], chances, None, None, None


def _trust(trained: Trained, matrix: FeatureMatrix) -> list[Trust]:
    learned = aligned(trained.matrix, trained.matrix)
    asked, names = aligned(matrix, trained.matrix), trained.matrix.names
    missing = np.isnan(asked) & ~np.isnan(learned).any(axis=0)
    outside = _outside(asked, learned)
    similar, usual, compared = _similar(trained.fitted.design, asked, learned)
    return [
        _told(
            tuple(names[place] for place in np.flatnonzero(missing[row])),
            tuple(names[place] for place in np.flatnonzero(outside[row])),
            (int(similar[row]), usual, compared),
            len(names),
        )
        for row in range(len(asked))
    ]


def _outside(asked: Reals, learned: Reals) -> Flags:
    """Beyond all of training. An unseen category has the code −1, which is below them all."""
    least = np.where(np.isnan(learned), np.inf, learned).min(axis=0)
    most = np.where(np.isnan(learned), -np.inf, learned).max(axis=0)
    beyond: Flags = (asked < least) | (asked > most)
    return beyond


def _similar(design: Design, asked: Reals, learned: Reals) -> tuple[NDArray[np.int64], int, int]:
    """How many training rows lie near each row; how many near a training row; of how many."""
    near = design.dense(learned[-MOST_COMPARED:])
    between = _distances(near, near)
    pairs = between[np.triu_indices(len(near), 1)]
    radius = float(np.quantile(pairs, NEAR))
    usual = int(np.median((between <= radius).sum(axis=1) - 1))
    return (_distances(design.dense(asked), near) <= radius).sum(axis=1), usual, len(near)


def _distances(one: Reals, other: Reals) -> Reals:
    """Squared. Rounding may leave a trifle below zero."""
    squares: Reals = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.maximum(squares, 0.0)


def _told(
    missing: tuple[str, ...], outside: tuple[str, ...], counts: tuple[int, int, int], features: int
) -> Trust:
    similar, usual, compared = counts
    parts = [f"like {similar} of {compared} past examples (usually {usual})"]
    if outside:
        parts.append(f"{len(outside)} of {features} features are beyond what has been seen")
    if missing:
        parts.append(f"{len(missing)} of {features} are missing")
    odd = similar == 0 or len(outside) + len(missing) > ODD * features
    head = "Do not rely on it" if odd else "As far as the scores go"
    return Trust(missing, outside, similar, usual, compared, f"{head}: {'; '.join(parts)}.")
