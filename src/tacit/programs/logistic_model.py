"""A logistic regression as people use it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.programs.files import OPTIONAL
from tacit.programs.prediction import within

__all__ = ["UNCALIBRATED", "LogisticModel"]

Reals = NDArray[np.float64]

UNCALIBRATED = (
    "Its probabilities and the size of its coefficients are not calibrated: noise hides how sure "
    "it may be (few records, a small epsilon, many features, a rare class), or its classes can be "
    "told apart without a doubt. Use its classes and the order of its scores, or have more "
    "records, a larger epsilon or fewer features."
)


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """One row of `coef` per class, or a single one for two classes, in encoded features.

    calibrated   whether its probabilities can be relied on; None where nothing is known of it
                 (without privacy, and from programs that do not measure it)
    """

    coef: Reals
    intercept: Reals
    classes: tuple[str, ...]
    calibrated: bool | None = field(default=None, metadata=OPTIONAL)

    def scores(self, X: Reals) -> Reals:
        return np.asarray(within(X) @ self.coef.T + self.intercept)

    def predict(self, X: Reals) -> NDArray[np.int64]:
        """The class of each row, as its place in `classes`."""
        scores = self.scores(X)
        return scores.argmax(axis=1) if len(self.coef) > 1 else (scores[:, 0] > 0).astype(np.int64)

    def probabilities(self, X: Reals) -> Reals:
        """Of each class, one column each."""
        from scipy.special import expit, softmax

        scores = self.scores(X)
        if len(self.coef) > 1:
            return np.asarray(softmax(scores, axis=1))
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
