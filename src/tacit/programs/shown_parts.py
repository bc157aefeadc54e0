"""What each column adds to the scores of a logistic regression that sees numbers as curves or bins.

Its coefficients are of encoded columns and say little by themselves; their sums over one column do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tacit.programs.logistic_parts import Part, parts_of
from tacit.programs.model_file import SavedModel
from tacit.programs.shown import Cell, Noise, Number, Table
from tacit.programs.shown_vectors import classes_of

__all__ = ["shown_parts"]

POINTS = 97  # of a curve; every 12th is one of nine that a page shows

OF_SWINGS = (
    "A swing is the log-odds at the highest point without those at the lowest: what is not several "
    "times its noise may be nothing but noise."
)


def shown_parts(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    """The noise is that of the model's own bands; they are right within a factor."""
    model, encoder = saved.model, saved.encoder
    if len(model.roles) != encoder.width or len(model.intercept) != len(model.coef):
        raise ValueError("the model sees other columns than the schema has")
    classes = classes_of(saved)
    if len(model.coef) != (1 if len(classes) == 2 else len(classes)) or len(classes) < 2:
        raise ValueError("other scores than classes")
    parts = parts_of(model, encoder, classes, POINTS)
    exact = noise.largest() == 0
    rows = [row for part in parts for row in _swings(part, exact)]
    head = ("column", "log-odds of", "swing", "lowest at", "highest at")
    yield Table("what each column adds", head, tuple(rows), OF_SWINGS)
    for part in parts:
        is_curve = not isinstance(part.at[0], str)
        points = tuple(_point(part, place, exact) for place in range(len(part.at)))
        outputs = (f"log-odds of {name}" for name in part.classes)
        yield Table(f"what {part.column} adds", (part.column, *outputs), points, curve=is_curve)


def _swings(part: Part, exact: bool) -> Iterator[tuple[Cell, ...]]:
    for output, name in enumerate(part.classes):
        scores = part.scores[:, output]
        least, most = int(scores.argmin()), int(scores.argmax())
        error = 0.0 if exact else None
        if part.deviation is not None:
            error = float(np.hypot(*part.deviation[[least, most], output]))
        swing = Number(float(scores[most] - scores[least]), error, "estimate")
        yield part.column, name, swing, part.at[least], part.at[most]


def _point(part: Part, place: int, exact: bool) -> tuple[Cell, ...]:
    cells, errors = list[Cell]([part.at[place]]), part.deviation
    for output in range(len(part.classes)):
        error = float(errors[place, output]) if errors is not None else 0.0 if exact else None
        cells.append(Number(float(part.scores[place, output]), error, "estimate"))
    return tuple(cells)
