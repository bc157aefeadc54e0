"""Matrices in which we know what there is to find."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.personal.matrix import FeatureMatrix

DAY = 86_400_000_000
SIGNAL = "sum(sleep.hours, 7d)"
NAMES = (SIGNAL, "count(ride, 7d)", "mean(run.km, 28d)", "since(test)", "last(mail.kind)")
KINDS = ("mail", "letter", "call")


def planted(
    rows: int, task: str = "boolean", strength: float = 2.0, seed: int = 0, **changed: Any
) -> FeatureMatrix:
    """One row a day. The first feature decides; strength 0 leaves nothing but chance. Some values
    are missing."""
    chance = np.random.default_rng(seed)
    X = np.column_stack([chance.normal(size=(rows, 4)), chance.integers(0, 3, rows)])
    score = strength * X[:, 0]
    X[chance.random(X.shape) < 0.05] = np.nan
    classes: tuple[str, ...] = ()
    if task == "number":
        labels = 20 + score + chance.normal(size=rows)
    elif task == "boolean":
        labels = (chance.random(rows) < 1 / (1 + np.exp(-score))).astype(np.float64)
        classes = ("false", "true")
    else:
        labels = np.digitize(score + chance.normal(size=rows), (-1, 1)).astype(np.float64)
        classes = ("low", "middle", "high")
    parts: dict[str, Any] = {
        "keys": tuple(f"day {day}" for day in range(rows)),
        "cutoffs": 1_600_000_000_000_000 + DAY * np.arange(rows),
        "names": NAMES,
        "kinds": ("number",) * 4 + ("category",),
        "columns": X,
        "labels": labels,
        "label": "passed",
        "classes": classes,
        "values": {"last(mail.kind)": KINDS},
    }
    return FeatureMatrix(**{**parts, **changed})
