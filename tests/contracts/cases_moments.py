"""Cases of programs that ask once for sums: regression, components, Bayes, counts, quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.decomposition import PCA as SklearnPCA
from sklearn.linear_model import LinearRegression as SklearnLinear
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from tacit.data import Batch, Column, Schema, read_batches
from tacit.programs.histogram import Histogram, HistogramModel
from tacit.programs.linear import LinearModel, LinearRegression
from tacit.programs.naive_bayes import NaiveBayes, NaiveBayesModel
from tacit.programs.pca import PCA, PCAModel
from tacit.programs.quantiles import Quantiles, QuantilesModel

GENERATOR = np.random.default_rng(11)
ROWS = 400
AGE = np.clip(GENERATOR.normal(45, 15, ROWS), 0, 100)
PRESSURE = np.clip(80 + AGE / 2 + GENERATOR.normal(0, 15, ROWS), 40, 240)
GROUP = GENERATOR.choice(["0", "A", "B"], ROWS, p=[0.5, 0.3, 0.2])
COST = np.clip(
    20 * AGE + 5 * PRESSURE + 300 * (GROUP == "B") + GENERATOR.normal(0, 90, ROWS), 0, 4e3
)
ILL = COST + GENERATOR.normal(0, 300, ROWS) > 1700

NUMBERS = (
    Column(name="age", type="number", bounds=(0, 100)),
    Column(name="pressure", type="number", bounds=(40, 240)),
)
BLOOD = Column(name="group", type="category", categories=("0", "A", "B"))
LABELS = {
    "cost": Column(name="cost", type="number", bounds=(0, 4000), role="label"),
    "ill": Column(name="ill", type="boolean", role="label"),
}
DATA = {"age": AGE, "pressure": PRESSURE, "group": GROUP, "cost": COST, "ill": ILL}


def case(name: str, program: Any, columns: tuple[Column, ...], textbook: Any) -> dict[str, Any]:
    schema = Schema(columns=columns)
    table = pa.table({c.name: DATA[c.name] for c in columns})
    encoded = program.encoder(schema).encode(Batch.concat(list(read_batches(table, schema))))
    found = {"name": name, "program": program, "schema": schema, "X": encoded.X, "y": encoded.y}
    return {**found, "textbook": lambda model: textbook(model, encoded.X, encoded.y)}


def least_squares(model: LinearModel, X: Any, y: Any) -> None:
    own = SklearnLinear().fit(X, y)
    assert np.allclose(model.predict(X), own.predict(X), rtol=0, atol=0.05)  # of 4000
    assert np.allclose(model.coef * 2000, own.coef_, rtol=1e-4, atol=0.05)


def components(model: PCAModel, X: Any, y: Any) -> None:
    own = SklearnPCA(2).fit(X)
    assert np.allclose(model.components, own.components_, atol=1e-5)
    assert np.allclose(model.explained_variance, own.explained_variance_, rtol=1e-5)
    assert np.allclose(model.explained_variance_ratio, own.explained_variance_ratio_, rtol=1e-5)
    assert np.allclose(model.singular_values, own.singular_values_, rtol=1e-5)
    assert np.allclose(model.transform(X), own.transform(X), atol=1e-4)


def bayes(model: NaiveBayesModel, X: Any, y: Any) -> None:
    gaussian = GaussianNB().fit(X[:, :2], y)
    discrete = CategoricalNB().fit(X[:, 2:].argmax(axis=1)[:, None], y)
    assert np.allclose(model.mean, gaussian.theta_, atol=1e-5)
    assert np.allclose(model.variance, gaussian.var_, rtol=1e-4)
    assert np.allclose(model.weights[:, 2:], discrete.feature_log_prob_[0])
    joint = gaussian.predict_joint_log_proba(X[:, :2])
    joint = joint + discrete.feature_log_prob_[0][:, X[:, 2:].argmax(axis=1)].T
    assert np.allclose(model.joint_log_likelihood(X), joint, atol=1e-3)


def counts(model: HistogramModel, X: Any, y: Any) -> None:
    own, edges = np.histogram(AGE, bins=20, range=(0, 100))
    assert np.array_equal(model.of("age"), own)
    assert np.allclose(model.edges("age"), edges)
    assert np.array_equal(model.of("group"), [np.sum(g == GROUP) for g in "0AB"])
    assert np.array_equal(model.of("ill"), [np.sum(~ILL), np.sum(ILL)])
    assert model.labels[2] == ("0", "A", "B")


def quantiles(model: QuantilesModel, X: Any, y: Any) -> None:
    for column, values in (("age", AGE), ("pressure", PRESSURE)):
        place = model.columns.index(column)
        own = np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")
        cell = (model.high[place] - model.low[place]) / 1024
        assert np.abs(model.values[place] - own).max() <= cell


CASES = [
    case("linear-regression", LinearRegression(), (*NUMBERS, BLOOD, LABELS["cost"]), least_squares),
    case("pca", PCA(2), (*NUMBERS, BLOOD), components),
    case("naive-bayes", NaiveBayes(), (*NUMBERS, BLOOD, LABELS["ill"]), bayes),
    case("histogram", Histogram(), (*NUMBERS, BLOOD, LABELS["ill"]), counts),
    case("quantiles", Quantiles(), (*NUMBERS, BLOOD), quantiles),
]
