"""What naive Bayes says: classes, then within each the numbers and the values, with their noise.

All of it are quotients of sums with independent noise of one deviation σ. To first order a quotient
s/c then has standard error σ √(1 + (s/c)²)/c, and so on; of counts that noise hides it says little.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tacit.programs.layout import layout
from tacit.programs.model_file import SavedModel
from tacit.programs.shown import Cell, Noise, Table, share_noise
from tacit.programs.shown_vectors import classes_of, each, units

__all__ = ["shown_bayes"]


def shown_bayes(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    model, noise = saved.model, noise.known(saved.model.count)
    error, names = noise.longest(), classes_of(saved)
    shares = each(np.exp(model.class_log_prior), names)
    sizes = [
        noise.per_record(share, share_noise(error, share, len(names)), "standard error")
        for share in shares
    ]
    yield Table("classes", ("class", "share"), tuple(zip(names, sizes, strict=True)))
    features, _ = units(saved)
    own = [None if error is None else error / max(share, 1e-9) for share in shares]
    numbers = model.numbers.tolist()
    if numbers:
        rows = tuple(_gaussians(saved, noise, k, name, own[k]) for k, name in enumerate(names))
        head = [f"{features[i]}: {what}" for i in numbers for what in ("mean", "std")]
        yield Table("numbers within each class", ("class", *head), rows)
    kept = [i for i in range(len(features)) if i not in numbers]
    if kept:
        logs = tuple(_values(saved, noise, k, name, own[k], kept) for k, name in enumerate(names))
        head = [features[i] for i in kept]
        note = (
            "Log-probabilities; of a column that has a value without a name here, log-odds to it."
        )
        yield Table("values within each class", ("class", *head), logs, note)


def _gaussians(
    saved: SavedModel, noise: Noise, k: int, name: str, error: float | None
) -> tuple[Cell, ...]:
    """Of s/c and 1 − q/c − (s/c)², from the sums s of x and q of 1 − x²; where values are missing
    c is itself a difference."""
    model, (_, to_unit) = saved.model, units(saved)
    cells: list[Cell] = [name]
    parts = zip(model.numbers.tolist(), model.mean[k].tolist(), model.variance[k].tolist(),
                model.missing.tolist(), strict=True)  # fmt: skip
    for place, mean, variance, missing in parts:
        shift, scale = to_unit[place]
        counts = 2 if missing >= 0 else 1
        deviation, rest = math.sqrt(variance), 1 - variance - mean**2
        of_mean = of_deviation = None
        if error is not None:
            of_mean = error * scale * math.sqrt(1 + counts * mean**2)
            of_variance = math.sqrt(1 + 4 * mean**2 + counts * (rest + 2 * mean**2) ** 2)
            of_deviation = error * scale * of_variance / (2 * max(deviation, 1e-9))
        cells.append(noise.per_record(shift + scale * mean, of_mean, "standard error"))
        cells.append(noise.per_record(scale * deviation, of_deviation, "standard error"))
    return tuple(cells)


def _values(
    saved: SavedModel, noise: Noise, k: int, name: str, error: float | None, kept: list[int]
) -> tuple[Cell, ...]:
    """Of log p over all values of a column, or of log-odds against what the others leave over:
    that value's count is one count less all others."""
    weights, cells = saved.model.weights[k], list[Cell]([name])
    for column, place in layout(saved.schema):
        own = [i for i in range(place.start, place.stop) if i in kept]
        is_open = column.type == "boolean" or (column.is_number and column.edges is None)
        odds = np.exp(np.clip(weights[own], -50, 50))
        rest = 1 / (1 + odds.sum())
        for weight, odd in zip(weights[own].tolist(), odds.tolist(), strict=True):
            if is_open:
                moved = math.sqrt((1 / (odd * rest) + 1 / rest) ** 2 + len(own) / rest**2)
            else:
                moved = math.hypot(1 / odd - 1, math.sqrt(len(own) - 1))
            wide = None if error is None else error * moved
            cells.append(noise.per_record(weight, wide, "standard error"))
    return tuple(cells)
