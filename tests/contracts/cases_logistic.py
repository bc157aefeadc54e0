"""Logistic regression against scikit-learn's, binary and multinomial."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data import Schema
from tacit.programs.logistic import Logistic, LogisticModel


def schema(classes: int, features: int = 3) -> Schema:
    columns: dict[str, Any] = {
        f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(features)
    }
    names = [str(i) for i in range(classes)]
    columns["y"] = {"type": "category", "role": "label", "categories": names}
    return Schema.from_dict({"columns": columns})


def records(classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(classes)
    X = np.clip(generator.normal([0.3, -0.5, 0.0], [0.5, 0.2, 0.05], (400, 3)), -1, 1)
    weights = generator.normal(0, 4, (3, classes))
    y = (X @ weights + generator.gumbel(size=(400, classes))).argmax(axis=1)
    return X, y


def like_scikit_learn(X: Any, y: Any) -> Callable[[LogisticModel], None]:
    def compare(model: LogisticModel) -> None:
        from sklearn.linear_model import LogisticRegression

        peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
        assert np.allclose(model.coef, peer.coef_, atol=1e-3)
        assert np.allclose(model.intercept, peer.intercept_, atol=1e-3)

    return compare


def case(name: str, classes: int) -> dict[str, Any]:
    X, y = records(classes)
    return {
        "name": name,
        "program": Logistic(tolerance=1e-8),
        "schema": schema(classes),
        "X": X,
        "y": y,
        "textbook": like_scikit_learn(X, y),
    }


CASES = [case("logistic", 2), case("logistic multinomial", 4)]
