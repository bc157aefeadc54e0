"""Choosing a model: each is tried on folds that lie later than what it learned from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.personal.features.redundant import without_redundant
from tacit.personal.learning.models import GUESSES, Fitted, Recipe, fit, recipes
from tacit.personal.learning.report import Tried
from tacit.personal.learning.scores import losses
from tacit.personal.learning.splits import Splits
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.problems.problem import Asked

__all__ = ["Choice", "Course", "Said", "choose"]

Reals = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Said:
    """Answers to rows by a model that had not seen them, and the truth."""

    places: Places
    truth: Reals
    answers: Reals

    @classmethod
    def joined(cls, parts: Sequence[Said]) -> Said:
        return cls(
            np.concatenate([part.places for part in parts]),
            np.concatenate([part.truth for part in parts]),
            np.concatenate([part.answers for part in parts]),
        )


@dataclass(frozen=True)
class Course:
    """What one training works on: labelled rows in order of time, and how they are split."""

    matrix: FeatureMatrix
    task: Asked
    span: int
    seed: int
    splits: Splits

    def part(self, places: Places) -> FeatureMatrix:
        """Training rows, without the features that say nothing new among them."""
        rows = self.matrix.take(places)
        names, _ = without_redundant(rows)
        return rows.only(names)

    def fit(self, recipe: Recipe, part: FeatureMatrix) -> Fitted:
        return fit(recipe, self.task, part, self.matrix, self.span, self.seed)

    def said(self, model: Fitted, places: Places) -> Said:
        rows = self.matrix.take(places)
        return Said(places, rows.labels, model.of(rows))


@dataclass(frozen=True)
class Choice:
    """What the folds said.

    folds   what each recipe answered, fold by fold
    guess   the better way of guessing; `rival` the best model; `chosen` the better of these two
    """

    folds: dict[Recipe, tuple[Said, ...]]
    tried: tuple[Tried, ...]
    guess: Recipe
    rival: Recipe
    chosen: Recipe


def choose(course: Course, models: Collection[str] | None) -> Choice:
    """The recipe with the least error over all folds together; of equals the simplest."""
    wanted = recipes(course.task, course.splits.in_time, models)
    parts = [course.part(split.train) for split in course.splits.folds]
    folds = {
        recipe: tuple(
            course.said(course.fit(recipe, part), split.test)
            for part, split in zip(parts, course.splits.folds, strict=True)
        )
        for recipe in wanted
    }
    tried = tuple(Tried(recipe, _loss(course.task, folds[recipe])) for recipe in wanted)
    guess = min((t for t in tried if t.recipe.model in GUESSES), key=_by_loss)
    rival = min((t for t in tried if t.recipe.model not in GUESSES), key=_by_loss)
    chosen = rival if rival.loss < guess.loss else guess
    return Choice(folds, tried, guess.recipe, rival.recipe, chosen.recipe)


def _loss(task: Asked, folds: tuple[Said, ...]) -> float:
    said = Said.joined(folds)
    return float(losses(task, said.truth, said.answers).mean())


def _by_loss(tried: Tried) -> float:
    return tried.loss
