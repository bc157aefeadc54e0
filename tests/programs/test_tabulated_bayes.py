"""The learner of a crowd's tables: naive Bayes, less naive where pairs were asked for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.data.encode import Encoder
from tacit.data.schema import Column, Schema
from tacit.data.tables import read_batches
from tacit.errors import UsageError
from tacit.estimators.plain import to_sklearn
from tacit.programs.logistic import LogisticModel
from tacit.programs.model_file import SavedModel, model_bytes, model_from_bytes
from tacit.programs.tabulated import Marginal
from tacit.programs.tabulated_bayes import TabulatedBayes

PEOPLE = 1_000_000
NAMES = ("a", "b", "c")
SHARE = 0.3
# P(code | class) of three features.
GIVEN = (
    np.array([[0.5, 0.2], [0.3, 0.3], [0.2, 0.5]]),
    np.array([[0.8, 0.4], [0.2, 0.6]]),
    np.array([[0.6, 0.5], [0.4, 0.5]]),
)
CLASSES = np.array([1 - SHARE, SHARE])


def schema() -> Schema:
    return Schema(
        columns=(
            Column(name="a", type="category", categories=("x", "y", "z")),
            Column(name="b", type="boolean"),
            Column(name="c", type="category", categories=("no", "yes")),
            Column(name="label", type="category", role="label", categories=("bad", "good")),
        )
    )


def alone(place: int, variance: float = 0.0) -> Marginal:
    return Marginal((place,), PEOPLE * GIVEN[place] * CLASSES, variance, PEOPLE)


def independent(i: int, j: int, variance: float = 0.0) -> Marginal:
    joint = np.einsum("iy,jy,y->ijy", GIVEN[i], GIVEN[j], CLASSES)
    return Marginal((i, j), PEOPLE * joint, variance, PEOPLE)


def scores(model: LogisticModel) -> list[NDArray[np.float64]]:
    """Of the codes of each feature, without a constant."""
    a, b, c = model.coef[0, :3], np.array([0.0, model.coef[0, 3]]), model.coef[0, 4:]
    return [part - part[0] for part in (a, b, c)]


def naive(place: int) -> NDArray[np.float64]:
    odds = np.log(GIVEN[place][:, 1] / GIVEN[place][:, 0])
    return np.asarray(odds - odds[0])


class TestIndependent:
    def test_single_features_give_naive_bayes(self) -> None:
        model = TabulatedBayes().learn([alone(0), alone(1), alone(2)], schema())
        for place, found in enumerate(scores(model)):
            assert found == pytest.approx(naive(place), abs=1e-4)
        assert model.classes == ("bad", "good")

    def test_so_do_pairs(self) -> None:
        pairs = [independent(0, 1), independent(2, 0), independent(1, 2)]
        model = TabulatedBayes().learn(pairs, schema())
        for place, found in enumerate(scores(model)):
            assert found == pytest.approx(naive(place), abs=1e-3)

    def test_and_tables_of_three(self) -> None:
        joint = np.einsum("iy,jy,ky,y->ijky", *GIVEN, CLASSES)
        model = TabulatedBayes().learn([Marginal((0, 1, 2), PEOPLE * joint, 0.0, PEOPLE)], schema())
        for place, found in enumerate(scores(model)):
            assert found == pytest.approx(naive(place), abs=1e-3)

    def test_the_threshold_is_midway_between_the_classes(self) -> None:
        model = TabulatedBayes().learn([alone(0), alone(1), alone(2)], schema())
        coordinates = [*GIVEN[0], GIVEN[1][1], *GIVEN[2]]
        middle = np.array(coordinates).mean(axis=1)
        odds = np.log(SHARE / (1 - SHARE))
        assert model.scores(middle[None, :])[0, 0] == pytest.approx(odds, abs=1e-3)


class TestCorrelated:
    def test_what_two_features_say_alike_counts_once(self) -> None:
        """b and c are one and the same: together they should say hardly more than b alone."""
        twin = Marginal((2,), PEOPLE * GIVEN[1] * CLASSES, 0.0, PEOPLE)
        joint = np.zeros((2, 2, 2))
        for code in (0, 1):
            joint[code, code] = GIVEN[1][code] * CLASSES
        both = Marginal((1, 2), PEOPLE * joint, 0.0, PEOPLE)
        once = naive(1)[1]
        twice = scores(TabulatedBayes().learn([alone(1), twin], schema()))
        mended = scores(TabulatedBayes().learn([alone(1), twin, both], schema()))
        assert twice[1][1] + twice[2][1] == pytest.approx(2 * once, abs=1e-3)
        # Not quite 1: part of what they share is the label itself (tabulated_bayes.md).
        assert once < mended[1][1] + mended[2][1] < 1.1 * once

    def test_correlations_within_the_noise_do_not_count(self) -> None:
        """The same pair, seen through noise that would hide it."""
        rng = np.random.default_rng(3)
        people, deviation = 500, 60.0
        joint = np.einsum("iy,jy,y->ijy", GIVEN[0], GIVEN[1], CLASSES) * people
        seen = np.maximum(joint + rng.normal(0, deviation, joint.shape), 0.0)
        pair = Marginal((0, 1), seen / seen.sum() * people, deviation**2, people)
        singles = [alone(0), alone(1), alone(2)]
        plain = TabulatedBayes().learn(singles, schema())
        with_pair = TabulatedBayes().learn([*singles, pair], schema())
        # A million people outweigh 500, and what the 500 say of the two together is noise.
        assert with_pair.coef == pytest.approx(plain.coef, abs=0.01)


class TestNoise:
    def test_noisy_counts_say_less(self) -> None:
        clear = scores(TabulatedBayes().learn([alone(0)], schema()))[0]
        noisy = scores(TabulatedBayes().learn([alone(0, variance=1e10)], schema()))[0]
        assert (np.abs(noisy[1:]) < np.abs(clear[1:]) * 0.9).all()
        assert (np.sign(noisy) == np.sign(clear)).all()

    def test_the_more_certain_table_is_heard(self) -> None:
        turned = Marginal((1,), PEOPLE * GIVEN[1][::-1] * CLASSES, 1e13, PEOPLE)
        found = scores(TabulatedBayes().learn([alone(1), turned], schema()))[1]
        assert found == pytest.approx(naive(1), abs=0.1)

    def test_what_nobody_was_asked_about_says_nothing(self) -> None:
        model = TabulatedBayes().learn([alone(0)], schema())
        assert not model.coef[0, 3:].any()

    def test_empty_cells_are_finite(self) -> None:
        table = Marginal((1,), np.array([[700.0, 0.0], [0.0, 300.0]]), 0.0, 1000)
        model = TabulatedBayes().learn([table], schema())
        assert np.isfinite(model.coef).all()
        assert np.isfinite(model.intercept).all()

    def test_nobody_answered(self) -> None:
        empty = Marginal((0,), np.zeros((3, 2)), 0.0, 0)
        with pytest.raises(UsageError, match="nothing to learn from"):
            TabulatedBayes().learn([empty], schema())


def test_saved_and_as_a_plain_estimator() -> None:
    learner = TabulatedBayes()
    model = learner.learn([alone(0), alone(1), alone(2)], schema())
    saved = model_from_bytes(model_bytes(model, learner, schema()))
    assert isinstance(saved, SavedModel)
    people = {"a": ["x", "z"], "b": [False, True], "c": ["no", "yes"], "label": ["bad", "good"]}
    (batch,) = read_batches(people, schema())
    X = saved.encoder.encode(batch).X
    assert np.array_equal(X, Encoder(schema(), interval="symmetric").encode(batch).X)
    said = saved.predict(X)
    assert said is not None
    assert said.values.tolist() == [0, 1]
    plain = to_sklearn(saved)
    assert plain.predict(X).tolist() == ["bad", "good"]
    assert plain.classes_.tolist() == ["bad", "good"]
    assert said.scores is not None
    assert plain.predict_proba(X) == pytest.approx(said.scores)
