"""What must be public is listed, fit by fit: no more and no less."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

sys.path.insert(0, str(Path(__file__).parent))

from fits import NAMES, fit, made, table

from tacit.data import Schema
from tacit.errors import InputError, RangeWarning, UsageError
from tacit.estimators import KMeans, LogisticRegression, NaiveBayes
from tacit.privacy import Ledger

NAMED = ["age", "height", "y"]  # as the label is called where nobody named it
CLASSIFIERS = ("LogisticRegression", "NaiveBayes")


def listed(estimator: Any, words: str) -> bool:
    return any(words in text for text in estimator.certificate_.conditions)


@pytest.mark.parametrize("name", NAMES)
class TestEveryEstimator:
    def test_columns_preprocessing_and_parameters(self, name: str) -> None:
        fitted = fit(name)
        assert listed(fitted, "The number of columns is public")
        assert listed(fitted, "before the fit")
        assert listed(fitted, "parameters were chosen without")
        assert listed(fitted, "bounds of the columns") is (name != "FrequentItemsets")
        assert listed(fitted, "bounds of the label") is (name == "LinearRegression")
        assert listed(fitted, "read off the labels") is (name in CLASSIFIERS)
        assert fitted.verify().conditions == fitted.certificate_.conditions

    def test_names_of_columns(self, name: str) -> None:
        X, y = table(name)
        fitted = made(name).fit(pa.table(dict(zip(NAMED, X.T, strict=True))), y)
        assert fitted.feature_names_in_.tolist() == NAMED
        assert listed(fitted, "columns and their names are public")
        assert [c.name for c in fitted.schema_.features] == NAMED
        fitted.verify()

    def test_without_a_promise_nothing_needs_to_be_public(self, name: str) -> None:
        assert fit(name, epsilon=math.inf).certificate_.conditions == ()

    def test_a_ledger_counts_fits_and_no_scores(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        Ledger(path).allow("data", "record", 1.0, 1e-5)
        remarks = fit(name, ledger=str(path)).certificate_.remarks
        assert any("grid search" in text and "covers them" in text for text in remarks)
        assert not any("grid search" in text for text in fit(name).certificate_.remarks)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "FrequentItemsets"])
def test_bounds_that_were_learned_are_no_condition(name: str) -> None:
    bounds = {"label_bounds": None} if name == "LinearRegression" else {}
    with pytest.warns(RangeWarning, match="x0, x1, x2"):
        fitted = fit(name, bounds=None, **bounds)
    assert not listed(fitted, "stated bounds")
    assert not fitted.range_found_.any()


def test_the_choice_of_a_grid_search_is_not_covered(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).allow("data", "record", 7.0, 1e-4)
    search = GridSearchCV(made("KMeans", ledger=str(path)), {"n_clusters": [2, 3]}, cv=3)
    search.fit(table("KMeans")[0])
    assert Ledger(path).balance("data", "record").spent.epsilon == 7
    warnings = search.best_estimator_.verify().warnings
    assert any("grid search" in text for text in warnings)


@pytest.mark.parametrize("name", CLASSIFIERS)
class TestClasses:
    def test_stated_classes_do_not_depend_on_the_labels(self, name: str) -> None:
        X, y = table(name)
        assert y is not None
        estimator = made(name, classes=["yes", "no", "never"])
        for labels in (y, np.full(len(y), "yes"), np.roll(y, 1)):
            fitted = clone(estimator).fit(X, labels)
            assert fitted.classes_.tolist() == ["never", "no", "yes"]
            assert fitted.classes_.dtype == "<U5"
            assert fitted.predict_proba(X).shape == (len(X), 3)
            assert not listed(fitted, "read off the labels")
            assert listed(fitted, "classes")

    def test_parameters_are_scikit_learns(self, name: str) -> None:
        classes = ["no", "yes"]
        estimator = made(name, classes=classes)
        assert estimator.get_params()["classes"] is classes
        assert clone(estimator).get_params()["classes"] == classes

    @pytest.mark.parametrize("kind", ["classes", "schema"])
    def test_a_label_outside_is_refused_and_not_named(self, name: str, kind: str) -> None:
        X, y = table(name)
        assert y is not None
        y = y.astype("<U20")
        y[3] = "a secret diagnosis"
        stated: dict[str, Any] = {"classes": ["no", "yes"]}
        if kind == "schema":
            stated = {"schema": schema({"type": "category", "categories": ["no", "yes"]})}
        with pytest.raises(InputError, match="none of the 2 classes") as refused:
            made(name, **stated).fit(X, y)
        assert "secret" not in str(refused.value)

    @pytest.mark.parametrize(
        "classes", [[], ["one"], ["a", "a"], "ab", 3, [["a"], ["b"]], [None, "a"]]
    )
    def test_impossible_classes(self, name: str, classes: Any) -> None:
        with pytest.raises(UsageError, match="two or more different labels"):
            fit(name, classes=classes)

    @pytest.mark.parametrize(
        ("label", "values", "classes"),
        [
            ({"type": "category", "categories": ["no", "yes", "?"]}, ["no", "yes"], None),
            ({"type": "category", "categories": ["2", "1", "3"]}, [1, 2], [2, 1, 3]),
            ({"type": "category", "categories": ["1", "2"]}, [1.0, 2.0], [1.0, 2.0]),
            ({"type": "boolean"}, [False, True], [False, True]),
            ({"type": "boolean", "categories": ["well", "ill"]}, [0, 1], [0, 1]),
            ({"type": "boolean", "categories": ["well", "ill"]}, ["ill", "well"], None),
        ],
    )
    def test_a_schema_states_the_classes(
        self, name: str, label: dict[str, Any], values: list[Any], classes: list[Any] | None
    ) -> None:
        X, _ = table(name)
        y = np.array(values)[(X[:, 0] > 0).astype(int)]
        fitted = made(name, epsilon=50.0, schema=schema(label)).fit(X, y)
        assert fitted.classes_.tolist() == (classes or label["categories"])
        assert not listed(fitted, "read off the labels")
        assert listed(fitted, "classes")
        assert fitted.schema_.label.name == "outcome"
        assert fitted.score(X, y) > 0.8
        alone = made(name, schema=schema(label)).fit(X, np.full(len(X), values[0]))
        assert alone.classes_.tolist() == fitted.classes_.tolist()

    def test_a_schema_without_classes_leaves_them_to_y(self, name: str) -> None:
        fitted = fit(name, schema=schema({"type": "number", "bounds": [0, 1]}))
        assert listed(fitted, "read off the labels")


def schema(label: dict[str, Any]) -> Schema:
    columns = {f"c{i}": {"type": "number", "bounds": [-1, 1]} for i in range(3)}
    return Schema.from_dict({"columns": {**columns, "outcome": {**label, "role": "label"}}})


def test_estimators_without_classes_have_no_such_parameter() -> None:
    assert "classes" not in KMeans().get_params()
    assert "classes" in LogisticRegression().get_params()
    assert "classes" in NaiveBayes().get_params()
