"""The ledger of an estimator, and a refusal before the first of many fits that it cannot pay.

scikit-learn's cross-validations and searches clone an estimator once for each fit. The first clone
is made before the first fit, in the process that was called, and there the call itself says how
many fits will follow: it is looked up in the calling frames. Whatever cannot be told that way (a
loop of one's own, another library) is refused by the ledger when its turn comes, as ever.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from types import FrameType
from typing import Any
from weakref import WeakSet

from tacit.errors import PromiseError, UsageError
from tacit.privacy.accounting import PureLoss, SpendCost
from tacit.privacy.bound import Bound
from tacit.privacy.ledger import Ledger
from tacit.privacy.mechanisms import Gaussian
from tacit.privacy.promise import Promise

__all__ = ["ledger_of", "refuse_unless_all_fits"]

SELECTION = "sklearn.model_selection"
# What is refused here must surely be refused later. With a δ, a fit's own plan costs what one
# release of normal noise for the whole promise does, up to rounding; this is of ε.
SURE = 1 - Fraction(1, 10**6)
# Without a δ, a plan of many rounds may cost a ledger that composes by divergences far less than
# one release does: as little as so many rounds with equal shares.
MOST_ROUNDS = 1000

# The calls that were looked at: by their joblib object, which lives as long as the call.
_checked: WeakSet[Any] = WeakSet()

Parameters = Mapping[str, Any]


def ledger_of(ledger: Any) -> Ledger | None:
    """A ledger parameter: a Ledger, the path of one, or None."""
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, (str, os.PathLike)):
        raise UsageError(
            "ledger must be a tacit.privacy.Ledger, or the path of its file, not "
            f"{type(ledger).__name__}."
        )
    return Ledger(ledger)


def refuse_unless_all_fits() -> None:
    """BudgetExceeded, if a cross-validation or search of scikit-learn's is about to begin whose
    fits the ledgers cannot pay all; called when an estimator with a ledger is cloned."""
    found = _call(sys._getframe(1))
    if found is None:
        return
    call, estimator, fits = found
    _checked.add(call)
    for (path, dataset), spends in _spends(estimator, fits).items():
        Ledger(path).refuse_unless_all(dataset, spends)


def _call(frame: FrameType | None) -> tuple[Any, Any, Sequence[Parameters]] | None:
    """The outermost call that will make many fits: its joblib object, what is fitted, and the
    parameters that each fit sets. None without one, or if it was looked at before."""
    found = None
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(SELECTION):
            # Variables of another version have other names: then the ledger refuses later.
            with suppress(Exception):
                found = _fits(frame.f_code.co_name, frame.f_locals) or found
        frame = frame.f_back
    return None if found is None or found[0] in _checked else found


def _fits(name: str, seen: Mapping[str, Any]) -> tuple[Any, Any, Sequence[Parameters]] | None:
    """What a function of sklearn.model_selection is about to fit, from its local variables."""
    match name:
        case "cross_validate":
            splits = seen["cv"].get_n_splits(seen["X"], seen["y"], seen["groups"])
            return seen["parallel"], seen["estimator"], [{}] * splits
        case "cross_val_predict":
            return seen["parallel"], seen["estimator"], [{}] * len(seen["splits"])
        case "evaluate_candidates":
            search, candidates = seen["self"], list(seen["candidate_params"])
            fits = [candidate for candidate in candidates for _ in range(seen["n_splits"])]
            # Which candidate wins is not known yet, and a search that ends without its model has
            # spent all the rest for nothing: the dearest must be payable.
            last = [_dearest(seen["base_estimator"], candidates)] if search.refit else []
            return seen["parallel"], seen["base_estimator"], [*fits, *last]
        case "learning_curve":
            return seen["parallel"], seen["estimator"], [{}] * len(seen["train_test_proportions"])
        case "validation_curve":
            splits = seen["cv"].get_n_splits(seen["X"], seen["y"], seen["groups"])
            values = [{seen["param_name"]: value} for value in seen["param_range"]]
            return seen["parallel"], seen["estimator"], values * splits
        case "permutation_test_score" if "score" not in seen:  # then nothing is fitted yet
            splits = seen["cv"].get_n_splits(seen["X"], seen["y"], seen["groups"])
            return _Once(), seen["estimator"], [{}] * (splits * (seen["n_permutations"] + 1))
    return None


class _Once:
    """Stands for a call that is looked at once."""


def _dearest(estimator: Any, candidates: Sequence[Parameters]) -> Parameters:
    def total(candidate: Parameters) -> float:
        spends = _spends(estimator, [candidate]).values()
        return sum(promise.epsilon for group in spends for promise, _ in group)

    return max(candidates, key=total)


def _spends(
    estimator: Any, fits: Sequence[Parameters]
) -> dict[tuple[Any, str], list[tuple[Promise, SpendCost | None]]]:
    """By ledger and data set, the promise of each private estimator in each fit."""
    found = defaultdict(list)
    private = list(_private(estimator)) * _inner_fits(estimator)
    for changed in fits:
        for prefix, part in private:
            given = {**part.get_params(deep=False), **_own(changed, prefix)}
            if given["ledger"] is None:
                continue
            ledger = given["ledger"]
            path = ledger.path if isinstance(ledger, Ledger) else ledger
            try:
                promise = Promise(
                    given["epsilon"], given["delta"], adjacency=given.get("adjacency", "add-remove")
                )
            except PromiseError:
                continue  # its own fit says what is wrong
            found[path, given["dataset"]].append((promise, _least_cost(promise)))
    return found


def _private(estimator: Any) -> Iterator[tuple[str, Any]]:
    """The private estimators in it, each with the prefix of its parameters."""
    from tacit.estimators.certified import CertifiedEstimator

    if isinstance(estimator, CertifiedEstimator):
        yield "", estimator
        return
    for name, value in estimator.get_params(deep=True).items():
        if isinstance(value, CertifiedEstimator):
            yield f"{name}__", value


def _inner_fits(estimator: Any) -> int:
    """How many fits one fit makes: of a search, one for each candidate and fold; else one."""
    from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv

    if not isinstance(estimator, GridSearchCV):
        return 1
    try:
        folds = check_cv(estimator.cv).get_n_splits()
    except (TypeError, ValueError):  # such a number depends on the records
        folds = 1
    return len(ParameterGrid(estimator.param_grid)) * int(folds) + bool(estimator.refit)


def _own(changed: Parameters, prefix: str) -> Parameters:
    """What a fit sets of the estimator's own parameters."""
    size = len(prefix)
    return {
        name[size:]: value
        for name, value in changed.items()
        if name.startswith(prefix) and "__" not in name[size:]
    }


def _least_cost(promise: Promise) -> SpendCost | None:
    """What one fit under the promise costs a ledger that composes by divergences, or less: noise of
    the promise's size, in one release. Many rounds of normal noise cost the same."""
    if not promise.is_private:
        return None
    if not promise.delta:
        share = Fraction(promise.epsilon) / MOST_ROUNDS
        return SpendCost(((PureLoss(share, count=MOST_ROUNDS),),))
    less = Promise(float(Fraction(promise.epsilon) * SURE), promise.delta)
    bound = Bound.of_contribution("L2", 1.0, promise.adjacency)
    return SpendCost.of(Gaussian.calibrated(bound, less, length=1).spend, promise.adjacency)
