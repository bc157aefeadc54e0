"""Many models, one answer: a vote over what was published and over one's own model (ensemble.md).

Published models carry noise, and some may be garbage; one's own carries none and never leaves. What
a peer knows of them it finds out on its own records, which costs nothing, because nobody is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded
from tacit.errors import UsageError

__all__ = ["Classifier", "Ensemble", "decided", "tally", "weight"]

Reals = NDArray[np.float64]
Classes = NDArray[np.int64]

DOUBT = 1.0  # standard deviations by which a published model's accuracy may be luck
OWN_DOUBT = 2.0  # of one's own, trained on the very records that it is judged by
# Before any record, a model counts as if it had met four of each class, three of them rightly.
BEFORE, RIGHT = 4, 3
EVEN = 1e-9  # shares of the votes that differ by less are even


class Classifier(Protocol):
    """A model that a program's `predict` speaks for."""

    @property
    def classes(self) -> tuple[str, ...]: ...

    def predict(self, X: Reals) -> Classes:
        """The class of each row, as its place in `classes`."""

    def probabilities(self, X: Reals) -> Reals:
        """Of each class, one column each."""


class Ensemble:
    """Published models, one's own if there is one, and how much each one's vote counts.

    `weights` has one number of at least 0 for each published model, then one for one's own; without
    them, or where all are 0, votes count alike.
    """

    def __init__(
        self,
        models: Sequence[Classifier],
        own: Classifier | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.models, self.own = tuple(models), own
        self.weights = None if weights is None else tuple(weights)
        self._check()

    def _check(self) -> None:
        voters = self.voters
        if not voters:
            raise UsageError(
                "an ensemble needs a model: wait for the first published one, or train on records "
                "of your own."
            )
        if len({voter.classes for voter in voters}) > 1:
            raise UsageError("the models of an ensemble must have the same classes, in one order.")
        given = self.weights
        if given is not None and not (
            len(given) == len(voters) and all(0 <= value < math.inf for value in given)
        ):
            raise UsageError(
                f"weights: give one of at least 0 for each of the {len(voters)} models, one's own "
                "last, or none at all."
            )

    @property
    def voters(self) -> tuple[Classifier, ...]:
        """All models, one's own last."""
        return self.models if self.own is None else (*self.models, self.own)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.voters[0].classes

    def scores(self, X: Reals) -> Reals:
        """The share of the votes that each class gets, one column each."""
        said = np.stack([voter.predict(X) for voter in self.voters])
        return tally(said, self._counts, len(self.classes))

    def predict(self, X: Reals) -> Classes:
        """The class with the most votes; where votes are even, the likelier of these by the mean
        probability of the published models."""
        chances = np.zeros((len(X), len(self.classes)))
        for model, count in zip(self.models or self.voters, self._counts, strict=False):
            chances += count * model.probabilities(X)
        return decided(self.scores(X), chances)

    def weighted(self, records: Encoded) -> Ensemble:
        """The same models, weighed by how well each does on one's own records."""
        if records.y is None:
            raise UsageError("weights need records with labels: a model is judged by them.")
        truth, kinds = np.asarray(records.y), len(self.classes)
        doubts = [DOUBT] * len(self.models) + [OWN_DOUBT] * (self.own is not None)
        found = [
            weight(voter.predict(records.X), truth, kinds, doubt)
            for voter, doubt in zip(self.voters, doubts, strict=True)
        ]
        return Ensemble(self.models, self.own, found)

    @property
    def _counts(self) -> Reals:
        given = np.array(self.weights or [0.0] * len(self.voters))
        return given if given.any() else np.ones(len(self.voters))


def tally(said: Classes, weights: Reals, kinds: int) -> Reals:
    """The share of the votes that each of `kinds` classes gets, one row for each record.

    `said` has a row for each voter, `weights` a number.
    """
    shares = [weights @ (said == kind) for kind in range(kinds)]
    return np.asarray(np.column_stack(shares) / weights.sum())


def decided(shares: Reals, chances: Reals) -> Classes:
    """The class with the largest share; of even ones, that with the largest chance."""
    even = shares >= shares.max(axis=1, keepdims=True) - EVEN
    return np.asarray(np.where(even, chances, -1.0).argmax(axis=1))


def weight(said: Classes, truth: Classes, kinds: int, doubt: float = DOUBT) -> float:
    """How much a model's vote counts that says `said` where `truth` is true: the log-odds of its
    accuracy, less `doubt` standard deviations, at least 0, and squared (ensemble.md).

    Accuracy is the mean over the classes, so that saying one thing always is worth nothing, and
    smoothed, so that few records change little: every model is taken for a fair one at first.
    """
    counts = np.array([(truth == kind).sum() for kind in range(kinds)])
    hits = np.array([((truth == kind) & (said == kind)).sum() for kind in range(kinds)])
    recall = (hits + RIGHT) / (counts + BEFORE)
    accuracy = float(recall.mean())
    variance = float((recall * (1 - recall) / (counts + BEFORE)).sum()) / kinds**2
    deviation = math.sqrt(variance) / (accuracy * (1 - accuracy))
    odds = math.log(accuracy / (1 - accuracy)) + math.log(kinds - 1)
    return max(0.0, odds - doubt * deviation) ** 2
