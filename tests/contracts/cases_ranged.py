"""Programs whose columns' ranges are found first: with public bounds, all else is the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data import Schema
from tacit.programs.kmeans import KMeans, KMeansModel
from tacit.programs.linear import LinearModel, LinearRegression
from tacit.programs.naive_bayes import NaiveBayes, NaiveBayesModel
from tacit.programs.ranged import Ranged

generator = np.random.default_rng(4)
ROWS = 300
X = np.column_stack(
    [
        generator.normal(290, 8, ROWS),
        generator.uniform(-0.2, 0.9, ROWS),  # public bounds: encoded already
        generator.exponential(3.0, ROWS),
        np.zeros(ROWS),
    ]
)
absent = generator.random(ROWS) < 0.1
X[absent, 2], X[absent, 3] = 0.0, 1.0
y = 5.0 * X[:, 0] - 40.0 * X[:, 1] + generator.normal(0, 3, ROWS)
classes = (y > np.median(y)).astype(np.int32)


def schema(label: dict[str, Any] | None) -> Schema:
    columns: dict[str, Any] = {
        "kelvin": {"type": "number", "bounds": "private"},
        "known": {"type": "number", "bounds": [-1, 1]},
        "wait": {"type": "number", "bounds": "private", "when_missing": "category"},
    }
    return Schema.from_dict({"columns": columns if label is None else {**columns, "y": label}})


def line(model: LinearModel) -> None:
    assert model.low <= y.min()
    assert model.high >= y.max()
    plain = np.column_stack([np.ones(ROWS), X])
    expected = plain @ np.linalg.lstsq(plain, y, rcond=None)[0]
    scale = (model.high - model.low) / 2
    assert model.low < model.to_label(np.array([model.intercept]))[0] < model.high + scale
    assert np.corrcoef(expected, y)[0, 1] > 0.9


def bayes(model: NaiveBayesModel) -> None:
    assert np.allclose(np.exp(model.class_log_prior), np.bincount(classes) / ROWS, atol=0.01)
    assert (np.abs(model.mean) <= 1).all()


def centres(model: KMeansModel) -> None:
    assert (np.abs(model.centres) <= 1 + 1e-9).all()
    assert np.isclose(model.counts.sum(), ROWS)


LABEL = {"type": "number", "bounds": "private", "role": "label"}
CLASS = {"type": "category", "categories": ["no", "yes"], "role": "label"}
CASES = [
    {
        "name": "ranged linear",
        "program": Ranged(LinearRegression()),
        "schema": schema(LABEL),
        "X": X,
        "y": y,
        "plain": True,
        "textbook": line,
    },
    {
        "name": "ranged naive bayes",
        "program": Ranged(NaiveBayes()),
        "schema": schema(CLASS),
        "X": X,
        "y": classes,
        "plain": True,
        "textbook": bayes,
    },
    {
        "name": "ranged k-means",
        "program": Ranged(KMeans(2, rounds=3), uniform=True),
        "schema": schema(None),
        "X": X,
        "y": None,
        "plain": True,
        "textbook": centres,
    },
]
