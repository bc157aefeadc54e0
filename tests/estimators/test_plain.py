"""Models as plain scikit-learn objects: the same predictions, and no trace of tacit inside."""

from __future__ import annotations

import math
import pickle
import pickletools
from typing import Any

import numpy as np
import pytest
from sklearn.utils.validation import check_is_fitted

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data import Column, Schema
from tacit.data.records import TableRecords
from tacit.errors import UsageError
from tacit.estimators.plain import to_sklearn
from tacit.privacy import Promise
from tacit.programs.histogram import Histogram
from tacit.programs.kmeans import KMeans
from tacit.programs.linear import LinearRegression
from tacit.programs.logistic import Logistic
from tacit.programs.mixture import Mixture
from tacit.programs.model_file import SavedModel
from tacit.programs.naive_bayes import NaiveBayes
from tacit.programs.pca import PCA

GENERATOR = np.random.default_rng(17)
ROWS = 600
AGE = GENERATOR.uniform(20, 90, ROWS)
DOSE = np.clip(AGE / 10 + GENERATOR.normal(0, 2, ROWS), 0, 20)
GROUP = np.where(GENERATOR.random(ROWS) < AGE / 100, "b", GENERATOR.choice(["a", "c"], ROWS))
TABLE = {
    "age": AGE,
    "dose": DOSE,
    "group": GROUP,
    "smokes": GENERATOR.random(ROWS) < 0.3,
    "ill": AGE + 5 * DOSE + GENERATOR.normal(0, 10, ROWS) > 100,
    "stage": np.digitize(AGE + GENERATOR.normal(0, 9, ROWS), [40, 60]).astype(str),
    "cost": 20 * AGE + 30 * DOSE,
}
NUMBERS = (
    Column(name="age", type="number", bounds=(0, 100)),
    Column(name="dose", type="number", bounds=(0, 20)),
)
VALUES = (
    Column(name="group", type="category", categories=("a", "b", "c")),
    Column(name="smokes", type="boolean"),
)
ILL = Column(name="ill", type="boolean", categories=("well", "ill"), role="label")
STAGE = Column(name="stage", type="category", categories=("0", "1", "2"), role="label")
COST = Column(name="cost", type="number", bounds=(0, 3000), role="label")
NOISY, EXACT = Promise(2.0, 1e-6), Promise(math.inf)


def learned(program: Any, *columns: Column, promise: Promise = NOISY) -> tuple[SavedModel, Any]:
    schema = Schema(columns=columns)
    table = {column.name: TABLE[column.name] for column in columns}
    records = TableRecords(table, program.encoder(schema))
    channel = Central(randomness=SeededRandomness(1))
    model = channel.run(program, records, schema, promise).model
    X = np.concatenate([batch.X for batch in records.batches()])
    return SavedModel(model, program, schema), X


def plain(saved: SavedModel) -> Any:
    """Through a pickle, as its user gets it: without any class of tacit."""
    data = pickle.dumps(to_sklearn(saved))
    texts = [str(argument) for _, argument, _ in pickletools.genops(data) if argument is not None]
    assert not any("tacit" in text for text in texts)
    found = pickle.loads(data)
    check_is_fitted(found)
    assert type(found).__module__.startswith("sklearn.")
    return found


@pytest.mark.parametrize("promise", [NOISY, EXACT])
@pytest.mark.parametrize(("label", "names"), [(ILL, ["well", "ill"]), (STAGE, ["0", "1", "2"])])
def test_logistic(label: Column, names: list[str], promise: Promise) -> None:
    saved, X = learned(Logistic(), *NUMBERS, *VALUES, label, promise=promise)
    found, said = plain(saved), saved.predict(X)
    assert said is not None
    assert list(found.classes_) == names
    assert np.array_equal(found.predict(X), np.array(names)[said.values])
    assert np.allclose(found.predict_proba(X), said.scores)
    assert len(set(found.predict(X))) == len(names)  # not all alike: the comparison means something
    assert np.array_equal(to_sklearn(saved.model).predict(X), found.predict(X))


def test_linear_in_the_labels_own_unit() -> None:
    saved, X = learned(LinearRegression(), *NUMBERS, *VALUES, COST)
    found = plain(saved)
    assert np.allclose(found.predict(X), saved.model.predict(X))
    assert found.score(X, TABLE["cost"]) > 0.5


def test_kmeans() -> None:
    saved, X = learned(KMeans(4), *NUMBERS, *VALUES)
    found, said = plain(saved), saved.predict(X)
    assert said is not None
    assert np.array_equal(found.predict(X), said.values)
    assert np.allclose(found.transform(X), said.scores)
    assert len(set(said.values.tolist())) > 1


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_mixture(kind: Any) -> None:
    saved, X = learned(Mixture(3, kind), *NUMBERS)
    found, said = plain(saved), saved.predict(X)
    assert said is not None
    assert np.array_equal(found.predict(X), said.values)
    assert np.allclose(found.predict_proba(X), said.scores)
    assert np.allclose(found.score_samples(X), saved.model.log_likelihoods(X))
    assert found.sample(5)[0].shape == (5, 2)
    if kind == "full":
        whole = found.precisions_ @ found.covariances_
        assert np.allclose(whole, np.broadcast_to(np.eye(2), whole.shape), atol=1e-6)


@pytest.mark.parametrize("columns", [NUMBERS, VALUES])
@pytest.mark.parametrize("label", [ILL, STAGE])
def test_naive_bayes(columns: tuple[Column, ...], label: Column) -> None:
    saved, X = learned(NaiveBayes(), *columns, label)
    found, said = plain(saved), saved.predict(X)
    assert said is not None
    assert np.array_equal(found.predict(X), found.classes_[said.values])
    assert set(found.predict(X)) <= set(label.categories or ())
    assert np.allclose(found.predict_proba(X), said.scores)
    assert np.array_equal(to_sklearn(saved.model).predict(X), said.values)


@pytest.mark.parametrize("count", [2, None])
@pytest.mark.parametrize("centred", [True, False])
def test_pca(count: int | None, centred: bool) -> None:
    saved, X = learned(PCA(count, centred), *NUMBERS, *VALUES)
    found = plain(saved)
    assert np.allclose(found.transform(X), saved.model.transform(X))
    assert found.inverse_transform(found.transform(X)).shape == X.shape
    assert found.noise_variance_ >= 0
    assert np.isfinite(found.get_covariance()).all()


def test_it_shares_no_memory_with_the_model() -> None:
    saved, X = learned(LinearRegression(), *NUMBERS, COST)
    found = to_sklearn(saved)
    before = saved.model.predict(X)
    found.coef_ *= 2
    assert np.array_equal(saved.model.predict(X), before)


def test_what_has_no_plain_counterpart() -> None:
    mixed, _ = learned(NaiveBayes(), *NUMBERS, *VALUES, ILL)
    with pytest.raises(UsageError, match="no naive Bayes for numbers and categories together"):
        to_sklearn(mixed)
    counts, _ = learned(Histogram(), *VALUES)
    with pytest.raises(UsageError, match="nothing like a HistogramModel"):
        to_sklearn(counts)
