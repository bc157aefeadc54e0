"""Logistic regression over curves and bins, against scikit-learn's on the same coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.data import Schema
from tacit.programs.encodings import checked_features, encoding_for
from tacit.programs.logistic import Logistic, LogisticModel
from tacit.programs.ranged import Ranged

ROWS = 120
generator = np.random.default_rng(6)
absent = generator.random(ROWS) < 0.1
X = np.column_stack(
    [
        generator.uniform(-1, 1, ROWS),
        np.where(absent, 0.0, generator.uniform(-1, 1, ROWS)),
        absent,
        generator.random(ROWS) < 0.3,
    ]
)
score = 6 * X[:, 0] ** 2 - 2 + X[:, 3]
y = (score + generator.logistic(size=ROWS) > 0).astype(np.int64)
thirds = np.searchsorted([-1.0, 1.0], score).astype(np.int64)


def schema(classes: int, bounds: Any = (-1, 1)) -> Schema:
    names = [str(i) for i in range(classes)]
    columns = {
        "bent": {"type": "number", "bounds": bounds},
        "gaps": {"type": "number", "bounds": [-1, 1], "when_missing": "category"},
        "flag": {"type": "boolean"},
        "y": {"type": "category", "role": "label", "categories": names},
    }
    return Schema.from_dict({"columns": columns})


def like_scikit_learn(program: Logistic, labels: Any) -> Callable[[LogisticModel], None]:
    def compare(model: LogisticModel) -> None:
        from sklearn.linear_model import LogisticRegression

        encoding = encoding_for(program.features, schema(2))
        assert encoding is not None
        assert model.encoding == encoding
        seen = encoding.of(X)
        peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(seen, labels)
        assert np.allclose(model.coef, peer.coef_, atol=1e-3)
        assert np.allclose(model.intercept, peer.intercept_, atol=1e-3)
        assert np.allclose(model.probabilities(X), peer.predict_proba(seen), atol=1e-3)

    return compare


def follows_the_bend(model: LogisticModel) -> None:
    assert model.features == "bins"
    assert np.mean(model.predict(X) == thirds) > 0.7


curves, bins = (
    Logistic(tolerance=1e-8, features=checked_features(name)) for name in ("curves", "bins")
)
CASES = [
    {
        "name": "logistic curves",
        "program": curves,
        "schema": schema(2),
        "X": X,
        "y": y,
        "textbook": like_scikit_learn(curves, y),
    },
    {
        "name": "ranged logistic bins",
        "program": Ranged(bins),
        "schema": schema(3, "private"),
        "X": X,
        "y": thirds,
        "plain": True,
        "textbook": follows_the_bend,
    },
]
