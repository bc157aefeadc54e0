"""What cannot be read as numbers is refused in our own words, before anything is spent, and no
value of the data is in the words."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import tacit.estimators as room
from tacit.errors import InputError, PromiseError, UsageError
from tacit.privacy import Ledger

N = 60
SECRET = "Zimmermann"
NUMBER = 73.52918
GENERATOR = np.random.default_rng(0)
PLAIN = pd.DataFrame({"a": GENERATOR.normal(0, 1, N), "b": GENERATOR.normal(0, 1, N)})
CLASSES = np.arange(N) % 2
DAY = pd.Timestamp("2020-01-01")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("data", "record", epsilon=10.0, delta=1e-4)
    return ledger


def spent(ledger: Ledger) -> float:
    return float(ledger.balance("data", "record").spent.epsilon)


TABLES: dict[str, Any] = {
    "texts": PLAIN.assign(c=SECRET),
    "categories": PLAIN.assign(c=pd.Categorical([SECRET] * N)),
    "mixed": PLAIN.assign(c=[1, SECRET] * (N // 2)),
    "dates": PLAIN.assign(c=DAY),
    "dates with a zone": PLAIN.assign(c=DAY.tz_localize("Europe/Zurich")),
    "durations": PLAIN.assign(c=pd.Timedelta("3D")),
    "dates of numpy": np.full((N, 2), "2020-01-01", dtype="datetime64[D]"),
    "dates of polars": pl.DataFrame({"a": [DAY.date()] * N}),
    "gaps": PLAIN.assign(c=[None, NUMBER] * (N // 2)),
    "infinite": PLAIN.assign(c=np.inf),
    "complex": PLAIN.assign(c=NUMBER * 1j),
    "too large": PLAIN.assign(c=[10**400] * N),
    "objects": PLAIN.assign(c=[{SECRET: NUMBER}] * N),
    "lists": pl.DataFrame({"a": [[NUMBER]] * N}),
    "lazy": pl.from_pandas(PLAIN).lazy(),
    "a dict": {"a": [NUMBER] * N},
    "dicts": [{SECRET: NUMBER}] * N,
    "one column": PLAIN.a * 0 + NUMBER,
    "one dimension": np.full(N, NUMBER),
    "three dimensions": np.full((N, 2, 2), NUMBER),
    "ragged": [[NUMBER], [NUMBER, 1.0]] * (N // 2),
    "a name twice": PLAIN.set_axis(["a", "a"], axis=1),
    "names of two kinds": PLAIN.set_axis(["a", 1], axis=1),
    "no records": PLAIN.iloc[:0],
    "no columns": PLAIN[[]],
    "nothing": None,
    "masked": np.ma.masked_greater(PLAIN.to_numpy(), 0),
}

LABELS: dict[str, Any] = {
    "dates": pd.Series([DAY, DAY + pd.Timedelta("1D")] * (N // 2)),
    "gaps": [None, SECRET] * (N // 2),
    "gaps of pandas": pd.array([None, 1] * (N // 2), dtype="Int64"),
    "objects": pd.Series([Decimal("73.5"), Decimal(2)] * (N // 2)),
    "two kinds": pd.Series([1, SECRET] * (N // 2), dtype=object),
    "one class": [SECRET] * N,
    "numbers": np.linspace(0, NUMBER, N),
    "two columns": np.full((N, 2), NUMBER),
    "too few": CLASSES[1:],
    "none": None,
    "masked": np.ma.masked_greater(CLASSES, 0),
}


def assert_silent(refusal: pytest.ExceptionInfo[InputError]) -> None:
    words = str(refusal.value)
    assert SECRET not in words
    assert "73.5" not in words
    assert "2020" not in words
    assert refusal.value.__cause__ is None  # nor in the traceback
    assert refusal.value.__context__ is None or refusal.value.__suppress_context__


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", [room.LogisticRegression, room.KMeans, room.Scaler])
def test_tables(kind: Any, name: str, ledger: Ledger) -> None:
    if kind is room.Scaler and name == "gaps":
        return  # which it leaves as they are
    estimator = kind(epsilon=1.0, bounds=(-3, 3), ledger=ledger)
    with pytest.raises(InputError) as refusal:
        estimator.fit(TABLES[name], CLASSES[: 0 if name == "no records" else N])
    assert_silent(refusal)
    assert spent(ledger) == 0


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("kind", [room.LogisticRegression, room.NaiveBayes])
def test_labels(kind: Any, name: str, ledger: Ledger) -> None:
    estimator = kind(1.0, bounds=(-3, 3), ledger=ledger)
    with pytest.raises(InputError) as refusal:
        estimator.fit(PLAIN, LABELS[name])
    assert "2020" not in str(refusal.value)
    assert SECRET not in str(refusal.value)
    assert "73.5" not in str(refusal.value)
    assert spent(ledger) == 0


@pytest.mark.parametrize("y", [[SECRET] * N, [DAY] * N, [None] * N, [np.inf] * N, [1j] * N])
def test_labels_of_a_regression(y: Any, ledger: Ledger) -> None:
    estimator = room.LinearRegression(1.0, bounds=(-3, 3), label_bounds=(0, 1), ledger=ledger)
    with pytest.raises(InputError) as refusal:
        estimator.fit(PLAIN, pd.Series(y))
    assert SECRET not in str(refusal.value)
    assert spent(ledger) == 0


def test_noise_beyond_all_integers(ledger: Ledger) -> None:
    """Refused when the plan is made, in words of the parameter that was given."""
    estimator = room.LogisticRegression(1e-9, bounds=(-3, 3), ledger=ledger)
    with pytest.raises(PromiseError, match="Take a larger epsilon"):
        estimator.fit(PLAIN, CLASSES)
    assert spent(ledger) == 0


@pytest.mark.parametrize("name", ["texts", "one dimension", "complex", "a dict", "objects"])
def test_what_is_asked_of_a_model(name: str) -> None:
    model = room.NaiveBayes(1.0, bounds=(-3, 3)).fit(PLAIN, CLASSES)
    with pytest.raises(InputError) as refusal:
        model.predict(TABLES[name])
    assert_silent(refusal)


@pytest.mark.parametrize("columns", [["b", "a"], ["a"], ["a", "b", "b2"]])
def test_other_columns_than_those_of_the_fit(columns: list[str]) -> None:
    model = room.NaiveBayes(1.0, bounds=(-3, 3)).fit(PLAIN, CLASSES)
    with pytest.raises(InputError, match="Give the columns of the fit, in their order"):
        model.predict(PLAIN.assign(b2=1.0)[columns])


@pytest.mark.parametrize(
    "form",
    [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.dok_matrix, sparse.lil_array],
)
def test_zeros_and_ones_however_they_are_kept(form: Any) -> None:
    dense = (GENERATOR.random((400, 3)) < 0.4).astype(float)
    y = dense[:, 0] > 0
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(dense))
    kept = [
        room.NaiveBayes(1.0, bounds=(0, 1), random_state=3).fit(X, y).theta_
        for X in (dense, form(dense), frame)
    ]
    assert np.array_equal(kept[0], kept[1])
    assert np.array_equal(kept[0], kept[2])


@pytest.mark.parametrize(
    ("kind", "parameter", "value"),
    [
        (room.PCA, "n_components", 1.5),
        (room.PCA, "n_components", "two"),
        (room.KMeans, "n_clusters", 2.5),
        (room.KMeans, "n_clusters", "3"),
        (room.KMeans, "max_iter", True),
        (room.GaussianMixture, "n_components", "x"),
        (room.FrequentItemsets, "min_support", "x"),
        (room.FrequentItemsets, "max_length", 2.5),
        (room.KMeans, "n_jobs", "x"),
        (room.KMeans, "n_jobs", 0),
        (room.KMeans, "schema", 3),
        (room.KMeans, "random_state", "x"),
    ],
)
def test_parameters(kind: Any, parameter: str, value: Any, ledger: Ledger) -> None:
    estimator = kind(1.0, ledger=ledger).set_params(**{parameter: value})
    with pytest.raises((UsageError, InputError), match=parameter):
        estimator.fit((PLAIN > 0).astype(float))
    assert spent(ledger) == 0


@pytest.mark.parametrize(
    ("n", "features", "classes"),
    [
        *((n, 3, 2) for n in (0, -1, "x", 1.5, float("nan"), True, None)),
        *((100, features, 2) for features in (0, -1, "x", 1.5, True)),
        *((100, 3, classes) for classes in (0, -1, 1.5, True)),
    ],
)
def test_sizes_that_are_none(n: Any, features: Any, classes: Any) -> None:
    with pytest.raises(UsageError):
        room.NaiveBayes(1.0).expected_error(n, features, classes)


@pytest.mark.parametrize("name", room.__all__)
def test_every_estimator_says_what_to_expect(name: str) -> None:
    few, many = (getattr(room, name)(1.0).expected_error(n, features=4) for n in (20, 10**7))
    assert few.useless
    assert not many.useless
