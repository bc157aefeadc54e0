"""Steps that read the records without noise are named, in warnings and in certificates."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

sys.path.insert(0, str(Path(__file__).parent))

from fits import made, table

from tacit.errors import PreprocessingWarning
from tacit.estimators import PCA, LinearRegression, LogisticRegression
from tacit.estimators.preprocessing import is_standardised

X, Y = table("LogisticRegression")


def model(**parameters: Any) -> LogisticRegression:
    return made("LogisticRegression", **parameters)


def named(fitted: Any) -> list[str]:
    return [text for text in fitted.certificate_.conditions if "NOT covered" in text]


LEARNING = [
    ([StandardScaler()], ["StandardScaler"]),
    ([MinMaxScaler()], ["MinMaxScaler"]),
    ([SimpleImputer(), FunctionTransformer()], ["SimpleImputer"]),
    ([SelectKBest(k=2)], ["SelectKBest"]),
    ([make_pipeline(Normalizer(), StandardScaler())], ["StandardScaler"]),
    ([FeatureUnion([("a", StandardScaler()), ("b", Normalizer())])], ["StandardScaler"]),
    (
        [ColumnTransformer([("a", MinMaxScaler(), [0]), ("b", "passthrough", [1])])],
        ["MinMaxScaler"],
    ),
    ([OneHotEncoder(sparse_output=False, handle_unknown="ignore")], ["OneHotEncoder"]),
]
PUBLIC = [
    [FunctionTransformer()],
    [Normalizer()],
    [PolynomialFeatures(1, include_bias=False)],
    [SimpleImputer(strategy="constant", fill_value=0.0)],
    [PCA(bounds=(-1, 1))],
    ["passthrough"],
]


@pytest.mark.parametrize(("steps", "names"), LEARNING)
def test_a_fitted_step_is_warned_of_and_certified(steps: list[Any], names: list[str]) -> None:
    with pytest.warns(PreprocessingWarning, match=names[0]) as told:
        fitted = make_pipeline(*steps, model()).fit(X, Y)
    (warned,) = [w for w in told if w.category is PreprocessingWarning]
    assert "tacit.estimators.Scaler" in str(warned.message)
    (condition,) = named(fitted[-1])
    assert all(name in condition for name in names)
    assert fitted[-1].verify().conditions[-1] == condition


@pytest.mark.parametrize("steps", PUBLIC)
def test_a_public_step_is_no_matter(steps: list[Any]) -> None:
    steps = [(f"step{i}", step) for i, step in enumerate(steps)]
    fitted = Pipeline([*steps, ("model", model())]).fit(X, Y)
    assert named(fitted[-1]) == []


def test_the_outer_pipeline_counts_too() -> None:
    inner = make_pipeline(FunctionTransformer(), model())
    with pytest.warns(PreprocessingWarning, match="StandardScaler"):
        fitted = make_pipeline(StandardScaler(), inner).fit(X, Y)
    assert len(named(fitted[-1][-1])) == 1


def test_a_private_step_in_the_middle_knows_what_was_before_it() -> None:
    steps = [StandardScaler(), PCA(bounds=(-4, 4)), MinMaxScaler()]
    with pytest.warns(PreprocessingWarning) as told:
        fitted = make_pipeline(*steps, model()).fit(X, Y)
    assert "MinMaxScaler" not in named(fitted[1])[0]
    assert "MinMaxScaler" in named(fitted[-1])[0]
    assert len([w for w in told if w.category is PreprocessingWarning]) == 2


def test_a_scaled_target() -> None:
    target = X @ [1.0, -2.0, 3.0]
    private = LinearRegression(1.0, bounds=(-1, 1), label_bounds=(-4, 4))
    scaled = TransformedTargetRegressor(private, transformer=StandardScaler())
    with pytest.warns(PreprocessingWarning, match="the target"):
        fitted = scaled.fit(X, target)
    assert "StandardScaler" in named(fitted.regressor_)[0]


@pytest.mark.filterwarnings("ignore::tacit.errors.PreprocessingWarning")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_in_searches_and_other_processes(n_jobs: int | None) -> None:
    pipeline = make_pipeline(StandardScaler(), model())
    found = cross_validate(pipeline, X, Y, cv=2, n_jobs=n_jobs, return_estimator=True)
    assert all(named(fitted[-1]) for fitted in found["estimator"])
    grid = {"logisticregression__epsilon": [1.0, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs).fit(X, Y)
    assert named(search.best_estimator_[-1])


def test_outside_of_a_pipeline_the_numbers_give_it_away() -> None:
    scaled = StandardScaler().fit_transform(X)
    with pytest.warns(PreprocessingWarning, match="mean 0 and deviation 1"):
        fitted = model().fit(scaled, Y)
    assert named(fitted) == []  # a certificate says nothing that was read off the records


def test_a_warning_that_is_an_error_spends_nothing(tmp_path: Path) -> None:
    from tacit.privacy import Ledger

    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("data", "record", 1.0, 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PreprocessingWarning):
            make_pipeline(StandardScaler(), model(ledger=ledger)).fit(X, Y)
    assert ledger.balance("data", "record").spent.epsilon == 0


def test_without_privacy_there_is_nothing_to_warn_of() -> None:
    fitted = make_pipeline(StandardScaler(), model(epsilon=math.inf)).fit(X, Y)
    assert fitted[-1].certificate_.conditions == ()


@pytest.mark.parametrize(
    ("numbers", "standard"),
    [
        (X, False),
        (np.zeros((50, 2)), False),
        (np.array([[-1.0], [1.0]]), False),  # too few to tell
        (np.tile([[-1.0], [1.0]], (10, 1)), True),
        (StandardScaler().fit_transform(X) + 1e-6, False),
        (np.column_stack([StandardScaler().fit_transform(X), np.zeros(len(X))]), True),
        (np.full((20, 1), 1e300), False),
    ],
)
def test_what_looks_standardised(numbers: Any, standard: bool) -> None:
    assert is_standardised(numbers) is standard
