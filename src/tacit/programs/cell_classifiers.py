"""Classifiers of the cells of a table: the chance of class 1 in each, from counts of both classes.

Several counts of one table are learned from together: all of them, and what each fold leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLASSIFIERS", "design_of"]

Reals = NDArray[np.float64]
Whole = NDArray[np.int64]
TOLERANCE = 1e-9  # of the gradient, for each example
MOST = 100  # Newton's steps, and halvings of each


def design_of(shape: Sequence[int]) -> Reals:
    """Each cell as a vector: one coordinate for each code of each feature, one of two left out."""
    columns = []
    for size, codes in zip(shape, np.indices(shape).reshape(len(shape), -1), strict=True):
        columns += [codes == code for code in range(1 if size == 2 else 0, size)]
    return np.column_stack(columns).astype(np.float64)


def _logistic(design: Reals, counts: Whole) -> Reals:
    """Logistic regression as scikit-learn has it by default: the penalty is ½‖w‖², the intercept
    is free. Newton's method, with steps halved until they lead down, for all counts at once."""
    from scipy.special import expit

    X = np.column_stack([design, np.ones(len(design))])
    penalty = np.append(np.ones(design.shape[1]), 0.0)
    total, ones = counts.sum(axis=2), counts[:, :, 1]
    share = (ones.sum(axis=1) + 0.5) / (total.sum(axis=1) + 1)
    weights = np.zeros((len(counts), X.shape[1]))
    weights[:, -1] = np.log(share / (1 - share))

    def loss(at: Reals) -> Reals:
        scores = at @ X.T
        each = total * np.logaddexp(0, scores) - ones * scores
        return np.asarray(each.sum(axis=1) + (penalty * at**2).sum(axis=1) / 2)

    for _ in range(MOST):
        chances = expit(weights @ X.T)
        gradient = (total * chances - ones) @ X + penalty * weights
        if (np.abs(gradient).max(axis=1) <= TOLERANCE * total.sum(axis=1)).all():
            break
        bend = (total * chances * (1 - chances))[:, :, None] * X
        hessian = X.T @ bend + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        weights = weights - _length(loss, weights, step)[:, None] * step
    return np.asarray(expit(weights @ X.T))


def _length(loss: Callable[[Reals], Reals], weights: Reals, step: Reals) -> Reals:
    """How far to go along each step: not so far that the loss rises."""
    length, here = np.ones(len(weights)), loss(weights)
    for _ in range(MOST):
        rises = loss(weights - length[:, None] * step) > here * (1 + 1e-15)
        if not rises.any():
            break
        length = np.where(rises, length / 2, length)
    return length


def _tree(design: Reals, counts: Whole) -> Reals:
    from sklearn.tree import DecisionTreeClassifier

    X, y = np.vstack([design, design]), np.repeat((0, 1), len(design))
    found = []
    for each in counts:
        fitted = DecisionTreeClassifier(random_state=0).fit(X, y, sample_weight=each.T.ravel())
        found.append(fitted.predict_proba(design)[:, 1])
    return np.array(found)


CLASSIFIERS: dict[str, Callable[[Reals, Whole], Reals]] = {"logistic": _logistic, "tree": _tree}
"""From the cells as vectors and (sets, cells, 2) counts, in each of which both classes occur, the
chances of class 1: (sets, cells)."""
