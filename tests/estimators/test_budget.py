"""A ledger is an object or a path, and pays for all fits of a cross-validation or for none."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneGroupOut,
    RandomizedSearchCV,
    RepeatedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline

sys.path.insert(0, str(Path(__file__).parent))

from fits import NAMES, fit, made, table

from tacit.errors import BudgetExceeded, UsageError
from tacit.estimators import PCA, LinearRegression
from tacit.privacy import Ledger

X, Y = table("LinearRegression")


def opened(folder: Path, epsilon: float, delta: float = 0.0, **more: Any) -> Ledger:
    ledger = Ledger(folder / "ledger.db")
    ledger.allow("data", "record", epsilon, delta, **more)
    return ledger


def spent(ledger: Ledger) -> float:
    return float(ledger.balance("data", "record").spent.epsilon)


def model(ledger: Any, epsilon: float = 1.0, delta: float = 0.0, **more: Any) -> Any:
    return made("LinearRegression", epsilon=epsilon, delta=delta, ledger=ledger, **more)


@pytest.mark.parametrize("name", NAMES)
def test_a_ledger_object_is_charged(name: str, tmp_path: Path) -> None:
    ledger = opened(tmp_path, 1.0, 1e-5)
    fitted = fit(name, ledger=ledger)
    assert spent(ledger) == 1
    assert fitted.get_params()["ledger"] is ledger
    assert clone(fitted).ledger is ledger
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied.ledger == str(ledger.path)
    fitted.save(tmp_path / "model")
    assert type(fitted).load(tmp_path / "model").ledger is None


def test_a_pickle_has_nothing_of_the_ledger_but_its_path(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 5.0)
    ledger.allow("another data set", "record", 1.0)
    data = pickle.dumps(model(ledger))
    assert b"another data set" not in data
    (tmp_path / "ledger.db").rename(tmp_path / "elsewhere.db")
    pickle.loads(data)  # opens no file, and makes none
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("ledger", [7, True, ["ledger.db"], {"path": "x"}])
def test_what_is_no_ledger(ledger: Any) -> None:
    with pytest.raises(UsageError, match="Ledger, or the path"):
        model(ledger).fit(X, Y)


def test_copies_of_a_ledger_are_itself(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 1.0)
    assert copy.deepcopy(ledger) is ledger


CALLS: list[tuple[Callable[..., Any], int]] = [
    (lambda m, n: cross_val_score(m, X, Y, cv=4, n_jobs=n), 4),
    (lambda m, n: cross_validate(m, X, Y, cv=KFold(3), n_jobs=n, return_indices=True), 3),
    (lambda m, n: cross_validate(m, X, Y, cv=RepeatedKFold(n_splits=2, n_repeats=2), n_jobs=n), 4),
    (
        lambda m, n: cross_val_score(
            m, X, Y, cv=LeaveOneGroupOut(), groups=np.arange(len(X)) % 3, n_jobs=n
        ),
        3,
    ),
    (lambda m, n: cross_val_predict(m, X, Y, cv=4, n_jobs=n), 4),
    (lambda m, n: GridSearchCV(m, {"fit_intercept": [True, False]}, cv=2, n_jobs=n).fit(X, Y), 5),
    (
        lambda m, n: GridSearchCV(
            m, {"fit_intercept": [True, False]}, cv=2, refit=False, n_jobs=n
        ).fit(X, Y),
        4,
    ),
    (
        lambda m, n: RandomizedSearchCV(
            m, {"epsilon": [1.0]}, n_iter=1, cv=3, n_jobs=n, random_state=0
        ).fit(X, Y),
        4,
    ),
]


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(("call", "fits"), CALLS)
def test_all_fits_or_none(
    call: Callable[..., Any], fits: int, n_jobs: int | None, tmp_path: Path
) -> None:
    ledger = opened(tmp_path, fits - 1)
    with pytest.raises(BudgetExceeded, match=f"{fits} spends .* covers {fits - 1} of them"):
        call(model(ledger), n_jobs)
    assert spent(ledger) == 0
    ledger.allow("data", "record", fits)
    call(model(ledger), n_jobs)
    assert spent(ledger) == fits


def test_candidates_with_promises_of_their_own(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 6.9)
    grid = {"pca__epsilon": [0.5], "linearregression__epsilon": [1.0, 1.5]}
    steps = (PCA(delta=0.0, bounds=(-1, 1), ledger=ledger), model(ledger))
    search = GridSearchCV(make_pipeline(*steps), grid, cv=2, refit=False)
    with pytest.raises(BudgetExceeded, match="8 spends"):  # 2 · (2 · 0.5 + 1 + 1.5) = 7
        search.fit(X, Y)
    ledger.allow("data", "record", 7.0)
    search.fit(X, Y)
    assert spent(ledger) == 7


def test_the_refit_of_a_search_is_payable_whoever_wins(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 7.9)
    search = GridSearchCV(model(ledger), {"epsilon": [1.0, 2.0]}, cv=2)
    with pytest.raises(BudgetExceeded, match="5 spends"):  # 2 · (1 + 2), and 2 for the refit
        search.fit(X, Y)
    assert spent(ledger) == 0


def test_a_search_in_a_cross_validation(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 9.0)
    search = GridSearchCV(model(ledger), {"fit_intercept": [True, False]}, cv=2)
    with pytest.raises(BudgetExceeded, match="10 spends"):
        cross_val_score(search, X, Y, cv=2)
    ledger.allow("data", "record", 10.0)
    cross_val_score(search, X, Y, cv=2)
    assert spent(ledger) == 10


def test_the_filter_pays_for_more_than_sums_would(tmp_path: Path) -> None:
    """What composes by divergence is not refused for what sums would say."""
    ledger = opened(tmp_path, 3.0, 1e-4)
    private = model(ledger, delta=1e-6)
    cross_val_score(private, X, Y, cv=8)
    with pytest.raises(BudgetExceeded, match="refused before the first"):
        cross_val_score(private, X, Y, cv=8)


def test_one_fit_at_a_time_is_refused_as_ever(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 1.0)
    model(ledger).fit(X, Y)
    with pytest.raises(BudgetExceeded, match="left ε = 0"):
        model(ledger).fit(X, Y)
    clone(model(ledger))  # a clone alone asks for nothing


def test_another_version_of_scikit_learn_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.estimators import budget

    def unknown(*_: Any) -> None:
        raise KeyError("no such variable")

    monkeypatch.setattr(budget, "_fits", unknown)
    ledger = opened(tmp_path, 2.0)
    cross_val_score(model(ledger), X, Y, cv=2)
    assert spent(ledger) == 2


def test_affords_counts(tmp_path: Path) -> None:
    from tacit import Promise

    ledger = opened(tmp_path, 3.0)
    assert ledger.affords(Promise(1.0), "data", times=3)
    assert not ledger.affords(Promise(1.0), "data", times=4)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.refuse_unless_all("data", [(Promise(1.0), None)] * 5)
    assert (refused.value.asked, refused.value.left, refused.value.shortfall) == (5, 3, 2)


@pytest.mark.parametrize("epsilon", ["1", True, None, float("nan"), [1.0], np.True_, "much"])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_epsilon(name: str, epsilon: Any) -> None:
    with pytest.raises(UsageError, match="epsilon"):
        fit(name, epsilon=epsilon)


def test_a_ceiling_is_a_number_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    for wrong in ("1", False, None, float("nan")):
        with pytest.raises(UsageError, match="epsilon"):
            ledger.allow("data", "record", wrong)  # type: ignore[arg-type]
    assert ledger.allow("data", "record", 0).allowed.epsilon == 0
    assert isinstance(LinearRegression(ledger=ledger), LinearRegression)


CURVES: list[Callable[..., Any]] = [
    lambda m: learning_curve(m, X, Y, cv=2, train_sizes=[0.5, 1.0]),
    lambda m: validation_curve(
        m, X, Y, param_name="fit_intercept", param_range=[True, False], cv=2
    ),
    lambda m: permutation_test_score(m, X, Y, cv=2, n_permutations=1),
]


@pytest.mark.parametrize("call", CURVES)
@pytest.mark.parametrize("budget", [3.9, 4.0])
def test_curves_are_paid_for_or_refused_as_a_whole(
    call: Callable[..., Any], budget: float, tmp_path: Path
) -> None:
    ledger = opened(tmp_path, budget)
    if budget < 4:
        with pytest.raises(BudgetExceeded, match="refused before the first"):
            call(model(ledger))
        assert spent(ledger) == 0
    else:
        call(model(ledger))
        assert spent(ledger) == 4


@pytest.mark.parametrize("name", ["LinearRegression", "LogisticRegression", "NaiveBayes", "KMeans"])
def test_what_a_ledger_cannot_pay_is_known_to_the_last_thousandth(
    name: str, tmp_path: Path
) -> None:
    """A ledger that composes by divergences: two fits cost less than their sum."""
    Z, y = table(name)

    def tried(ceiling: float) -> float | None:
        folder = tmp_path / str(ceiling)
        folder.mkdir()
        ledger = opened(folder, ceiling, 1e-3)
        estimator = made(name, epsilon=1.0, delta=1e-6, ledger=ledger, random_state=None)
        try:
            cross_val_score(estimator, Z, y, cv=KFold(2), error_score="raise", scoring=_nothing)
        except BudgetExceeded:
            return spent(ledger)
        return None

    low, high = 1.0, 2.0
    while high - low > 1e-3:  # refused as a whole, or not at all: never after the first fit
        middle = (low + high) / 2
        left = tried(middle)
        assert left in (None, 0.0), middle
        low, high = (low, middle) if left is None else (middle, high)
    assert 1.05 < high < 1.3


def _nothing(*_: Any) -> float:
    return 0.0
