"""Tables as people have them: pandas, polars, Arrow, dicts; texts, categories, dates, gaps."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_score

from tacit.data import Schema
from tacit.errors import (
    InputError,
    NoRecords,
    SchemaError,
    TableError,
    TacitError,
    UsageError,
)
from tacit.estimators import (
    PCA,
    GaussianMixture,
    KMeans,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
)
from tacit.privacy import Ledger

ROWS = 1500


def people(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    age, smokes = draw.uniform(20, 90, rows), draw.random(rows) < 0.3
    sex = draw.choice(["F", "M"], rows)
    income = np.where(draw.random(rows) < 0.1, np.nan, draw.uniform(0, 100, rows))
    days = pd.to_timedelta(draw.uniform(0, 1000, rows), unit="D")
    risk = age + 20 * smokes + 10 * (sex == "F") + draw.normal(0, 3, rows)
    return pd.DataFrame(
        {
            "age": age,
            "sex": pd.Categorical(sex),
            "since": pd.Timestamp("2020-01-01", tz="Europe/Zurich") + days,
            "smokes": smokes,
            "income": income,
            "ill": np.where(risk > 62, "yes", "no"),
        }
    )


def schema(**changes: Any) -> Schema:
    drafted = Schema.draft(
        people(20),
        label="ill",
        bounds={"age": (0, 100), "since": ("2020-01-01", "2023-01-01"), "income": (0, 100)},
        categories={"sex": ["F", "M"], "ill": ["no", "yes"]},
    ).with_column("income", when_missing="category")
    for name, fields in changes.items():
        drafted = drafted.with_column(name, **fields)
    return drafted


FRAME = people()
KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": pa.Table.from_pandas,
    "batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
    "dict": lambda frame: {name: frame[name].tolist() for name in frame},
    "arrays": lambda frame: {name: frame[name].to_numpy() for name in frame},
    "other order": lambda frame: frame[frame.columns[::-1]],
}
PLAIN = schema(since={"type": "date"})


def exact(model: Any) -> Any:
    return model.set_params(epsilon=math.inf)


class TestClassifiers:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("name", [LogisticRegression, NaiveBayes])
    def test_every_kind_of_table_gives_the_same_model(self, name: Any, kind: str) -> None:
        table = KINDS[kind](FRAME)
        model = name(epsilon=math.inf, schema=PLAIN).fit(table)
        same = name(epsilon=math.inf, schema=PLAIN).fit(FRAME)
        assert model.score(table) == same.score(FRAME) > 0.85
        assert model.predict(table).tolist() == same.predict(FRAME).tolist()
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.n_features_in_ == 5
        assert model.feature_names_in_.tolist() == ["age", "sex", "since", "smokes", "income"]

    @pytest.mark.parametrize("name", [LogisticRegression, NaiveBayes])
    def test_privately(self, name: Any, tmp_path: Path) -> None:
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.allow("data", "record", 10.0, 1e-4)
        model = name(epsilon=10.0, schema=PLAIN, ledger=ledger).fit(FRAME)
        assert model.score(FRAME) > 0.85
        assert ledger.balance("data", "record").spent.epsilon == 10
        assert any("categories" in text for text in model.certificate_.conditions)
        model.save(tmp_path / "model")
        loaded = name.load(tmp_path / "model")
        copied = pickle.loads(pickle.dumps(model))
        for other in (loaded, copied):
            assert other.predict(FRAME).tolist() == model.predict(FRAME).tolist()
        model.verify()

    def test_labels_beside_the_table(self) -> None:
        X, y = FRAME.drop(columns="ill"), FRAME["ill"]
        one = exact(LogisticRegression(schema=PLAIN)).fit(X, y)
        for labels in (y.to_numpy(), y.tolist(), pl.Series(y.tolist()), y.to_frame()):
            assert exact(LogisticRegression(schema=PLAIN)).fit(X, labels).coef_ == pytest.approx(
                one.coef_
            )
        assert one.score(X, y) == one.score(FRAME)

    def test_a_schema_without_a_label(self) -> None:
        features = Schema(columns=PLAIN.features)
        X = FRAME.drop(columns="ill")
        model = LogisticRegression(schema=features).fit(X, FRAME["ill"] == "yes")
        assert model.classes_.tolist() == [False, True]
        assert any("read off the labels" in text for text in model.certificate_.conditions)
        assert model.score(X, FRAME["ill"] == "yes") > 0.8
        part = X.iloc[:50], np.full(50, True)  # one class is enough to be scored with
        assert 0 <= model.score(*part) <= 1
        with pytest.raises(UsageError, match="there is no y"):
            model.fit(X)

    def test_coefficients_are_of_named_coordinates(self) -> None:
        model = exact(LogisticRegression(schema=PLAIN)).fit(FRAME)
        names = model.encoded_names_.tolist()
        assert names == [
            "age",
            "sex=F",
            "sex=M",
            "since",
            "smokes",
            "income",
            "income missing",
        ]
        numbers = [
            FRAME["age"],
            FRAME["sex"] == "F",
            FRAME["sex"] == "M",
            (FRAME["since"] - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1),
            FRAME["smokes"],
            FRAME["income"],
            FRAME["income"].isna(),
        ]
        X = np.column_stack([np.asarray(n, dtype=float) for n in numbers])
        # A gap counts for nothing in its own column, not for the encoding of 0.
        low = model.schema_.column("income").bounds[0]
        middle = (low + model.schema_.column("income").bounds[1]) / 2
        X[np.isnan(X[:, 5]), 5] = middle
        scores = X @ model.coef_[0] + model.intercept_[0]
        assert scores == pytest.approx(model.decision_function(FRAME), abs=1e-6)

    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_cross_validation_and_search(self, n_jobs: int | None) -> None:
        model = LogisticRegression(epsilon=20.0, random_state=1, schema=PLAIN)
        X, y = FRAME.drop(columns="ill"), FRAME["ill"]
        assert cross_val_score(model, X, y, cv=2, n_jobs=n_jobs).min() > 0.8
        assert cross_val_score(model, FRAME, cv=2, n_jobs=n_jobs).min() > 0.8
        assert cross_val_score(model, pl.from_pandas(FRAME), cv=2, n_jobs=n_jobs).min() > 0.8
        search = GridSearchCV(model, {"epsilon": [10.0, 20.0]}, cv=2, n_jobs=n_jobs)
        assert search.fit(X, y).score(X, y) > 0.8

    def test_bounds_that_nobody_knows(self) -> None:
        unknown = Schema.draft(
            FRAME, label="ill", categories={"sex": ["F", "M"], "ill": ["no", "yes"]}
        ).with_column("income", when_missing="category")
        assert set(unknown.todo.values()) == {"bounds"}
        with pytest.raises(SchemaError, match="still TODO"):
            LogisticRegression(schema=unknown).fit(FRAME)
        searching = unknown.with_private_bounds()
        model = LogisticRegression(epsilon=10.0, schema=searching, random_state=1).fit(FRAME)
        assert model.score(FRAME) > 0.85
        low, high = model.schema_.column("age").bounds
        assert low < 40
        assert high > 70
        read_off = exact(LogisticRegression(schema=unknown.with_private_bounds())).fit(FRAME)
        assert any("read off" in text for text in read_off.certificate_.remarks)


class TestGaps:
    def test_dropped_records_are_not_predicted(self) -> None:
        dropping = schema(income={"when_missing": "drop"})
        model = exact(LogisticRegression(schema=dropping)).fit(FRAME)
        whole = FRAME.dropna()
        assert len(model.predict(whole)) == len(whole)
        assert model.score(FRAME) == pytest.approx(model.score(whole))
        with pytest.raises(TableError, match="column 'income': is missing"):
            model.predict(FRAME)
        with pytest.raises(NoRecords, match="no records left"):
            model.fit(FRAME.assign(income=np.nan))

    def test_a_fill_stands_in(self) -> None:
        filling = schema(income={"when_missing": "fill", "fill": 50.0})
        model = exact(LogisticRegression(schema=filling)).fit(FRAME)
        filled = FRAME.fillna({"income": 50.0})
        assert model.predict_proba(FRAME) == pytest.approx(model.predict_proba(filled))
        private = LogisticRegression(schema=filling).fit(FRAME)
        assert any("stand for missing" in text for text in private.certificate_.conditions)

    def test_refused_by_default(self) -> None:
        refusing = schema(income={"when_missing": "refuse"})
        with pytest.raises(TableError, match=r"row \d+, column 'income': is missing"):
            LogisticRegression(schema=refusing).fit(FRAME)

    def test_missing_labels(self) -> None:
        X, y = FRAME.drop(columns="ill"), FRAME["ill"].astype(object)
        y[:10] = None
        dropping = schema(ill={"when_missing": "drop"})
        model = exact(LogisticRegression(schema=dropping)).fit(X, y)
        same = exact(LogisticRegression(schema=dropping)).fit(X[10:], FRAME["ill"][10:])
        assert model.coef_ == pytest.approx(same.coef_)
        with pytest.raises(TableError, match="column 'ill': is missing"):
            LogisticRegression(schema=PLAIN).fit(X, y)
        with pytest.raises(TableError, match="missing labels"):
            LogisticRegression(schema=Schema(columns=PLAIN.features)).fit(X, y)

    def test_gaps_of_a_searched_column_are_no_values(self) -> None:
        """Half of the incomes are missing: that must not pull the mean to the edge."""
        frame = people(4000)
        frame.loc[::2, "income"] = np.nan
        private = schema(income={"bounds": "private", "when_missing": "category"})
        model = NaiveBayes(epsilon=50.0, random_state=1, schema=private).fit(frame)
        means = model.theta_[:, [n == "income" for n in ["age", "since", "income"]]]
        assert means == pytest.approx(np.full((2, 1), 50.0), abs=8)


HOSTILE: list[tuple[Callable[[pd.DataFrame], Any], type[Exception], str]] = [
    (lambda f: f.assign(age="secret"), TableError, "row 1, column 'age': is not a number"),
    (lambda f: f.assign(sex="secret"), TableError, "column 'sex': is not one of the 2 values"),
    (lambda f: f.assign(age=[object()] * len(f)), TableError, "mixed or unknown types"),
    (lambda f: f.assign(age=[1, "secret"] * (len(f) // 2)), TableError, "'age'"),
    (lambda f: f.assign(since=3), TableError, "not a date"),
    (lambda f: f.assign(since="31.12.2021"), TableError, "is not a date"),
    (lambda f: f.assign(since=pd.Timedelta(days=2)), TableError, "not a date"),
    (lambda f: f.assign(smokes="perhaps"), TableError, "column 'smokes'"),
    (lambda f: f.assign(age=np.inf), TableError, "is infinite"),
    (lambda f: f.assign(ill="secret"), TableError, "column 'ill'"),
    (lambda f: f.iloc[:0], NoRecords, "has no rows"),
    (lambda f: f.drop(columns=["age", "sex"]), TableError, "has no column 'age', 'sex'"),
    (lambda f: f.assign(more=1), TableError, "not in the schema: 'more'"),
    (lambda f: pd.concat([f, f[["age"]]], axis=1), TableError, "'age' twice"),
    (lambda f: {"age": [1, 2], "ill": ["yes"]}, TableError, "differ in length"),
    (lambda f: {"age": 3}, TableError, "is no column"),
    (lambda f: np.zeros((5, 2)), UsageError, "there is no y"),
]


@pytest.mark.parametrize(("changed", "error", "says"), HOSTILE)
def test_hostile_tables(changed: Callable[[Any], Any], error: type, says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        LogisticRegression(schema=PLAIN).fit(changed(FRAME))
    assert isinstance(caught.value, TacitError)
    assert isinstance(caught.value, ValueError)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_lengths_that_differ() -> None:
    with pytest.raises(TableError, match="differ in length"):
        LogisticRegression(schema=PLAIN).fit(FRAME.drop(columns="ill"), ["yes"] * 3)
    with pytest.raises(UsageError, match="one column"):
        LogisticRegression(schema=PLAIN).fit(FRAME.drop(columns="ill"), np.zeros((ROWS, 2)))


def test_what_a_model_never_saw_is_refused_when_it_predicts() -> None:
    model = exact(LogisticRegression(schema=PLAIN)).fit(FRAME)
    with pytest.raises(TableError, match="column 'sex': is not one of the 2 values") as caught:
        model.predict(FRAME.assign(sex="unknown"))
    assert "unknown" not in str(caught.value)
    assert len(model.predict(FRAME.assign(more=1))) == ROWS  # what it does not read is no matter
    far = FRAME.assign(age=1e9)
    assert model.predict_proba(far) == pytest.approx(model.predict_proba(FRAME.assign(age=100.0)))
    with pytest.raises(TableError, match="has no column 'age'"):
        model.predict(FRAME.drop(columns="age"))


def test_tables_without_a_schema_are_told_of_one() -> None:
    X, y = FRAME.drop(columns="ill"), FRAME["ill"]
    for table in (X, pl.from_pandas(X), X[["sex"]], X.to_numpy(), [["F"], ["M"]] * 20):
        labels = y[: len(table)]
        with pytest.raises(InputError, match=r"Schema\.draft"):
            LogisticRegression().fit(table, labels)
    with pytest.raises(InputError, match=r"NaN.*Imputer"):
        LogisticRegression().fit(X[["age", "income"]], y)


def test_numbers_need_no_schema() -> None:
    X, y = FRAME[["age", "smokes"]].astype(float), FRAME["ill"]
    for table in (X, pl.from_pandas(X), pa.Table.from_pandas(X, preserve_index=False)):
        assert (
            LogisticRegression(epsilon=10.0, random_state=1, bounds=(0, 100))
            .fit(table, y)
            .score(table, y)
            > 0.7
        )


class TestSparse:
    def test_one_hot(self) -> None:
        draw = np.random.default_rng(1)
        places = draw.integers(0, 3, ROWS)
        dense = np.eye(3)[places]
        y = np.where(places == 1, "yes", "no")
        booleans = Schema.from_dict({"columns": {f"c{i}": {"type": "boolean"} for i in range(3)}})
        for X in (sparse.csr_matrix(dense), sparse.csc_array(dense), sparse.coo_matrix(dense)):
            assert (
                LogisticRegression(epsilon=5.0, random_state=1, bounds=(0, 1)).fit(X, y).score(X, y)
                > 0.9
            )
            assert (
                LogisticRegression(epsilon=5.0, random_state=1, schema=booleans)
                .fit(X, y)
                .score(X, y)
                > 0.9
            )
            with pytest.raises(UsageError, match="the schema has 3 features"):
                LogisticRegression(schema=booleans).fit(X.tocsr()[:, :2], y)

    def test_columns_of_pandas(self) -> None:
        frame = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0] * 300)})
        known = Schema.draft(frame, bounds={"a": (0, 1)})
        y = frame["a"].to_numpy() > 0.5
        assert (
            LogisticRegression(epsilon=5.0, random_state=1, schema=known)
            .fit(frame, y)
            .score(frame, y)
            == 1
        )


class TestOthers:
    def test_linear_regression(self) -> None:
        frame = FRAME.drop(columns="ill").assign(cost=2 * FRAME["age"] + 30 * FRAME["smokes"])
        known = Schema.draft(
            frame,
            label="cost",
            bounds={
                "age": (0, 100),
                "since": ("2020-01-01", "2023-01-01"),
                "income": (0, 100),
                "cost": (0, 250),
            },
            categories={"sex": ["F", "M"]},
        ).with_column("income", when_missing="fill", fill=50)
        model = exact(LinearRegression(schema=known)).fit(frame)
        assert model.score(frame) > 0.99
        assert dict(zip(model.encoded_names_, model.coef_, strict=True))["age"] == pytest.approx(
            2, abs=0.1
        )
        beside = frame.drop(columns="cost"), frame["cost"]
        assert exact(LinearRegression(schema=known)).fit(*beside).score(*beside) > 0.99
        other = Schema(columns=known.features)
        found = LinearRegression(
            epsilon=20.0, random_state=1, schema=other, label_bounds=(0, 250)
        ).fit(*beside)
        assert found.score(*beside) > 0.5

    @pytest.mark.parametrize("mixed", [True, False])
    def test_without_labels(self, mixed: bool) -> None:
        names = ["age", "smokes", "sex"] if mixed else ["age", "income"]
        frame = FRAME[names].fillna(50)
        known = Schema(columns=tuple(c for c in PLAIN.columns if c.name in names))
        if not mixed:
            known = known.with_column("income", when_missing="refuse")
        clusters = KMeans(epsilon=10.0, random_state=1, n_clusters=2, schema=known).fit(frame)
        assert clusters.labels_.tolist() == clusters.predict(frame).tolist()
        assert clusters.transform(frame).shape == (ROWS, 2)
        assert math.isfinite(clusters.score(frame))
        components = PCA(epsilon=10.0, random_state=1, n_components=2, schema=known).fit(frame)
        assert components.transform(frame).shape == (ROWS, 2)
        mixture = GaussianMixture(epsilon=10.0, random_state=1, n_components=2, schema=known).fit(
            frame
        )
        assert math.isfinite(mixture.score(frame))
        if not mixed:  # as an array of the same numbers is
            array = KMeans(epsilon=math.inf, n_clusters=2, bounds=([0, 0], [100, 100])).fit(
                frame.to_numpy()
            )
            table = KMeans(epsilon=math.inf, n_clusters=2, schema=known).fit(frame)
            assert table.cluster_centers_ == pytest.approx(array.cluster_centers_)


def test_dates_in_every_spelling_are_one() -> None:
    moments = [dt.datetime(2021, 1, 1) + dt.timedelta(hours=7 * i) for i in range(400)]
    utc = [m.replace(tzinfo=dt.UTC) for m in moments]
    zurich = pd.Series(utc).dt.tz_convert("Europe/Zurich")
    spelt = [m.isoformat() for m in zurich.tolist()]
    known = Schema.from_dict(
        {"columns": {"at": {"type": "date", "bounds": ["2021-01-01", "2021-12-31"]}}}
    )
    y = np.arange(400) > 200
    ways = [moments, utc, zurich, spelt, pl.Series(moments), pd.Series(moments)]
    models = [exact(LogisticRegression(schema=known)).fit({"at": w}, y) for w in ways]
    for model in models:
        assert model.coef_ == pytest.approx(models[0].coef_)
    assert models[0].score({"at": spelt}, y) > 0.95
