"""What the model of each program says: one small function for each kind of model.

Each takes a saved model and the noise of its releases, and reads no more of a model than it shows,
so that fields which came later do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.programs.model_file import SavedModel
from tacit.programs.quantiles import SIZES
from tacit.programs.rules import association_rules
from tacit.programs.shown import Cell, Noise, Number, Table, share_noise, share_of
from tacit.programs.shown_bayes import shown_bayes
from tacit.programs.shown_coefficients import (
    shown_averaged,
    shown_crowd_scores,
    shown_ensemble,
    shown_logistic,
)
from tacit.programs.shown_moments import shown_line, shown_pca
from tacit.programs.shown_vectors import units

__all__ = ["tables_of"]

Reals = NDArray[np.float64]
Tables = Iterable[Table]
SURE = 0.5  # rules below this confidence are not shown
MOST_ROWS = 200  # of sets and rules; the model has them all
MOST_ENTRIES = 50  # of an array of a model that no function here knows


def tables_of(saved: SavedModel, noise: Noise) -> tuple[Table, ...]:
    """What the model says; InputError if it contradicts its own schema."""
    shown = SHOWN.get(saved.program.name, _fields)
    try:
        with np.errstate(all="ignore"):
            return tuple(shown(saved, noise))
    except (ValueError, IndexError, TypeError, AttributeError, ArithmeticError, KeyError):
        raise InputError(
            "the arrays of the model do not fit its schema: it is damaged, or no program of tacit "
            "wrote it. Ask for the file again, with its certificate."
        ) from None


# ── counts ──


def _histogram(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    model = saved.model
    for name, labels in zip(model.columns, model.labels, strict=True):
        counts = model.of(name)
        error = noise.of(len(labels))
        pairs = zip(labels, counts.tolist(), strict=True)
        rows = tuple((str(label), Number(count, error)) for label, count in pairs)
        yield Table(f"counts of {name}", ("value", "records"), rows)


def _itemsets(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    model = saved.model
    error = noise.largest()  # a set's count is a mean of what was counted and what shorter ones say
    total = max(float(model.records), 1.0)
    found = list(zip(model.named(), model.counts.tolist(), strict=True))
    rows = tuple(
        (" + ".join(names), Number(count, error, "bound"), share_of(count, error, total))
        for names, count in found[:MOST_ROWS]
    )
    yield Table("frequent itemsets", ("items", "records", "support"), rows, _more(len(found)))
    yield _rules(model, error, total)


def _rules(model: Any, error: float | None, total: float) -> Table:
    rules = association_rules(model, SURE)
    rows: list[tuple[Cell, ...]] = []
    kept = zip(rules.named(), rules.support, rules.confidence, rules.lift, strict=True)
    for (before, after), support, confidence, lift in list(kept)[:MOST_ROWS]:
        having = max(float(support / confidence) * total, 1.0)
        sure = share_of(float(confidence) * having, error, having)
        after_share = float(confidence / lift) if lift > 0 else 1.0
        other = share_of(after_share * total, error, total).noise
        spread = None
        if sure.noise is not None and other is not None and after_share > 0:
            spread = (sure.noise + float(lift) * other) / after_share
        rule = f"{' + '.join(before)} → {' + '.join(after)}"
        rows.append((rule, sure, share_of(float(support) * total, error, total),
                     Number(float(lift), spread, "bound")))  # fmt: skip
    head = ("rule", "confidence", "support", "lift")
    return Table("rules", head, tuple(rows), _more(len(rules.support)))


def _more(count: int) -> str:
    return f"The first {MOST_ROWS} of {count:,}." if count > MOST_ROWS else ""


def _quantiles(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    """A count below a point is made of at most three intervals of each level of the tree."""
    model = saved.model
    each = noise.of(sum(SIZES))
    below = None if each is None else each * math.sqrt(3 * len(SIZES))
    head = ("column", *(f"{100 * p:g} %" for p in model.probabilities))
    rows = []
    for name, values, cumulative in zip(model.columns, model.values, model.cumulative, strict=True):
        total = max(float(cumulative[-1]), 1.0)
        cells: list[Cell] = [str(name)]
        for p, value in zip(model.probabilities, values, strict=True):
            spread = None
            if below is not None:
                around = np.clip([p - below / total, p + below / total], 0.0, 1.0)
                spread = float(np.abs(model.quantile(name, around) - value).max())
            cells.append(Number(float(value), spread, "bound"))
        rows.append(tuple(cells))
    yield Table("quantiles", head, tuple(rows))


# ── clusters ──


def _k_means(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    centres, counts = saved.model.centres, saved.model.counts
    sums, sizes = noise.of(centres.size), noise.of(len(counts))
    head, to_unit = units(saved)
    rows = []
    for place, (centre, count) in enumerate(zip(centres, counts.tolist(), strict=True)):
        many = max(count, 1.0)
        cells: list[Cell] = [f"cluster {place}", Number(count, sizes)]
        for value, (shift, scale) in zip(centre.tolist(), to_unit, strict=True):
            error = None
            if sums is not None and sizes is not None:
                error = scale * (sums + abs(value) * sizes) / many
            cells.append(Number(shift + scale * value, error, "bound"))
        rows.append(tuple(cells))
    note = "Of the last round: where earlier ones put the centres counts as given."
    yield Table("centres", ("cluster", "records", *head), tuple(rows), note)


def _mixture(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    """Of the last round, to first order: shares of counts, and means of sums that a component sees
    from its centre, in units of its reach (mixture.md)."""
    model, noise = saved.model, noise.known(saved.model.count)
    error, (head, to_unit) = noise.longest(), units(saved)
    own = getattr(saved.program, "coordinates", "shared") == "own"
    reach = math.sqrt(len(to_unit)) + 2.0
    weights: list[tuple[Cell, ...]] = []
    spreads: list[tuple[Cell, ...]] = []
    for place, weight in enumerate(model.weights.tolist()):
        name, part = f"component {place}", max(weight, 1e-9)
        of_share = share_noise(error, weight, len(model.weights))
        cells: list[Cell] = [name, noise.per_record(weight, of_share, "standard error")]
        deviations: list[Cell] = [name]
        diagonal = _deviations(model.covariances[place], len(to_unit))
        parts = zip(model.means[place].tolist(), diagonal.tolist(), to_unit, strict=True)
        for mean, deviation, (shift, scale) in parts:
            unit = reach * deviation if own else 1.0
            moved = None if error is None else error * unit * abs(scale) / part
            # Own coordinates have their origin at the centre; shared ones in the ball's.
            far = 1.0 if own else math.hypot(1.0, mean)
            of_mean = None if moved is None else moved * far
            wide = None if moved is None else moved * unit / (2 * max(deviation, 1e-9))
            cells.append(noise.per_record(shift + scale * mean, of_mean, "standard error"))
            deviations.append(noise.per_record(abs(scale) * deviation, wide, "standard error"))
        weights.append(tuple(cells))
        spreads.append(tuple(deviations))
    note = "Of the last round: where earlier ones put the components counts as given."
    yield Table("components", ("component", "weight", *head), tuple(weights), note)
    yield Table("standard deviations", ("component", *head), tuple(spreads))


def _deviations(covariance: Any, width: int) -> Reals:
    """In each direction: of a matrix, of its diagonal alone, or of one variance for all."""
    found = np.asarray(covariance, dtype=np.float64)
    diagonal = np.diag(found) if found.ndim == 2 else np.broadcast_to(found, (width,))
    return np.asarray(np.sqrt(np.maximum(diagonal, 0.0)))


# ── programs of others ──


def _fields(saved: SavedModel, noise: Noise) -> Iterator[Table]:
    """Every field of the model, as it is. What was done to the sums nobody knows here, so their
    noise is that of the longest vector that was released, and no more than a hint."""
    error, rows = noise.longest(), list[tuple[Cell, ...]]()
    for field in fields(saved.model):
        value = getattr(saved.model, field.name)
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
            flat = value.ravel()[:MOST_ENTRIES].tolist()
            places = [np.unravel_index(i, value.shape) for i in range(len(flat))]
            rows += [
                (f"{field.name}{list(map(int, place))}", Number(float(x), error, "estimate"))
                for place, x in zip(places, flat, strict=True)
            ]
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            rows.append((field.name, Number(float(value), error, "estimate")))
        else:
            rows.append((field.name, str(value)[:200]))
    note = "The noise is that of the sums; what the program made of them is not known here."
    yield Table("fields", ("field", "value"), tuple(rows), note)


SHOWN: dict[str, Callable[[SavedModel, Noise], Tables]] = {
    "averaged-logistic": shown_averaged,
    "frequent-itemsets": _itemsets,
    "gaussian-mixture": _mixture,
    "gaussian-mixture-as-published": _mixture,
    "histogram": _histogram,
    "k-means": _k_means,
    "linear-regression": shown_line,
    "logistic": shown_logistic,
    "naive-bayes": shown_bayes,
    "partition-ensemble": shown_ensemble,
    "pca": shown_pca,
    "quantiles": _quantiles,
    "tabulated-bayes": shown_crowd_scores,
}
