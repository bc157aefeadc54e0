"""What linear models and models of randomised tables say, with their noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.programs.averaging import Averaged
from tacit.programs.model_file import SavedModel
from tacit.programs.shown import Cell, Noise, Number, Table
from tacit.programs.shown_parts import shown_parts
from tacit.programs.shown_vectors import classes_of, made_up

__all__ = ["shown_averaged", "shown_crowd_scores", "shown_ensemble", "shown_logistic"]

Reals = NDArray[np.float64]


def shown_logistic(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    """The noise of an average over half the rounds, H⁻¹ times, where H is the curvature for records
    that are spread evenly over their bounds."""
    if saved.model.encoding is not None:
        yield from shown_parts(saved, noise)
        return
    model, length = saved.model, saved.model.coef.size + len(saved.model.intercept)
    error = noise.of(length)
    if error is not None:
        error /= math.sqrt(max(1.0, noise.rounds(length) / 2))
    joined = np.column_stack([model.coef, model.intercept])
    yield _coefficients(saved, noise, joined, _estimates(saved, joined, error), "estimate", True)


def shown_averaged(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    """The released vector is the model but for constant factors."""
    program, model = saved.program, saved.model
    assert isinstance(program, Averaged)
    vector = program.vector(model, saved.schema)
    moved = program.model(vector + 1.0, saved.schema)
    error = noise.of(len(vector))
    joined = np.column_stack([model.coef, model.intercept])
    factors = np.column_stack([moved.coef, moved.intercept]) - joined
    errors = None if error is None else np.abs(factors) * error
    yield _coefficients(saved, noise, joined, errors, "standard error", False)


def shown_crowd_scores(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    joined = np.column_stack([saved.model.coef, saved.model.intercept])
    table = _coefficients(saved, noise, joined, None, "estimate", False)
    yield Table(table.title, table.columns, table.rows, _of_tables(noise))


def _coefficients(
    saved: SavedModel, noise: Noise, joined: Reals, errors: Reals | None, kind: Any, share: bool
) -> Table:
    names = (*saved.encoder.feature_names, "intercept")
    classes = classes_of(saved) if len(joined) > 1 else classes_of(saved)[1:]
    make = noise.per_record if share else noise.number
    rows: list[tuple[Cell, ...]] = []
    for i, name in enumerate(names):
        own = [None if errors is None else float(errors[k, i]) for k in range(len(joined))]
        values = zip(joined[:, i].tolist(), own, strict=True)
        rows.append((name, *(make(value, error, kind) for value, error in values)))
    if joined.shape != (len(classes), len(names)):
        raise ValueError("other coefficients than the schema has features")
    return Table("coefficients", ("feature", *(f"log-odds of {c}" for c in classes)), tuple(rows))


def _estimates(saved: SavedModel, joined: Reals, error: float | None) -> Reals | None:
    if error is None or error == 0:
        return None if error is None else np.zeros_like(joined)
    probes = made_up(saved)
    X = np.column_stack([probes, np.ones(len(probes))])
    found = np.empty_like(joined)
    for k, own in enumerate(joined):
        share = 1 / (1 + np.exp(-np.clip(X @ own, -30, 30)))
        curvature = (X * (share * (1 - share))[:, None]).T @ X / len(X)
        inverse = np.linalg.pinv(curvature, rcond=1e-6, hermitian=True)
        found[k] = error * np.linalg.norm(inverse, axis=1)
    return found


def shown_ensemble(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    model = saved.model
    names = [column.name for column in saved.schema.features]
    rows = tuple(
        (" + ".join(names[place] for place in table), Number(weight))
        for table, weight in zip(model.features, model.weights.tolist(), strict=True)
    )
    yield Table("tables and their weights", ("features", "weight"), rows, _of_tables(noise))


def _of_tables(noise: Noise) -> str:
    """Of a share of the answers to one question: at most 1/(2 (p − q) √n), where an answer is true
    with probability p, and with probability q the one that another would give."""
    if noise.certificate is None or noise.certificate.participation is None:
        return ""
    asked = noise.certificate.releases
    people = noise.certificate.participation.holders
    errors = []
    for release in asked:
        if not {"p", "m"} <= release.parameters.keys():
            return "Learned from randomised answers: see the tables for their error bars."
        p, m = float(release.parameters["p"]), float(release.parameters["m"])
        errors.append(1 / (2 * (p - (1 - p) / (m - 1)) * math.sqrt(people / len(asked))))
    worst = max(errors, default=0.0)
    return f"Learned from randomised answers: shares in their tables have ± ≤ {worst:.3g}."
