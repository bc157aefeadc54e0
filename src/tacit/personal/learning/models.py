"""The models to choose from: two ways of guessing, and three that suit small personal data.

A recipe is plain data with bounds, so that one from a file can do no harm: it says which model and
how it is held back from learning chance by heart.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tacit.errors import UsageError
from tacit.personal.learning.design import Design, aligned
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.problems.problem import Asked

__all__ = ["GUESSES", "MODELS", "Fitted", "Model", "Recipe", "fit", "recipes"]

Reals = NDArray[np.float64]
Model = Literal["usual", "last", "linear", "forest", "boosting"]
GUESSES: tuple[Model, ...] = ("usual", "last")
MODELS: tuple[Model, ...] = ("linear", "forest", "boosting")


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is fitted.

    model    usual: the share of each class, or the mean. last: the last value known by then.
             linear: logistic or ridge regression. forest: random trees. boosting: trees that each
             correct those before
    penalty  linear: the weight of the squared coefficients
    trees    forest and boosting: how many
    leaf     forest and boosting: the fewest rows in a leaf
    """

    model: Model
    penalty: Annotated[float, msgspec.Meta(ge=1e-3, le=1e6)] = 1.0
    trees: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    leaf: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 3


# Simplest first: of two that are equally good, the first is taken.
RECIPES = (
    Recipe(model="linear", penalty=100.0),
    Recipe(model="linear", penalty=10.0),
    Recipe(model="linear", penalty=1.0),
    Recipe(model="forest", trees=100, leaf=3),
    Recipe(model="boosting", trees=60, leaf=8),
)


def recipes(task: Asked, in_time: bool, models: Collection[str] | None) -> tuple[Recipe, ...]:
    """What is tried: the guesses, and all models or those named."""
    wanted = MODELS if models is None else tuple(models)
    unknown = set(wanted) - set(MODELS)
    if unknown or not wanted:
        named = f"{min(unknown)[:40]!r} is not a model" if unknown else "no model is named"
        raise UsageError(f"{named}: choose among {', '.join(MODELS)}.")
    guesses: tuple[Model, ...] = GUESSES if task == "number" and in_time else ("usual",)
    return (
        *(Recipe(model=guess) for guess in guesses),
        *(recipe for recipe in RECIPES if recipe.model in wanted),
    )


@dataclass(frozen=True)
class Fitted:
    """A recipe that has seen its training rows.

    like       one of the training rows: its names and categories are those that count
    estimator  of scikit-learn; None for a guess
    usual      the share of each class (smoothed by one row), or the mean
    history    cut-offs and labels, for the last value known
    """

    recipe: Recipe
    task: Asked
    span: int
    like: FeatureMatrix
    design: Design
    estimator: Any
    usual: Reals
    history: tuple[NDArray[np.int64], Reals]

    def of(self, matrix: FeatureMatrix) -> Reals:
        """Numbers, or the chances of all classes (rows × classes)."""
        if self.recipe.model == "last":
            return _last_known(*self.history, matrix.cutoffs, self.span, float(self.usual[0]))
        if self.estimator is None:
            shape = matrix.rows if self.task == "number" else (matrix.rows, len(self.usual))
            return np.broadcast_to(self.usual, shape).astype(np.float64)
        return self.of_columns(aligned(matrix, self.like))

    def of_columns(self, columns: Reals) -> Reals:
        """The same, from columns that are aligned already. Not for guesses, which look at none."""
        is_linear = self.recipe.model == "linear"
        X = self.design.dense(columns) if is_linear else self.design.gappy(columns)
        with _one_thread():
            if self.task == "number":
                return np.asarray(self.estimator.predict(X), dtype=np.float64)
            chances = np.zeros((len(columns), len(self.usual)))
            chances[:, self.estimator.classes_.astype(np.int64)] = self.estimator.predict_proba(X)
        return chances


def fit(
    recipe: Recipe,
    task: Asked,
    train: FeatureMatrix,
    history: FeatureMatrix,
    span: int,
    seed: int,
) -> Fitted:
    """Fit to labelled rows. `history` may hold later rows: each answer sees only what was known by
    its own cut-off. Where only one class occurs, or nothing is left to look at, it guesses."""
    columns = aligned(train, train)
    design = Design.learned(columns, tuple(kind == "category" for kind in train.kinds))
    estimator = None
    lone = task != "number" and len(np.unique(train.labels)) < 2
    if recipe.model not in GUESSES and not lone and train.names:
        X = design.dense(columns) if recipe.model == "linear" else design.gappy(columns)
        estimator = _estimator(recipe, task, seed)
        with _one_thread():
            estimator.fit(X, train.labels)
    return Fitted(
        recipe,
        task,
        span,
        train.take(np.zeros(1, np.int64)),
        design,
        estimator,
        _usual(task, train),
        _ordered(history),
    )


def _one_thread() -> AbstractContextManager[Any]:
    """Small fits lose more by waiting for one another than they win, and sums must not depend on
    how many cores there are."""
    return _controller().limit(limits=1)  # type: ignore[no-any-return]


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # knows the libraries that are loaded: scikit-learn's are by now


def _usual(task: Asked, train: FeatureMatrix) -> Reals:
    """Shares smoothed by one row, divided among the classes: nothing is impossible."""
    if task == "number":
        return np.array([train.labels.mean()])
    many = len(train.classes)
    counts = np.bincount(train.labels.astype(np.int64), minlength=many)
    shares: Reals = (counts + 1 / many) / (counts.sum() + 1)
    return shares


def _estimator(recipe: Recipe, task: Asked, seed: int) -> Any:
    try:
        from sklearn import ensemble, linear_model
    except ImportError:
        raise UsageError("learning needs scikit-learn: pip install 'tacit[learn]'.") from None
    number, state = task == "number", seed % 2**32
    if recipe.model == "linear":
        if number:
            return linear_model.Ridge(alpha=recipe.penalty)
        return linear_model.LogisticRegression(C=1 / recipe.penalty, max_iter=5000, tol=1e-6)
    if recipe.model == "forest":
        kind = ensemble.RandomForestRegressor if number else ensemble.RandomForestClassifier
        return kind(
            recipe.trees,
            min_samples_leaf=recipe.leaf,
            max_features=1 / 3 if number else "sqrt",
            random_state=state,
        )
    boosted = ensemble.HistGradientBoostingClassifier
    return (ensemble.HistGradientBoostingRegressor if number else boosted)(
        max_iter=recipe.trees,
        min_samples_leaf=recipe.leaf,
        learning_rate=0.08,
        max_leaf_nodes=8,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=state,
    )


def _ordered(history: FeatureMatrix) -> tuple[NDArray[np.int64], Reals]:
    """Distinct cut-offs in order, and the mean label of each."""
    known = history.take(history.is_labelled)
    moments, back = np.unique(known.cutoffs, return_inverse=True)
    return moments, np.bincount(back, known.labels) / np.bincount(back)


def _last_known(
    moments: NDArray[np.int64], labels: Reals, cutoffs: NDArray[np.int64], span: int, usual: float
) -> Reals:
    """The label of the latest row whose label was complete at each cut-off; else the usual one."""
    side: Literal["left", "right"] = "left" if span == 0 else "right"
    place = np.searchsorted(moments, cutoffs - span, side) - 1
    return np.where(place >= 0, labels[np.maximum(place, 0)], usual)
