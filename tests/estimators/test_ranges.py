"""Estimators without bounds: found or warned of, for features and label, at the promise's cost."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import datasets

import tacit.estimators as room
from tacit.data import Schema
from tacit.errors import RangeWarning

TOYS = ("iris", "wine", "breast_cancer", "digits", "diabetes")


def twonorm(rows: int = 5_000) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, rows)
    return generator.normal(size=(rows, 20)) + np.where(y, 1, -1)[:, None] * 2 / 20**0.5, y


@pytest.mark.parametrize("name", ["LogisticRegression", "NaiveBayes"])
def test_normal_features_need_no_bounds(name: str) -> None:
    X, y = twonorm()
    model = getattr(room, name)(random_state=1).fit(X[:4000], y[:4000])
    assert model.range_found_.all()
    assert model.score(X[4000:], y[4000:]) > 0.95
    for column in model.schema_.features:
        assert -9 < column.bounds[0] < -1.2
        assert 1.2 < column.bounds[1] < 9
    assert 0.999 < model.verify().epsilon <= 1.0


def test_the_label_of_a_regression_has_a_range_too() -> None:
    X, y = datasets.make_friedman1(10_000, 10, noise=1.0, random_state=0)
    model = room.LinearRegression(random_state=1).fit(X, y)
    assert model.label_range_found_
    assert model.score(X, y) > 0.6
    low, high = model.schema_.label.bounds
    assert np.mean((y >= low) & (y <= high)) > 0.97
    with pytest.warns(RangeWarning, match="11 of 11 columns"):
        few = room.LinearRegression(random_state=1).fit(X[:50], y[:50])
    assert not few.label_range_found_
    assert "'y'" in few.certificate_.remarks[1]


@pytest.mark.parametrize("table", [False, True])
def test_the_warning_points_at_the_line_that_called_fit(table: bool) -> None:
    frame = {"a": np.full(200, 3.0), "b": np.full(200, 4.0)}
    schema = Schema.from_dict(
        {"columns": {name: {"type": "number", "bounds": "private"} for name in frame}}
    )
    model = room.KMeans(schema=schema if table else None, random_state=1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(frame if table else np.column_stack([*frame.values()]))
    assert {w.filename for w in told} == {__file__}
    assert any(w.category is RangeWarning for w in told)
    found, missed = model.certificate_.remarks
    assert found.startswith("Ranges of 2 columns were searched for")  # found or not
    assert missed.count("'") == 4  # both are named


@pytest.mark.parametrize("name", TOYS)
def test_no_toy_set_falls_back_in_silence(name: str) -> None:
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    kind = room.LinearRegression if name == "diabetes" else room.NaiveBayes
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = kind(random_state=1).fit(X, y)
    missed = [c.name for c in model.schema_.used if c.range_found is False]
    words = [str(w.message) for w in told if w.category is RangeWarning]
    assert bool(missed) == bool(words)
    assert len(model.range_found_) == X.shape[1]
    if missed:
        assert missed[0] in words[0]
        assert "bounds=" in words[0]
        assert repr(missed[0]) in model.certificate_.remarks[1]


def test_the_model_is_kept_although_a_warning_is_an_error() -> None:
    """It is paid for."""
    model = room.PCA(random_state=1)
    X = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(RangeWarning):  # as warnings are in these tests
        model.fit(X)
    assert model.verify().epsilon > 0


@pytest.mark.parametrize("name", ["PCA", "LinearRegression"])
def test_some_bounds_are_stated_and_others_found(name: str) -> None:
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.normal(290, 5, 4000), generator.uniform(0, 1, 4000)])
    columns = {
        "kelvin": {"type": "number", "bounds": "private"},
        "share": {"type": "number", "bounds": [0, 1]},
    }
    schema = Schema.from_dict({"columns": columns})
    y = X @ [1.0, 30.0]
    model = getattr(room, name)(schema=schema, random_state=1)
    model.fit(X, y) if name == "LinearRegression" else model.fit(X)
    low, high = model.schema_.column("kelvin").bounds
    assert 200 < low < 280
    assert 300 < high < 400
    share = model.schema_.column("share").bounds
    if name == "PCA":  # distances are those of X: one width for all
        assert share[1] - share[0] == pytest.approx(high - low)
    else:
        assert share == (0.0, 1.0)
        assert model.score(X, y) > 0.8


def test_without_privacy_bounds_are_read_off_and_known() -> None:
    X, y = twonorm(300)
    model = room.LogisticRegression(epsilon=math.inf).fit(X, y)
    assert model.range_found_.all()
    assert model.schema_.features[0].bounds == (X[:, 0].min(), X[:, 0].max())


@pytest.mark.parametrize("size", [1e13, 1e15, 1e18, 1e100])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_values_beyond_what_is_told_apart_are_not_called_found(size: float, shift: float) -> None:
    """Nanoseconds since 1970, say: a range that stops short of the records is a guess."""
    x = (np.random.default_rng(0).normal(shift, 1, 5000) * size)[:, None]
    with pytest.warns(RangeWarning, match=r"10\^12"):
        model = room.LinearRegression(random_state=1).fit(x, x[:, 0])
    assert not model.range_found_.any()
    assert model.label_range_found_ is False
    assert any("guessed" in remark for remark in model.certificate_.remarks)
