"""scikit-learn's manners, the ledger across processes, private bounds, certificates."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

import tacit.estimators as room
from tacit.crypto.signing import SigningKey
from tacit.data import Schema
from tacit.errors import BudgetExceeded, PromiseError, SchemaError
from tacit.privacy import Ledger

ARRAYS = [name for name in room.__all__ if name != "FrequentItemsets"]


def data(estimator: Any, n: int = 400) -> tuple[np.ndarray, np.ndarray | None]:
    generator = np.random.default_rng(1)
    X = generator.normal(size=(n, 3)) + 3 * generator.integers(0, 2, (n, 1))
    if is_classifier(estimator):
        return X, np.where(X.sum(axis=1) > 4, "yes", "no")
    return X, X @ [1.0, -2.0, 3.0] if is_regressor(estimator) else None


def made(name: str, **parameters: Any) -> Any:
    kind = getattr(room, name)
    if name == "LinearRegression" and "bounds" in parameters:
        parameters["label_bounds"] = (-30, 30)
    return kind(**parameters)


def all_checks() -> list[Any]:
    found = []
    for name in room.__all__:
        for estimator, check in estimator_checks_generator(made(name, epsilon=math.inf)):
            label = getattr(check, "func", check).__name__
            if name == "Scaler" and "sparse_" in label and "tag" not in label:
                continue  # it sets a parameter of scikit-learn's own scaler: see test_scaler.py
            found.append(pytest.param(estimator, check, id=f"{name}-{label}"))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), all_checks())
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("name", ARRAYS)
class TestEveryEstimator:
    def test_a_private_fit_has_a_certificate_that_verifies(self, name: str) -> None:
        estimator = made(name, epsilon=2.0, delta=1e-6, bounds=(-5, 10))
        X, y = data(estimator)
        estimator.fit(X, y)
        certificate = estimator.certificate_
        assert certificate.secure_randomness
        verdict = certificate.verify(signer=SigningKey.of_holder().public_key)
        assert len(certificate.subject) == 64
        assert 1.9 < verdict.epsilon <= 2.0 * (1 + 1e-6)
        assert certificate.promise.epsilon == 2

    def test_bounds_are_learned_under_the_promise(self, name: str) -> None:
        estimator = made(name, epsilon=20.0, random_state=1)
        X, y = data(estimator)
        certificate = estimator.fit(X, y).certificate_
        assert any("searched for under this promise" in text for text in certificate.remarks)
        assert estimator.range_found_.all()
        assert 19.99 <= certificate.verify().epsilon <= 20.0  # one plan: nothing is given away

    def test_a_seed_repeats_and_is_said_to_be_unsafe(self, name: str) -> None:
        X, y = data(made(name))
        results = [made(name, bounds=(-5, 10), random_state=seed).fit(X, y) for seed in (7, 7, 8)]
        first, same, other = (fitted(e) for e in results)
        assert np.array_equal(first, same)
        assert not np.array_equal(first, other)
        assert not results[0].certificate_.secure_randomness

    def test_cloning_keeps_parameters_and_forgets_results(self, name: str) -> None:
        estimator = made(name, epsilon=0.5, bounds=(0, 1), ledger="some.db", dataset="d")
        copy = clone(estimator)
        assert copy.get_params() == estimator.get_params()
        assert not hasattr(copy, "certificate_")

    @pytest.mark.parametrize("bounds", [(1, 0), 5, (0, [1, 2]), (0, math.inf)])
    def test_impossible_bounds(self, name: str, bounds: Any) -> None:
        estimator = made(name, bounds=bounds)
        with pytest.raises(PromiseError, match="bounds"):
            estimator.fit(*data(estimator))

    def test_the_ledger_is_charged_and_refuses(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "ledger.db"
        Ledger(path).allow("patients", "record", 1.1, 1e-5)
        estimator = made(
            name, bounds=(-5, 10), ledger=str(path), dataset="patients", random_state=1
        )
        X, y = data(estimator)
        estimator.fit(X, y)
        assert Ledger(path).balance("patients", "record").spent.epsilon == 1
        assert estimator.certificate_.ledger is not None
        with pytest.raises(BudgetExceeded):
            estimator.fit(X, y)

    def test_all_cores_give_the_same_result(self, name: str) -> None:
        X, y = data(made(name))
        one, two = (
            made(name, bounds=(-5, 10), random_state=3, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
        )
        assert np.array_equal(fitted(one), fitted(two))


def test_a_schema_gives_the_bounds(tmp_path: Path) -> None:
    X, _ = data(room.PCA())
    names = {f"c{i}": {"type": "number", "bounds": [-5, 10]} for i in range(3)}
    schema = Schema.from_dict({"columns": names})
    (tmp_path / "schema.toml").write_text(schema.to_toml())
    plain = room.PCA(bounds=(-5, 10), random_state=1).fit(X)
    for given in (schema, str(tmp_path / "schema.toml")):
        assert np.array_equal(fitted(room.PCA(schema=given, random_state=1).fit(X)), fitted(plain))
    with pytest.raises(SchemaError, match="3 features"):
        room.PCA(schema=schema).fit(X[:, :2])


def fitted(estimator: Any) -> np.ndarray:
    """All learned numbers in a row."""
    values = [getattr(estimator, name) for name in learned(estimator)]
    return np.concatenate([np.ravel(v) for v in values if np.asarray(v).dtype.kind == "f"])


def learned(estimator: Any) -> list[str]:
    """The names of the attributes that scikit-learn calls fitted ones."""
    names = [n for n in dir(type(estimator)) if n.endswith("_") and not n.startswith("_")]
    return [n for n in names if isinstance(getattr(type(estimator), n), property)]


def test_cross_validation_in_processes_charges_one_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).allow("data", "record", 10.0, 1e-3)
    estimator = room.LinearRegression(
        epsilon=1.0, bounds=(-5, 10), label_bounds=(-30, 30), ledger=str(path)
    )
    X, y = data(estimator)
    scores = cross_val_score(estimator, X, y, cv=4, n_jobs=2)
    assert len(scores) == 4
    assert Ledger(path).balance("data", "record").spent.epsilon == 4


def test_grid_search_in_a_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path).allow("data", "record", 100.0, 1e-3)
    estimator = room.LinearRegression(
        epsilon=5.0, bounds=(-5, 10), label_bounds=(-30, 30), ledger=str(path), random_state=1
    )
    X, y = data(estimator, n=3000)
    pipeline = make_pipeline(FunctionTransformer(), estimator)
    grid = {"linearregression__fit_intercept": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.5
    assert Ledger(path).balance("data", "record").spent.epsilon == 5 * 7


def test_itemsets_have_a_certificate_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("no folder can be made here")
    monkeypatch.setenv("TACIT_HOME", str(blocked))  # then a key of its own signs
    X = np.random.default_rng(1).random((300, 4)) < 0.5
    model = room.FrequentItemsets(epsilon=2.0, max_length=2).fit(X)
    assert model.certificate_.verify().epsilon <= 2.0 * (1 + 1e-6)


def test_the_number_of_rounds_is_counted() -> None:
    X = data(room.KMeans())[0]
    assert room.KMeans(n_clusters=2, max_iter=4, bounds=(-5, 10)).fit(X).n_iter_ == 4
    mixture = room.GaussianMixture(n_components=2, max_iter=3, bounds=(-5, 10))
    assert mixture.fit(X).n_iter_ == 3


def test_verbose_shows_progress(capsys: pytest.CaptureFixture[str]) -> None:
    estimator = room.KMeans(n_clusters=2, bounds=(-5, 10), verbose=1)
    estimator.fit(data(estimator)[0])
    shown = capsys.readouterr()
    assert not shown.out
    assert shown.err == f"KMeans: {estimator.n_iter_} of {estimator.n_iter_} rounds\n"
