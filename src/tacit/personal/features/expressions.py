"""Everything but aggregates: what a tree means once its leaves have values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.personal.dataset import Dataset
from tacit.personal.durations import DAY, HOUR
from tacit.personal.features.nodes import (
    Among,
    Binary,
    Distance,
    Feature,
    Function,
    Not,
    Number,
    Text,
    Truth,
    children,
)
from tacit.personal.features.values import Values, among, binary, literal, negated
from tacit.personal.features.vocabulary import CLOCK

__all__ = ["valued"]

EARTH = 6_371_008.8  # metres, the mean radius (Moritz 2000, Geodetic Reference System 1980)

Floats = NDArray[np.float64]
Leaf = Callable[[Feature], Values]


def valued(node: Feature, leaf: Leaf, dataset: Dataset) -> Values:
    """Its values; `leaf` knows those of fields and aggregates."""
    match node:
        case Number(value) | Text(value) | Truth(value):
            return literal(value)
        case Binary(op, left, right):
            return binary(op, valued(left, leaf, dataset), valued(right, leaf, dataset))
        case Not(of):
            return negated(valued(of, leaf, dataset))
        case Among(of, chosen):
            return among(valued(of, leaf, dataset), chosen)
        case Function(name, of):
            return _function(name, valued(of, leaf, dataset), dataset)
        case Distance():
            a, b, c, d = (valued(part, leaf, dataset).data for part in children(node))
            return Values("number", _haversine(a, b, c, d))
        case _:
            return leaf(node)


def _function(name: str, of: Values, dataset: Dataset) -> Values:
    if name in CLOCK:
        return Values(CLOCK[name], _clock(name, of.data, dataset))
    if name == "is_missing":
        return Values("boolean", np.isnan(of.data).astype(np.float64))
    if name == "abs":
        return Values("number", np.abs(of.data))
    with np.errstate(all="ignore"):
        data = np.log1p(of.data)
    return Values("number", np.where(np.isfinite(data), data, np.nan))


def _clock(name: str, seconds: Floats, dataset: Dataset) -> Floats:
    """What the person's own clock and calendar showed."""
    found = np.full(len(seconds), np.nan)
    known = np.flatnonzero(~np.isnan(seconds))
    moments = np.rint(seconds[known] * 1e6).astype(np.int64)
    local = dataset.local(moments)
    if name == "hour":
        found[known] = local % DAY // HOUR
    elif name == "month":
        found[known] = (
            local.view("datetime64[us]").astype("datetime64[M]").astype(np.int64) % 12 + 1
        )
    else:
        weekday = (local // DAY + 3) % 7  # the first of January 1970 was a Thursday
        found[known] = weekday if name == "weekday" else weekday >= 5
    return found


def _haversine(lat: Floats, lon: Floats, lat2: Floats, lon2: Floats) -> Floats:
    """Sinnott (1984): well conditioned for places that are near one another."""
    phi, phi2 = np.radians(lat), np.radians(lat2)
    half = np.sin((phi2 - phi) / 2) ** 2
    half = half + np.cos(phi) * np.cos(phi2) * np.sin(np.radians(lon2 - lon) / 2) ** 2
    metres: Floats = 2 * EARTH * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0)))
    return metres
