"""Scaler and Imputer: public numbers cost nothing, private ones have a certificate."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from tacit.errors import UsageError, UtilityWarning
from tacit.estimators import Imputer, LogisticRegression, Scaler
from tacit.privacy import Ledger

DRAW = np.random.default_rng(0)
X = DRAW.normal([5.0, -20.0], [2.0, 6.0], (4000, 2))
GAPS = np.where(DRAW.random(X.shape) < 0.3, np.nan, X)
Y = X[:, 0] > 5


@pytest.mark.parametrize("bounds", [None, ([-10, -60], [20, 20])])
def test_private_medians_and_deviations(bounds: Any) -> None:
    scaler = Scaler(epsilon=2.0, bounds=bounds).fit(GAPS)
    assert scaler.center_ == pytest.approx([5, -20], abs=0.6)
    assert scaler.scale_ == pytest.approx([2, 6], rel=0.15)
    scaled = scaler.transform(GAPS)
    assert np.isnan(scaled).tolist() == np.isnan(GAPS).tolist()
    assert scaler.inverse_transform(scaled) == pytest.approx(GAPS, nan_ok=True)
    imputer = Imputer(epsilon=2.0, bounds=bounds).fit(GAPS)
    filled = imputer.transform(GAPS)
    assert not np.isnan(filled).any()
    assert (filled[~np.isnan(GAPS)] == GAPS[~np.isnan(GAPS)]).all()
    assert np.unique(filled[np.isnan(GAPS)]) == pytest.approx(np.sort(imputer.statistics_))
    for fitted in (scaler, imputer):
        assert fitted.verify().epsilon <= 2.0 * (1 + 1e-6)
        assert fitted.certificate_.promise.epsilon == 2


def test_what_is_stated_costs_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("data", "record", 1.0, 1e-5)
    scaler = Scaler(center=[5, -20], scale=2, ledger=ledger).fit(GAPS)
    assert scaler.transform([[7.0, -20.0]]).tolist() == [[1.0, 0.0]]
    imputer = Imputer(values=3, ledger=ledger).fit(GAPS)
    assert imputer.transform([[np.nan, 1.0]]).tolist() == [[3.0, 1.0]]
    assert ledger.balance("data", "record").spent.epsilon == 0
    for stated in (scaler, imputer):
        with pytest.raises(AttributeError, match="not fitted"):
            _ = stated.certificate_
    half = Scaler(epsilon=1.0, center=0, ledger=ledger, bounds=(-60, 20), random_state=1).fit(GAPS)
    assert half.center_.tolist() == [0, 0]
    assert ledger.balance("data", "record").spent.epsilon == 1


@pytest.mark.parametrize(
    "wrong",
    [
        Scaler(center="x", scale=1),
        Scaler(center=[1, 2, 3], scale=1),
        Scaler(center=0, scale=0),
        Scaler(center=math.nan, scale=1),
        Imputer(values=[1] * 5),
        Imputer(values=math.inf),
    ],
)
def test_what_cannot_be_stated(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"must be"):
        clone(wrong).fit(X)


def test_a_pipeline_of_private_steps_has_no_further_condition(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("data", "record", 3.0, 1e-5)
    steps = [
        Imputer(ledger=ledger, random_state=1),
        Scaler(ledger=ledger, random_state=2),
        LogisticRegression(bounds=(-4, 4), ledger=ledger, random_state=3),
    ]
    pipeline = make_pipeline(*steps).fit(GAPS, Y)
    assert pipeline.score(GAPS, Y) > 0.7
    assert float(ledger.balance("data", "record").added.epsilon) == 3
    for step in (pipeline[0], pipeline[1], pipeline[-1]):
        assert not any("NOT covered" in text for text in step.certificate_.conditions)


def test_names_come_out_as_they_went_in() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    scaler = Scaler(bounds=(-60, 20), random_state=1).set_output(transform="pandas").fit(frame)
    assert scaler.transform(frame).columns.tolist() == ["a", "b"]


def test_a_constant_column_keeps_the_width_of_its_bounds() -> None:
    scaler = Scaler(epsilon=math.inf, bounds=(0, 10)).fit(np.full((50, 1), 10.0))
    assert 0 < scaler.scale_[0] <= 10


def test_saved_and_loaded(tmp_path: Path) -> None:
    scaler = Scaler(bounds=(-60, 20)).fit(X)
    scaler.save(tmp_path / "scaler")
    assert Scaler.load(tmp_path / "scaler").transform(X) == pytest.approx(scaler.transform(X))


@pytest.mark.parametrize("kind", [Scaler, Imputer])
def test_a_sparse_matrix_is_refused_by_name(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        kind(bounds=(0, 1)).fit(sparse.csr_matrix(np.eye(5)))


@pytest.mark.parametrize("kind", [Scaler, Imputer])
def test_a_column_without_values_is_named(kind: type[Scaler | Imputer]) -> None:
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    X[:, 1] = np.nan
    with pytest.warns(UtilityWarning, match="Columns x1 have few values or none") as warned:
        kind(1.0, bounds=(-4, 4)).fit(X)
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        kind(1.0, bounds=(-4, 4)).fit(X[:, [0, 2]])
