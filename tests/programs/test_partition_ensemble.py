"""AnonML's ensemble: a classifier for each table, and their weighted vote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score

from tacit.data.discrete import Discrete
from tacit.data.encode import Encoder
from tacit.data.schema import Column, Schema
from tacit.data.tables import read_batches
from tacit.errors import InputError, UsageError
from tacit.programs.cell_classifiers import CLASSIFIERS, design_of
from tacit.programs.model_file import model_bytes, model_from_bytes
from tacit.programs.partition_ensemble import (
    FOLDS,
    EnsembleModel,
    PartitionEnsemble,
    _auc,
    _examples,
    _f1,
    _folds,
)
from tacit.programs.tabulated import Marginal

SCHEMA = Schema(
    columns=(
        Column(name="a", type="category", categories=("x", "y", "z")),
        Column(name="b", type="boolean"),
        Column(name="label", type="boolean", role="label"),
    )
)
PEOPLE = 400
ONE = Marginal((0,), np.array([[120.0, 10.4], [80.3, 70.3], [20.0, 99.0]]), 0.0, PEOPLE)
TWO = Marginal(
    (1, 0),
    np.array([[[90.0, 0.0], [60, 20], [30, 40]], [[30, 20], [20, 40], [0, 50]]]),
    0.0,
    PEOPLE,
)


def everybody() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Every combination of codes: as vectors and as codes."""
    table: dict[str, Any] = {
        "a": ["x", "y", "z"] * 2,
        "b": [False] * 3 + [True] * 3,
        "label": [False] * 6,
    }
    (batch,) = read_batches(table, SCHEMA)
    X = Encoder(SCHEMA, interval="symmetric").encode(batch).X
    return X, Discrete(SCHEMA).codes(batch)


class TestExamples:
    def test_they_add_up(self) -> None:
        for table in (ONE, TWO):
            found = _examples(table)
            assert found.sum() == PEOPLE
            assert np.abs(found - table.counts.reshape(-1, 2)).max() < 1

    def test_every_example_is_judged_once(self) -> None:
        counts = _examples(TWO)
        folds = list(_folds(counts))
        assert len(folds) == FOLDS
        assert np.array_equal(sum(seen for _, seen in folds), counts)
        for trained, seen in folds:
            assert (seen >= 0).all()
            assert np.array_equal(trained + seen, counts)
            assert abs(int(seen.sum()) - PEOPLE // FOLDS) <= 1

    def test_scores_are_scikit_learns(self) -> None:
        counts = _examples(TWO)
        said = np.array([0.1, 0.5, 0.5, 0.7, 0.2, 0.9])
        y = np.concatenate([np.repeat((0, 1), row) for row in counts])
        each = np.repeat(said, counts.sum(axis=1))
        assert _f1(said, counts) == pytest.approx(f1_score(y, each >= 0.5))
        assert _auc(said, counts) == pytest.approx(roc_auc_score(y, each))

    def test_scores_of_one_class(self) -> None:
        none = np.array([[5, 0], [7, 0]])
        assert _auc(np.array([0.2, 0.8]), none) == 0.5
        assert _f1(np.array([0.2, 0.3]), none) == 0.0


class TestClassifiers:
    @pytest.mark.parametrize("shape", [(2,), (3,), (2, 2, 2), (5, 4, 3)])
    def test_logistic_is_scikit_learns(self, shape: tuple[int, ...]) -> None:
        rng = np.random.default_rng(len(shape))
        cells = int(np.prod(shape))
        counts = rng.poisson(rng.gamma(0.5, 40.0, (4, cells, 2)))  # some cells are nearly empty
        counts[0, :, 1] = 0
        counts[0, 0, 1] = 1  # one single example of class 1
        design = design_of(shape)
        found = CLASSIFIERS["logistic"](design, counts)
        X, y = np.vstack([design, design]), np.repeat((0, 1), cells)
        for said, each in zip(found, counts, strict=True):
            peer = LogisticRegression(tol=1e-9, max_iter=10_000)
            peer.fit(X, y, sample_weight=each.T.ravel())
            assert said == pytest.approx(peer.predict_proba(design)[:, 1], abs=1e-4)


class TestVotes:
    @pytest.mark.parametrize("votes", ["labels", "chances"])
    def test_equation_6_2(self, votes: Any) -> None:
        """Σ s g − Σ s (1 − g), with classifiers trained on examples row by row."""
        model = PartitionEnsemble("logistic", "auc", votes).learn([ONE, TWO], SCHEMA)
        X, codes = everybody()
        expected = np.zeros(len(X))
        for table, weight in zip((ONE, TWO), model.weights, strict=True):
            design, counts = design_of(table.counts.shape[:-1]), _examples(table)
            rows = np.repeat(design, counts.sum(axis=1), axis=0)
            labels = np.concatenate([np.repeat((0, 1), row) for row in counts])
            fitted = LogisticRegression(tol=1e-8).fit(rows, labels)
            cells = np.ravel_multi_index(codes[:, table.features].T, table.counts.shape[:-1])
            g = fitted.predict_proba(design[cells])[:, 1]
            if votes == "labels":
                g = (g >= 0.5).astype(float)
            expected += weight * g - weight * (1 - g)
        assert model.scores(X) == pytest.approx(expected / model.weights.sum(), abs=1e-3)
        assert np.array_equal(model.predict(X), expected >= 0)
        assert model.probabilities(X)[:, 1] == pytest.approx((1 + model.scores(X)) / 2)

    def test_a_tree_says_what_its_cells_say(self) -> None:
        model = PartitionEnsemble("tree").learn([TWO], SCHEMA)
        assert model.votes.tolist() == [0, 0, 1, 0, 1, 1]

    def test_a_better_table_weighs_more(self) -> None:
        flat = Marginal((0,), np.array([[70.0, 63], [70, 63], [70, 64]]), 0.0, PEOPLE)
        for score in ("f1", "auc"):
            model = PartitionEnsemble(score=score).learn([ONE, flat], SCHEMA)  # type: ignore[arg-type]
            assert model.weights[0] > model.weights[1]

    def test_all_have_one_label(self) -> None:
        table = Marginal((0,), np.array([[100.0, 0], [200, 0], [100, 0]]), 0.0, PEOPLE)
        model = PartitionEnsemble().learn([table], SCHEMA)
        assert not model.votes.any()
        assert np.isfinite(model.scores(everybody()[0])).all()

    def test_prediction_and_file(self) -> None:
        learner = PartitionEnsemble("tree", "auc", "chances")
        model = learner.learn([ONE, TWO], SCHEMA)
        saved = model_from_bytes(model_bytes(model, learner, SCHEMA))
        assert saved.program.settings() == learner.settings()
        X, _ = everybody()
        said = saved.predict(X)
        assert said is not None
        assert np.array_equal(said.values, model.predict(X))
        assert said.scores is not None
        assert np.array_equal(said.scores, model.probabilities(X))


class TestRefusals:
    @pytest.mark.parametrize("settings", [("forest",), ("tree", "loss"), ("tree", "f1", "loud")])
    def test_unknown_settings(self, settings: tuple[Any, ...]) -> None:
        with pytest.raises(UsageError, match="must be one of"):
            PartitionEnsemble(*settings)

    def test_nobody_answered(self) -> None:
        with pytest.raises(UsageError, match="nothing to learn from"):
            PartitionEnsemble().learn([Marginal((0,), np.zeros((3, 2)), 0.0, 0)], SCHEMA)

    @pytest.mark.parametrize(
        "change",
        [
            {"features": ((0,), (7,))},
            {"features": ((0,), (-1,))},
            {"votes": np.zeros(3)},
            {"weights": np.zeros(1)},
            {"classes": ("one",)},
            {"open": (False,)},
            {"sizes": (3, 0)},
            {"sizes": (3, 1)},
        ],
    )
    def test_a_model_that_contradicts_itself(self, change: dict[str, Any]) -> None:
        learner = PartitionEnsemble()
        model = learner.learn([ONE, TWO], SCHEMA)
        fields = {name: getattr(model, name) for name in EnsembleModel.__slots__}
        with pytest.raises(UsageError):
            EnsembleModel(**{**fields, **change})

    def test_a_damaged_file(self) -> None:
        learner = PartitionEnsemble()
        model = learner.learn([ONE, TWO], SCHEMA)
        data = model_bytes(model, learner, SCHEMA)
        start = data.index(b"tuple")
        with pytest.raises(InputError):
            model_from_bytes(data[:start] + b"tuplf" + data[start + 5 :])
