"""Learning for oneself: choose a model in the order of time, test it on what came last, keep it.

Folds choose the model and the correction of its chances; the latest rows, which no choice has seen,
say how good it is; then it is fitted once more to everything, since the newest rows say most about
tomorrow.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, UsageError
from tacit.personal.features.redundant import without_redundant
from tacit.personal.learning.choice import Course, choose
from tacit.personal.learning.design import aligned
from tacit.personal.learning.models import Fitted
from tacit.personal.learning.report import Report
from tacit.personal.learning.splits import time_splits
from tacit.personal.learning.trial import Trial
from tacit.personal.matrix import FeatureMatrix
from tacit.personal.problems.problem import Asked

__all__ = ["LEAST_ROWS", "Trained", "train"]

LEAST_ROWS = 10


@dataclass(frozen=True)
class Trained:
    """A model and what is known about it.

    matrix  the labelled rows it was fitted to, with the features it looks at
    span    how far labels look past their cut-offs, in microseconds
    notes   what happened when it was read from where it was kept
    """

    report: Report
    matrix: FeatureMatrix
    fitted: Fitted
    span: int
    seed: int
    notes: tuple[str, ...] = ()

    def answers(self, matrix: FeatureMatrix) -> NDArray[np.float64]:
        """Numbers, or corrected chances of all classes (rows × classes)."""
        said = self.fitted.of(matrix)
        return said if self.report.task == "number" else self.report.calibration.of(said)


def train(
    matrix: FeatureMatrix,
    task: Asked,
    *,
    label_span: int = 0,
    seed: int = 0,
    models: Collection[str] | None = None,
) -> Trained:
    """Learn from the labelled rows. The same rows and the same seed give the same model.

    `label_span` is how far labels look past the cut-offs, in microseconds; `models` restricts the
    choice among linear, forest and boosting.
    """
    known = _usable(matrix, task, label_span)
    course = Course(known, task, label_span, seed, time_splits(known.cutoffs, label_span, seed))
    choice = choose(course, models)
    everything = course.part(np.arange(known.rows))
    return Trained(
        Trial(course, choice).report(everything.names),
        everything,
        course.fit(choice.chosen, everything),
        label_span,
        seed,
    )


def _usable(matrix: FeatureMatrix, task: Asked, span: int) -> FeatureMatrix:
    """The labelled rows in order of time, if anything can be learned from them."""
    if span < 0:
        raise UsageError("a label cannot look back past its cut-off: label_span is 0 or more.")
    if (task == "number") == bool(matrix.classes):
        raise UsageError(f"{matrix.label}: classes name the answers, unless it is a number.")
    known = matrix.take(matrix.is_labelled)
    if known.rows < LEAST_ROWS:
        raise InputError(
            f"{matrix.label}: {known.rows} examples have a known answer; learning needs at least "
            f"{LEAST_ROWS}. Import more of your past, ask about shorter or more frequent things, "
            "or take part in a crowd study."
        )
    if not np.isfinite(known.labels).all():
        raise InputError(f"{matrix.label}: some of the answers are infinite.")
    if len(np.unique(known.labels)) < 2:
        raise InputError(
            f"{matrix.label}: all {known.rows} known answers are the same, so there is nothing to "
            "tell apart. Import a time when it was otherwise, or ask another question."
        )
    readable = replace(known, columns=aligned(known, known))
    if not without_redundant(readable)[0]:
        raise InputError(
            "there are no features that differ between examples. Name some in the problem, or let "
            "them be made: `depth = 2` under [features]."
        )
    return readable.take(np.argsort(known.cutoffs, kind="stable"))
