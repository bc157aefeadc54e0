"""What is there is found, and what is not there is not claimed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import DAY, NAMES, SIGNAL, planted

from tacit.errors import InputError, UsageError
from tacit.personal.learning.report import Report
from tacit.personal.learning.training import train
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.problems.problem import Asked


def score(report: Report, name: str) -> float:
    found = next(score.value for score in report.scores if score.name == name)
    assert found is not None
    return found


@pytest.mark.parametrize("task", ["boolean", "category", "number"])
def test_a_planted_signal_is_found_and_its_feature_named_first(task: Asked) -> None:
    report = train(planted(240, task), task).report
    assert report.verdict.outcome == "better"
    assert report.verdict.low is not None
    assert report.verdict.low > 0
    assert report.verdict.words.startswith(f"Better than {report.guess}: ")
    first, second = report.useful[:2]
    assert first.name == SIGNAL
    assert first.low is not None
    assert first.low > second.lost
    assert report.held_out == 60
    assert [stretch.is_last for stretch in report.over_time] == [False] * 5 + [True]
    if task == "number":
        assert score(report, "R²") > 0.5
        assert len(report.said) == 60
    else:
        assert score(report, "ROC AUC") > 0.75
        assert sum(point.rows for point in report.reliability) == 60


@pytest.mark.statistical
@pytest.mark.parametrize("task", ["boolean", "number"])
def test_chance_alone_is_no_better_than_guessing(task: Asked) -> None:
    """It is called better in at most 1 of 40 cases: the lower of two bounds of 95 %. Of 24, that is
    0.6; more than 4 happen by chance less than once in a thousand."""
    outcomes = [
        train(planted(100, task, 0.0, seed), task, seed=seed, models=["linear"]).report.verdict
        for seed in range(24)
    ]
    assert sum(each.outcome == "better" for each in outcomes) <= 4
    assert sum(each.outcome == "no better" for each in outcomes) >= 16


def test_no_model_learns_chance() -> None:
    report = train(planted(300, "boolean", 0.0, seed=2), "boolean").report
    assert report.verdict.outcome == "no better"
    assert report.verdict.words.startswith("No better than always saying ")
    assert "% more error" in report.verdict.words
    assert (report.recipe.model, report.useful) == ("usual", ())


def drifting(in_time: bool) -> FeatureMatrix:
    """Answers that stay the same for 20 days and then change as they like; the only feature is how
    many days have passed. Neighbours tell all, the past nothing."""
    rows = 400
    chance = np.random.default_rng(0)
    labels = np.repeat(chance.permutation(np.arange(20) % 2), 20).astype(np.float64)
    made = planted(rows, labels=labels)
    days = np.arange(rows, dtype=np.float64)[:, None]
    cutoffs = made.cutoffs if in_time else np.zeros(rows, np.int64)
    return replace(made, names=("since(birth)",), kinds=("number",), columns=days, cutoffs=cutoffs)


def test_what_leaks_through_time_is_not_rewarded() -> None:
    loved = train(drifting(in_time=False), "boolean", models=["forest"]).report
    assert loved.verdict.outcome == "better"  # rows at random: the trap is there
    assert score(loved, "accuracy") > 0.9
    assert any("at random" in note for note in loved.notes)
    honest = train(drifting(in_time=True), "boolean", models=["forest"]).report
    assert honest.verdict.outcome != "better"
    assert score(honest, "accuracy") < 0.75


def test_the_last_known_value_is_a_guess_to_beat() -> None:
    """A number that wanders: its last value predicts well, and a model that has found just that has
    found nothing. What is not known yet is not repeated."""
    chance = np.random.default_rng(0)
    walk = np.cumsum(chance.normal(size=200))
    made = planted(200, "number", labels=walk)
    near = train(made, "number", label_span=DAY, models=["linear"]).report
    assert near.baseline.model == "last"
    assert near.guess == "repeating the last known value"
    assert near.verdict.outcome != "better"
    known = np.concatenate([[0.0], walk[:-1]])
    wanted = np.abs(walk - known)[-near.held_out :].mean()
    assert score(near, "mean absolute error") == pytest.approx(wanted)


def test_the_same_seed_gives_the_same_model() -> None:
    made = planted(60)
    order = np.random.default_rng(0).permutation(60)
    first, again = (
        train(rows, "boolean", seed=5, models=["forest", "boosting"])
        for rows in (made, made.take(order))
    )
    assert first.report == again.report
    assert (first.answers(made) == again.answers(made)).all()


def test_rows_without_an_answer_teach_nothing() -> None:
    made = planted(150)
    labels = np.concatenate([made.labels[:120], np.full(30, np.nan)])
    found = train(replace(made, labels=labels), "boolean", models=["linear"])
    assert found.report == train(made.take(np.arange(120)), "boolean", models=["linear"]).report


def test_twelve_rows_are_too_few_to_tell() -> None:
    for task in ("boolean", "number"):
        report = train(planted(12, task), task).report  # type: ignore[arg-type]
        assert report.verdict.outcome == "too few"
        assert report.verdict.words.startswith("Too few examples to tell")
        assert report.verdict.blocks < 10


def test_few_moments_are_too_few_however_many_rows() -> None:
    made = planted(300)
    weeks = made.cutoffs // (DAY * 30) * DAY * 30
    report = train(replace(made, cutoffs=weeks), "boolean", models=["linear"]).report
    assert report.verdict.outcome == "too few"
    assert report.verdict.blocks < 10 < report.verdict.rows


def test_rare_answers() -> None:
    """One in twenty: saying no is right nearly always, so accuracy proves nothing."""
    chance = np.random.default_rng(0)
    rare = (chance.random(400) < 0.05).astype(np.float64)
    report = train(planted(400, labels=rare), "boolean", models=["linear", "boosting"]).report
    assert report.verdict.outcome == "no better"
    made = planted(400)
    told = (np.nan_to_num(made.columns[:, 0]) > 1.5).astype(np.float64)
    found = train(replace(made, labels=told), "boolean", models=["linear", "boosting"]).report
    assert found.verdict.outcome == "better"
    assert score(found, "ROC AUC") > 0.95


def test_a_class_that_appears_late_is_no_surprise_to_the_code() -> None:
    made = planted(120, "category")
    labels = np.where(np.arange(120) < 100, np.minimum(made.labels, 1), 2.0)
    report = train(replace(made, labels=labels), "category", models=["linear", "boosting"]).report
    assert report.verdict.outcome != "better"


def test_redundant_and_empty_features_are_left_out() -> None:
    made = planted(120)
    twice = np.column_stack([made.columns, made.columns[:, 0], np.full(120, np.nan), np.ones(120)])
    wide = replace(
        made,
        columns=twice,
        names=(*NAMES, "again", "nothing", "always"),
        kinds=(*made.kinds, "number", "number", "number"),
    )
    report = train(wide, "boolean", models=["linear"]).report
    assert set(report.features) == set(NAMES)
    assert "3 of 8 features said nothing new." in report.notes


def test_absurd_values_do_not_break_models() -> None:
    made = planted(80)
    made.columns[3, 0], made.columns[5, 1], made.columns[7, 2] = np.inf, 1e300, -1e25
    assert train(made, "boolean").report.rows == 80


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        (planted(9), "9 examples .* at least 10.*Import more"),
        (planted(40, labels=np.full(40, np.nan)), "0 examples"),
        (planted(40, labels=np.ones(40)), "all 40 known answers are the same.*ask another"),
        (planted(40, columns=np.ones((40, 5))), "no features that differ.*depth = 2"),
        (planted(40).only(()), "no features"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(matrix: FeatureMatrix, says: str) -> None:
    with pytest.raises(InputError, match=says):
        train(matrix, "boolean")


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(UsageError, match="choose among linear, forest, boosting"):
        train(planted(40), "boolean", models=["oracle"])
    with pytest.raises(UsageError, match="classes name the answers"):
        train(planted(40), "number")
    with pytest.raises(UsageError, match="0 or more"):
        train(planted(40), "boolean", label_span=-1)
