"""Chances are corrected where that helps later, and left alone otherwise."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from tacit.personal.learning.calibration import (
    AS_IT_IS,
    Answers,
    choose_calibration,
    fit_calibration,
    reliability,
)
from tacit.personal.learning.scores import losses


def folds(rows: int, exaggerated: float, seed: int = 0) -> list[Answers]:
    """Five folds of true chances, their log-odds exaggerated."""
    chance = np.random.default_rng(seed)
    found = []
    for _ in range(5):
        odds = chance.normal(size=rows // 5) * 1.2
        truth = (chance.random(rows // 5) < expit(odds)).astype(np.float64)
        said = expit(exaggerated * odds)
        found.append((truth, np.column_stack([1 - said, said])))
    return found


def test_too_bold_chances_are_toned_down() -> None:
    made = choose_calibration(folds(600, 3.0))
    assert made.method == "sigmoid"
    assert 0.2 < made.curves[0].xs[0] < 0.5  # the inverse of 3
    truth, said = folds(600, 3.0, seed=1)[0]
    assert losses("boolean", truth, made.of(said)).mean() < losses("boolean", truth, said).mean()


def test_true_chances_and_few_rows_are_left_alone() -> None:
    assert choose_calibration(folds(600, 1.0)) == AS_IT_IS
    assert choose_calibration(folds(40, 3.0)) == AS_IT_IS


def test_isotonic_needs_a_thousand() -> None:
    """Chances that are wrong in a way no sigmoid can mend."""

    def bent(rows: int) -> list[Answers]:
        chance, found = np.random.default_rng(0), []
        for _ in range(5):
            said = chance.random(rows // 5)
            true = np.where(said < 0.5, 0.45, 0.05 + 0.9 * (said > 0.9))
            truth = (chance.random(rows // 5) < true).astype(np.float64)
            found.append((truth, np.column_stack([1 - said, said])))
        return found

    assert choose_calibration(bent(5000)).method == "isotonic"
    assert choose_calibration(bent(900)).method != "isotonic"


def test_several_classes_sum_to_one() -> None:
    chance = np.random.default_rng(0)
    said = chance.dirichlet(np.ones(3), 300)
    truth = chance.integers(0, 3, 300).astype(np.float64)
    corrected = fit_calibration("sigmoid", (truth, said)).of(said)
    assert np.allclose(corrected.sum(axis=1), 1)
    assert np.abs(corrected - 1 / 3).max() < 0.2  # they were chance, and now they say so


def test_reliability_counts_every_row_once() -> None:
    chance = np.random.default_rng(0)
    said = chance.random(500)
    points = reliability(chance.random(500) < said, said)
    assert [point.rows for point in points] == [50] * 10
    assert all(point.low <= point.true <= point.high for point in points)
    assert sum(point.low <= point.said <= point.high for point in points) >= 8
    (alone,) = reliability(np.ones(30, np.bool_), np.full(30, 0.9))  # ties are one point
    assert (alone.rows, alone.high) == (30, 1.0)
    assert 0.85 < alone.low < 0.9
    assert reliability(np.empty(0, np.bool_), np.empty(0)) == ()
