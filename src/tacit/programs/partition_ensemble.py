"""AnonML's learner: a classifier for each table, and their weighted vote (thesis, section 6.2).

From each table synthetic examples are made, as many of each cell as it counts, and a classifier is
trained on them. A classifier of discrete features is itself a table: it says one thing for each
cell. So the model holds what each classifier says of every cell, and its weight; no code is saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data.discrete import Discrete, codes_of_vectors
from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.programs.cell_classifiers import CLASSIFIERS, design_of
from tacit.programs.prediction import Prediction, class_names, within
from tacit.programs.tabulated import Marginal, Tabulated, asked_about

__all__ = ["EnsembleModel", "PartitionEnsemble"]

Reals = NDArray[np.float64]
Whole = NDArray[np.int64]
FOLDS = 5
SCORES, VOTES = ("f1", "auc"), ("labels", "chances")


@dataclass(frozen=True, slots=True)
class EnsembleModel:
    """For each table its features, what its classifier says of each cell, and its weight.

    features     of each table: places among the schema's features
    sizes, open  of the schema's features (data/discrete.py)
    votes        what it says of each cell, 1 for class 1, all tables one after another (C order)
    weights      how well each classifier did on examples that it had not seen: from 0 to 1
    classes      names of the two classes
    """

    features: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    open: tuple[bool, ...]
    votes: Reals
    weights: Reals
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        places = {place for table in self.features for place in table}
        known = len(self.open) == len(self.sizes) and places <= set(range(len(self.sizes)))
        if not known or any(s <= o for s, o in zip(self.sizes, self.open, strict=True)):
            raise UsageError("an ensemble's tables are of features that the model knows.")
        cells = sum(math.prod(self._shape(table)) for table in self.features)
        shapes = (self.votes.shape, self.weights.shape, len(self.classes))
        if shapes != ((cells,), (len(self.features),), 2):
            raise UsageError("an ensemble has a vote for each cell and a weight for each table.")

    def scores(self, X: Reals) -> Reals:
        """Equation 6.2 divided by the sum of the weights: from −1, all say class 0, to 1."""
        codes = codes_of_vectors(within(X), self.sizes, self.open)
        starts = accumulate((math.prod(self._shape(t)) for t in self.features), initial=0)
        found = np.zeros(len(codes))
        for table, weight, (start, stop) in zip(
            self.features, self.weights, pairwise(starts), strict=True
        ):
            cells = np.ravel_multi_index(tuple(codes[:, table].T), self._shape(table))
            found += weight * (2 * self.votes[start:stop][cells] - 1)
        total = float(self.weights.sum())
        return found / total if total > 0 else found

    def predict(self, X: Reals) -> Whole:
        """The place of each row's class among `classes`; a tie is for class 1, as published."""
        return (self.scores(X) >= 0).astype(np.int64)

    def probabilities(self, X: Reals) -> Reals:
        """The share of the weighted votes that each class has, one column each."""
        share = (1 + self.scores(X)) / 2
        return np.column_stack([1 - share, share])

    def _shape(self, table: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.sizes[place] for place in table)


class PartitionEnsemble(Tabulated):
    """A classifier for each table, weighted by how well it does on examples it has not seen.

    classifier  of each table
    score       that weighs it: f1, which the thesis found best, or the area under the ROC curve
    votes       labels, as published; or chances of class 1, which tell more where one class is rare
                and hardly any table alone makes it the likelier one
    """

    name = "partition-ensemble"
    models = (EnsembleModel,)

    def __init__(
        self,
        classifier: Literal["logistic", "tree"] = "logistic",
        score: Literal["f1", "auc"] = "f1",
        votes: Literal["labels", "chances"] = "labels",
    ) -> None:
        allowed = {classifier: CLASSIFIERS, score: SCORES, votes: VOTES}
        for given, known in allowed.items():
            if given not in known:
                raise UsageError(f"{given!r} must be one of {', '.join(known)}.")
        self.classifier, self.score, self.votes = classifier, score, votes

    def learn(self, tables: Sequence[Marginal], schema: Schema) -> EnsembleModel:
        codes, asked = Discrete(schema), asked_about(tables)
        voted = [self._voted(table) for table in asked]
        assert schema.label is not None  # Discrete has seen to it
        return EnsembleModel(
            tuple(table.features for table in asked),
            codes.sizes,
            codes.open,
            np.concatenate([votes for votes, _ in voted]),
            np.array([weight for _, weight in voted]),
            class_names(schema.label),
        )

    def predict(self, model: EnsembleModel, X: Reals) -> Prediction:
        probabilities = model.probabilities(X)
        return Prediction("class", model.predict(X), probabilities)

    def _voted(self, table: Marginal) -> tuple[Reals, float]:
        """What a classifier of all examples says of each cell, and how well its like, trained
        without a fold, do on that fold."""
        examples = _examples(table)
        folds = list(_folds(examples))
        every = np.array([examples, *(trained for trained, _ in folds)])
        whole, *parts = _chances(CLASSIFIERS[self.classifier], table, every)
        scored = _f1 if self.score == "f1" else _auc
        weight = np.mean([scored(said, seen) for said, (_, seen) in zip(parts, folds, strict=True)])
        votes = whole if self.votes == "chances" else (whole >= 0.5).astype(np.float64)
        return votes, float(weight)


def _chances(classifier: Callable[[Reals, Whole], Reals], table: Marginal, counts: Whole) -> Reals:
    """Of class 1, in each cell, from each set of counts. A set with examples of one class alone
    teaches that there is no other."""
    found = np.repeat((counts.sum(axis=1)[:, 1:] > 0).astype(np.float64), counts.shape[1], axis=1)
    both = (counts.sum(axis=1) > 0).all(axis=1)
    if both.any():
        found[both] = classifier(design_of(table.counts.shape[:-1]), counts[both])
    return found


def _examples(table: Marginal) -> Whole:
    """How many synthetic examples of each cell (rows) and label (columns): whole numbers that add
    up to the people asked, the largest remainders rounded up."""
    counts = table.counts.reshape(-1, 2)
    wanted = counts / counts.sum() * table.people
    found = np.floor(wanted).astype(np.int64)
    missing = table.people - int(found.sum())
    largest = np.argsort((found - wanted).ravel(), kind="stable")[:missing]
    found.ravel()[largest] += 1
    return np.asarray(found)


def _folds(counts: Whole) -> Iterator[tuple[Whole, Whole]]:
    """Examples to train on, and examples to judge by. They are dealt out like cards, cell by
    cell, so that every fold has its part of each."""
    dealt = np.cumsum(counts.ravel()).reshape(counts.shape)
    for fold in range(FOLDS):
        upto = (dealt + fold) // FOLDS
        seen = np.diff(upto.ravel(), prepend=fold // FOLDS).reshape(counts.shape)
        yield counts - seen, seen


def _f1(said: Reals, seen: Whole) -> float:
    """2 TP / (2 TP + FP + FN) of the cells' labels; 0 if there is nothing to find."""
    positive = said >= 0.5
    wrong = float(seen[positive, 0].sum() + seen[~positive, 1].sum())
    right = 2 * float(seen[positive, 1].sum())
    return right / (right + wrong) if right else 0.0


def _auc(said: Reals, seen: Whole) -> float:
    """The chance that an example of class 1 is ranked above one of class 0, ties counting half."""
    zeros, ones = seen.sum(axis=0)
    if not zeros or not ones:
        return 0.5
    above = np.sign(said[:, None] - said[None, :]) / 2 + 0.5
    return float(seen[:, 1] @ above @ seen[:, 0] / (zeros * ones))
