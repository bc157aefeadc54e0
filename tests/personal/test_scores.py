"""Scores are those of scikit-learn, and their bounds hold what they say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from tacit.personal.learning.resampling import block_weights, shuffled
from tacit.personal.learning.scores import Score, Sureness, losses, scores, skill

CHANCE = np.random.default_rng(0)


def by_name(found: tuple[Score, ...]) -> dict[str, Score]:
    return {score.name: score for score in found}


@pytest.mark.parametrize("classes", [2, 4])
def test_scores_of_classes(classes: int) -> None:
    truth = CHANCE.integers(0, classes, 200).astype(np.float64)
    said = CHANCE.dirichlet(np.ones(classes), 200).round(1)  # with ties
    said = (said + 1e-3) / (said + 1e-3).sum(axis=1, keepdims=True)
    even = np.full((200, classes), 1 / classes)
    found = by_name(scores("category", truth, said, even, Sureness(np.arange(200), 0)))
    area = said[:, 1] if classes == 2 else said
    wanted = {
        "accuracy": metrics.accuracy_score(truth, said.argmax(axis=1)),
        "log loss": metrics.log_loss(truth, said),
        "ROC AUC": metrics.roc_auc_score(truth, area, multi_class="ovr"),
        "Brier": np.mean(((said - np.eye(classes)[truth.astype(int)]) ** 2).sum(axis=1)),
    }
    assert {name: score.value for name, score in found.items()} == pytest.approx(wanted)
    assert found["ROC AUC"].baseline == pytest.approx(0.5)
    assert all(s.low is not None and s.high is not None for s in found.values())
    assert all(s.low < s.value < s.high for s in found.values())  # type: ignore[operator]


def test_scores_of_numbers() -> None:
    truth = 1e9 + CHANCE.normal(size=100)
    said = truth + CHANCE.normal(size=100) / 2
    mean = np.full(100, truth.mean())
    found = by_name(scores("number", truth, said, mean, Sureness(np.arange(100), 0)))
    assert found["mean absolute error"].value == pytest.approx(
        metrics.mean_absolute_error(truth, said)
    )
    assert found["root mean squared error"].value == pytest.approx(
        metrics.root_mean_squared_error(truth, said)
    )
    assert found["R²"].value == pytest.approx(metrics.r2_score(truth, said), abs=1e-5)
    assert found["R²"].baseline == pytest.approx(0, abs=1e-5)


def test_one_class_in_the_test_has_no_area() -> None:
    said = np.full((30, 2), 0.5)
    found = by_name(scores("boolean", np.zeros(30), said, said, Sureness(np.arange(30), 0)))
    assert found["ROC AUC"] == Score("ROC AUC", None, None, None, None)


@pytest.mark.statistical
def test_bounds_hold_the_truth() -> None:
    """Of 200 sets of 20 rows, the 95 % bounds of the mean error miss the true one in 10 on average;
    more than 22 happen by chance once in ten thousand."""
    chance, missed = np.random.default_rng(1), 0
    for seed in range(200):
        errors = chance.normal(size=20)
        truth, wanted = np.zeros(20), np.sqrt(2 / np.pi)
        score = scores("number", truth, errors, errors, Sureness(np.arange(20), seed))[0]
        assert score.low is not None
        assert score.high is not None
        missed += not score.low <= wanted <= score.high
    assert 0 < missed <= 22


def test_copies_in_one_block_prove_nothing_new() -> None:
    truth, said = np.zeros(12), CHANCE.normal(size=12)
    guess = np.ones(12)
    alone = Sureness(np.arange(12), 0).of(skill("number", truth, said, guess))
    copied = [np.repeat(part, 50) for part in (truth, said, guess, np.arange(12))]
    together = Sureness(copied[3], 0).of(skill("number", *copied[:3]))
    apart = Sureness(np.arange(600), 0).of(skill("number", *copied[:3]))
    assert together == pytest.approx(alone)
    assert apart[2] - apart[0] < (alone[2] - alone[0]) / 4  # type: ignore[operator]


def test_draws_follow_from_the_seed_and_keep_blocks_whole() -> None:
    blocks = np.array([0, 0, 5, 5, 7])
    weights = block_weights(blocks, 100, 3)
    assert (weights == block_weights(blocks, 100, 3)).all()
    assert (weights != block_weights(blocks, 100, 4)).any()
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, [0, 2, 4]].sum(axis=1) == 3).all()
    assert sorted(shuffled(50, 0, "test")) == list(range(50))
    assert shuffled(50, 0, "test").tolist() != shuffled(50, 0, "other").tolist()


def test_brier_of_certainty() -> None:
    said = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert losses("boolean", np.zeros(3), said).tolist() == [0, 2, 0.5]
