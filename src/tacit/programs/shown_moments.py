"""What linear regression and PCA say, with standard errors of their own where they have some."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.programs.linear import LinearModel
from tacit.programs.model_file import SavedModel
from tacit.programs.shown import Cell, Noise, Number, Table
from tacit.programs.shown_vectors import each

__all__ = ["shown_line", "shown_pca"]

Reals = NDArray[np.float64]
OF_NOISE = "± is of noise; what shortening long records does is not in it."
OF_UNITS = "In the label's unit, for an encoded feature that grows by 1 (a number: half its range)."
OF_VALUES = (
    " What all values of one category have in common could as well stand in the intercept, and is "
    "less certain than differences between them."
)


def shown_pca(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    """Noise moves an eigenvalue by its norm at most (Weyl), and a direction by twice that over the
    gap to the next (Davis and Kahan, in the form of Yu, Wang and Samworth 2015)."""
    model, error = saved.model, noise.longest()
    names, count = saved.encoder.feature_names, max(float(model.count), 2.0)
    spread, of_mean, of_count = _noise_of_pca(model, error, len(names), count)
    variances, ratios = model.explained_variance, model.explained_variance_ratio
    total = float(variances[0] / ratios[0]) if ratios[0] > 0 else 1.0
    rows: list[tuple[Cell, ...]] = []
    for place, direction in enumerate(model.components):
        gap = _gap(variances, place)
        turned = None if spread is None else min(2.0**1.5 * spread / gap if gap > 0 else 2.0, 2.0)
        part = None if spread is None else spread / total
        rows.append(
            (f"component {place + 1}", Number(float(variances[place]), spread, "bound"),
             Number(float(ratios[place]), part, "bound"),
             *(Number(value, turned, "bound") for value in each(direction, names)))
        )  # fmt: skip
    head = ("component", "variance", "share of variance", *names)
    yield Table("components", head, tuple(rows))
    errors = [None if of_mean is None else of_mean(value) for value in each(model.mean, names)]
    mean = [Number(m, e, "bound") for m, e in zip(each(model.mean, names), errors, strict=True)]
    yield Table("mean", ("records", *names), ((Number(count, of_count), *mean),), OF_NOISE)


def _noise_of_pca(
    model: Any, error: float | None, width: int, count: float
) -> tuple[float | None, Callable[[float], float] | None, float | None]:
    """Of variances, of a mean, of the count. Version 1 released moments of records as they are; the
    models of later ones say what their noise comes to."""
    if error is None:
        return None, None, None
    if model.noise is not None:
        spread, of_mean, of_count = (float(factor) * error for factor in model.noise)
        return spread, lambda mean: of_mean, of_count
    norm = 2 * error * (math.sqrt(width) + 1)
    return norm / (count - 1), lambda mean: error * (1 + abs(mean)) / count, error


def _gap(variances: Reals, place: int) -> float:
    """To the nearest other variance; what stands for all that are left out is 0."""
    others = np.append(np.delete(variances, place), 0.0)
    return float(np.abs(others - variances[place]).min())


def shown_line(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    """‖Δw‖ ≤ (‖Δb‖ + ‖ΔA‖ ‖w‖)/λ for A w = b, to first order, where λ, the least eigenvalue that
    the program lets stand, is `floor`."""
    model, error = saved.model, noise.longest()
    names, floor = saved.encoder.feature_names, float(model.floor)
    per_unit = (model.high - model.low) / 2
    spread = 0.0 if error == 0 else None
    if model.errors is not None and noise.certificate is not None:
        yield _line(saved, names, noise)
        return
    if error and floor > 0:
        width = len(names)
        norm = 2 * error * (math.sqrt(width) + 1)
        length = float(np.linalg.norm(model.coef))
        spread = (error * math.sqrt(width) + norm * length) / floor
    rows: list[tuple[Cell, ...]] = [
        (name, Number(value * per_unit, None if spread is None else spread * per_unit, "bound"))
        for name, value in zip(names, each(model.coef, names), strict=True)
    ]
    middle = float(model.to_label(np.array([model.intercept]))[0])
    wide = None if spread is None else spread * per_unit * math.sqrt(len(names) + 1)
    rows.append(("intercept", Number(middle, wide, "bound")))
    yield Table("coefficients", ("feature", "coefficient"), tuple(rows), OF_UNITS)


def _line(saved: SavedModel, names: Sequence[str], noise: Noise) -> Table:
    """The model's own standard errors, as certain as the noise was as planned."""
    model: LinearModel = saved.model
    assert model.errors is not None
    per_unit = (model.high - model.low) / 2
    middle = float(model.to_label(np.array([model.intercept]))[0])
    values = [*(float(value) * per_unit for value in model.coef), middle]
    rows = tuple(
        (name, Number(value, error * per_unit * noise.beyond))
        for name, value, error in zip((*names, "intercept"), values, model.errors, strict=True)
    )
    several = any(column.type == "category" for column in saved.schema.features)
    note = OF_UNITS + OF_VALUES * several
    return Table("coefficients", ("feature", "coefficient"), rows, note)
