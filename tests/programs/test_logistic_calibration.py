"""Probabilities and coefficients of private logistic regression are true, or it says they are not.

Seeds are fixed, so that runs repeat; without the calibration the slopes here are 0.64 and 0.83.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import CalibrationWarning
from tacit.estimators import LogisticRegression
from tacit.privacy import Norm, Promise
from tacit.programs.files import from_bytes, to_bytes
from tacit.programs.logistic import Logistic
from tacit.programs.logistic_calibration import (
    Line,
    advanced,
    is_calibrated,
    settled,
    started,
    statistics,
)
from tacit.programs.logistic_model import UNCALIBRATED, LogisticModel

TRUTH = np.array([2.0, -1.0, 0.5, 0.0])


def schema(width: int) -> Schema:
    numbers = [Column(name=f"x{i}", type="number", bounds=(-1.0, 1.0)) for i in range(width)]
    return Schema(columns=(*numbers, Column(name="y", type="boolean", role="label")))


def drawn(records: int, truth: Any, constant: float, seed: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (records, len(truth)))
    return X, (generator.random(records) < expit(X @ truth + constant)).astype(int)


def slope(model: LogisticRegression, truth: Any, constant: float) -> float:
    """Of a regression of fresh labels on the model's scores: 1 if its probabilities are true."""
    X, y = drawn(20_000, truth, constant, seed=10_000)
    return fitted_slope(model.decision_function(X), y)


def fitted_slope(scores: Any, y: Any) -> float:
    from sklearn.linear_model import LogisticRegression as Plain

    return float(Plain(C=1e6).fit(scores[:, None], y).coef_[0, 0])


@cache
def fitted(records: int, width: int, epsilon: float = 1.0) -> tuple[Any, list[LogisticRegression]]:
    wide = np.random.default_rng(7).normal(size=width)
    truth = TRUTH if width == len(TRUTH) else wide
    found = []
    for seed in range(20):
        X, y = drawn(records, truth, -0.5, seed)
        model = LogisticRegression(epsilon=epsilon, bounds=(-1, 1), random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            found.append(model.fit(X, y))
    return truth, found


@pytest.mark.parametrize(
    ("records", "width", "low", "high"),
    [(5000, 4, 0.8, 1.25), pytest.param(20_000, 20, 0.9, 1.1, marks=pytest.mark.long)],
)
def test_slopes_are_near_one(records: int, width: int, low: float, high: float) -> None:
    truth, models = fitted(records, width)
    assert low <= np.mean([slope(model, truth, -0.5) for model in models]) <= high


def test_coefficients_are_near_the_truth() -> None:
    truth, models = fitted(5000, 4)
    found = np.mean([model.coef_[0] for model in models], axis=0)
    assert np.abs(found - truth).max() < 0.25  # without the calibration it is 3.2 where 2 is true


def test_it_says_when_probabilities_are_not_calibrated() -> None:
    X, y = drawn(400, TRUTH, -0.5, 0)
    with pytest.warns(CalibrationWarning, match="not calibrated"):
        model = LogisticRegression(bounds=(-1, 1), random_state=0).fit(X, y)
    assert model.calibrated_ is False
    assert UNCALIBRATED in model.certificate_.remarks
    assert UNCALIBRATED in model.verify().warnings


def test_it_says_nothing_when_they_are() -> None:
    X, y = drawn(20_000, TRUTH, -0.5, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        model = LogisticRegression(bounds=(-1, 1), random_state=0).fit(X, y)
        free = LogisticRegression(epsilon=float("inf"), bounds=(-1, 1)).fit(X, y)
    assert model.calibrated_ is True
    assert UNCALIBRATED not in model.certificate_.remarks
    assert free.calibrated_ is None


def test_a_rare_class_keeps_its_probability() -> None:
    """Scores that were shortened around the pivot left it none: the mean slope was 0.52."""
    truth = np.random.default_rng(5).normal(0, 1.2, 10)
    slopes = []
    for seed in range(10):
        X, y = drawn(20_000, truth, -5.5, 1000 + seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            model = LogisticRegression(bounds=(-1, 1), random_state=seed).fit(X, y)
        slopes.append(slope(model, truth, -5.5))
    assert np.mean(slopes) > 0.65


def test_classes_that_can_be_told_apart_are_not_calibrated() -> None:
    X, _ = drawn(20_000, TRUTH, 0.0, 0)
    with pytest.warns(CalibrationWarning, match="without a doubt"):
        model = LogisticRegression(bounds=(-1, 1), random_state=0).fit(X, X @ TRUTH > 0.2)
    assert model.calibrated_ is False
    assert model.score(X, X @ TRUTH > 0.2) > 0.98


@pytest.mark.parametrize("windows", [6, 52])
def test_windows_are_calibrated(windows: int) -> None:
    """Without it the slopes are 0.92 and 0.66."""
    size, slopes = 50_000 // windows, []
    X, y = drawn(20_000, TRUTH, -0.5, seed=10_000)
    for seed in range(5):
        parts = [ArrayRecords(*drawn(size, TRUTH, -0.5, 100 * seed + w)) for w in range(windows)]
        channel = Central(randomness=SeededRandomness(seed))
        *_, last = channel.follow(Logistic(), parts, schema(4), Promise(1.0, 1e-6))
        assert last.model.calibrated
        slopes.append(fitted_slope(last.model.scores(X)[:, 0], y))
    assert 0.9 <= np.mean(slopes) <= 1.1


def test_a_window_of_next_to_none_changes_nothing() -> None:
    sizes = [10_000] * 3 + [50]
    parts = [ArrayRecords(*drawn(size, TRUTH, -0.5, w)) for w, size in enumerate(sizes)]
    channel = Central(randomness=SeededRandomness(0))
    *_, before, after = channel.follow(Logistic(), parts, schema(4), Promise(1.0, 1e-6))
    assert np.array_equal(before.state.settled, after.state.settled)
    assert after.model.calibrated is False


def test_the_rule_is_of_public_numbers() -> None:
    assert is_calibrated(5000, 1.0, 50, 0.1)
    assert not is_calibrated(3000, 1.0, 4, 0.1)
    assert not is_calibrated(5000, 1.0, 100, 0.1)
    assert not is_calibrated(5000, 1.0, 4, 0.5)


def test_one_that_is_not_calibrated_is_kept_and_read() -> None:
    model = LogisticModel(np.ones((1, 2)), np.zeros(1), ("a", "b"), False)
    assert from_bytes(LogisticModel, to_bytes(model)).calibrated is False
    old = replace(model, calibrated=None)
    assert b"calibrated" not in to_bytes(old)  # as version 1 wrote it
    assert from_bytes(LogisticModel, to_bytes(old)).calibrated is None
    assert Logistic().remarks(model) == (UNCALIBRATED,)
    assert Logistic().remarks(old) == ()


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_without_noise_the_steps_find_slope_and_shifts(outputs: int, norm: Norm) -> None:
    generator = np.random.default_rng(1)
    deviation = generator.normal(0, 3, (200_000, outputs))
    shifts = 0.3 * np.arange(outputs)
    true = 0.4 * deviation + shifts
    if outputs == 1:
        y = (generator.random(len(true)) < expit(true[:, 0])).astype(np.int64)
    else:
        y = (true + generator.gumbel(size=true.shape)).argmax(axis=1)
    line = Line(1.0, np.zeros(outputs), np.zeros(outputs), 2.0)
    for _ in range(12):
        total = statistics(deviation, y, line, norm, 1).values.sum(axis=0)
        line, doubt = advanced(total, line, 1e-9, norm, 0)
    assert line.slope == pytest.approx(0.4, abs=0.02)
    assert np.abs((line.offset - line.offset[0]) - (shifts - shifts[0])).max() < 0.1
    assert doubt < 1e-6


def test_the_start_changes_no_class() -> None:
    deviation = np.linspace(-20, 20, 101)[:, None]
    for at in (-12.0, 0.0, 3.0):
        line = started(np.array([at]), 4.0)
        assert line.slope == 0.5
        assert np.allclose(line.slope * deviation + line.offset, 0.5 * (deviation + at))


def test_what_is_in_doubt_goes_towards_what_is_usual() -> None:
    assert settled(0.4, 0.0) == pytest.approx(0.4)
    assert settled(0.4, 1e6) == pytest.approx(0.8)
    assert 0.4 < settled(0.4, 1.0) < 0.8


def test_all_of_the_promise_is_planned() -> None:
    for promise in (Promise(1.0), Promise(1.0, 1e-6)):
        first: Any = Logistic().init(schema(3), promise)
        assert sum(stage.query.blocks[0].weight for stage in Logistic().plan(first)) == 1
        assert first.schedule.count("calibration") == first.schedule.calibrations
